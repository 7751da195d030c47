//! Owns: the methods that values of a template have: those of versions and of times.

use std::{cmp::Ordering, rc::Rc};

use super::{
    limits::Failure,
    meter::Meter,
    moment::{MONTHS, Moment, Parts},
    signature::{Signature, Type, exactly, said, text},
    value::Value,
    version::{Version, check_metadata, check_prerelease},
};

/// The method of a value. Its body gets the value before its arguments.
pub(crate) fn find(value: &Value, name: &str) -> Option<Signature> {
    match value {
        Value::Version(_) => of_version(name).or_else(|| of_pointer(name)),
        Value::Release(_) => of_version(name),
        Value::Time(_) => of_time(name),
        Value::Named(..) if name == "String" => exactly(&[], |_, given| {
            Ok(Value::text(
                given.first().and_then(Value::stringer).unwrap_or_default(),
            ))
        }),
        _ => None,
    }
}

/// The name of a month by its number, from 1.
pub(crate) fn month(number: i64) -> &'static str {
    usize::try_from(number - 1)
        .ok()
        .and_then(|at| MONTHS.get(at).copied())
        .unwrap_or("%!Month")
}

fn version(given: &[Value], at: usize) -> Result<&Version, Failure> {
    match given.get(at) {
        Some(Value::Version(version) | Value::Release(version)) => Ok(version),
        _ => Err(Failure::new("invalid memory address or nil pointer dereference")),
    }
}

fn release(version: Version) -> Result<Value, Failure> {
    Ok(Value::Release(Rc::new(version)))
}

fn of_version(name: &str) -> Option<Signature> {
    match name {
        "Major" => exactly(&[], |_, given| Ok(Value::Uint64(version(given, 0)?.numbers[0]))),
        "Minor" => exactly(&[], |_, given| Ok(Value::Uint64(version(given, 0)?.numbers[1]))),
        "Patch" => exactly(&[], |_, given| Ok(Value::Uint64(version(given, 0)?.numbers[2]))),
        "Prerelease" => exactly(&[], |_, given| Ok(Value::text(&version(given, 0)?.prerelease))),
        "Metadata" => exactly(&[], |_, given| Ok(Value::text(&version(given, 0)?.metadata))),
        "String" => exactly(&[], |_, given| Ok(Value::text(version(given, 0)?.to_string()))),
        "IncMajor" => exactly(&[], |_, given| {
            let old = version(given, 0)?;
            release(old.derived([old.numbers[0].wrapping_add(1), 0, 0], "", ""))
        }),
        "IncMinor" => exactly(&[], |_, given| {
            let old = version(given, 0)?;
            let [major, minor, _] = old.numbers;
            release(old.derived([major, minor.wrapping_add(1), 0], "", ""))
        }),
        "IncPatch" => exactly(&[], |_, given| {
            let old = version(given, 0)?;
            let [major, minor, patch] = old.numbers;
            let next = if old.prerelease.is_empty() {
                patch.wrapping_add(1)
            } else {
                patch
            };
            release(old.derived([major, minor, next], "", ""))
        }),
        "SetPrerelease" => exactly(&[Type::Text], |_, given| {
            let old = version(given, 0)?;
            let wanted = String::from_utf8_lossy(text(given, 1)).into_owned();
            if !wanted.is_empty() {
                check_prerelease(&wanted).map_err(Failure::new)?;
            }
            release(old.derived(old.numbers, &wanted, &old.metadata))
        }),
        "SetMetadata" => exactly(&[Type::Text], |_, given| {
            let old = version(given, 0)?;
            let wanted = String::from_utf8_lossy(text(given, 1)).into_owned();
            if !wanted.is_empty() {
                check_metadata(&wanted).map_err(Failure::new)?;
            }
            release(old.derived(old.numbers, &old.prerelease, &wanted))
        }),
        _ => None,
    }
}

