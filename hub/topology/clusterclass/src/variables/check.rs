//! Owns: whether a value is what its schema says, as an API server's validation decides.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{format, schema::Schema};

/// Most problems of one value.
const MAX_PROBLEMS: usize = 20;

/// Problems of a value: paths below `path`, and messages. Empty if it fits.
pub(super) fn problems(schema: &Schema, value: &Value, path: &str) -> Vec<(String, String)> {
    let mut check = Check(Vec::new());
    check.value(schema, value, path, true);
    check.0
}

struct Check(Vec<(String, String)>);

impl Check {
    fn say(&mut self, path: &str, message: impl Into<String>) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push((path.to_owned(), message.into()));
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value, path: &str, outer: bool) {
        if self.0.len() >= MAX_PROBLEMS {
            return;
        }
        if !has_type(schema, value) {
            let kind = schema.kind.unwrap_or("integer or string");
            self.say(path, format!("must be of type {kind}"));
            return;
        }
        if let Some(listed) = &schema.listed
            && !listed.iter().any(|one| same(one, value))
        {
            let listed: Vec<_> = listed.iter().take(10).map(Value::to_string).collect();
            self.say(path, format!("must be one of {}", listed.join(", ")));
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.array(schema, items, path, outer),
            Value::Object(map) => self.object(schema, map, path, outer),
            Value::Null | Value::Bool(_) => {}
        }
        self.junctors(schema, value, path);
    }

    fn text(&mut self, schema: &Schema, text: &str, path: &str) {
        let length = text.chars().count();
        self.size(schema, ("minLength", "maxLength"), length, "characters", path);
        if let Some((written, pattern)) = &schema.pattern
            && !pattern.is_match(text.as_bytes())
        {
            self.say(path, format!("must match {written}"));
        }
        if !format::fits(&schema.format, text) {
            self.say(path, format!("must have format {}", schema.format));
        }
    }

    fn number(&mut self, schema: &Schema, number: &serde_json::Number, path: &str) {
        let below = |bound: i64, itself: bool| match number.as_i128() {
            Some(whole) => whole < bound.into() || itself && whole == bound.into(),
            None => number
                .as_f64()
                .is_some_and(|real| real < bound as f64 || itself && real == bound as f64),
        };
        if let Some(bound) = schema.bounds.get("minimum")
            && below(*bound, schema.exclusive.0)
        {
            let or = if schema.exclusive.0 {
                "more than"
            } else {
                "at least"
            };
            self.say(path, format!("must be {or} {bound}"));
        }
        if let Some(bound) = schema.bounds.get("maximum")
            && !below(*bound, !schema.exclusive.1)
        {
            let or = if schema.exclusive.1 {
                "less than"
            } else {
                "at most"
            };
            self.say(path, format!("must be {or} {bound}"));
        }
    }

    fn array(&mut self, schema: &Schema, items: &[Value], path: &str, outer: bool) {
        self.size(schema, ("minItems", "maxItems"), items.len(), "items", path);
        let mut known = BTreeSet::new();
        if schema.unique && !items.iter().all(|item| known.insert(canonical(item))) {
            self.say(path, "must not have an item twice");
        }
        if let Some(of) = &schema.items {
            for (at, item) in items.iter().enumerate() {
                self.value(of, item, &format!("{path}[{at}]"), outer);
            }
        }
    }

    fn object(&mut self, schema: &Schema, map: &Map<String, Value>, path: &str, outer: bool) {
        self.size(
            schema,
            ("minProperties", "maxProperties"),
            map.len(),
            "properties",
            path,
        );
        for name in &schema.required {
            if !map.contains_key(name) {
                self.say(&format!("{path}.{name}"), "must be given");
            }
        }
        for (name, value) in map {
            let at = format!("{path}.{name}");
            match (schema.properties.get(name), &schema.additional) {
                (Some(of), _) => self.value(of, value, &at, outer),
                (None, Some(of)) => self.value(of, value, &at, outer),
                (None, None) if outer && !schema.preserve => self.say(&at, "no such field: remove it"),
                (None, None) => {}
            }
        }
    }

    fn junctors(&mut self, schema: &Schema, value: &Value, path: &str) {
        for of in &schema.all {
            self.value(of, value, path, false);
        }
        let fits = |of: &Schema| {
            let mut check = Check(Vec::new());
            check.value(of, value, path, false);
            check.0.is_empty()
        };
        if !schema.any.is_empty() && !schema.any.iter().any(fits) {
            self.say(path, "must be as one of anyOf says");
        }
        if !schema.one.is_empty() && schema.one.iter().filter(|of| fits(of)).count() != 1 {
            self.say(path, "must be as exactly one of oneOf says");
        }
        if schema.not.as_ref().is_some_and(|of| fits(of)) {
            self.say(path, "must not be as not says");
        }
    }

    fn size(&mut self, schema: &Schema, (least, most): (&str, &str), size: usize, what: &str, path: &str) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        if let Some(bound) = schema.bounds.get(least).filter(|bound| size < **bound) {
            self.say(path, format!("must have at least {bound} {what}"));
        }
        if let Some(bound) = schema.bounds.get(most).filter(|bound| size > **bound) {
            self.say(path, format!("must have at most {bound} {what}"));
        }
    }
}

fn has_type(schema: &Schema, value: &Value) -> bool {
    match schema.kind {
        None if schema.int_or_text => value.is_string() || is_whole(value),
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => is_whole(value),
        Some("number") => value.is_number(),
        Some(_) => value.is_boolean(),
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|real| real.fract() == 0.0)
}

/// Equal as JSON: 1 and 1.0 are.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && canonical(one) == canonical(other)
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (None, Some(real)) if real.fract() == 0.0 && real.abs() < 9e15 => format!("{}", real as i64),
            _ => number.to_string(),
        },
        _ => value.to_string(),
    }
}
