//! Owns: the variables of a class: what their definitions must be, which values they get, and which values they take.
//! Never: changes a value that a cluster has; a default is set once and stays.

mod check;
mod cost;
mod defaults;
mod field_path;
mod format;
mod rules;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::format::is_block;
use self::{rules::Rules, schema::Schema};
use super::model::{Class, Placed, Report, Variable};

/// The definitions of a class, read once for all its clusters.
#[derive(Debug, Default)]
pub struct Variables {
    read: BTreeMap<String, Read>,
    /// True if an extension that was not asked may define more.
    open: bool,
}

#[derive(Debug)]
struct Read {
    required: bool,
    schema: Schema,
    rules: Rules,
    /// True if it can judge values.
    sound: bool,
}

impl Variables {
    /// Reads the definitions; their faults are reported.
    pub fn read(class: &Class, report: &mut Report) -> Self {
        let mut read = BTreeMap::new();
        for definition in &class.variables {
            let (name, at) = (&definition.name, format!("{}.name", definition.field));
            let before = report.count();
            match name.as_str() {
                "" => report.say("variable-name", at, "must be given"),
                "builtin" => report.say("variable-name", at, "builtin is reserved: choose another"),
                _ if name.contains('.') => report.say("variable-name", at, "must not have a dot"),
                _ if read.contains_key(name) => report.say("variable-name", at, "is defined twice"),
                _ => {}
            }
            let schema = schema::read(&definition.schema, report);
            let rules = rules::read(&definition.schema, report);
            if report.count() == before {
                constants(&schema, &definition.schema.field, report);
            }
            if report.count() == before {
                let Placed { field, value } = &definition.schema;
                constants_keep_rules(value, field, report);
            }
            let one = Read {
                required: definition.required,
                schema,
                rules,
                sound: report.count() == before,
            };
            read.entry(name.clone()).or_insert(one);
        }
        Self {
            read,
            open: class.undiscovered().next().is_some(),
        }
    }

    /// Returns true if a variable is defined.
    pub fn has(&self, name: &str) -> bool {
        self.read.contains_key(name)
    }

    /// Returns true if a cluster must have it and gets no default.
    pub fn must_be_given(&self, name: &str) -> bool {
        self.read
            .get(name)
            .is_some_and(|read| read.required && read.schema.default.is_none())
    }

    /// A cluster's variables with defaults: what is there, in its order, then by name what has a default.
    pub fn defaulted(&self, values: &[Variable], field: &str) -> Vec<Variable> {
        let mut filled = self.filled(values);
        let known: BTreeSet<&str> = values.iter().map(|variable| variable.name.as_str()).collect();
        for (name, read) in &self.read {
            if let (Some(default), false) = (&read.schema.default, known.contains(name.as_str())) {
                let mut value = default.clone();
                defaults::fill(&read.schema, &mut value);
                filled.push(Variable {
                    field: format!("{field}[{name}]"),
                    name: name.clone(),
                    value,
                });
            }
        }
        filled
    }

    /// Overrides with the defaults of what they say; none is added.
    pub fn filled(&self, values: &[Variable]) -> Vec<Variable> {
        let mut filled = values.to_vec();
        for variable in &mut filled {
            if let Some(read) = self.read.get(&variable.name) {
                defaults::fill(&read.schema, &mut variable.value);
            }
        }
        filled
    }

    /// Problems of one value; empty if its definition is missing or invalid.
    pub fn problems(&self, variable: &Variable) -> Vec<(String, String)> {
        let path = format!("{}.value", variable.field);
        let Some(read) = self.read.get(&variable.name).filter(|read| read.sound) else {
            return Vec::new();
        };
        let problems = check::problems(&read.schema, &variable.value, &path);
        if problems.is_empty() {
            // An API server asks rules only of what its schema takes.
            return read.rules.problems(&variable.value, None, &path);
        }
        problems
    }

