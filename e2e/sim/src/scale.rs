//! The scale subresource: one number of an object, read and written as an object of its own (autoscaling/v1 Scale).
//! Translates; the write itself is an ordinary one of `spec.replicas`.

use serde_json::{Value, json};

use super::{
    kinds::Kind,
    patch,
    status::{Cause, Refusal},
    write::How,
};

/// The Scale of an object that is kept.
pub(crate) fn of(object: &Value) -> Value {
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        metadata[name] = object["metadata"][name].clone();
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {},
        "status": {"replicas": object["status"]["replicas"].as_i64().unwrap_or_default()}});
    // As Kubernetes writes it: no replicas is zero replicas.
    if let Some(replicas) = object["spec"]["replicas"]
        .as_i64()
        .filter(|replicas| *replicas != 0)
    {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let labels = object["spec"]["selector"]["matchLabels"].as_object();
    let selector = labels.into_iter().flatten();
    let selector: Vec<String> = selector
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector.join(","));
    }
    scale
}

/// The merge patch that a write of the Scale is to the object; preconditions stay with it.
pub(crate) fn as_patch(kind: &Kind, object: &Value, how: &How, body: &Value) -> Result<Value, Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut scale = of(object);
    match how {
        How::Update => scale = body.clone(),
        How::MergePatch => patch::merge(&mut scale, body),
        How::StrategicPatch => patch::strategic(&mut scale, body),
        How::Create | How::Apply { .. } => {
            let message = format!(
                "the scale of {} is not applied: patch or update it",
                kind.qualified()
            );
            return Err(Refusal::new(415, "UnsupportedMediaType", message));
        }
    }
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        let cause = Cause::invalid("spec.replicas", message);
        return Err(Refusal::invalid_as("autoscaling", "Scale", name, &[cause]));
    }
    let stated = |field: &str| body["metadata"][field].clone();
    let mut patch = json!({"metadata": {}, "spec": {"replicas": replicas}});
    for field in ["uid", "resourceVersion"] {
        if !stated(field).is_null() {
            patch["metadata"][field] = stated(field);
        }
    }
    Ok(patch)
}
