//! Kept for later commands: where the hub is, and which cluster each member is.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use shared::model::advice;

use super::super::args::{ClusterArgs, ServiceType};

/// Kept for later commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::setup) struct Remembered {
    /// The hub, from the first change of its cluster on.
    pub(in crate::setup) hub: Option<HubPlace>,
    /// The clusters that joined, by id.
    pub(in crate::setup) members: BTreeMap<String, MemberPlace>,
}

/// The hub's place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::setup) struct HubPlace {
    /// Its addresses, as `https://HOST:PORT`. Empty until `init` knows them.
    pub(in crate::setup) hubs: Vec<String>,
    /// The address at which clusters join.
    pub(in crate::setup) joins: Vec<String>,
    /// The operator whose certificate is here.
    pub(in crate::setup) operator: String,
    /// The type of its Service.
    pub(in crate::setup) service_type: ServiceType,
    /// The address that the user gave, as `https://HOST:PORT`.
    pub(in crate::setup) given: Option<String>,
    /// The address at which clusters join, as the user gave it.
    pub(in crate::setup) given_join: Option<String>,
    /// UID of the kube-system namespace of its cluster. `None` if `init --print` or an older client wrote this.
    pub(in crate::setup) cluster: Option<String>,
    /// The context with which `init` last reached its cluster.
    pub(in crate::setup) context: Option<String>,
    /// Its namespace.
    pub(in crate::setup) namespace: Option<String>,
    /// It has answered its operator once, so that clusters may have joined.
    pub(in crate::setup) served: bool,
}

impl HubPlace {
    /// The reason why a hub of `clusterset` in this cluster (UID of its kube-system) and namespace would be another one
    /// than this; `None` if it is this one, or nobody knows.
    pub(in crate::setup) fn is_elsewhere(
        &self,
        clusterset: &str,
        cluster: &str,
        namespace: &str,
    ) -> Option<String> {
        let context = self.context.as_deref().unwrap_or("CONTEXT");
        if self.cluster.as_deref().is_some_and(|known| known != cluster) {
            return Some(format!(
                "the hub of clusterset {clusterset} is in another cluster (context {context}). Check --context, or name \
                 another clusterset with --clusterset. To move the hub, run `{}` first; if its cluster is gone for good, \
                 delete setup.json beside the keys of the clusterset",
                advice::uninstall(context)
            ));
        }
        // A namespace means something in its cluster only.
        let known = self.cluster.as_ref().and(self.namespace.as_deref());
        known.filter(|known| *known != namespace).map(|known| {
            format!(
                "the hub of clusterset {clusterset} is in namespace {known} of this cluster, not in {namespace}. Check \
                 --namespace, or name another clusterset with --clusterset"
            )
        })
    }
}

/// A member's cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::setup) struct MemberPlace {
    context: String,
    kubeconfig: Option<PathBuf>,
    namespace: String,
}

impl From<&ClusterArgs> for MemberPlace {
    fn from(args: &ClusterArgs) -> Self {
        Self {
            context: args.context.clone(),
            kubeconfig: args
                .kubeconfig
                .clone()
                .map(|path| std::path::absolute(&path).unwrap_or(path)),
            namespace: args.namespace.clone(),
        }
    }
}

impl MemberPlace {
    /// The cluster, as flags name it.
    pub(in crate::setup) fn args(&self) -> ClusterArgs {
        ClusterArgs {
            context: self.context.clone(),
            kubeconfig: self.kubeconfig.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_hub_of_a_clusterset_is_told() {
        let place = |cluster: Option<&str>, namespace: Option<&str>| HubPlace {
            cluster: cluster.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            context: cluster.map(|_| "hub".to_owned()),
            ..HubPlace::default()
        };
        for (remembered, told) in [
            (place(Some("uid"), Some("ns")), None),
            (place(Some("uid"), None), None),
            (place(None, None), None),
            (
                place(Some("other"), Some("ns")),
                Some("is in another cluster (context hub)"),
            ),
            (
                place(Some("uid"), Some("else")),
                Some("is in namespace else of this cluster, not in ns"),
            ),
        ] {
            let said = remembered.is_elsewhere("default", "uid", "ns");
            match (said, told) {
                (None, None) => {}
                (Some(said), Some(told)) => assert!(said.contains(told), "{said}"),
                (said, told) => panic!("{said:?} instead of {told:?}"),
            }
        }
    }

    /// Files of earlier clients have fewer fields.
    #[test]
    fn what_an_earlier_client_wrote_is_read() {
        let text = r#"{"hub": {"hubs": ["https://hub:8443"], "joins": [], "operator": "admin"}}"#;
        let hub = serde_json::from_str::<Remembered>(text).expect("read").hub;
        let hub = hub.expect("a hub");
        assert_eq!((hub.cluster, hub.served), (None, false));
    }
}
