//! Owns: the schema of a variable: the OpenAPI subset that ClusterClasses have, structural as an API server demands.

use std::collections::BTreeMap;

use regex::bytes::Regex;
use serde_json::{Map, Value};

use super::{
    super::{
        model::{Placed, Report},
        template::regular_expression,
    },
    format,
};

/// Most schemas in one variable's schema, itself and what is nested.
const MAX_SCHEMAS: usize = 2_000;
/// Most regular expressions in one variable's schema.
const MAX_PATTERNS: usize = 50;
/// Longest list of values that may be given, and of names that are required.
const MAX_LISTED: usize = 1_000;

const RULE: &str = "variable-schema";

/// The schema of a value.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) kind: Option<&'static str>,
    pub(super) int_or_text: bool,
    pub(super) preserve: bool,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Option<Box<Schema>>,
    pub(super) items: Option<Box<Schema>>,
    pub(super) required: Vec<String>,
    pub(super) listed: Option<Vec<Value>>,
    pub(super) default: Option<Value>,
    pub(super) examples: Vec<Placed<Value>>,
    pub(super) format: String,
    pub(super) pattern: Option<(String, Regex)>,
    pub(super) bounds: BTreeMap<&'static str, i64>,
    pub(super) exclusive: (bool, bool),
    pub(super) unique: bool,
    pub(super) all: Vec<Schema>,
    pub(super) one: Vec<Schema>,
    pub(super) any: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

const TYPES: &[&str] = &["object", "array", "string", "integer", "number", "boolean"];

const BOUNDS: &[&str] = &[
    "maxProperties",
    "minProperties",
    "maxItems",
    "minItems",
    "maxLength",
    "minLength",
    "maximum",
    "minimum",
];

const OTHERS: &[&str] = &[
    "description",
    "example",
    "type",
    "properties",
    "additionalProperties",
    "required",
    "items",
    "uniqueItems",
    "format",
    "pattern",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "enum",
    "default",
    "x-metadata",
    "x-kubernetes-int-or-string",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
];

/// Reads a schema; its faults are reported, at most as many as a report takes.
pub(super) fn read(schema: &Placed<Value>, report: &mut Report) -> Schema {
    let mut reader = Reader {
        report,
        schemas: 0,
        patterns: 0,
    };
    reader.schema(&schema.value, &schema.field, true)
}

struct Reader<'a> {
    report: &'a mut Report,
    schemas: usize,
    patterns: usize,
}

