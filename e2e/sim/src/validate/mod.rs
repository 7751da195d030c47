//! The validations of built-in kinds and of metadata that a schema cannot state.
//! Pure functions from objects to causes; the allocation of addresses is `service.rs`'s.

mod service;
mod slice;
mod text;
mod workload;

use serde_json::{Value, json};

use super::{kinds::Kind, status::Cause};
use text::Faults;

/// The most bytes in all annotations together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Faults of an object, whatever its schema says; `old` is the one that it replaces.
pub(crate) fn object(kind: &Kind, object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    metadata(kind, object, causes);
    if kind.custom {
        return;
    }
    match kind.kind.as_str() {
        "Service" => service::service(object, old, causes),
        "EndpointSlice" => slice::endpoint_slice(object, old, causes),
        "Deployment" => workload::deployment(object, old, causes),
        "ConfigMap" => workload::config_map(object, causes),
        _ => {}
    }
}

/// Adds the faults of one value of one field.
fn complain(causes: &mut Vec<Cause>, field: &str, value: &Value, faults: Faults) {
    for why in faults {
        causes.push(Cause::invalid(field, format!("Invalid value: {value}: {why}")));
    }
}

/// Faults of labels, or of a selector, which is written as labels are.
fn labels(field: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        complain(causes, field, &json!(key), text::qualified(key));
        complain(
            causes,
            field,
            value,
            text::label_value(value.as_str().unwrap_or_default()),
        );
    }
}

/// Faults of an object's metadata.
fn metadata(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    let metadata = &object["metadata"];
    let name_faults = match kind.kind.as_str() {
        "Service" | "Namespace" => text::label,
        _ => text::subdomain,
    };
    let name = metadata["name"].as_str().unwrap_or_default();
    complain(causes, "metadata.name", &metadata["name"], name_faults(name));
    if let Some(prefix) = metadata["generateName"]
        .as_str()
        .filter(|prefix| !prefix.is_empty())
    {
        // A hyphen at its end is followed by the generated letters.
        let begun = prefix
            .strip_suffix('-')
            .map_or(prefix.to_owned(), |begun| format!("{begun}a"));
        complain(
            causes,
            "metadata.generateName",
            &metadata["generateName"],
            name_faults(&begun),
        );
    }
    labels("metadata.labels", &metadata["labels"], causes);
    let mut annotation_bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        annotation_bytes += key.len() + value.as_str().map_or(0, str::len);
        complain(
            causes,
            "metadata.annotations",
            &json!(key),
            text::qualified(&key.to_lowercase()),
        );
    }
    if annotation_bytes > ANNOTATION_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        causes.push(Cause::other("FieldValueTooLong", "metadata.annotations", message));
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let field = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(field, format!("Invalid value: \"\": {why}")));
            }
        }
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let faults = text::qualified(finalizer.as_str().unwrap_or_default());
        complain(causes, "metadata.finalizers", finalizer, faults);
    }
}
