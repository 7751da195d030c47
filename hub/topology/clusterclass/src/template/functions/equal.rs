//! Owns: whether two values are the same through and through, as Go's `reflect.DeepEqual` sees it.

use super::super::{
    limits::{Failure, nested},
    meter::Meter,
    value::Value,
};

/// Returns true if two values have the same type and content.
pub(super) fn deep_equal(meter: &mut Meter, one: &Value, two: &Value) -> Result<bool, Failure> {
    same(meter, one, two, 0)
}

fn same(meter: &mut Meter, one: &Value, two: &Value, depth: usize) -> Result<bool, Failure> {
    meter.step(1)?;
    nested(depth)?;
    Ok(match (one, two) {
        (Value::Missing | Value::Nil, Value::Missing | Value::Nil) => true,
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::Int(one), Value::Int(two)) | (Value::Int64(one), Value::Int64(two)) => one == two,
        (Value::Uint64(one), Value::Uint64(two)) => one == two,
        (Value::Byte(one), Value::Byte(two)) => one == two,
        (Value::Float(one), Value::Float(two)) => one == two,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Text(one), Value::Text(two)) => {
            meter.read(one.len())?;
            one == two
        }
        (Value::Version(one), Value::Version(two)) | (Value::Release(one), Value::Release(two)) => one == two,
        (Value::Time(one), Value::Time(two)) => one == two,
        (Value::Named(one, a, _), Value::Named(two, b, _)) => one == two && a == b,
        (Value::List(one), Value::List(two)) => {
            if one.element != two.element || one.nil != two.nil || one.items.len() != two.items.len() {
                return Ok(false);
            }
            for (one, two) in one.items.iter().zip(two.items.iter()) {
                if !same(meter, one, two, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(one), Value::Dict(two)) => {
            if one.element != two.element || one.nil != two.nil || one.len() != two.len() {
                return Ok(false);
            }
            for (key, one) in one.snapshot() {
                let Some(two) = two.get(&key) else {
                    return Ok(false);
                };
                if !same(meter, &one, &two, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}
