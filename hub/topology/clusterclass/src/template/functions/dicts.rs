//! Owns: the functions of maps. `keys` and `values` go by the order of the keys, where upstream has none.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    super::{
        cast::to_text,
        limits::{Failure, nested},
        meter::Meter,
        runes,
        signature::{
            Signature,
            Type::{Any, Dict, Text},
            any, at_least, dict, exactly, listed, text, texts,
        },
        value::{self, List, Value},
    },
    merge::merged,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    made(name).or_else(|| asked(name))
}

fn made(name: &str) -> Option<Signature> {
    match name {
        "dict" => at_least(&[], Any, |meter, given| {
            let mut entries = BTreeMap::new();
            for pair in given.chunks(2) {
                let key = to_text(meter, any(pair, 0))?;
                entries.insert(key, pair.get(1).cloned().unwrap_or(Value::text("")));
            }
            meter.dict(entries)
        }),
        "set" => exactly(&[Dict, Text, Any], |meter, given| {
            let dict = dict(given, 0);
            if dict.nil {
                return Err(Failure::new("assignment to entry in nil map"));
            }
            meter.items(1)?;
            let key = value::Text::from(text(given, 1));
            dict.entries.borrow_mut().insert(key, any(given, 2).clone());
            Ok(any(given, 0).clone())
        }),
        "unset" => exactly(&[Dict, Text], |_, given| {
            let removed = dict(given, 0).entries.borrow_mut().remove(text(given, 1));
            drop(removed);
            Ok(any(given, 0).clone())
        }),
        "pick" => at_least(&[Dict], Text, |meter, given| {
            let mut entries = dict(given, 0).snapshot();
            let wanted: std::collections::BTreeSet<&[u8]> =
                (1..given.len()).map(|at| text(given, at)).collect();
            entries.retain(|key, _| wanted.contains(&**key));
            meter.dict(entries)
        }),
        "omit" => at_least(&[Dict], Text, |meter, given| {
            let mut entries = dict(given, 0).snapshot();
            for at in 1..given.len() {
                entries.remove(text(given, at));
            }
            meter.dict(entries)
        }),
        "merge" | "mustMerge" => at_least(&[Dict], Dict, |meter, given| merged(meter, given, false)),
        "mergeOverwrite" | "mustMergeOverwrite" => {
            at_least(&[Dict], Dict, |meter, given| merged(meter, given, true))
        }
        "deepCopy" | "mustDeepCopy" => exactly(&[Any], |meter, given| match any(given, 0) {
            none if none.is_none() => Err(Failure::new("reflect: call of reflect.Value.Type on zero Value")),
            value => copied(meter, value, 0),
        }),
        _ => None,
    }
}

fn asked(name: &str) -> Option<Signature> {
    match name {
        "get" => exactly(&[Dict, Text], |_, given| {
            Ok(dict(given, 0).get(text(given, 1)).unwrap_or(Value::text("")))
        }),
        "hasKey" => exactly(&[Dict, Text], |_, given| {
            Ok(Value::Bool(
                dict(given, 0).entries.borrow().contains_key(text(given, 1)),
            ))
        }),
        "pluck" => at_least(&[Text], Dict, |meter, given| {
            let found = (1..given.len()).filter_map(|at| dict(given, at).get(text(given, 0)));
            listed(meter, found.collect())
        }),
        "keys" => at_least(&[], Dict, |meter, given| {
            let mut keys = Vec::new();
            for at in 0..given.len() {
                let entries = dict(given, at).snapshot();
                meter.items(keys.len() + entries.len())?;
                keys.extend(entries.into_keys());
            }
            texts(meter, keys)
        }),
        "values" => exactly(&[Dict], |meter, given| {
            let values = dict(given, 0).snapshot().into_values().collect();
            listed(meter, values)
        }),
        "dig" => at_least(&[], Any, |_, given| dug(given)),
        _ => None,
    }
}

/// The value behind a path of keys, or the value that is given for when there is none.
fn dug(given: &[Value]) -> Result<Value, Failure> {
    let [path @ .., otherwise, within] = given else {
        return Err(Failure::new("dig needs at least three arguments"));
    };
    if path.is_empty() {
        return Err(Failure::new("dig needs at least three arguments"));
    }
    if let Some(wrong) = path.iter().find(|key| !matches!(key, Value::Text(_))) {
        let kind = wrong.type_name();
        return Err(Failure::new(format!(
            "interface conversion: interface {{}} is {kind}, not string"
        )));
    }
    let mut here = within.clone();
    for key in path {
        let (Value::Dict(dict), Value::Text(key)) = (&here, key) else {
            let kind = here.type_name();
            return Err(Failure::new(format!(
                "interface conversion: interface {{}} is {kind}, not map[string]interface {{}}"
            )));
        };
        if dict.element != value::Element::Any {
            return Err(Failure::new(format!(
                "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
                runes::lossy(here.type_name().as_bytes())
            )));
        }
        let Some(next) = dict.get(key) else {
            return Ok(otherwise.clone());
        };
        here = next;
    }
    Ok(here)
}

/// A value that shares no map with the old one.
fn copied(meter: &mut Meter, value: &Value, depth: usize) -> Result<Value, Failure> {
    meter.step(1)?;
    nested(depth)?;
    match value {
        Value::List(list) if !list.nil => {
            let mut items = Vec::new();
            for item in list.items.iter() {
                items.push(copied(meter, item, depth + 1)?);
            }
            meter.items(items.len())?;
            Ok(Value::List(List::new(items, list.element)?))
        }
        Value::Dict(dict) if !dict.nil => {
            let mut entries = BTreeMap::new();
            for (key, item) in dict.snapshot() {
                entries.insert(key, copied(meter, &item, depth + 1)?);
            }
            meter.dict_of(entries, dict.element)
        }
        // Go copies what is exported of a version, which is nothing.
        Value::Version(_) => Ok(Value::Version(Rc::default())),
        Value::Release(_) => Ok(Value::Release(Rc::default())),
        other => Ok(other.clone()),
    }
}