impl Reader<'_> {
    /// `outer` outside of `allOf`, `anyOf`, `oneOf` and `not`, which only say what values may be.
    fn schema(&mut self, value: &Value, path: &str, outer: bool) -> Schema {
        let Value::Object(map) = value else {
            self.report.say(RULE, path, "must be a schema, an object");
            return Schema::default();
        };
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            if self.schemas == MAX_SCHEMAS + 1 {
                let message = format!("has more than {MAX_SCHEMAS} schemas: make it smaller");
                self.report.say("bound", path, message);
            }
            return Schema::default();
        }
        self.names(map, path, outer);
        let mut read = self.scalars(map, path);
        self.nested(&mut read, map, path, outer);
        if outer {
            self.structural(&read, path);
        } else {
            for name in ["type", "default", "additionalProperties", "description"] {
                if map.contains_key(name) && !(name == "type" && read.int_or_text) {
                    let message = "must not be within allOf, anyOf, oneOf or not";
                    self.report.say(RULE, format!("{path}.{name}"), message);
                }
            }
        }
        read
    }

    fn names(&mut self, map: &Map<String, Value>, path: &str, outer: bool) {
        for name in map.keys() {
            let at = format!("{path}.{name}");
            match name.as_str() {
                "$ref" => self.report.say(
                    "left-out",
                    at,
                    "a schema cannot refer to another, nor to itself: write it out",
                ),
                "x-kubernetes-validations" if outer => {}
                "x-kubernetes-validations" => {
                    self.report
                        .say(RULE, at, "must not be within allOf, anyOf, oneOf or not");
                }
                name if OTHERS.contains(&name) || BOUNDS.contains(&name) => {}
                // Below the outermost schema an API server keeps fields that it does not know, and Cluster API reads none.
                _ if self.schemas > 1 => {}
                _ => self
                    .report
                    .say("unknown-field", at, "no such field of a schema: remove it"),
            }
        }
    }

    fn scalars(&mut self, map: &Map<String, Value>, path: &str) -> Schema {
        let mut read = Schema {
            int_or_text: self.flag(map, path, "x-kubernetes-int-or-string"),
            preserve: self.flag(map, path, "x-kubernetes-preserve-unknown-fields"),
            unique: self.flag(map, path, "uniqueItems"),
            exclusive: (
                self.flag(map, path, "exclusiveMinimum"),
                self.flag(map, path, "exclusiveMaximum"),
            ),
            default: map.get("default").cloned(),
            format: self.text(map, path, "format").to_owned(),
            ..Schema::default()
        };
        let kind = self.text(map, path, "type");
        read.kind = TYPES.iter().copied().find(|known| *known == kind);
        if read.kind.is_none() && !kind.is_empty() {
            self.report.say(
                RULE,
                format!("{path}.type"),
                format!("must be one of {}", TYPES.join(", ")),
            );
        }
        if format::LEFT_OUT.contains(&read.format.as_str()) {
            let message = format!("format {} is not supported: use a pattern", read.format);
            self.report.say("left-out", format!("{path}.format"), message);
        }
        for name in BOUNDS {
            match map.get(*name).map(Value::as_i64) {
                None => {}
                Some(Some(bound)) if bound >= 0 || name.ends_with("imum") => {
                    read.bounds.insert(name, bound);
                }
                Some(_) => self
                    .report
                    .say(RULE, format!("{path}.{name}"), "must be a whole number"),
            }
        }
        read.pattern = self.pattern(map, path);
        read.required = self.required(map, path);
        match map.get("enum") {
            None => {}
            Some(Value::Array(listed)) if (1..=MAX_LISTED).contains(&listed.len()) => {
                read.listed = Some(listed.clone());
            }
            Some(_) => {
                let message = format!("must be a list of 1 to {MAX_LISTED} values");
                self.report.say(RULE, format!("{path}.enum"), message);
            }
        }
        if let Some(example) = map.get("example") {
            read.examples.push(Placed {
                field: format!("{path}.example"),
                value: example.clone(),
            });
        }
        read
    }

    fn pattern(&mut self, map: &Map<String, Value>, path: &str) -> Option<(String, Regex)> {
        let written = self.text(map, path, "pattern");
        if written.is_empty() {
            return None;
        }
        self.patterns += 1;
        let read = if self.patterns > MAX_PATTERNS {
            Err(format!("is one of more than {MAX_PATTERNS} in this variable"))
        } else {
            regular_expression(written)
        };
        match read {
            Ok(pattern) => Some((written.to_owned(), pattern)),
            Err(message) => {
                let message = format!("is no regular expression: {message}");
                self.report.say(RULE, format!("{path}.pattern"), message);
                None
            }
        }
    }

    fn required(&mut self, map: &Map<String, Value>, path: &str) -> Vec<String> {
        let names = match map.get("required") {
            None => return Vec::new(),
            Some(Value::Array(names)) if names.len() <= MAX_LISTED => names
                .iter()
                .map(|name| name.as_str().map(str::to_owned))
                .collect(),
            Some(_) => None,
        };
        names.unwrap_or_else(|| {
            let message = format!("must be a list of at most {MAX_LISTED} names");
            self.report.say(RULE, format!("{path}.required"), message);
            Vec::new()
        })
    }

    fn nested(&mut self, read: &mut Schema, map: &Map<String, Value>, path: &str, outer: bool) {
        match map.get("properties") {
            None => {}
            Some(Value::Object(properties)) => {
                for (name, value) in properties {
                    let property = self.schema(value, &format!("{path}.properties[{name}]"), outer);
                    read.properties.insert(name.clone(), property);
                }
            }
            Some(_) => self
                .report
                .say(RULE, format!("{path}.properties"), "must be an object of schemas"),
        }
        let mut one = |name: &str, outer| {
            let value = map.get(name)?;
            Some(Box::new(self.schema(value, &format!("{path}.{name}"), outer)))
        };
        read.additional = one("additionalProperties", outer);
        read.items = one("items", outer);
        read.not = one("not", false);
        let mut many = |name: &str| match map.get(name) {
            None => Vec::new(),
            Some(Value::Array(schemas)) => schemas
                .iter()
                .enumerate()
                .map(|(at, value)| self.schema(value, &format!("{path}.{name}[{at}]"), false))
                .collect(),
            Some(_) => {
                self.report
                    .say(RULE, format!("{path}.{name}"), "must be a list of schemas");
                Vec::new()
            }
        };
        read.all = many("allOf");
        read.one = many("oneOf");
        read.any = many("anyOf");
    }

    fn structural(&mut self, read: &Schema, path: &str) {
        let mut say = |name: &str, message: &str| self.report.say(RULE, format!("{path}{name}"), message);
        match read.kind {
            None if !read.int_or_text && !read.preserve => say(".type", "must be given"),
            Some(_) if read.int_or_text => {
                say(".type", "must not be given beside x-kubernetes-int-or-string")
            }
            Some("array") if read.items.is_none() => say(".items", "must be given for an array"),
            _ => {}
        }
        if !read.properties.is_empty() && read.additional.is_some() {
            say(
                ".additionalProperties",
                "must not be given beside properties: choose one",
            );
        }
        if read.preserve && !matches!(read.kind, None | Some("object")) {
            say(".x-kubernetes-preserve-unknown-fields", "needs type object");
        }
        if read.items.is_some() && read.kind != Some("array") {
            say(".items", "needs type array");
        }
        if (!read.properties.is_empty() || read.additional.is_some()) && read.kind != Some("object") {
            say(".properties", "needs type object");
        }
    }

    fn flag(&mut self, map: &Map<String, Value>, path: &str, name: &str) -> bool {
        match map.get(name) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.report
                    .say(RULE, format!("{path}.{name}"), "must be true or false");
                false
            }
        }
    }

    fn text<'m>(&mut self, map: &'m Map<String, Value>, path: &str, name: &str) -> &'m str {
        match map.get(name) {
            None => "",
            Some(Value::String(text)) => text,
            Some(_) => {
                self.report.say(RULE, format!("{path}.{name}"), "must be a text");
                ""
            }
        }
    }
}
