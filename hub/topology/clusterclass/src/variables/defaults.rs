//! Owns: constant defaults, set into what is there as custom resources get theirs.

use serde_json::Value;

use super::schema::Schema;

/// Sets the defaults of fields that are missing, or are `null`, at every level of a value.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let (Some(default), None | Some(Value::Null)) = (&property.default, map.get(name)) {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in map {
                if let Some(of) = schema.properties.get(name).or(schema.additional.as_deref()) {
                    fill(of, value);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(of) = &schema.items {
                    fill(of, item);
                }
            }
        }
        _ => {}
    }
}
