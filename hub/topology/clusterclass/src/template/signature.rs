//! Owns: what a function takes and gives, and how its body reads what it was given.

use super::{
    limits::Failure,
    meter::Meter,
    value::{Dict, List, Value},
};

/// The Go type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// `interface {}`.
    Any,
    /// `reflect.Value`: even no value at all.
    Raw,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `uint32`.
    Uint32,
    /// `float64`.
    Float,
    /// `bool`.
    Bool,
    /// `map[string]interface {}`.
    Dict,
    /// `time.Time`.
    Time,
    /// `*semver.Version`.
    Version,
}

impl Type {
    /// The name of the Go type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Raw => "reflect.Value",
            Self::Text => "string",
            Self::Int => "int",
            Self::Uint32 => "uint32",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Dict => "map[string]interface {}",
            Self::Time => "time.Time",
            Self::Version => "*semver.Version",
        }
    }

    /// The type's empty value, if it has one.
    pub(crate) fn none(self) -> Option<Value> {
        match self {
            Self::Any => Some(Value::Nil),
            Self::Raw => Some(Value::Missing),
            Self::Dict => Some(Value::Dict(Dict::nil())),
            _ => None,
        }
    }

    /// Returns true if a value may be passed as it is.
    pub(crate) fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Raw, _)
            | (Self::Text, Value::Text(_))
            | (Self::Int, Value::Int(_))
            | (Self::Float, Value::Float(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Time, Value::Time(_))
            | (Self::Version, Value::Version(_)) => true,
            (Self::Dict, Value::Dict(dict)) => dict.element == super::value::Element::Any,
            _ => false,
        }
    }
}

/// A function's code: it gets as many arguments as it takes, of the types that it takes.
pub(crate) type Body = fn(&mut Meter, &[Value]) -> Result<Value, Failure>;

/// A function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signature {
    /// Types of the parameters.
    pub(crate) fixed: &'static [Type],
    /// Type of any further ones.
    pub(crate) rest: Option<Type>,
    /// Its code.
    pub(crate) body: Body,
}

/// A function of a fixed number of parameters.
pub(crate) fn exactly(fixed: &'static [Type], body: Body) -> Option<Signature> {
    Some(Signature {
        fixed,
        rest: None,
        body,
    })
}

/// A function that takes any number of further ones.
pub(crate) fn at_least(fixed: &'static [Type], rest: Type, body: Body) -> Option<Signature> {
    Some(Signature {
        fixed,
        rest: Some(rest),
        body,
    })
}

/// A text argument.
pub(crate) fn text(arguments: &[Value], at: usize) -> &[u8] {
    match arguments.get(at) {
        Some(Value::Text(text)) => text,
        _ => &[],
    }
}

/// An `int` argument.
pub(crate) fn int(arguments: &[Value], at: usize) -> i64 {
    match arguments.get(at) {
        Some(Value::Int(int)) => *int,
        _ => 0,
    }
}

/// Any argument.
pub(crate) fn any(arguments: &[Value], at: usize) -> &Value {
    arguments.get(at).unwrap_or(&Value::Nil)
}

/// A map argument.
pub(crate) fn dict(arguments: &[Value], at: usize) -> Dict {
    match arguments.get(at) {
        Some(Value::Dict(dict)) => dict.clone(),
        _ => Dict::nil(),
    }
}

/// An argument that has to be a slice.
pub(crate) fn list<'a>(arguments: &'a [Value], at: usize, doing: &str) -> Result<&'a List, Failure> {
    match arguments.get(at) {
        Some(Value::List(list)) => Ok(list),
        other => {
            let kind = other.map_or("invalid", Value::kind);
            Err(Failure::new(format!("Cannot {doing} on type {kind}")))
        }
    }
}

/// A text as a result.
pub(crate) fn said(meter: &mut Meter, text: impl AsRef<[u8]>) -> Result<Value, Failure> {
    meter.text(text.as_ref().len())?;
    Ok(Value::text(text))
}

/// Texts as a result.
pub(crate) fn texts<T: AsRef<[u8]>>(meter: &mut Meter, texts: Vec<T>) -> Result<Value, Failure> {
    meter.items(texts.len())?;
    meter.text(0)?;
    let mut items = Vec::with_capacity(texts.len());
    for text in texts {
        items.push(said(meter, text)?);
    }
    Ok(Value::List(List::new(items, super::value::Element::Text)?))
}

/// Values as a result.
pub(crate) fn listed(meter: &mut Meter, items: Vec<Value>) -> Result<Value, Failure> {
    meter.items(items.len())?;
    Ok(Value::List(List::new(items, super::value::Element::Any)?))
}
