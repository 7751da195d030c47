//! Sets of fields, as managedFields counts them, and the merging that follows from them.
//! Owns comparison, merge and removal by field; never knows who owns a set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::schema::{ListKind, field, item_key, items, list_kind, map_is_atomic};

/// A set of fields; as JSON it is `fieldsV1`. A name is `f:field`, `k:{keys}` or `v:value`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet {
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    pub(crate) fn from_json(json: &Value) -> Self {
        let Some(map) = json.as_object().filter(|map| !map.is_empty()) else {
            return Self {
                member: true,
                children: BTreeMap::new(),
            };
        };
        let named = map.iter().filter(|(name, _)| *name != ".");
        Self {
            member: map.contains_key("."),
            children: named
                .map(|(name, inner)| (name.clone(), Self::from_json(inner)))
                .collect(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut map: Map<String, Value> = self
            .children
            .iter()
            .map(|(name, inner)| (name.clone(), inner.to_json()))
            .collect();
        if self.member && !map.is_empty() {
            map.insert(".".into(), json!({}));
        }
        Value::Object(map)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.member |= other.member;
        for (name, inner) in &other.children {
            self.children.entry(name.clone()).or_default().add(inner);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        self.children.retain(|name, inner| {
            if let Some(other) = other.children.get(name) {
                inner.subtract(other);
            }
            !inner.is_empty()
        });
    }

    /// As `subtract`, but an item in which `other` has any field stays an item.
    pub(crate) fn subtract_shared(&mut self, other: &Self) {
        self.member &= !other.member && other.children.is_empty();
        self.children.retain(|name, inner| {
            if let Some(other) = other.children.get(name) {
                inner.subtract_shared(other);
            }
            !inner.is_empty()
        });
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self {
            member: self.member && other.member,
            children: BTreeMap::new(),
        };
        for (name, inner) in &self.children {
            let shared = other
                .children
                .get(name)
                .map(|other| inner.intersection(other))
                .unwrap_or_default();
            both.insert(name.clone(), shared);
        }
        both
    }

    /// The members' paths as conflict messages write them.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = if self.member {
            vec![String::new()]
        } else {
            Vec::new()
        };
        for (name, inner) in &self.children {
            let (kind, rest) = name.split_at(2);
            let step = if kind == "f:" {
                format!(".{rest}")
            } else {
                format!("[{}]", keys_shown(rest))
            };
            paths.extend(inner.paths().into_iter().map(|tail| format!("{step}{tail}")));
        }
        paths
    }

    /// The fields that an applied configuration states.
    pub(crate) fn of(value: &Value, schema: Option<&Value>) -> Self {
        let Some(parts) = parts(value, schema) else {
            return Self {
                member: true,
                children: BTreeMap::new(),
            };
        };
        let mut set = Self::default();
        for (name, (inner, schema)) in parts {
            let mut inner = Self::of(inner, schema);
            inner.member |= name.starts_with("k:");
            set.children.insert(name, inner);
        }
        set
    }

    fn insert(&mut self, name: String, inner: Self) {
        if !inner.is_empty() {
            self.children.insert(name, inner);
        }
    }
}

/// `{"port":80}` as `port=80`; a value of a set as it is.
fn keys_shown(name: &str) -> String {
    let keys: Map<String, Value> = serde_json::from_str(name).unwrap_or_default();
    let shown: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if shown.is_empty() {
        name.to_owned()
    } else {
        shown.join(",")
    }
}

type Parts<'a> = BTreeMap<String, (&'a Value, Option<&'a Value>)>;

/// The parts of a value that are owned one by one; nothing for a value that is owned whole.
fn parts<'a>(value: &'a Value, schema: Option<&'a Value>) -> Option<Parts<'a>> {
    let parts: Parts = match value {
        Value::Object(map) if !map_is_atomic(schema) => map
            .iter()
            .map(|(name, inner)| (format!("f:{name}"), (inner, field(schema, name))))
            .collect(),
        Value::Array(list) => match list_kind(schema) {
            ListKind::Atomic => return None,
            ListKind::Set => list
                .iter()
                .map(|item| (format!("v:{item}"), (item, items(schema))))
                .collect(),
            ListKind::Map(keys) => {
                let named = |item| format!("k:{}", item_key(item, &keys, schema));
                list.iter()
                    .map(|item| (named(item), (item, items(schema))))
                    .collect()
            }
        },
        _ => return None,
    };
    (!parts.is_empty()).then_some(parts)
}

