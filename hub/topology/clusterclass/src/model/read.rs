//! Owns: reading the fields of an object: missing, mistyped and unknown ones are reported with their path.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::finding::Report;

/// One object of a document, with its path.
pub(super) struct Fields<'a> {
    path: String,
    map: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    /// Opens a value as an object; a field that is not among `known` is reported. An absent one has no fields.
    pub(super) fn open(value: Option<&'a Value>, path: &str, known: &[&str], report: &mut Report) -> Self {
        let map = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(_) => {
                report.say("type", path, "must be an object");
                None
            }
        };
        let fields = Self {
            path: path.to_owned(),
            map,
        };
        for name in map.into_iter().flat_map(Map::keys) {
            if !known.contains(&name.as_str()) {
                report.say("unknown-field", fields.at(name), "no such field: remove it");
            }
        }
        fields
    }

    /// Opens the object of a field.
    pub(super) fn within(&self, name: &str, known: &[&str], report: &mut Report) -> Self {
        Self::open(self.get(name), &self.at(name), known, report)
    }

    /// A field's path.
    pub(super) fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The object's own path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns true if the object was written, and is not empty.
    pub(super) fn any(&self) -> bool {
        self.map.is_some_and(|map| !map.is_empty())
    }

    /// The object as it is written; empty if there is none.
    pub(super) fn map(&self) -> Map<String, Value> {
        self.map.cloned().unwrap_or_default()
    }

    /// A field's value; `null` is none.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    /// A text; empty if there is none.
    pub(super) fn text(&self, name: &str, report: &mut Report) -> String {
        match self.get(name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                report.say("type", self.at(name), "must be a text");
                String::new()
            }
        }
    }

    /// A whole number.
    pub(super) fn whole(&self, name: &str, report: &mut Report) -> Option<i64> {
        let value = self.get(name)?;
        let read = value.as_i64();
        if read.is_none() {
            report.say("type", self.at(name), "must be a whole number");
        }
        read
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str, report: &mut Report) -> Option<bool> {
        let value = self.get(name)?;
        let read = value.as_bool();
        if read.is_none() {
            report.say("type", self.at(name), "must be true or false");
        }
        read
    }

    /// The items of a list with their paths; none if there are more than `most`, which is reported.
    pub(super) fn items(&self, name: &str, most: usize, report: &mut Report) -> Vec<(String, &'a Value)> {
        let path = self.at(name);
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Array(items)) if items.len() > most => {
                let message = format!(
                    "has {} items, more than {most}: none of them is read",
                    items.len()
                );
                report.say("bound", path, message);
                Vec::new()
            }
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(at, item)| (format!("{path}[{at}]"), item))
                .collect(),
            Some(_) => {
                report.say("type", path, "must be a list");
                Vec::new()
            }
        }
    }

    /// A map of texts.
    pub(super) fn texts(&self, name: &str, report: &mut Report) -> BTreeMap<String, String> {
        let mut read = BTreeMap::new();
        match self.get(name) {
            None => {}
            Some(Value::Object(map)) => {
                for (key, value) in map {
                    match value {
                        Value::String(text) => {
                            read.insert(key.clone(), text.clone());
                        }
                        _ => report.say("type", format!("{}[{key}]", self.at(name)), "must be a text"),
                    }
                }
            }
            Some(_) => report.say("type", self.at(name), "must be an object of texts"),
        }
        read
    }

    /// Says of a field that is written that it is left out here.
    pub(super) fn left_out(&self, name: &str, what: &str, report: &mut Report) {
        if self.get(name).is_some() {
            report.say(
                "left-out",
                self.at(name),
                format!("{what} are not supported: remove it"),
            );
        }
    }
}

/// A duration as Go writes it, whole seconds rounded up; none if it is none.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        sum += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    Some((sign * sum).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        assert_eq!(seconds("3m"), Some(180));
        assert_eq!(seconds("1h1.5s"), Some(3602));
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds("-1s"), Some(-1));
        for bad in ["", "5", "s", "1d", "1..2s", "-"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
