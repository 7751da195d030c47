//! Owns: the variables that the extensions of a class define, beside those that it defines itself.

use serde_json::Value;

use super::{
    class::{Class, Definition, definition},
    external::{External, INLINE},
    finding::Report,
    limits::MAX_VARIABLES,
    parts::Spelling,
    read::Fields,
};

/// Fields of a schema that mean the same absent and false.
const FLAGS: &[&str] = &[
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
];

impl Class {
    /// Returns true if it defines a variable itself, which inline patches may use.
    pub fn defines_inline(&self, variable: &str) -> bool {
        self.defined_by(variable, INLINE)
    }

    /// Returns true if a variable is for a patch: its extension defines it, or was not asked and nobody else does.
    pub fn is_for(&self, variable: &str, external: &External) -> bool {
        let unknown = !external.discover.is_empty() && !external.discovered && !self.defines(variable);
        unknown || self.defined_by(variable, &external.patch)
    }

    /// External patches whose extensions define variables, and were not asked for them.
    pub fn undiscovered(&self) -> impl Iterator<Item = &External> {
        let all = self.external.iter();
        all.filter(|one| !one.discover.is_empty() && !one.discovered)
    }

    /// Returns true if a Cluster may have a variable: it is defined, or an extension that was not asked may define it.
    pub fn may_have(&self, variable: &str) -> bool {
        self.defines(variable) || self.undiscovered().next().is_some()
    }

    fn defined_by(&self, variable: &str, source: &str) -> bool {
        let mut all = self.variables.iter();
        all.any(|defined| defined.name == variable && defined.from.iter().any(|from| from == source))
    }

    /// Adds the variables that the extension of an external patch defines, as it lists them in v1beta2. `at` is the patch's
    /// place in `external`.
    pub fn discover(&mut self, at: usize, list: Option<&Value>, report: &mut Report) {
        let Some(external) = self.external.get_mut(at) else {
            return;
        };
        external.discovered = true;
        let (field, patch) = (format!("{}.discovered", external.field), external.patch.clone());
        let answer = serde_json::json!({ "variables": list });
        let fields = Fields::open(Some(&answer), &field, &["variables"], report);
        for (path, item) in fields.items("variables", MAX_VARIABLES, report) {
            let mut found = definition(path, item, Spelling::V1Beta2, report);
            found.from = vec![patch.clone()];
            let known = self.variables.iter_mut().find(|one| one.name == found.name);
            match known {
                None => self.variables.push(found),
                Some(known) if known.from.contains(&patch) => {
                    report.say(
                        "variable-name",
                        format!("{}.name", found.field),
                        "is defined twice",
                    );
                }
                Some(known) if is_same(known, &found) => known.from.push(patch.clone()),
                Some(known) => {
                    let by = known.from.join(", ");
                    let message = format!("variable {} has another schema by {by}", found.name);
                    report.say("variable-conflict", found.field, message);
                }
            }
        }
    }
}

/// Returns true if two definitions of a variable do not conflict.
fn is_same(one: &Definition, other: &Definition) -> bool {
    let texts = |definition: &Definition| {
        let metadata = &definition.metadata;
        (metadata.labels.clone(), metadata.annotations.clone())
    };
    one.required == other.required
        && texts(one) == texts(other)
        && without_flags(&one.schema.value) == without_flags(&other.schema.value)
}

fn without_flags(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| !(FLAGS.contains(&name.as_str()) && **value == Value::Bool(false)))
            .map(|(name, value)| (name.clone(), without_flags(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_flags).collect(),
        other => other.clone(),
    }
}
