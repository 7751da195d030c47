//! Owns: `eq`, `ne`, `lt`, `le`, `gt`, `ge` as Go's `text/template` compares: never a float with an integer.

use std::cmp::Ordering;

use super::super::{limits::Failure, value::Value};

const INCOMPATIBLE: &str = "incompatible types for comparison";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basic {
    None,
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    Text,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_) | Value::Int64(_) | Value::Named(..) => Basic::Int,
        Value::Uint64(_) | Value::Byte(_) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::Text(_) => Basic::Text,
        _ => Basic::None,
    }
}

/// An integer, whatever its type.
fn integer(value: &Value) -> i128 {
    match value {
        Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => i128::from(*int),
        Value::Uint64(int) => i128::from(*int),
        Value::Byte(byte) => i128::from(*byte),
        _ => 0,
    }
}

fn incompatible(one: &Value, two: &Value) -> Failure {
    Failure::new(format!(
        "{INCOMPATIBLE}: {} and {}",
        one.type_name(),
        two.type_name()
    ))
}

/// Returns true if the first value equals any of the others.
pub(super) fn equals(given: &[Value]) -> Result<bool, Failure> {
    let Some((first, others)) = given.split_first() else {
        return Err(Failure::new("missing argument for comparison"));
    };
    if others.is_empty() {
        return Err(Failure::new("missing argument for comparison"));
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(one: &Value, two: &Value) -> Result<bool, Failure> {
    Ok(match (one, two) {
        _ if matches!(
            (basic(one), basic(two)),
            (Basic::Int | Basic::Uint, Basic::Int | Basic::Uint)
        ) =>
        {
            integer(one) == integer(two)
        }
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::Float(one), Value::Float(two)) => one == two,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Text(one), Value::Text(two)) => one == two,
        _ if basic(one) != basic(two) => {
            if !one.is_none() && !two.is_none() {
                return Err(incompatible(one, two));
            }
            false
        }
        _ => return others_equal(one, two),
    })
}

/// Values that are no numbers, texts or truths.
fn others_equal(one: &Value, two: &Value) -> Result<bool, Failure> {
    if one.is_none() || two.is_none() || is_nil(one) || is_nil(two) {
        if !one.is_none() && !two.is_none() && one.kind() != two.kind() {
            return Err(Failure::new("non-comparable types"));
        }
        return Ok(is_nil(one) == is_nil(two));
    }
    match (one, two) {
        (Value::Time(one), Value::Time(two)) => Ok(one == two),
        (Value::Version(one), Value::Version(two)) => Ok(std::rc::Rc::ptr_eq(one, two)),
        (Value::Release(one), Value::Release(two)) => Ok(one == two),
        _ if one.kind() == two.kind() && !matches!(two, Value::List(_) | Value::Dict(_)) => Ok(false),
        _ => Err(Failure::new(format!("non-comparable type {}", two.type_name()))),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::List(list) => list.nil,
        Value::Dict(dict) => dict.nil,
        other => other.is_none(),
    }
}

/// The order of two values that have one; `None` if one of them is not a number.
pub(super) fn order(one: &Value, two: &Value) -> Result<Option<Ordering>, Failure> {
    let (left, right) = (basic(one), basic(two));
    if left == Basic::None || right == Basic::None {
        return Err(Failure::new("invalid type for comparison"));
    }
    match (one, two) {
        _ if matches!(
            (left, right),
            (Basic::Int | Basic::Uint, Basic::Int | Basic::Uint)
        ) =>
        {
            Ok(Some(integer(one).cmp(&integer(two))))
        }
        (Value::Float(one), Value::Float(two)) => Ok(one.partial_cmp(two)),
        (Value::Text(one), Value::Text(two)) => Ok(Some(one.cmp(two))),
        _ if left == right => Err(Failure::new("invalid type for comparison")),
        _ => Err(incompatible(one, two)),
    }
}
