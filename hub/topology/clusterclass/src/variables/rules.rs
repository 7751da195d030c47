//! Owns: the rules in CEL that a schema has (`x-kubernetes-validations`): what they must be, how much they may cost, and
//! what they say of a value. Never: reads or evaluates CEL itself, which a library does as an API server would.

use kube_cel::{CompiledSchema, Validator, cel::Program, compile_schema};
use serde_json::{Map, Value};

use super::{
    super::model::{Placed, Report},
    cost::{self, Cost},
    field_path,
};

/// Most rules in one variable's schema.
const RULES_MAX: usize = 100;
/// Longest rule, and longest expression of a message.
const RULE_BYTES_MAX: usize = 4 * 1024;
/// Largest nesting depth of brackets in a rule.
const BRACKETS_MAX: usize = 32;
/// Most question marks in a rule: a choice may have another in it. With the brackets it is what the library takes (96).
const CHOICES_MAX: usize = 32;
/// Stack for the library within these bounds: it recurses for each level of nesting.
const STACK_BYTES: usize = 256 * 1024 * 1024;

const RULE: &str = "variable-rule";
/// The field of a schema that has its rules.
pub(super) const FIELD: &str = "x-kubernetes-validations";
/// Longest message of a rule, bytes.
const MESSAGE_BYTES_MAX: usize = 2_048;
/// Reasons that a failure may have.
const REASONS: &[&str] = &[
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];

/// The rules of a variable's schema.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Nothing if the schema has no rule.
    compiled: Option<CompiledSchema>,
    costs: Vec<Cost>,
}

/// Reads the rules of a schema and of nested ones; their faults are reported.
pub(super) fn read(schema: &Placed<Value>, report: &mut Report) -> Rules {
    let mut reader = Reader {
        report,
        count: 0,
        costs: Vec::new(),
    };
    reader.schema(&schema.value, &schema.field, false);
    let costs = reader.costs;
    let compile = || on_large_stack(|| compile_schema(&schema.value));
    Rules {
        compiled: (!costs.is_empty()).then(compile),
        costs,
    }
}

impl Rules {
    /// Rules that a value breaks, and that its change from `old` breaks: paths below `path`, and messages.
    pub(super) fn problems(&self, value: &Value, old: Option<&Value>, path: &str) -> Vec<(String, String)> {
        let Some(compiled) = &self.compiled else {
            return Vec::new();
        };
        if !cost::affordable(&self.costs, value, old) {
            let message = format!(
                "is too large for its rules in CEL, which would go through it more than {} times: make it smaller",
                cost::COST_MAX
            );
            return vec![(path.to_owned(), message)];
        }
        let judged = on_large_stack(|| Validator::new().validate_compiled(compiled, value, old));
        let Err(errors) = judged else {
            return Vec::new();
        };
        let errors = errors.into_vec().into_iter();
        let problems = errors.map(|error| (place(path, &error.field_path), error.message));
        problems.collect()
    }
}

/// The path of `below` under `path`.
fn place(path: &str, below: &str) -> String {
    match below.chars().next() {
        None => path.to_owned(),
        Some('.' | '[') => format!("{path}{below}"),
        Some(_) => format!("{path}.{below}"),
    }
}

fn on_large_stack<T>(body: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, body)
}

struct Reader<'a> {
    report: &'a mut Report,
    count: usize,
    costs: Vec<Cost>,
}

