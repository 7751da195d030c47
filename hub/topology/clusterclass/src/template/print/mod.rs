//! Owns: how values are written: `print`, `println`, and `%v`, as Go's `fmt` does it.

mod flags;
mod printf;
mod verbs;

use super::{limits::Failure, meter::Meter, value::Value};
pub(crate) use printf::sprintf;

/// `fmt.Sprint`: a space between two values if neither is a text.
pub(crate) fn sprint(meter: &mut Meter, values: &[Value]) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    let mut before_text = true;
    for (at, value) in values.iter().enumerate() {
        let text = matches!(value, Value::Text(_));
        if at > 0 && !text && !before_text {
            out.push(b' ');
        }
        verbs::plain(meter, &mut out, value)?;
        before_text = text;
    }
    Ok(out)
}

/// `fmt.Sprintln`.
pub(crate) fn sprintln(meter: &mut Meter, values: &[Value]) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        verbs::plain(meter, &mut out, value)?;
    }
    out.push(b'\n');
    Ok(out)
}

/// `%v`.
pub(crate) fn plain(meter: &mut Meter, value: &Value) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    verbs::plain(meter, &mut out, value)?;
    Ok(out)
}
