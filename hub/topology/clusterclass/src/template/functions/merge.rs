//! Owns: how maps are merged, as `mergo` does it: into the first one, which changes.

use super::super::{
    limits::{Failure, nested},
    meter::Meter,
    value::{Dict, Value},
};

/// The first map, with the others in it.
pub(super) fn merged(meter: &mut Meter, given: &[Value], overwrite: bool) -> Result<Value, Failure> {
    let Some((Value::Dict(first), others)) = given.split_first() else {
        return Err(Failure::new("merge needs a map"));
    };
    let into = if first.nil && !others.is_empty() {
        meter.dict(std::collections::BTreeMap::new())?
    } else {
        Value::Dict(first.clone())
    };
    if let Value::Dict(into) = &into {
        for other in others {
            if let Value::Dict(from) = other {
                merge(meter, into, from, overwrite, 0)?;
            }
        }
    }
    Ok(into)
}

/// Nothing, false, zero, or without elements.
fn is_empty(value: &Value) -> bool {
    !value.truth() && !matches!(value, Value::Complex(..))
}

fn merge(meter: &mut Meter, into: &Dict, from: &Dict, overwrite: bool, depth: usize) -> Result<(), Failure> {
    nested(depth)?;
    if into.nil {
        return Ok(());
    }
    for (key, new) in from.snapshot() {
        meter.items(1)?;
        let old = into.get(&key);
        if new.is_none() {
            if overwrite {
                into.entries.borrow_mut().insert(key, new);
            }
            continue;
        }
        if let (Value::Dict(from), Some(Value::Dict(into))) = (&new, &old) {
            merge(meter, into, from, overwrite, depth + 1)?;
            if into.len() > 0 {
                continue;
            }
        }
        let absent = old.as_ref().is_none_or(is_empty);
        if overwrite || absent {
            into.entries.borrow_mut().insert(key, new);
        }
    }
    Ok(())
}
