//! The kept parts of identity Leases and Nodes. A Node is tens of kilobytes: only its condition Ready is kept. Nothing
//! here decides.

use std::borrow::Cow;

use k8s_openapi::{ClusterResourceScope, api::coordination::v1::Lease};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;
use shared::api::{convert::shown_name, names::LABEL_HOSTNAME};

use super::leases::{Form, IdentityLease, Picture};
use crate::watch::{Head, Kept, Watched};

/// The kept part of an identity Lease.
#[derive(Debug)]
pub struct KeptLease {
    head: Head,
    host: Box<str>,
    holder: Box<str>,
    renewed: Option<i64>,
}

impl Kept for KeptLease {
    type Object = Lease;

    fn keep(lease: Lease) -> Self {
        let spec = lease.spec.as_ref();
        let host = lease.labels().get(LABEL_HOSTNAME).map_or("", |host| host);
        Self {
            host: shown_name(host).unwrap_or_default(),
            holder: spec
                .and_then(|spec| spec.holder_identity.as_deref())
                .unwrap_or_default()
                .into(),
            renewed: spec
                .and_then(|spec| spec.renew_time.as_ref())
                .map(|time| time.0.as_microsecond()),
            head: Head::of(&lease.metadata),
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

/// The Leases of both forms, as they stand.
pub fn picture(current: &Watched<KeptLease>, old: &Watched<KeptLease>) -> Picture {
    let of = |store: &Watched<KeptLease>, form| {
        store.all().into_iter().map(move |lease| {
            let seen = IdentityLease {
                uid: lease.head.uid.clone(),
                holder: lease.holder.clone(),
                renewed: lease.renewed,
                host: lease.host.clone(),
                form,
            };
            (lease.head.name.clone(), seen)
        })
    };
    of(old, Form::Old).chain(of(current, Form::Current)).collect()
}

/// A Node as it is read: everything else of it is passed over.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeReadiness {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Vec<NodeCondition>,
}

#[derive(Debug, Clone, Deserialize)]
struct NodeCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

impl Resource for NodeReadiness {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The kept part of a Node.
#[derive(Debug)]
pub struct KeptNode {
    head: Head,
    /// Its condition Ready is True.
    pub ready: bool,
}

impl Kept for KeptNode {
    type Object = NodeReadiness;

    fn keep(node: NodeReadiness) -> Self {
        let mut conditions = node.status.conditions.iter();
        Self {
            ready: conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            head: Head::of(&node.metadata),
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

impl KeptNode {
    /// Its name, as a report takes it.
    pub fn name(&self) -> Box<str> {
        shown_name(&self.head.name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(conditions: serde_json::Value) -> bool {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "status": {"conditions": conditions, "images": [{"names": ["a"], "sizeBytes": 1}]}});
        KeptNode::keep(serde_json::from_value(node).unwrap()).ready
    }

    #[test]
    fn a_node_is_ready_when_its_condition_says_so_and_not_when_nobody_knows() {
        assert!(node(
            json!([{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}])
        ));
        assert!(!node(json!([{"type": "Ready", "status": "Unknown"}])));
        assert!(!node(json!([{"type": "Ready", "status": "False"}])));
        assert!(!node(json!([{"type": "DiskPressure", "status": "True"}])));
        let bare = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        assert!(!KeptNode::keep(bare).ready);
    }

    #[test]
    fn leases_of_both_forms_are_one_picture() {
        let lease = |name: &str, labels: serde_json::Value| {
            let lease = json!({"metadata": {"name": name, "namespace": "kube-system", "uid": name, "labels": labels,
                "resourceVersion": "7"}, "spec": {"holderIdentity": "h", "renewTime": "2026-01-01T00:00:00.000001Z"}});
            serde_json::from_value::<Lease>(lease).unwrap()
        };
        let store = |leases: Vec<Lease>| {
            use crate::watch::Event;
            let store = Watched::<KeptLease>::new(|_| None);
            store.handle(Event::Init);
            leases
                .into_iter()
                .for_each(|lease| store.handle(Event::InitApply(lease)));
            store.handle(Event::InitDone);
            store
        };
        let old = store(vec![lease("kube-apiserver-x", json!({}))]);
        let current = store(vec![
            lease("apiserver-y", json!({LABEL_HOSTNAME: "m1"})),
            lease("apiserver-z", json!(null)),
        ]);
        let picture = picture(&current, &old);
        let hosts: Vec<_> = picture
            .iter()
            .map(|(name, lease)| (&**name, &*lease.host, lease.form))
            .collect();
        let want = [
            ("apiserver-y", "m1", Form::Current),
            ("apiserver-z", "", Form::Current),
            ("kube-apiserver-x", "", Form::Old),
        ];
        assert_eq!(hosts, want);
        assert_eq!(picture["apiserver-y"].renewed, Some(1_767_225_600_000_001));
    }
}
