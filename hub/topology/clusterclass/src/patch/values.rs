//! Owns: the variables of one template: those of the cluster, with those of the template's place above them.

use serde_json::{Map, Value};

/// The variable that is not the user's.
pub(super) const BUILTIN: &str = "builtin";

/// One map of two: the second one's variables win, but of `builtin` both are kept, field by field.
pub(super) fn merged(global: &Map<String, Value>, place: &Map<String, Value>) -> Map<String, Value> {
    let mut all = global.clone();
    for (name, value) in place {
        match all.get_mut(name) {
            Some(below) if name == BUILTIN => merge(below, value),
            _ => {
                all.insert(name.clone(), value.clone());
            }
        }
    }
    all
}

/// Puts a value over another; objects are merged field by field.
pub(crate) fn merge(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                match below.get_mut(name) {
                    Some(below) => merge(below, value),
                    None => {
                        below.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (below, above) => *below = above.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn the_place_wins_and_builtins_are_merged() {
        let global = map(json!({"a": {"x": 1}, "b": 1, "builtin": {"cluster": {"name": "c"}}}));
        let place = map(json!({"a": {"y": 2}, "builtin": {"cluster": {"uid": "u"}, "controlPlane": {}}}));
        assert_eq!(
            Value::Object(merged(&global, &place)),
            json!({
                "a": {"y": 2},
                "b": 1,
                "builtin": {"cluster": {"name": "c", "uid": "u"}, "controlPlane": {}},
            })
        );
    }
}