    /// Tells what is wrong with a change of values, defaulted both: what its rules that name `oldSelf` say.
    pub fn check_change(&self, old: &[Variable], new: &[Variable], report: &mut Report) {
        for variable in new {
            let before = old.iter().find(|before| before.name == variable.name);
            let (Some(before), Some(read)) = (before, self.read.get(&variable.name)) else {
                continue;
            };
            let path = format!("{}.value", variable.field);
            if !read.sound || !check::problems(&read.schema, &variable.value, &path).is_empty() {
                continue;
            }
            let of_itself = read.rules.problems(&variable.value, None, &path);
            let of_change = read.rules.problems(&variable.value, Some(&before.value), &path);
            for (field, message) in of_change.into_iter().filter(|one| !of_itself.contains(one)) {
                report.say("variable-change", field, message);
            }
        }
    }

    /// Tells what is wrong with a cluster's variables, defaulted; `field` is where they are.
    pub fn check(&self, values: &[Variable], field: &str, report: &mut Report) {
        self.check_overrides(values, report);
        let known: BTreeSet<&str> = values.iter().map(|variable| variable.name.as_str()).collect();
        for (name, read) in &self.read {
            if read.required && !known.contains(name.as_str()) {
                report.say(
                    "variable-required",
                    field,
                    format!("variable {name} must be given"),
                );
            }
        }
    }

    /// Tells what is wrong with overrides, which need not be complete.
    pub fn check_overrides(&self, values: &[Variable], report: &mut Report) {
        let mut known = BTreeSet::new();
        for variable in values {
            let at = format!("{}.name", variable.field);
            if !self.has(&variable.name) && !self.open {
                let message = format!("variable {} is not defined by the class", variable.name);
                report.say("variable-defined", at, message);
            } else if !known.insert(&variable.name) {
                report.say("variable-unique", at, "is given twice");
            }
            for (field, message) in self.problems(variable) {
                report.say("variable-value", field, message);
            }
        }
    }
}

/// Defaults, examples and listed values keep the rules of the schemas that have them. Upstream asks rules of examples and
/// listed values only where these stand, and of defaults also those of what is nested.
fn constants_keep_rules(schema: &Value, path: &str, report: &mut Report) {
    let has_rules = schema.get(rules::FIELD).is_some();
    let one = |name: &str| schema.get(name).map(|value| (format!("{path}.{name}"), value));
    let mut constants: Vec<(String, &Value)> = one("default").into_iter().collect();
    if has_rules {
        constants.extend(one("example"));
        let listed = schema.get("enum").and_then(Value::as_array);
        let listed = listed.into_iter().flatten().enumerate();
        constants.extend(listed.map(|(at, value)| (format!("{path}.enum[{at}]"), value)));
    }
    if !constants.is_empty() {
        let placed = Placed {
            field: path.to_owned(),
            value: schema.clone(),
        };
        // Faults of the rules themselves were reported before.
        let rules = rules::read(&placed, &mut Report::new("", ""));
        for (at, value) in constants {
            for (field, message) in rules.problems(value, None, &at) {
                report.say("variable-constant", field, message);
            }
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        constants_keep_rules(property, &format!("{path}.properties[{name}]"), report);
    }
    for name in ["additionalProperties", "items"] {
        if let Some(nested) = schema.get(name) {
            constants_keep_rules(nested, &format!("{path}.{name}"), report);
        }
    }
}

/// Defaults, examples and listed values must fit the schema that has them.
fn constants(schema: &Schema, path: &str, report: &mut Report) {
    // Defaults of what is nested are not set into them first: upstream asks for what a default leaves out.
    let mut fits = |schema: &Schema, value: &Value, at: String| {
        for (field, message) in check::problems(schema, value, &at) {
            report.say("variable-constant", field, message);
        }
    };
    if let Some(default) = &schema.default {
        fits(schema, default, format!("{path}.default"));
    }
    for example in &schema.examples {
        fits(schema, &example.value, example.field.clone());
    }
    for (at, value) in schema.listed.iter().flatten().enumerate() {
        fits(schema, value, format!("{path}.enum[{at}]"));
    }
    for (name, property) in &schema.properties {
        constants(property, &format!("{path}.properties[{name}]"), report);
    }
    let nested = [
        (&schema.additional, "additionalProperties"),
        (&schema.items, "items"),
    ];
    for (of, name) in nested {
        if let Some(of) = of {
            constants(of, &format!("{path}.{name}"), report);
        }
    }
}
