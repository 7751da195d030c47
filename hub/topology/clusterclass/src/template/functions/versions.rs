//! Owns: the functions of versions.

use std::rc::Rc;

use super::{
    super::{
        limits::Failure,
        runes,
        signature::{Signature, Type::Text, exactly, text},
        value::Value,
        version::Version,
    },
    constraint::satisfied,
};

/// Steps that reading a version or a constraint counts for.
const STEPS: u64 = 20;

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "semver" => exactly(&[Text], |meter, given| {
            meter.step(STEPS)?;
            let version = Version::parse(&runes::lossy(text(given, 0))).map_err(Failure::new)?;
            Ok(Value::Version(Rc::new(version)))
        }),
        "semverCompare" => exactly(&[Text, Text], |meter, given| {
            meter.step(STEPS + text(given, 0).len() as u64)?;
            let (constraint, version) = (runes::lossy(text(given, 0)), runes::lossy(text(given, 1)));
            satisfied(&constraint, &version)
                .map(Value::Bool)
                .map_err(Failure::new)
        }),
        _ => None,
    }
}
