//! Owns: the requests to extensions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{HOOKS, Hook};

/// The object that holds a template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The field that refers to the template.
    pub field: String,
}

/// A template in a request.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Its holder.
    pub holder: &'a Holder,
    /// The template, as the patches before left it.
    pub template: &'a Value,
    /// Variables of its place.
    pub variables: &'a Map<String, Value>,
}

/// The id of a template in a request, by its index: the same in each, so that equal plans ask equal questions.
pub fn uid(index: usize) -> String {
    format!("00000000-0000-4000-8000-{index:012x}")
}

/// A request for patches of templates, or for a judgement of them.
pub fn of_templates(
    hook: Hook,
    settings: &BTreeMap<String, String>,
    global: &Map<String, Value>,
    items: &[Item<'_>],
) -> Value {
    let items = items.iter().enumerate().map(|(index, item)| {
        let Holder {
            api_version,
            kind,
            namespace,
            name,
            field,
        } = item.holder;
        let mut said = json!({
            "holderReference": {
                "apiVersion": api_version,
                "kind": kind,
                "namespace": namespace,
                "name": name,
                "fieldPath": field,
            },
            "object": item.template,
        });
        if hook == Hook::GeneratePatches {
            said["uid"] = json!(uid(index));
        }
        if !item.variables.is_empty() {
            said["variables"] = listed(item.variables);
        }
        said
    });
    let items: Vec<Value> = items.collect();
    let mut request = of(hook, settings);
    request["variables"] = listed(global);
    request["items"] = Value::Array(items);
    request
}

/// A request for definitions of variables.
pub fn of_variables(settings: &BTreeMap<String, String>) -> Value {
    of(Hook::DiscoverVariables, settings)
}

fn of(hook: Hook, settings: &BTreeMap<String, String>) -> Value {
    let mut request = json!({"apiVersion": HOOKS, "kind": format!("{}Request", hook.name())});
    if !settings.is_empty() {
        request["settings"] = json!(settings);
    }
    request
}

/// Variables as a list; the builtin one is the last.
fn listed(variables: &Map<String, Value>) -> Value {
    let of = |builtin: bool| {
        let all = variables.iter();
        all.filter(move |(name, _)| (*name == super::super::values::BUILTIN) == builtin)
    };
    let all = of(false).chain(of(true));
    all.map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}