fn compared(given: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, Failure> {
    Ok(Value::Bool(holds(version(given, 0)?.order(version(given, 1)?))))
}

fn of_pointer(name: &str) -> Option<Signature> {
    const OTHER: &[Type] = &[Type::Version];
    match name {
        "Original" => exactly(&[], |_, given| Ok(Value::text(&version(given, 0)?.original))),
        "Compare" => exactly(OTHER, |_, given| {
            Ok(Value::Int(version(given, 0)?.order(version(given, 1)?) as i64))
        }),
        "Equal" => exactly(OTHER, |_, given| compared(given, Ordering::is_eq)),
        "LessThan" => exactly(OTHER, |_, given| compared(given, Ordering::is_lt)),
        "LessThanEqual" => exactly(OTHER, |_, given| compared(given, Ordering::is_le)),
        "GreaterThan" => exactly(OTHER, |_, given| compared(given, Ordering::is_gt)),
        "GreaterThanEqual" => exactly(OTHER, |_, given| compared(given, Ordering::is_ge)),
        _ => None,
    }
}

fn time(given: &[Value]) -> Moment {
    match given.first() {
        Some(Value::Time(moment)) => moment.clone(),
        _ => Moment::ZERO,
    }
}

fn part(given: &[Value], pick: fn(Parts) -> i64) -> Result<Value, Failure> {
    Ok(Value::Int(pick(time(given).parts())))
}

fn of_time(name: &str) -> Option<Signature> {
    match name {
        "Year" => exactly(&[], |_: &mut Meter, given| part(given, |parts| parts[0])),
        "Month" => exactly(&[], |_, given| {
            let number = time(given).parts()[1];
            Ok(Value::Named("time.Month", number, month(number)))
        }),
        "Day" => exactly(&[], |_, given| part(given, |parts| parts[2])),
        "Hour" => exactly(&[], |_, given| part(given, |parts| parts[3])),
        "Minute" => exactly(&[], |_, given| part(given, |parts| parts[4])),
        "Second" => exactly(&[], |_, given| part(given, |parts| parts[5])),
        "Nanosecond" => exactly(&[], |_, given| Ok(Value::Int(i64::from(time(given).nanos)))),
        "Weekday" => exactly(&[], |_, given| {
            let (number, name) = time(given).week_day();
            Ok(Value::Named("time.Weekday", number, name))
        }),
        "YearDay" => exactly(&[], |_, given| Ok(Value::Int(time(given).year_day()))),
        "UTC" | "Local" => exactly(&[], |_, given| Ok(Value::Time(time(given).in_utc()))),
        "Format" => exactly(&[Type::Text], |meter, given| {
            let layout = text(given, 1);
            meter.read(layout.len())?;
            said(meter, time(given).format(layout))
        }),
        "IsZero" => exactly(&[], |_, given| {
            let moment = time(given);
            Ok(Value::Bool(
                moment.seconds == Moment::ZERO.seconds && moment.nanos == 0,
            ))
        }),
        "String" => exactly(&[], |_, given| Ok(Value::text(time(given).to_string()))),
        _ => since_1970(name).or_else(|| beside_another(name)),
    }
}

fn since_1970(name: &str) -> Option<Signature> {
    match name {
        "Unix" => exactly(&[], |_, given| Ok(Value::Int64(time(given).seconds))),
        "UnixMilli" => exactly(&[], |_, given| {
            let moment = time(given);
            let millis = moment.seconds.wrapping_mul(1_000);
            Ok(Value::Int64(
                millis.wrapping_add(i64::from(moment.nanos) / 1_000_000),
            ))
        }),
        "UnixMicro" => exactly(&[], |_, given| {
            let moment = time(given);
            let micros = moment.seconds.wrapping_mul(1_000_000);
            Ok(Value::Int64(micros.wrapping_add(i64::from(moment.nanos) / 1_000)))
        }),
        "UnixNano" => exactly(&[], |_, given| Ok(Value::Int64(time(given).unix_nanos()))),
        _ => None,
    }
}

fn instants(given: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, Failure> {
    Ok(Value::Bool(holds(order_of_instants(given))))
}

fn order_of_instants(given: &[Value]) -> Ordering {
    let at = |place: usize| {
        let moment = time(given.get(place..).unwrap_or_default());
        (moment.seconds, moment.nanos)
    };
    at(0).cmp(&at(1))
}

fn beside_another(name: &str) -> Option<Signature> {
    const OTHER: &[Type] = &[Type::Time];
    match name {
        "Compare" => exactly(OTHER, |_, given| Ok(Value::Int(order_of_instants(given) as i64))),
        "Equal" => exactly(OTHER, |_, given| instants(given, Ordering::is_eq)),
        "Before" => exactly(OTHER, |_, given| instants(given, Ordering::is_lt)),
        "After" => exactly(OTHER, |_, given| instants(given, Ordering::is_gt)),
        _ => None,
    }
}
