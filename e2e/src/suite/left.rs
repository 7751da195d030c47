//! Owns: what a scenario leaves in a shared fleet: what is declared harmless is cleared away, all else is named.
//! Never: decides what becomes of the scenario or the fleet.
//!
//! Namespaces are never deleted: each has a name of its own, and a namespace controller asks for every kind of the cluster
//! to empty one. Definitions and roles of ours may be changed: each scenario applies them first.

use super::{LABEL_STORY, RUNNING};
use anyhow::Context;
use cluster::{
    deploy,
    real::{Cluster, Fleet},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::json;
use shared::api::names::{
    LABEL_MANAGED_BY, LABEL_SOURCE_CLUSTER, PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET, TRIBUTARY_NAMESPACE,
};
use std::{collections::BTreeSet, sync::OnceLock};

/// Objects of a kind that are looked at in one cluster.
const OBJECTS_MAX: u32 = 500;

/// A kind of which something may be left.
struct Checked {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// Labels of those that count.
    selector: &'static str,
    rule: Rule,
}

/// The objects of a kind that may be there when a scenario has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// None.
    Never,
    /// Those that every scenario installs.
    Installed,
    /// Those of a cluster's membership, which are cleared away.
    Membership,
    /// Those in our own namespace, which are cleared away; those in Kubernetes' are Kubernetes'.
    Ours,
}

const fn checked(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    selector: &'static str,
    rule: Rule,
) -> Checked {
    Checked {
        group,
        version,
        kind,
        selector,
        rule,
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Kubernetes' own roles have this label.
const NOT_BUILT_IN: &str = "kubernetes.io/bootstrapping!=rbac-defaults";
/// Kinds that would change what other agents do, or what API servers refuse.
const KINDS: [Checked; 15] = [
    checked(MCS, "v1beta1", "ServiceExport", "", Rule::Never),
    checked(MCS, "v1beta1", "ServiceImport", "", Rule::Never),
    checked(MCS, "v1alpha1", "ClusterProfile", "", Rule::Never),
    checked("", "v1", "Service", LABEL_MANAGED_BY, Rule::Never),
    checked("", "v1", "Node", "", Rule::Never),
    checked(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        LABEL_SOURCE_CLUSTER,
        Rule::Never,
    ),
    checked("coordination.k8s.io", "v1", "Lease", "", Rule::Ours),
    checked("about.k8s.io", "v1beta1", "ClusterProperty", "", Rule::Membership),
    checked(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "",
        Rule::Installed,
    ),
    checked(ADMISSION, "v1", "ValidatingAdmissionPolicy", "", Rule::Installed),
    checked(ADMISSION, "v1", deploy::POLICY_BINDING, "", Rule::Installed),
    checked(ADMISSION, "v1", "ValidatingWebhookConfiguration", "", Rule::Never),
    checked(ADMISSION, "v1", "MutatingWebhookConfiguration", "", Rule::Never),
    checked(RBAC, "v1", "ClusterRole", NOT_BUILT_IN, Rule::Installed),
    checked(RBAC, "v1", "ClusterRoleBinding", NOT_BUILT_IN, Rule::Installed),
];
const MCS: &str = "multicluster.x-k8s.io";
/// Kinds that are removed from the namespaces of scenarios, exports first.
const CONTENTS: [(&str, &str, &str); 4] = [
    (MCS, "v1beta1", "ServiceExport"),
    (MCS, "v1beta1", "ServiceImport"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("", "v1", "Service"),
];

/// One object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Object {
    namespace: String,
    name: String,
    /// It is being deleted, or its namespace is.
    going: bool,
}

/// The treatment of an object that a scenario left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Stays,
    ClearedAway,
    Left,
}

fn judge(kind: &Checked, object: &Object, installed: &BTreeSet<(String, String)>) -> Verdict {
    let is_installed = || installed.contains(&(kind.kind.to_owned(), object.name.clone()));
    match kind.rule {
        _ if object.going => Verdict::Stays,
        Rule::Installed if is_installed() => Verdict::Stays,
        Rule::Membership if [PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET].contains(&&*object.name) => {
            Verdict::ClearedAway
        }
        Rule::Ours if object.namespace == TRIBUTARY_NAMESPACE => Verdict::ClearedAway,
        Rule::Ours if object.namespace.starts_with("kube-") => Verdict::Stays,
        Rule::Never | Rule::Installed | Rule::Membership | Rule::Ours => Verdict::Left,
    }
}

/// Clears away what is harmless, and names the rest, by cluster.
pub(super) async fn clear(fleet: &Fleet) -> anyhow::Result<Vec<String>> {
    let installed = installed()?;
    let clusters = fleet.clusters().iter();
    let left =
        futures::future::try_join_all(clusters.map(|cluster| clear_cluster(cluster, installed))).await?;
    Ok(left.concat())
}

/// Kinds and names of what every scenario installs.
fn installed() -> anyhow::Result<&'static BTreeSet<(String, String)>> {
    static INSTALLED: OnceLock<BTreeSet<(String, String)>> = OnceLock::new();
    if let Some(installed) = INSTALLED.get() {
        return Ok(installed);
    }
    let mut installed = BTreeSet::new();
    for directory in deploy::DIRECTORIES {
        for object in deploy::installed(directory)? {
            installed.insert((deploy::kind(&object).to_owned(), deploy::name(&object).to_owned()));
        }
    }
    Ok(INSTALLED.get_or_init(|| installed))
}

