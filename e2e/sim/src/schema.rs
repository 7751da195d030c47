//! Meaning of a CRD's OpenAPI schema: existing fields, allowed values, merging of lists. Pure functions over a schema
//! and a value; never knows a kind by name.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use regex::Regex;
use serde_json::{Value, json};

use super::status::Cause;

/// Merging and ownership of a list.
#[derive(Debug, PartialEq)]
pub(crate) enum ListKind {
    /// As one value.
    Atomic,
    /// By value.
    Set,
    /// By these keys of its items.
    Map(Vec<String>),
}

/// The schema of a field; absent for what the schema does not declare.
pub(crate) fn field<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let schema = schema?;
    schema
        .get("properties")
        .and_then(|fields| fields.get(name))
        .or_else(|| schema.get("additionalProperties"))
}

pub(crate) fn items(schema: Option<&Value>) -> Option<&Value> {
    schema?.get("items")
}

pub(crate) fn list_kind(schema: Option<&Value>) -> ListKind {
    let stated = schema.and_then(|schema| schema["x-kubernetes-list-type"].as_str());
    match stated {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema
                .and_then(|schema| schema["x-kubernetes-list-map-keys"].as_array())
                .cloned();
            let mut keys: Vec<String> = keys
                .unwrap_or_default()
                .iter()
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect();
            keys.sort();
            ListKind::Map(keys)
        }
        _ => ListKind::Atomic,
    }
}

pub(crate) fn map_is_atomic(schema: Option<&Value>) -> bool {
    schema.is_some_and(|schema| schema["x-kubernetes-map-type"] == json!("atomic"))
}

/// An item's keys in a list that is merged by them, with the defaults of absent ones, as managedFields writes them.
pub(crate) fn item_key(item: &Value, keys: &[String], schema: Option<&Value>) -> String {
    let mut named = serde_json::Map::new();
    for key in keys {
        let stated = item.get(key).filter(|value| !value.is_null());
        let value = stated.or_else(|| field(items(schema), key).and_then(|schema| schema.get("default")));
        named.insert(key.clone(), value.cloned().unwrap_or_default());
    }
    Value::Object(named).to_string()
}

fn open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == json!(true)
}

/// Removes the fields that the schema does not declare and returns their paths.
pub(crate) fn prune(value: &mut Value, schema: &Value, path: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    match value {
        Value::Object(map) => {
            for name in map.keys().cloned().collect::<Vec<_>>() {
                let root = path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                let inner = format!("{path}.{name}");
                match field(Some(schema), &name) {
                    Some(schema) if !root => unknown.append(&mut prune(&mut map[&name], schema, &inner)),
                    None if !root && !open(schema) => {
                        map.remove(&name);
                        unknown.push(inner);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(list) => {
            if let Some(schema) = items(Some(schema)) {
                for (at, item) in list.iter_mut().enumerate() {
                    unknown.append(&mut prune(item, schema, &format!("{path}[{at}]")));
                }
            }
        }
        _ => {}
    }
    unknown
}

/// Everything that is wrong with a value; `old` is what it replaces, for transition rules.
pub(crate) fn validate(
    value: &Value,
    old: Option<&Value>,
    schema: &Value,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    if let Some(wanted) = schema["type"].as_str().filter(|wanted| !is_type(value, wanted)) {
        causes.push(Cause::wrong_type(
            path,
            format!("Invalid value: {value}: must be of type {wanted}"),
        ));
        return;
    }
    validate_bounds(value, schema, path, causes);
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        // The one CEL rule of the served CRDs; CEL itself is not simulated.
        if rule["rule"] == json!("self == oldSelf") && old.is_some_and(|old| old != value) {
            causes.push(Cause::invalid(
                path,
                format!("Invalid value: {}", rule["message"].as_str().unwrap_or_default()),
            ));
        }
    }
    match value {
        Value::Object(map) => {
            for name in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !map.contains_key(name) {
                    causes.push(Cause::required(dotted(path, name), "Required value"));
                }
            }
            for (name, inner) in map {
                let root = path.is_empty() && name == "metadata";
                if let Some(schema) = field(Some(schema), name).filter(|_| !root) {
                    validate(
                        inner,
                        old.and_then(|old| old.get(name)),
                        schema,
                        &dotted(path, name),
                        causes,
                    );
                }
            }
        }
        Value::Array(list) => {
            let mut seen = BTreeSet::new();
            for (at, item) in list.iter().enumerate() {
                let path = format!("{path}[{at}]");
                if let Some(schema) = items(Some(schema)) {
                    validate(item, None, schema, &path, causes);
                }
                if let ListKind::Map(keys) = list_kind(Some(schema))
                    && !seen.insert(item_key(item, &keys, Some(schema)))
                {
                    causes.push(Cause::duplicate(
                        path,
                        format!("Duplicate value: {}", item_key(item, &keys, Some(schema))),
                    ));
                }
            }
        }
        _ => {}
    }
}

fn dotted(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn is_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => true,
    }
}

/// Returns true if a text has the pattern of a schema; a pattern that is none allows everything.
fn matches(pattern: &str, text: &str) -> bool {
    thread_local! {
        /// There are as many as the definitions have.
        static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|compiled| {
        let regex = match compiled.get(pattern) {
            Some(regex) => regex,
            None => compiled
                .entry(pattern.to_owned())
                .or_insert_with(|| Regex::new(pattern).ok()),
        };
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    })
}

fn validate_bounds(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let bound = |name: &str| schema[name].as_i64();
    let mut bad =
        |message: String| causes.push(Cause::invalid(path, format!("Invalid value: {value}: {message}")));
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as i64;
        if bound("minLength").is_some_and(|least| length < least) {
            bad(format!("should be at least {} chars long", schema["minLength"]));
        }
        if bound("maxLength").is_some_and(|most| length > most) {
            bad(format!("may not be more than {} bytes", schema["maxLength"]));
        }
        if schema["pattern"]
            .as_str()
            .is_some_and(|pattern| !matches(pattern, text))
        {
            bad(format!(
                "should match '{}'",
                schema["pattern"].as_str().unwrap_or_default()
            ));
        }
        if schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
            bad("must be of type date-time".into());
        }
    }
    if let Some(number) = value.as_i64() {
        if bound("minimum").is_some_and(|least| number < least) {
            bad(format!(
                "should be greater than or equal to {}",
                schema["minimum"]
            ));
        }
        if bound("maximum").is_some_and(|most| number > most) {
            bad(format!("should be less than or equal to {}", schema["maximum"]));
        }
        if schema["format"] == "int32" && i32::try_from(number).is_err() {
            bad("must be of type int32".into());
        }
    }
    if let (Some(list), Some(most)) = (value.as_array(), bound("maxItems"))
        && list.len() as i64 > most
    {
        let message = format!("Too many: {}: must have at most {most} items", list.len());
        causes.push(Cause::other("FieldValueTooMany", path, message));
    }
    if let Some(allowed) = schema["enum"]
        .as_array()
        .filter(|allowed| !allowed.contains(value))
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!(
            "Unsupported value: {value}: supported values: {}",
            allowed.join(", ")
        );
        causes.push(Cause::unsupported(path, message));
    }
}
