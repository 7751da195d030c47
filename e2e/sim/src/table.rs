//! Answers as tables (meta.k8s.io/v1 Table): what `kubectl get` shows, one row an object.
//! Built-in kinds have the columns of `columns.rs`, custom ones those of their CRD; nothing else is known of them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{age::age, columns, kinds::Kind, media::Include, versions::presented};

/// A table of objects as the store has them, asked for in `version`; `metadata` is the list's.
pub(crate) fn table(
    kind: &Kind,
    version: &str,
    objects: &[Arc<Value>],
    metadata: Value,
    include: Include,
    now_ms: i64,
) -> Value {
    let rows = objects.iter().map(|object| {
        let mut row = json!({"cells": cells(kind, version, object, now_ms)});
        match include {
            Include::Nothing => {}
            Include::Metadata => {
                row["object"] = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                                       "metadata": object["metadata"]});
            }
            Include::Object => row["object"] = presented(kind, version, object),
        }
        row
    });
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
           "columnDefinitions": definitions(kind, version), "rows": rows.collect::<Vec<_>>()})
}

fn named_first(kind: &Kind) -> bool {
    kind.kind != "Event"
}

fn definition(name: &str, of_type: &str, format: &str, priority: i64) -> Value {
    json!({"name": name, "type": of_type, "format": format, "description": "", "priority": priority})
}

fn definitions(kind: &Kind, version: &str) -> Value {
    let name = named_first(kind).then(|| definition("Name", "string", "name", 0));
    if !kind.custom {
        let wide = |wide: bool| i64::from(wide);
        let columns = columns::of(kind).iter();
        let columns = columns.map(|(name, only_wide, _)| definition(name, "string", "", wide(*only_wide)));
        return name.into_iter().chain(columns).collect();
    }
    let text = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
    let columns = kind.printer_columns(version).iter().map(|column| {
        let priority = column["priority"].as_i64().unwrap_or_default();
        definition(
            &text(column, "name"),
            &text(column, "type"),
            &text(column, "format"),
            priority,
        )
    });
    name.into_iter().chain(columns).collect()
}

fn cells(kind: &Kind, version: &str, object: &Value, now_ms: i64) -> Vec<Value> {
    let name = named_first(kind).then(|| object["metadata"]["name"].clone());
    if !kind.custom {
        let columns = columns::of(kind).iter().map(|(_, _, cell)| cell(object, now_ms));
        return name.into_iter().chain(columns).collect();
    }
    let columns = kind.printer_columns(version).iter();
    name.into_iter()
        .chain(columns.map(|column| custom_cell(column, object, now_ms)))
        .collect()
}

/// The cell of a CRD's column. Its paths are plain: fields and the indexes of lists.
fn custom_cell(column: &Value, object: &Value, now_ms: i64) -> Value {
    let path = column["jsonPath"].as_str().unwrap_or_default();
    let pointer = path.replace(['.', '['], "/").replace(']', "");
    let found = object.pointer(&pointer).filter(|found| !found.is_null());
    match (column["type"].as_str(), found) {
        (_, None) => Value::Null,
        (Some("date"), Some(time)) => json!(age(time, now_ms)),
        (Some("string"), Some(value)) if !value.is_string() => json!(value.to_string()),
        (_, Some(value)) => value.clone(),
    }
}