async fn clear_cluster(
    cluster: &Cluster,
    installed: &BTreeSet<(String, String)>,
) -> anyhow::Result<Vec<String>> {
    let client = cluster.client().await?;
    empty_namespaces(&client).await?;
    let namespaces = Api::<Namespace>::all(client.clone());
    let namespaces = namespaces.list_metadata(&ListParams::default()).await?.items;
    let going = |namespace: &&kube::core::PartialObjectMeta<Namespace>| {
        namespace.metadata.deletion_timestamp.is_some()
    };
    let going: BTreeSet<String> = namespaces
        .iter()
        .filter(going)
        .map(|one| one.name_any())
        .collect();
    let mut left = Vec::new();
    for kind in &KINDS {
        let resource = resource(kind.group, kind.version, kind.kind);
        for object in objects(&client, &resource, kind.selector, &going).await? {
            match judge(kind, &object, installed) {
                Verdict::Stays => {}
                Verdict::ClearedAway => delete(&client, &resource, &object).await?,
                Verdict::Left => {
                    let Object { namespace, name, .. } = &object;
                    left.push(format!("{}: {} {namespace}/{name}", cluster.name(), kind.kind));
                }
            }
        }
    }
    Ok(left)
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Objects of a kind; none where the cluster does not serve it.
async fn objects(
    client: &Client,
    resource: &ApiResource,
    selector: &str,
    going: &BTreeSet<String>,
) -> anyhow::Result<Vec<Object>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let wanted = ListParams::default().labels(selector).limit(OBJECTS_MAX);
    let found = match api.list_metadata(&wanted).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        found => found.with_context(|| format!("cannot list {}", resource.plural))?,
    };
    let object = |metadata: kube::core::ObjectMeta| {
        let namespace = metadata.namespace.unwrap_or_default();
        Object {
            going: metadata.deletion_timestamp.is_some() || going.contains(&namespace),
            name: metadata.name.unwrap_or_default(),
            namespace,
        }
    };
    Ok(found.items.into_iter().map(|one| object(one.metadata)).collect())
}

async fn delete(client: &Client, resource: &ApiResource, object: &Object) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = if object.namespace.is_empty() {
        Api::all_with(client.clone(), resource)
    } else {
        Api::namespaced_with(client.clone(), &object.namespace, resource)
    };
    match api.delete(&object.name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => {
            deleted.with_context(|| format!("cannot delete {} {}", resource.kind, object.name))?;
            Ok(())
        }
    }
}

/// Empties the namespaces of stories in a shared cluster: what is left there would be exported by the agents of the next
/// story too.
pub async fn empty_namespaces(client: &Client) -> anyhow::Result<()> {
    let of_stories = ListParams::default().labels(&format!("{LABEL_STORY}={RUNNING}"));
    let namespaces = Api::<Namespace>::all(client.clone());
    for namespace in namespaces.list_metadata(&of_stories).await?.items {
        let namespace = namespace.name_any();
        for (group, version, kind) in CONTENTS {
            let resource = resource(group, version, kind);
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
            let all = (DeleteParams::default(), ListParams::default());
            match api.delete_collection(&all.0, &all.1).await {
                // The definition is gone, and with it every object of its kind.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                gone => drop(gone.with_context(|| format!("cannot empty {namespace}"))?),
            }
        }
        let ended = Patch::Merge(json!({"metadata": {"labels": {LABEL_STORY: "ended"}}}));
        namespaces
            .patch(&namespace, &PatchParams::default(), &ended)
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kind: &str, namespace: &str, name: &str, going: bool) -> Verdict {
        let object = Object {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            going,
        };
        let installed = BTreeSet::from([("CustomResourceDefinition".to_owned(), "ours".to_owned())]);
        let kind = KINDS.iter().find(|checked| checked.kind == kind).expect("a kind");
        judge(kind, &object, &installed)
    }

    #[test]
    fn what_the_next_scenario_would_meet_is_left_or_cleared_away() {
        use Verdict::{ClearedAway, Left, Stays};
        for (kind, namespace, name, wanted) in [
            ("ServiceExport", "shop", "cart", Left),
            ("ValidatingWebhookConfiguration", "", "any", Left),
            ("CustomResourceDefinition", "", "ours", Stays),
            ("CustomResourceDefinition", "", "widgets", Left),
            ("ClusterRole", "", "ours", Left),
            ("ClusterProperty", "", PROPERTY_CLUSTER_ID, ClearedAway),
            ("ClusterProperty", "", "location", Left),
            ("Lease", TRIBUTARY_NAMESPACE, "tributary-agent", ClearedAway),
            ("Lease", "kube-system", "apiserver", Stays),
            ("Lease", "shop", "any", Left),
        ] {
            assert_eq!(verdict(kind, namespace, name, false), wanted, "{kind} {name}");
            assert_eq!(verdict(kind, namespace, name, true), Stays, "{kind} {name} goes");
        }
    }
}
