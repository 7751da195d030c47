//! Owns: which kinds have the objects of topologies, as far as the objects that were read say.
//! Never: asks a server.

use std::collections::BTreeSet;

use clusterclass::desired::objects::Unread;
use kube::api::ApiResource;
use serde_json::Value;

/// Kinds of Cluster API in the versions that a server prefers.
#[derive(Debug, Clone, Default)]
pub struct Served {
    /// Kinds that every topology needs.
    pub kinds: Vec<ApiResource>,
    /// Machine pools, if the server has them. Clusters without pools do without.
    pub pools: Option<ApiResource>,
}

/// Versions and kinds, or groups and kinds.
pub type Kinds = BTreeSet<(String, String)>;

/// The types of templates that classes name: every place with a type and a name.
pub fn of_classes<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Kinds {
    let mut kinds = Kinds::new();
    let objects = objects.into_iter();
    for class in objects.filter(|object| object["kind"] == "ClusterClass") {
        named(&class["spec"], &mut kinds);
    }
    kinds
}

fn named(value: &Value, kinds: &mut Kinds) {
    match value {
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            if let (Some(api_version), Some(kind), Some(_)) = (text("apiVersion"), text("kind"), text("name"))
            {
                kinds.insert((api_version.to_owned(), kind.to_owned()));
            }
            fields.values().for_each(|value| named(value, kinds));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, kinds)),
        _ => {}
    }
}

/// Groups and kinds that Clusters refer to.
pub fn of_clusters<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Kinds {
    let mut kinds = Kinds::new();
    let objects = objects.into_iter();
    for cluster in objects.filter(|object| object["kind"] == "Cluster") {
        for field in ["infrastructureRef", "controlPlaneRef"] {
            kinds.extend(referred(&cluster["spec"][field]));
        }
    }
    kinds
}

/// Groups and kinds that machine pools refer to.
pub fn of_pools<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Kinds {
    let mut kinds = Kinds::new();
    for pool in objects
        .into_iter()
        .filter(|object| object["kind"] == "MachinePool")
    {
        for place in ["/bootstrap/configRef", "/infrastructureRef"] {
            let reference = pool.pointer(&format!("/spec/template/spec{place}"));
            kinds.extend(reference.and_then(referred));
        }
    }
    kinds
}

/// Group and kind of what a reference in either spelling refers to.
fn referred(reference: &Value) -> Option<(String, String)> {
    let group = reference["apiGroup"].as_str().or_else(|| {
        let version = reference["apiVersion"].as_str()?;
        Some(version.split_once('/')?.0)
    });
    Some((group?.to_owned(), reference["kind"].as_str()?.to_owned()))
}

/// The versions of kinds, of group and kind each, in which classes make them. A version of which no template can be read
/// makes no objects, and any class may name one.
pub fn made(templates: &Kinds, kinds: &Kinds, unread: &Unread) -> Kinds {
    let mut made = Kinds::new();
    for (group, kind) in kinds {
        let readable = templates.iter().filter(|template| {
            let of_group = template.0.split_once('/').is_some_and(|(one, _)| one == group);
            let of_kind = template.1.strip_suffix("Template") == Some(kind);
            of_group && of_kind && !unread.contains_key(*template)
        });
        made.extend(readable.map(|(api_version, _)| (api_version.clone(), kind.clone())));
    }
    made
}
