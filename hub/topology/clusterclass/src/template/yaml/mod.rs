//! Owns: YAML 1.1 as what patches make of a rendered text: the first document, as JSON.
//! Never: follows aliases without counting; a text of a few lines could stand for millions otherwise.

mod cursor;
mod parse;
mod resolve;
mod scalars;
mod scan;
mod tags;

use std::{collections::BTreeMap, rc::Rc};

use self::parse::{Kind, Node};
use super::{
    floats,
    limits::{MAX_ITEMS, MAX_NESTING},
    value::{Dict, Element, List, Text, Value},
};

/// The value of a text; an error says what is wrong with it.
pub(crate) fn decode(text: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(text).map_err(|_| "incomplete UTF-8 octet sequence".to_owned())?;
    let Some(root) = parse::parse(text)? else {
        return Ok(Value::Nil);
    };
    let value = Decoder::default().value(&root)?;
    if has_null_key(&value) {
        return Err("unsupported map key".to_owned());
    }
    Ok(value)
}

/// The internal key for null until all is read: a map that a later entry replaces may have one. No text equals it; the
/// same bytes as `!!binary` are refused, too.
const NULL_KEY: &[u8] = b"\xff\xfe null \xfe\xff";

/// A map somewhere in it has a key that JSON cannot name. It is nested no deeper than the decoder lets it be.
fn has_null_key(value: &Value) -> bool {
    match value {
        Value::List(list) => list.items.iter().any(has_null_key),
        Value::Dict(dict) => {
            let entries = dict.entries.borrow();
            entries.contains_key(NULL_KEY) || entries.values().any(has_null_key)
        }
        _ => false,
    }
}

/// Most nodes that aliases may stand for beyond those that are written.
const MAX_ALIASED: usize = MAX_ITEMS;

#[derive(Default)]
struct Decoder {
    depth: usize,
    aliases: usize,
    aliased: usize,
}

type Entries = BTreeMap<Text, Value>;

impl Decoder {
    fn value(&mut self, node: &Node) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("exceeded max depth of {MAX_NESTING}"));
        }
        if self.aliases > 0 {
            self.aliased += 1;
            if self.aliased > MAX_ALIASED {
                return Err("document contains excessive aliasing".to_owned());
            }
        }
        let value = match &node.kind {
            Kind::Scalar(text, implicit) if node.tag.is_empty() && !implicit => Value::text(text),
            Kind::Scalar(text, _) => resolve::resolve(&node.tag, text)?,
            Kind::Sequence(items) => {
                let items = items.iter().map(|item| self.value(item));
                let items = items.collect::<Result<Vec<Value>, String>>()?;
                Value::List(List::new(items, Element::Any).map_err(|failure| failure.message)?)
            }
            Kind::Mapping(entries) => {
                let mut into = Entries::new();
                self.mapping(entries, &mut into)?;
                Value::Dict(Dict {
                    entries: Rc::new(into.into()),
                    element: Element::Any,
                    nil: false,
                })
            }
            Kind::Alias(target) => {
                self.aliases += 1;
                let value = self.value(target)?;
                self.aliases -= 1;
                value
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Entries in order, so that a later one wins; a merged mapping is one of them.
    fn mapping(&mut self, entries: &[(Rc<Node>, Rc<Node>)], into: &mut Entries) -> Result<(), String> {
        for (key, value) in entries {
            if is_merge(key) {
                self.merge(value, into)?;
                continue;
            }
            let key = name(&self.value(key)?)?;
            let value = self.value(value)?;
            into.insert(key, value);
        }
        Ok(())
    }

    fn merge(&mut self, node: &Node, into: &mut Entries) -> Result<(), String> {
        const WANTED: &str = "map merge requires map or sequence of maps as the value";
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("exceeded max depth of {MAX_NESTING}"));
        }
        match &node.kind {
            Kind::Mapping(entries) => self.mapping(entries, into)?,
            Kind::Alias(target) if matches!(target.kind, Kind::Mapping(_)) => {
                self.aliases += 1;
                self.merge(target, into)?;
                self.aliases -= 1;
            }
            Kind::Sequence(items) => {
                // The first of them wins.
                for item in items.iter().rev() {
                    if matches!(item.kind, Kind::Sequence(_)) {
                        return Err(WANTED.to_owned());
                    }
                    self.merge(item, into)?;
                }
            }
            _ => return Err(WANTED.to_owned()),
        }
        self.depth -= 1;
        Ok(())
    }
}

fn is_merge(key: &Node) -> bool {
    match &key.kind {
        Kind::Scalar(text, implicit) => text == "<<" && (*implicit || key.tag == "tag:yaml.org,2002:merge"),
        _ => false,
    }
}

/// The name of a key in JSON.
fn name(key: &Value) -> Result<Text, String> {
    let text = match key {
        Value::Text(text) => return Ok(text.clone()),
        Value::Int(int) => int.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Float(float) if float.is_nan() => ".nan".to_owned(),
        Value::Float(float) if (*float as f32).is_infinite() => {
            if *float > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        Value::Float(float) => {
            // Keys keep the digits of a 32-bit number only.
            let short: f64 = format!("{:e}", *float as f32).parse().unwrap_or(*float);
            floats::format(short, b'g', None)
        }
        Value::List(_) | Value::Dict(_) => return Err("invalid map key".to_owned()),
        _ => return Ok(Text::from(NULL_KEY)),
    };
    Ok(Text::from(text.as_bytes()))
}
