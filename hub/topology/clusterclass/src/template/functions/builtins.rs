//! Owns: the functions that Go's `text/template` itself has.

use std::cmp::Ordering;

use super::{
    super::{
        limits::Failure,
        meter::Meter,
        print,
        signature::{
            Signature,
            Type::{Any, Raw, Text},
            any, at_least, exactly, said, text,
        },
        value::{Element, Value},
    },
    compare::{equals, order},
    escapes,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "and" | "or" => at_least(&[Raw], Raw, |_, given| Ok(any(given, 0).clone())),
        "not" => exactly(&[Raw], |_, given| Ok(Value::Bool(!any(given, 0).truth()))),
        "len" => exactly(&[Raw], |_, given| length(any(given, 0))),
        "index" => at_least(&[Raw], Raw, |_, given| index(given)),
        "call" => at_least(&[Raw], Raw, |_, given| {
            Err(Failure::new(format!(
                "non-function of type {}",
                any(given, 0).type_name()
            )))
        }),
        "print" => at_least(&[], Any, |meter, given| {
            let text = print::sprint(meter, given)?;
            said(meter, text)
        }),
        "println" => at_least(&[], Any, |meter, given| {
            let text = print::sprintln(meter, given)?;
            said(meter, text)
        }),
        "printf" => at_least(&[Text], Any, |meter, given| {
            let text = print::sprintf(meter, text(given, 0), given.get(1..).unwrap_or(&[]))?;
            said(meter, text)
        }),
        "html" => at_least(&[], Any, |meter, given| escaped(meter, given, escapes::html)),
        "js" => at_least(&[], Any, |meter, given| escaped(meter, given, escapes::js)),
        "urlquery" => at_least(&[], Any, |meter, given| escaped(meter, given, escapes::query)),
        "eq" => at_least(&[Raw], Raw, |meter, given| {
            meter.step(given.len() as u64)?;
            Ok(Value::Bool(equals(given)?))
        }),
        "ne" => exactly(&[Raw, Raw], |_, given| Ok(Value::Bool(!equals(given)?))),
        "lt" => exactly(&[Raw, Raw], |_, given| {
            ordered(given, |order| order == Some(Ordering::Less))
        }),
        "le" => exactly(&[Raw, Raw], |_, given| {
            ordered(given, |order| {
                matches!(order, Some(Ordering::Less | Ordering::Equal))
            })
        }),
        "gt" => exactly(&[Raw, Raw], |_, given| {
            ordered(given, |order| {
                !matches!(order, Some(Ordering::Less | Ordering::Equal))
            })
        }),
        "ge" => exactly(&[Raw, Raw], |_, given| {
            ordered(given, |order| order != Some(Ordering::Less))
        }),
        _ => None,
    }
}

fn ordered(given: &[Value], holds: fn(Option<Ordering>) -> bool) -> Result<Value, Failure> {
    Ok(Value::Bool(holds(order(any(given, 0), any(given, 1))?)))
}

fn escaped(meter: &mut Meter, given: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Result<Value, Failure> {
    let text = escapes::arguments(meter, given)?;
    said(meter, escape(&text))
}

fn length(value: &Value) -> Result<Value, Failure> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Dict(dict) => dict.len(),
        Value::Missing | Value::Nil | Value::Version(_) => return Err(Failure::new("len of nil pointer")),
        other => return Err(Failure::new(format!("len of type {}", other.type_name()))),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(given: &[Value]) -> Result<Value, Failure> {
    let mut item = any(given, 0).clone();
    if item.is_none() {
        return Err(Failure::new("index of untyped nil"));
    }
    for index in given.get(1..).unwrap_or(&[]) {
        item = match &item {
            Value::Missing | Value::Nil => return Err(Failure::new("index of nil pointer")),
            Value::List(list) => list
                .items
                .get(position(index, list.items.len())?)
                .cloned()
                .unwrap_or(Value::Nil),
            Value::Text(text) => Value::Byte(text[position(index, text.len())?]),
            Value::Dict(dict) => {
                let Value::Text(key) = index else {
                    let kind = index.type_name();
                    return Err(Failure::new(format!("value has type {kind}; should be string")));
                };
                dict.get(key).unwrap_or(match dict.element {
                    Element::Text => Value::text(""),
                    _ => Value::Nil,
                })
            }
            other => {
                return Err(Failure::new(format!(
                    "can't index item of type {}",
                    other.type_name()
                )));
            }
        };
    }
    Ok(item)
}

fn position(index: &Value, length: usize) -> Result<usize, Failure> {
    let at = match index {
        Value::Int(at) | Value::Int64(at) | Value::Named(_, at, _) => *at,
        Value::Uint64(at) => i64::try_from(*at).unwrap_or(-1),
        Value::Byte(at) => i64::from(*at),
        Value::Missing | Value::Nil => return Err(Failure::new("cannot index slice/array with nil")),
        other => {
            let kind = other.type_name();
            return Err(Failure::new(format!("cannot index slice/array with type {kind}")));
        }
    };
    usize::try_from(at)
        .ok()
        .filter(|at| *at < length)
        .ok_or_else(|| Failure::new(format!("index out of range: {at}")))
}
