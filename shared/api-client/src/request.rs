//! Requests to the API server, in the words of its audit log: verb and resource; and their numbers.

use http::{Method, StatusCode, Uri};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Counts requests; clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct ApiMetrics {
    requests: Family<Labels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    verb: &'static str,
    resource: String,
    code: String,
}

impl ApiMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let requests =
            "Requests to the API server, by verb, resource and code of the answer (none: no answer)";
        registry.register("api_requests", requests, metrics.requests.clone());
        metrics
    }

    pub(super) fn count(&self, asked: &Asked, code: Option<StatusCode>) {
        let labels = Labels {
            verb: asked.verb,
            resource: asked.resource.clone(),
            code: code.map_or_else(|| "none".to_owned(), |code| code.as_str().to_owned()),
        };
        self.requests.get_or_create(&labels).inc();
    }
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    verb: &'static str,
    /// The resource with its subresource; for what is no resource the first part of its path.
    resource: String,
}

impl Asked {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let root = parts.next().unwrap_or_default();
        let skipped = match root {
            "api" => 1,  // version
            "apis" => 2, // group and version
            _ => {
                return Self {
                    verb: verb(method, true, false),
                    resource: root.to_owned(),
                };
            }
        };
        let path: Vec<&str> = parts.skip(skipped).collect();
        // namespaces/shop/services/cart/status: the namespace's resource follows it
        let path = match path[..] {
            ["namespaces", _, ref within @ ..] if !within.is_empty() => within,
            ref path => path,
        };
        let (resource, name, sub) = (path.first(), path.get(1), path.get(2));
        let is_watch = uri
            .query()
            .is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let sub = sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        Self {
            verb: verb(method, name.is_some(), is_watch),
            resource: format!("{}{sub}", resource.unwrap_or(&root)),
        }
    }

    pub(super) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }
}

fn verb(method: &Method, is_named: bool, is_watch: bool) -> &'static str {
    match *method {
        Method::GET if is_watch => "watch",
        Method::GET if is_named => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_as_the_audit_log_names_it() {
        for (method, uri, verb, resource) in [
            (Method::GET, "/api/v1/namespaces?&limit=500", "list", "namespaces"),
            (Method::GET, "/api/v1/namespaces/kube-system", "get", "namespaces"),
            (
                Method::GET,
                "/api/v1/services?&watch=true&timeoutSeconds=290",
                "watch",
                "services",
            ),
            (
                Method::GET,
                "/api/v1/namespaces/shop/services/watch",
                "get",
                "services",
            ),
            (
                Method::PATCH,
                "https://10.0.0.1/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/cart/status?&force=true",
                "patch",
                "serviceexports/status",
            ),
            (
                Method::POST,
                "/apis/coordination.k8s.io/v1/namespaces/x/leases",
                "create",
                "leases",
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/x/leases/a",
                "update",
                "leases",
            ),
            (
                Method::DELETE,
                "/apis/discovery.k8s.io/v1/namespaces/x/endpointslices/a",
                "delete",
                "endpointslices",
            ),
            (Method::GET, "/readyz?verbose", "get", "readyz"),
            (
                Method::GET,
                "/openapi/v3/apis/multicluster.x-k8s.io/v1beta1",
                "get",
                "openapi",
            ),
        ] {
            let asked = Asked::of(&method, &uri.parse().expect("a URI"));
            assert_eq!((asked.verb, &*asked.resource), (verb, resource), "{method} {uri}");
            assert_eq!(asked.is_watch(), verb == "watch");
        }
    }
}
