//! Owns: what rights are, one verb on one thing, and what is wrong when some are missing. Pure.
//! Never: asks a cluster.

use super::report::Check;

/// Verbs on one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The namespace; empty: everywhere.
    pub namespace: &'static str,
    /// Empty for the core group.
    pub group: &'static str,
    /// With a slash and the subresource if it is one; empty for a path.
    pub resource: &'static str,
    /// For this object only; empty: for any.
    pub name: &'static str,
    /// Beside resources; empty for a resource.
    pub path: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// One of them, where it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The namespace; empty: everywhere.
    pub namespace: String,
    /// The thing.
    pub of: Rights,
    /// The verb.
    pub verb: &'static str,
}

/// A cluster's answer about a right.
pub type Answered = (Right, Result<bool, String>);

impl Rights {
    /// Verbs on a resource, everywhere and of any name.
    pub const fn of(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Self {
        Self {
            namespace: "",
            group,
            resource,
            name: "",
            path: "",
            verbs,
        }
    }

    /// Verbs on a path.
    pub const fn of_path(path: &'static str, verbs: &'static [&'static str]) -> Self {
        Self {
            path,
            ..Self::of("", "", verbs)
        }
    }

    /// The same in one namespace only.
    pub const fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }

    /// The same of one object only.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Each of them; `stands_for` has a namespace in the table and the one that it represents.
    pub fn each<'a>(self, stands_for: (&'a str, &'a str)) -> impl Iterator<Item = Right> + 'a {
        let namespace = if self.namespace == stands_for.0 {
            stands_for.1
        } else {
            self.namespace
        };
        self.verbs.iter().map(move |verb| Right {
            namespace: namespace.to_owned(),
            of: self,
            verb,
        })
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rights {
            group,
            resource,
            name,
            path,
            ..
        } = self.of;
        write!(f, "{} {resource}{path}", self.verb)?;
        for (before, part) in [(".", group), ("/", name), (" in ", &*self.namespace)] {
            if !part.is_empty() {
                write!(f, "{before}{part}")?;
            }
        }
        Ok(())
    }
}

/// Checks the answers; `fix` gives the missing rights.
pub fn rights(answered: &[Answered], fix: &str) -> Check {
    let name = "rights";
    let of = |wanted: &dyn Fn(&Result<bool, String>) -> bool| {
        let some = answered.iter().filter(|(_, answer)| wanted(answer));
        some.map(|(right, _)| right.to_string()).collect::<Vec<_>>()
    };
    let missing = of(&|answer| *answer == Ok(false));
    if !missing.is_empty() {
        return Check::fault(name, format!("may not {}", missing.join(", ")), fix);
    }
    let unanswered = of(&|answer| answer.is_err());
    let why = answered.iter().find_map(|(_, answer)| answer.as_ref().err());
    match why {
        Some(why) => Check::unseen(
            name,
            format!(
                "no answer about {} of {} rights: {why}",
                unanswered.len(),
                answered.len()
            ),
            "see that the API server answers SelfSubjectAccessReviews for this account",
        ),
        None => Check::fine(name, format!("has all {} that it needs", answered.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASES: Rights = Rights::of("coordination.k8s.io", "leases", &["get", "update"]).within("ours");

    fn answered(answers: [Result<bool, String>; 2]) -> Check {
        let rights: Vec<Right> = LEASES.each(("ours", "agents")).collect();
        super::rights(&rights.into_iter().zip(answers).collect::<Vec<_>>(), "FIX")
    }

    #[test]
    fn missing_rights_are_named_one_by_one() {
        let check = answered([Ok(true), Ok(false)]);
        let (what, fix) = check.verdict.words();
        assert!(check.is_fault());
        assert_eq!(what, "may not update leases.coordination.k8s.io in agents");
        assert_eq!(fix.as_deref(), Some("FIX"));
        assert!(!answered([Ok(true), Ok(true)]).is_fault());
    }

    #[test]
    fn rights_that_cannot_be_asked_for_are_unseen() {
        let unseen = answered([Ok(true), Err("forbidden".into())]);
        assert_eq!(unseen.verdict.word(), "unseen");
        assert!(unseen.verdict.words().0.contains("1 of 2 rights: forbidden"));
        assert!(answered([Ok(false), Err("forbidden".into())]).is_fault());
    }

    #[test]
    fn paths_and_names_are_said() {
        let path = Rights::of_path("/version", &["get"]).each(("", ""));
        assert_eq!(
            path.map(|right| right.to_string()).collect::<Vec<_>>(),
            ["get /version"]
        );
        let named = Rights::of("", "namespaces", &["get"]).named("kube-system");
        let said: Vec<String> = named.each(("ours", "x")).map(|right| right.to_string()).collect();
        assert_eq!(said, ["get namespaces/kube-system"]);
    }
}
