//! Owns: what a simulated cluster says an account may do there: the answers to reviews of access, by the rules of roles.
//! Never: refuses a request because of it.

use serde_json::{Value, json};

/// Path at which an account asks for its rights.
pub(crate) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The granted rights; at first all.
#[derive(Debug, Default)]
pub(crate) struct Grants(Option<Vec<Granted>>);

/// A rule, and where it counts: in one namespace, or everywhere if that is empty.
#[derive(Debug)]
struct Granted {
    namespace: String,
    rule: Value,
}

impl Grants {
    /// The grants of these Roles and ClusterRoles, each bound where it is.
    pub(crate) fn of(roles: &[Value]) -> Self {
        let mut granted = Vec::new();
        for role in roles {
            let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
            let rules = role["rules"].as_array().into_iter().flatten();
            granted.extend(rules.map(|rule| Granted {
                namespace: namespace.to_owned(),
                rule: rule.clone(),
            }));
        }
        Self(Some(granted))
    }

    /// Answers a SelfSubjectAccessReview.
    pub(crate) fn review(&self, review: &Value) -> Value {
        let spec = &review["spec"];
        let allowed = self.0.as_ref().is_none_or(|granted| {
            granted.iter().any(|one| {
                if spec["nonResourceAttributes"].is_object() {
                    one.grants_path(&spec["nonResourceAttributes"])
                } else {
                    one.grants(&spec["resourceAttributes"])
                }
            })
        });
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "spec": spec, "status": {"allowed": allowed}})
    }
}

impl Granted {
    fn grants(&self, asked: &Value) -> bool {
        let text = |field: &str| asked[field].as_str().unwrap_or_default();
        let resource = match text("subresource") {
            "" => text("resource").to_owned(),
            subresource => format!("{}/{subresource}", text("resource")),
        };
        let named = self.rule["resourceNames"]
            .as_array()
            .is_some_and(|names| !names.is_empty());
        (self.namespace.is_empty() || self.namespace == text("namespace"))
            && self.lists("apiGroups", text("group"))
            && self.lists("resources", &resource)
            && self.lists("verbs", text("verb"))
            && (!named || self.lists("resourceNames", text("name")))
    }

    fn grants_path(&self, asked: &Value) -> bool {
        let (path, verb) = (&asked["path"], &asked["verb"]);
        let path = path.as_str().unwrap_or_default();
        let mut paths = self.rule["nonResourceURLs"].as_array().into_iter().flatten();
        let covered = paths.any(|listed| {
            let listed = listed.as_str().unwrap_or_default();
            let below = listed.strip_suffix('*');
            below.map_or(listed == path, |below| path.starts_with(below))
        });
        covered && self.lists("verbs", verb.as_str().unwrap_or_default())
    }

    fn lists(&self, field: &str, wanted: &str) -> bool {
        let mut listed = self.rule[field].as_array().into_iter().flatten();
        listed.any(|one| one == wanted || one == "*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(access: &Grants, spec: Value) -> bool {
        access.review(&json!({"spec": spec}))["status"]["allowed"] == true
    }

    #[test]
    fn a_review_is_answered_by_the_rules_of_the_roles() {
        let access = Grants::of(&[
            json!({"rules": [
                {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]},
                {"apiGroups": ["x"], "resources": ["exports/status"], "verbs": ["patch"]},
                {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["ours"], "verbs": ["get"]},
                {"nonResourceURLs": ["/version", "/openapi/*"], "verbs": ["get"]},
            ]}),
            json!({"metadata": {"namespace": "ours"}, "rules": [
                {"apiGroups": ["c"], "resources": ["leases"], "verbs": ["update"]},
            ]}),
        ]);
        let of = |group: &str, resource: &str, verb: &str, more: Value| {
            let mut attributes = json!({"group": group, "resource": resource, "verb": verb});
            for (key, value) in more.as_object().into_iter().flatten() {
                attributes[key] = value.clone();
            }
            allowed(&access, json!({"resourceAttributes": attributes}))
        };
        assert!(of("", "services", "get", json!({"namespace": "any"})));
        assert!(!of("", "services", "delete", json!({})) && !of("x", "services", "get", json!({})));
        assert!(of("x", "exports", "patch", json!({"subresource": "status"})));
        assert!(!of("x", "exports", "patch", json!({})));
        assert!(of("", "namespaces", "get", json!({"name": "ours"})));
        assert!(!of("", "namespaces", "get", json!({"name": "theirs"})));
        assert!(of("c", "leases", "update", json!({"namespace": "ours"})));
        assert!(!of("c", "leases", "update", json!({"namespace": "theirs"})));
        let path = |path: &str| {
            allowed(
                &access,
                json!({"nonResourceAttributes": {"path": path, "verb": "get"}}),
            )
        };
        assert!(path("/version") && path("/openapi/v3") && !path("/metrics"));
    }

    #[test]
    fn at_first_everything_may_be_done() {
        let spec = json!({"resourceAttributes": {"group": "", "resource": "secrets", "verb": "get"}});
        assert!(allowed(&Grants::default(), spec.clone()));
        assert!(!allowed(&Grants::of(&[]), spec));
    }
}
