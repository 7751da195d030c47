//! Owns: the functions that choose between values, ask for types, and read and write JSON.

use super::{
    super::{
        json::{self, Style},
        limits::Failure,
        meter::Meter,
        runes,
        signature::{
            Signature,
            Type::{Any, Bool, Text},
            any, at_least, exactly, said, text,
        },
        value::Value,
    },
    equal::deep_equal,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    chosen(name).or_else(|| typed(name)).or_else(|| converted(name))
}

fn chosen(name: &str) -> Option<Signature> {
    match name {
        "default" => at_least(&[Any], Any, |_, given| {
            Ok(match given.get(1) {
                Some(value) if value.truth() => value.clone(),
                _ => any(given, 0).clone(),
            })
        }),
        "empty" => exactly(&[Any], |_, given| Ok(Value::Bool(!any(given, 0).truth()))),
        "coalesce" => at_least(&[], Any, |_, given| {
            Ok(given
                .iter()
                .find(|value| value.truth())
                .cloned()
                .unwrap_or(Value::Nil))
        }),
        "all" => at_least(&[], Any, |_, given| {
            Ok(Value::Bool(given.iter().all(Value::truth)))
        }),
        "any" => at_least(&[], Any, |_, given| {
            Ok(Value::Bool(given.iter().any(Value::truth)))
        }),
        "ternary" => exactly(&[Any, Any, Bool], |_, given| {
            let first = matches!(any(given, 2), Value::Bool(true));
            Ok(any(given, usize::from(!first)).clone())
        }),
        "fail" => exactly(&[Text], |_, given| {
            Err(Failure::new(runes::lossy(text(given, 0))))
        }),
        _ => None,
    }
}

fn typed(name: &str) -> Option<Signature> {
    match name {
        "typeOf" => exactly(&[Any], |meter, given| said(meter, any(given, 0).type_name())),
        "typeIs" => exactly(&[Text, Any], |_, given| {
            Ok(Value::Bool(
                text(given, 0) == any(given, 1).type_name().as_bytes(),
            ))
        }),
        "typeIsLike" => exactly(&[Text, Any], |_, given| {
            let (wanted, found) = (runes::lossy(text(given, 0)), any(given, 1).type_name());
            Ok(Value::Bool(wanted == found || format!("*{wanted}") == found))
        }),
        "kindOf" => exactly(&[Any], |meter, given| said(meter, any(given, 0).kind())),
        "kindIs" => exactly(&[Text, Any], |_, given| {
            Ok(Value::Bool(text(given, 0) == any(given, 1).kind().as_bytes()))
        }),
        "deepEqual" => exactly(&[Any, Any], |meter, given| {
            Ok(Value::Bool(deep_equal(meter, any(given, 0), any(given, 1))?))
        }),
        _ => None,
    }
}

fn converted(name: &str) -> Option<Signature> {
    match name {
        "fromJson" => exactly(&[Text], |meter, given| match json::read(meter, text(given, 0)) {
            Ok(value) => Ok(value),
            // A bound is an error; a text that is no JSON is nothing.
            Err(_) => meter.step(0).map(|()| Value::Nil),
        }),
        "mustFromJson" => exactly(&[Text], |meter, given| json::read(meter, text(given, 0))),
        "toJson" => exactly(&[Any], |meter, given| quietly(meter, given, Style::Escaped)),
        "toPrettyJson" => exactly(&[Any], |meter, given| quietly(meter, given, Style::Pretty)),
        "mustToJson" => exactly(&[Any], |meter, given| loudly(meter, given, Style::Escaped)),
        "mustToPrettyJson" => exactly(&[Any], |meter, given| loudly(meter, given, Style::Pretty)),
        "toRawJson" | "mustToRawJson" => exactly(&[Any], |meter, given| loudly(meter, given, Style::Raw)),
        _ => None,
    }
}

/// Writes JSON; values that JSON cannot express become empty.
fn quietly(meter: &mut Meter, given: &[Value], style: Style) -> Result<Value, Failure> {
    match json::write(meter, any(given, 0), style) {
        Err(failure) if failure.message.starts_with("json: ") => said(meter, ""),
        written => said(meter, written?),
    }
}

fn loudly(meter: &mut Meter, given: &[Value], style: Style) -> Result<Value, Failure> {
    let text = json::write(meter, any(given, 0), style)?;
    said(meter, text)
}