impl Reader<'_> {
    fn say(&mut self, at: impl AsRef<str>, message: impl Into<String>) {
        self.report.say(RULE, at.as_ref(), message.into());
    }

    /// `listed` below the items of a list, which have nothing that says which one was which before.
    fn schema(&mut self, schema: &Value, path: &str, listed: bool) {
        let at = format!("{path}.{FIELD}");
        match schema.get(FIELD) {
            None => {}
            Some(Value::Array(rules)) => {
                for (number, rule) in rules.iter().enumerate() {
                    self.rule(rule, &format!("{at}[{number}]"), schema, listed);
                }
            }
            Some(_) => self.say(at, "must be a list of rules"),
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.schema(property, &format!("{path}.properties[{name}]"), listed);
        }
        for (name, listed) in [("additionalProperties", listed), ("items", true)] {
            if let Some(nested) = schema.get(name) {
                self.schema(nested, &format!("{path}.{name}"), listed);
            }
        }
    }

    fn rule(&mut self, rule: &Value, path: &str, schema: &Value, listed: bool) {
        self.count += 1;
        if self.count > RULES_MAX {
            if self.count == RULES_MAX + 1 {
                let message = format!("is one of more than {RULES_MAX} rules in this variable");
                self.report.say("bound", path, message);
            }
            return;
        }
        let Value::Object(fields) = rule else {
            self.say(path, "must be an object with a rule");
            return;
        };
        let before = self.report.count();
        self.fields(fields, path, schema);
        let written = |name: &str| fields.get(name).and_then(Value::as_str);
        if self.report.count() == before && written("rule").is_none_or(|rule| rule.trim().is_empty()) {
            self.say(format!("{path}.rule"), "must be given");
            return;
        }
        let lines = written("rule").is_some_and(|rule| rule.trim().contains(['\n', '\r']));
        if lines && written("message").is_none_or(|message| message.trim().is_empty()) {
            self.say(
                format!("{path}.message"),
                "must be given for a rule of several lines",
            );
        }
        let mut costs = Vec::new();
        for name in ["rule", "messageExpression"] {
            // A blank expression of a message was told, or is as good as none.
            if let Some(text) = written(name).filter(|text| !text.trim().is_empty()) {
                costs.extend(self.expression(text, &format!("{path}.{name}"), listed));
            }
        }
        if self.report.count() == before {
            self.costs.extend(costs);
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, path: &str, schema: &Value) {
        for (name, value) in fields {
            let at = format!("{path}.{name}");
            match (name.as_str(), value) {
                ("fieldPath", Value::String(text)) => {
                    if let Err(why) = field_path::leads_somewhere(text, schema) {
                        self.say(at, format!("must be the path of a field: {why}"));
                    }
                }
                ("messageExpression" | "message", Value::String(text))
                    if !text.is_empty() && text.trim().is_empty() =>
                {
                    self.say(at, "must not be blank: leave it out");
                }
                ("rule" | "messageExpression", Value::String(_)) => {}
                ("message", Value::String(text)) => {
                    if text.len() > MESSAGE_BYTES_MAX {
                        self.say(at, format!("must have at most {MESSAGE_BYTES_MAX} bytes"));
                    } else if text.trim().contains(['\n', '\r']) {
                        self.say(at, "must be one line");
                    }
                }
                ("reason", Value::String(text)) => {
                    if !REASONS.contains(&text.as_str()) {
                        self.say(at, format!("must be one of {}", REASONS.join(", ")));
                    }
                }
                ("rule" | "messageExpression" | "fieldPath" | "message" | "reason", _) => {
                    self.say(at, "must be a text");
                }
                _ => {
                    let message = "no such field of a rule: remove it";
                    self.report.say("unknown-field", at, message);
                }
            }
        }
    }

    /// Reads an expression; what it costs, if it is one.
    fn expression(&mut self, text: &str, at: &str, listed: bool) -> Option<Cost> {
        if let Some(message) = out_of_bounds(text) {
            self.say(at, message);
            return None;
        }
        on_large_stack(|| {
            let program = match Program::compile(text) {
                Ok(program) => program,
                Err(errors) => {
                    let errors = errors.to_string();
                    let first = errors.lines().next().unwrap_or_default();
                    self.say(at, format!("is not CEL: {first}"));
                    return None;
                }
            };
            match cost::of(program.expression()) {
                Ok(cost) if cost.compares && listed => {
                    self.say(at, "must not name oldSelf below the items of a list");
                    None
                }
                Ok(cost) => Some(cost),
                Err(message) => {
                    self.say(at, message);
                    None
                }
            }
        })
    }
}

/// Why an expression is not even read.
fn out_of_bounds(text: &str) -> Option<String> {
    if text.len() > RULE_BYTES_MAX {
        return Some(format!("must have at most {RULE_BYTES_MAX} bytes"));
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    for letter in text.chars() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = depth.max(deepest);
    }
    if deepest > BRACKETS_MAX {
        return Some(format!("must not have brackets more than {BRACKETS_MAX} deep"));
    }
    if text.matches('?').count() > CHOICES_MAX {
        return Some(format!("must not have more than {CHOICES_MAX} question marks"));
    }
    // The library takes two of them for one.
    let twice = ["!!", "--"].into_iter().find(|twice| text.contains(twice));
    twice.map(|twice| format!("must not have {twice}, which is not supported: leave both out"))
}

#[cfg(test)]
mod tests;
