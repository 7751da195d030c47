//! Ownership of fields: reads and writes metadata.managedFields and settles apply conflicts. Entries are keyed by
//! manager, operation and subresource, so an Update entry outlives an Apply entry's removal.

use serde_json::{Map, Value, json};

use super::{
    fields::{Difference, FieldSet, compare, merge, remove},
    status::Cause,
};

/// Through which path of an object a write comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subresource {
    /// Its own.
    #[default]
    Main,
    /// `/scale`.
    Scale,
    /// `/status`.
    Status,
}

impl Subresource {
    /// The last part of the path, as managedFields names it; empty for the object itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Scale => "scale",
            Self::Status => "status",
        }
    }

    fn of(entry: &Value) -> Self {
        let named = entry["subresource"].as_str().unwrap_or_default();
        let all = [Self::Scale, Self::Status];
        all.into_iter()
            .find(|one| one.name() == named)
            .unwrap_or_default()
    }
}

/// The writer, and its way of writing.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    pub(crate) subresource: Subresource,
    pub(crate) time: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    apply: bool,
    subresource: Subresource,
    api_version: String,
    time: String,
    fields: FieldSet,
}

/// The owners of one object's fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Managers(Vec<Entry>);

/// The result of a forced or unforced apply.
pub(crate) struct Applied {
    pub(crate) object: Value,
    pub(crate) managers: Managers,
}

impl Managers {
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let read = |entry: &Value| Entry {
            manager: text(entry, "manager"),
            apply: entry["operation"] == json!("Apply"),
            subresource: Subresource::of(entry),
            api_version: text(entry, "apiVersion"),
            time: text(entry, "time"),
            fields: FieldSet::from_json(&entry["fieldsV1"]),
        };
        Self(entries.into_iter().flatten().map(read).collect())
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut entries = self.0.clone();
        entries.sort_by_key(|entry| {
            (
                !entry.apply,
                entry.time.clone(),
                entry.manager.clone(),
                entry.subresource,
            )
        });
        let written = entries.iter().map(|entry| {
            let mut json = json!({
                "manager": entry.manager, "operation": if entry.apply { "Apply" } else { "Update" },
                "apiVersion": entry.api_version, "time": entry.time,
                "fieldsType": "FieldsV1", "fieldsV1": entry.fields.to_json(),
            });
            if entry.subresource != Subresource::Main {
                json["subresource"] = json!(entry.subresource.name());
            }
            json
        });
        Value::Array(written.collect())
    }

    /// The same owners of the same fields; times do not count.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let bare = |managers: &Self| {
            let mut entries = managers.0.clone();
            entries.iter_mut().for_each(|entry| entry.time.clear());
            entries.sort_by_key(|entry| (entry.apply, entry.subresource, entry.manager.clone()));
            entries
        };
        bare(self) == bare(other)
    }

    /// An update (create, put, merge patch): changed fields are the writer's, gone ones are nobody's.
    pub(crate) fn after_update(mut self, old: &Value, new: &Value, schema: &Value, writer: &Writer) -> Self {
        let difference = difference(old, new, schema);
        self.take_from_others(&difference, writer, false);
        if !difference.changed.is_empty() || !difference.removed.is_empty() {
            let entry = self.entry(writer, false);
            let before = entry.fields.clone();
            entry.fields.subtract(&difference.removed);
            entry.fields.add(&difference.changed);
            if entry.fields != before {
                entry.time.clone_from(&writer.time);
                entry.api_version.clone_from(&writer.api_version);
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
        self
    }

    /// A server-side apply of `applied` over `live`; `finish` adds defaults to the merged object.
    pub(crate) fn after_apply(
        mut self,
        live: &Value,
        applied: &Value,
        schema: &Value,
        writer: &Writer,
        force: bool,
        finish: &dyn Fn(&mut Value),
    ) -> Result<Applied, Vec<Cause>> {
        let config = owned(applied);
        let stated = if config == json!({}) {
            FieldSet::default()
        } else {
            FieldSet::of(&config, Some(schema))
        };
        let mut object = merge(live, applied, Some(schema));
        let entry = self.entry(writer, true);
        let mut dropped = std::mem::replace(&mut entry.fields, stated.clone());
        if dropped != stated || entry.api_version != writer.api_version {
            entry.time.clone_from(&writer.time);
            entry.api_version.clone_from(&writer.api_version);
        }
        self.0
            .iter()
            .for_each(|other| dropped.subtract_shared(&other.fields));
        remove(&mut object, &dropped, Some(schema));
        finish(&mut object);
        let difference = difference(live, &object, schema);
        let conflicts = self.conflicts(&difference, writer);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        self.take_from_others(&difference, writer, true);
        self.0.retain(|entry| !entry.fields.is_empty());
        Ok(Applied {
            object,
            managers: self,
        })
    }

    fn entry(&mut self, writer: &Writer, apply: bool) -> &mut Entry {
        let at = self
            .0
            .iter()
            .position(|entry| entry.is(writer, apply))
            .unwrap_or_else(|| {
                self.0.push(Entry {
                    manager: writer.manager.clone(),
                    apply,
                    subresource: writer.subresource,
                    api_version: writer.api_version.clone(),
                    time: writer.time.clone(),
                    fields: FieldSet::default(),
                });
                self.0.len() - 1
            });
        &mut self.0[at]
    }

    fn conflicts(&self, difference: &Difference, writer: &Writer) -> Vec<Cause> {
        let mut causes = Vec::new();
        for other in self.0.iter().filter(|entry| !entry.is(writer, true)) {
            for path in other.fields.intersection(&difference.changed).paths() {
                let message = format!("conflict with {:?} using {}", other.manager, other.api_version);
                causes.push(Cause::other("FieldManagerConflict", path, message));
            }
        }
        causes
    }

    fn take_from_others(&mut self, difference: &Difference, writer: &Writer, apply: bool) {
        for other in self.0.iter_mut().filter(|entry| !entry.is(writer, apply)) {
            other.fields.subtract(&difference.changed);
            other.fields.subtract(&difference.removed);
        }
    }
}

impl Entry {
    fn is(&self, writer: &Writer, apply: bool) -> bool {
        self.manager == writer.manager && self.apply == apply && self.subresource == writer.subresource
    }
}

/// Metadata that the server owns and no manager does.
const UNOWNED: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// The part of an object whose fields have managers.
fn owned(object: &Value) -> Value {
    let fields = |value: &Value, unowned: &[&str]| -> Map<String, Value> {
        let all = value.as_object().into_iter().flatten();
        all.filter(|(name, _)| !unowned.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut owned = fields(object, &["apiVersion", "kind", "metadata"]);
    let metadata = fields(&object["metadata"], UNOWNED);
    if !metadata.is_empty() {
        owned.insert("metadata".into(), Value::Object(metadata));
    }
    Value::Object(owned)
}

fn difference(old: &Value, new: &Value, schema: &Value) -> Difference {
    let with_metadata = |object: &Value| {
        let mut owned = owned(object);
        if owned["metadata"].is_null() {
            owned["metadata"] = json!({});
        }
        owned
    };
    compare(Some(&with_metadata(old)), Some(&with_metadata(new)), Some(schema))
}
