//! Owns: objects and templates made from the templates of a class.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::objects::group;
use crate::{
    model::{Cluster, Metadata, Reference},
    patch::{
        cluster::metadata,
        owned::{self, DEPLOYMENT_NAME},
        target::Target,
    },
};

/// The object that a template is of: its content, with labels and annotations above the template's own.
pub(super) fn object(
    target: &Target,
    reference: &Reference,
    cluster: &Cluster,
    name: &str,
    said: Metadata,
) -> Value {
    let mut all = said_by(&target.template, "/spec/template/metadata");
    all.labels.extend(said.labels);
    all.annotations.extend(said.annotations);
    all.annotations.extend(owned::cloned_from(reference));
    let kind = reference.kind.strip_suffix("Template").unwrap_or(&reference.kind);
    let mut object = json!({
        "apiVersion": reference.api_version,
        "kind": kind,
        "metadata": about(cluster, name, all),
        "spec": {},
    });
    take(&mut object, "/spec", &target.template);
    object
}

/// The template of a cluster's own, from the class's; `deployment` is the machine deployment's name in the topology.
pub(super) fn template(
    target: &Target,
    reference: &Reference,
    cluster: &Cluster,
    name: &str,
    deployment: Option<&str>,
) -> Value {
    let mut all = said_by(&target.template, "/metadata");
    all.labels.extend(owned::labels(&cluster.name));
    let deployment = deployment.map(|name| (DEPLOYMENT_NAME.to_owned(), name.to_owned()));
    all.labels.extend(deployment);
    all.annotations.extend(owned::cloned_from(reference));
    let spec = target.template.get("spec").cloned().unwrap_or_else(|| json!({}));
    json!({
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "metadata": about(cluster, name, all),
        "spec": spec,
    })
}

/// Name, namespace, labels, annotations, and whose it is, if that has an identity.
pub(super) fn about(cluster: &Cluster, name: &str, said: Metadata) -> Value {
    let mut about = metadata(said);
    about["name"] = json!(name);
    about["namespace"] = json!(cluster.namespace);
    if let Some(uid) = &cluster.uid {
        about["ownerReferences"] = json!([{
            "apiVersion": super::current::CORE,
            "kind": "Cluster",
            "name": cluster.name,
            "uid": uid,
        }]);
    }
    about
}

/// Puts the content of a patched template in place of an object's.
pub(super) fn take(object: &mut Value, place: &str, template: &Value) {
    let content = template.pointer("/spec/template/spec").cloned();
    if let (Some(spec), Some(content)) = (object.pointer_mut(place), content) {
        *spec = content;
    }
}

/// Labels and annotations at a place of an object.
pub(super) fn said_by(object: &Value, place: &str) -> Metadata {
    let texts = |name: &str| -> BTreeMap<String, String> {
        let map = object.pointer(place).and_then(|said| said.get(name)?.as_object());
        let map = map.into_iter().flatten();
        map.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    Metadata {
        field: String::new(),
        labels: texts("labels"),
        annotations: texts("annotations"),
    }
}

/// A reference as v1beta2 writes it.
pub(super) fn refer(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiGroup": group(api_version), "kind": kind, "name": name})
}

/// Sets a field at a path, making the objects on the way.
pub(super) fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = object;
    for name in way {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[*name];
    }
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    at[*last] = value;
}

/// The value at a path.
pub(super) fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| object.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_at_any_depth() {
        let mut object = json!({"a": {"x": 1}, "b": 2});
        set(&mut object, &["a", "y"], json!(3));
        set(&mut object, &["b", "c", "d"], json!(4));
        assert_eq!(object, json!({"a": {"x": 1, "y": 3}, "b": {"c": {"d": 4}}}));
        assert_eq!(get(&object, &["b", "c", "d"]), Some(&json!(4)));
        assert_eq!(get(&object, &["b", "x", "d"]), None);
    }
}
