//! Answers as tables (meta.k8s.io/v1 Table): what `kubectl get` shows, one row an object.
//! Built-in kinds have the columns of `columns.rs`, custom ones those of their CRD; nothing else is known of them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{columns, handler::presented, kinds::Kind};

/// How much of an object goes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    Nothing,
    /// Its metadata, for labels and namespaces.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// The `includeObject` of a query.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::Nothing,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

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

/// How long ago a time was, as people say it.
pub(super) fn age(time: &Value, now_ms: i64) -> String {
    let Some(time) = time.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "<unknown>".to_owned();
    };
    let seconds = (now_ms - time.as_millisecond()).div_euclid(1_000);
    let two = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{part}"),
    };
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(hours / 24, "d", hours % 24, "h"),
        _ => format!("{}d", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_as_kubectl_says_them() {
        let ages = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3_599, "59m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (36_000, "10h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ];
        for (seconds, said) in ages {
            assert_eq!(
                age(&json!("1970-01-01T00:00:00Z"), seconds * 1_000),
                said,
                "{seconds}"
            );
        }
        assert_eq!(age(&Value::Null, 0), "<unknown>");
    }
}