/// The differences between two values.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changed: FieldSet,
    pub(crate) removed: FieldSet,
}

pub(crate) fn compare(old: Option<&Value>, new: Option<&Value>, schema: Option<&Value>) -> Difference {
    if old == new {
        return Difference::default();
    }
    let (before, after) = (
        old.and_then(|old| parts(old, schema)),
        new.and_then(|new| parts(new, schema)),
    );
    let mut difference = Difference::default();
    let hollow = |value: Option<&Value>| value.is_none_or(|value| *value == json!({}) || *value == json!([]));
    let whole = match (&before, &after) {
        (Some(_), Some(_)) => false,
        (Some(_), None) => !hollow(new),
        (None, Some(_)) => !hollow(old),
        (None, None) => true,
    };
    if whole {
        difference.changed.member = new.is_some() && old != new;
        difference.removed.member = new.is_none() && old.is_some();
        return difference;
    }
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let (was, is) = (before.get(name), after.get(name));
        let schema = is.or(was).and_then(|(_, schema)| *schema);
        let inner = compare(was.map(|(value, _)| *value), is.map(|(value, _)| *value), schema);
        difference.changed.insert(name.clone(), inner.changed);
        difference.removed.insert(name.clone(), inner.removed);
    }
    difference.changed.member = old.is_none();
    difference.removed.member = new.is_none();
    difference
}

/// Lays an applied configuration over a live value.
pub(crate) fn merge(live: &Value, applied: &Value, schema: Option<&Value>) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) if !map_is_atomic(schema) => {
            let mut merged = live.clone();
            for (name, value) in applied {
                let old = live.get(name).unwrap_or(&Value::Null);
                merged.insert(name.clone(), merge(old, value, field(schema, name)));
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(applied)) => match list_kind(schema) {
            ListKind::Atomic => json!(applied),
            ListKind::Set => merge_list(live, applied, schema, &|item| item.to_string()),
            ListKind::Map(keys) => merge_list(live, applied, schema, &|item| item_key(item, &keys, schema)),
        },
        _ => applied.clone(),
    }
}

/// The applied items in their order; live ones that were not applied stay where they were among them.
fn merge_list(
    live: &[Value],
    applied: &[Value],
    schema: Option<&Value>,
    key: &dyn Fn(&Value) -> String,
) -> Value {
    let wanted: BTreeSet<String> = applied.iter().map(key).collect();
    let mut live_left = live.iter().peekable();
    let mut merged = Vec::new();
    for item in applied {
        while let Some(kept) = live_left.next_if(|live| !wanted.contains(&key(live))) {
            merged.push(kept.clone());
        }
        live_left.next_if(|live| key(live) == key(item));
        let old = live
            .iter()
            .find(|live| key(live) == key(item))
            .unwrap_or(&Value::Null);
        merged.push(merge(old, item, items(schema)));
    }
    merged.extend(live_left.filter(|live| !wanted.contains(&key(live))).cloned());
    Value::Array(merged)
}

/// Takes fields out of a value; true when nothing of it is left.
pub(crate) fn remove(value: &mut Value, gone: &FieldSet, schema: Option<&Value>) -> bool {
    if gone.member {
        return true;
    }
    match value {
        Value::Object(map) => {
            let had = !map.is_empty();
            for (name, inner) in &gone.children {
                let name = name.trim_start_matches("f:");
                if map
                    .get_mut(name)
                    .is_some_and(|value| remove(value, inner, field(schema, name)))
                {
                    map.remove(name);
                }
            }
            had && map.is_empty()
        }
        Value::Array(list) => {
            let had = !list.is_empty();
            let keys = list_kind(schema);
            list.retain_mut(|item| {
                let name = match &keys {
                    ListKind::Map(keys) => format!("k:{}", item_key(item, keys, schema)),
                    _ => format!("v:{item}"),
                };
                gone.children
                    .get(&name)
                    .is_none_or(|inner| !remove(item, inner, items(schema)))
            });
            had && list.is_empty()
        }
        _ => false,
    }
}
