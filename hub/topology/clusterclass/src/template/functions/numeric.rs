//! Owns: the functions of numbers.

use super::{
    super::{
        cast::{to_float, to_int},
        limits::{Failure, MAX_ITEMS},
        meter::Meter,
        numbers::parse_int_radix,
        print,
        signature::{
            Signature,
            Type::{Any, Float, Int, Text},
            any, at_least, exactly, int, said, text,
        },
        value::{Element, List, Value},
    },
    decimal::Decimal,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    converted(name)
        .or_else(|| whole(name))
        .or_else(|| exact(name))
        .or_else(|| counted(name))
}

fn converted(name: &str) -> Option<Signature> {
    match name {
        "atoi" => exactly(&[Text], |_, given| Ok(Value::Int(atoi(text(given, 0))))),
        "int" => exactly(&[Any], |_, given| Ok(Value::Int(to_int(any(given, 0))))),
        "int64" => exactly(&[Any], |_, given| Ok(Value::Int64(to_int(any(given, 0))))),
        "float64" => exactly(&[Any], |_, given| Ok(Value::Float(to_float(any(given, 0))))),
        "toDecimal" => exactly(&[Any], |meter, given| {
            let shown = print::plain(meter, any(given, 0))?;
            let value = std::str::from_utf8(&shown)
                .ok()
                .and_then(|text| parse_int_radix(text, 8));
            Ok(Value::Int64(value.unwrap_or(0)))
        }),
        "floor" => exactly(&[Any], |_, given| {
            Ok(Value::Float(to_float(any(given, 0)).floor()))
        }),
        "ceil" => exactly(&[Any], |_, given| {
            Ok(Value::Float(to_float(any(given, 0)).ceil()))
        }),
        "round" => at_least(&[Any, Int], Float, |_, given| {
            let round_on = match given.get(2) {
                Some(Value::Float(on)) => *on,
                _ => 0.5,
            };
            let power = power_of_ten(int(given, 1));
            let digit = power * to_float(any(given, 0));
            let fraction = if digit.is_infinite() {
                f64::NAN
            } else {
                digit.fract()
            };
            let rounded = if fraction >= round_on {
                digit.ceil()
            } else {
                digit.floor()
            };
            Ok(Value::Float(rounded / power))
        }),
        _ => None,
    }
}

/// Ten to a power by the squarings of Go's `math.Pow`. One that comes nearer to it rounds otherwise from 10²³ on.
fn power_of_ten(power: i64) -> f64 {
    /// No number has an exponent beyond it, however much is left.
    const FAR: i32 = 1 << 12;
    let (mut product, mut exponent) = (1_f64, 0_i32);
    // Ten, as a fraction from a half on and a power of two.
    let (mut square, mut doublings) = (0.625_f64, 4_i32);
    let mut left = power.unsigned_abs();
    while left != 0 {
        if doublings > FAR {
            exponent += doublings;
            break;
        }
        if left & 1 == 1 {
            product *= square;
            exponent += doublings;
        }
        square *= square;
        doublings *= 2;
        if square < 0.5 {
            square += square;
            doublings -= 1;
        }
        left >>= 1;
    }
    if power < 0 {
        (product, exponent) = (1.0 / product, -exponent);
    }
    scaled(product, exponent)
}

/// A number near one times a power of two, rounded once.
fn scaled(mut number: f64, mut exponent: i32) -> f64 {
    const STEP: i32 = 1_000;
    while exponent.abs() > STEP {
        number *= 2_f64.powi(STEP * exponent.signum());
        exponent -= STEP * exponent.signum();
    }
    number * 2_f64.powi(exponent)
}

fn folded(given: &[Value], fold: fn(i64, i64) -> i64) -> Result<Value, Failure> {
    Ok(Value::Int64(given.iter().map(to_int).reduce(fold).unwrap_or(0)))
}

fn whole(name: &str) -> Option<Signature> {
    match name {
        "add1" => exactly(&[Any], |_, given| {
            Ok(Value::Int64(to_int(any(given, 0)).wrapping_add(1)))
        }),
        "add" => at_least(&[], Any, |_, given| folded(given, i64::wrapping_add)),
        "sub" => exactly(&[Any, Any], |_, given| folded(given, i64::wrapping_sub)),
        "mul" => at_least(&[Any], Any, |_, given| folded(given, i64::wrapping_mul)),
        "div" => exactly(&[Any, Any], |_, given| divided(given, i64::wrapping_div)),
        "mod" => exactly(&[Any, Any], |_, given| divided(given, i64::wrapping_rem)),
        "biggest" | "max" => at_least(&[Any], Any, |_, given| folded(given, i64::max)),
        "min" => at_least(&[Any], Any, |_, given| folded(given, i64::min)),
        "maxf" => at_least(&[Any], Any, |_, given| extreme(given, f64::max)),
        "minf" => at_least(&[Any], Any, |_, given| extreme(given, f64::min)),
        _ => None,
    }
}

fn divided(given: &[Value], divide: fn(i64, i64) -> i64) -> Result<Value, Failure> {
    match (to_int(any(given, 0)), to_int(any(given, 1))) {
        (_, 0) => Err(Failure::new("runtime error: integer divide by zero")),
        (top, bottom) => Ok(Value::Int64(divide(top, bottom))),
    }
}

/// The largest or smallest float; what is no number wins.
fn extreme(given: &[Value], pick: fn(f64, f64) -> f64) -> Result<Value, Failure> {
    let picked = given.iter().map(to_float).reduce(|one, two| {
        if one.is_nan() || two.is_nan() {
            f64::NAN
        } else {
            pick(one, two)
        }
    });
    Ok(Value::Float(picked.unwrap_or(0.0)))
}

type Operation = fn(&mut Meter, &Decimal, &Decimal) -> Result<Decimal, Failure>;

fn calculated(meter: &mut Meter, first: f64, given: &[Value], by: Operation) -> Result<Value, Failure> {
    let mut total = Decimal::new(first)?;
    for value in given {
        let value = Decimal::new(to_float(value))?;
        total = by(meter, &total, &value)?;
    }
    Ok(Value::Float(total.float()))
}

fn exact(name: &str) -> Option<Signature> {
    const ADD: Operation = |meter, one, two| one.plus(meter, two);
    match name {
        "add1f" => exactly(&[Any], |meter, given| {
            calculated(meter, to_float(any(given, 0)), &[Value::Int(1)], ADD)
        }),
        "addf" => at_least(&[], Any, |meter, given| calculated(meter, 0.0, given, ADD)),
        "subf" => at_least(&[Any], Any, |meter, given| {
            let by: Operation = |meter, one, two| one.plus(meter, &two.negated());
            calculated(meter, to_float(any(given, 0)), given.get(1..).unwrap_or(&[]), by)
        }),
        "mulf" => at_least(&[Any], Any, |meter, given| {
            let by: Operation = |meter, one, two| one.times(meter, two);
            calculated(meter, to_float(any(given, 0)), given.get(1..).unwrap_or(&[]), by)
        }),
        "divf" => at_least(&[Any], Any, |meter, given| {
            let by: Operation = |meter, one, two| one.over(meter, two);
            calculated(meter, to_float(any(given, 0)), given.get(1..).unwrap_or(&[]), by)
        }),
        _ => None,
    }
}

fn counted(name: &str) -> Option<Signature> {
    match name {
        "until" => exactly(&[Int], |meter, given| {
            let stop = int(given, 0);
            numbers(meter, steps(0, stop, if stop < 0 { -1 } else { 1 })?)
        }),
        "untilStep" => exactly(&[Int, Int, Int], |meter, given| {
            numbers(meter, steps(int(given, 0), int(given, 1), int(given, 2))?)
        }),
        "seq" => at_least(&[], Int, |meter, given| {
            let found = sequence(given)?;
            meter.items(found.len())?;
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            said(meter, found.join(" "))
        }),
        _ => None,
    }
}

fn sequence(given: &[Value]) -> Result<Vec<i64>, Failure> {
    let (start, step, end) = match given.len() {
        1 => (1, None, int(given, 0)),
        2 => (int(given, 0), None, int(given, 1)),
        3 => (int(given, 0), Some(int(given, 1)), int(given, 2)),
        _ => return Ok(Vec::new()),
    };
    let increment = if end < start { -1 } else { 1 };
    if end < start && step.is_some_and(|step| step > 0) {
        return Ok(Vec::new());
    }
    steps(start, end.wrapping_add(increment), step.unwrap_or(increment))
}

fn steps(start: i64, stop: i64, step: i64) -> Result<Vec<i64>, Failure> {
    let up = stop >= start;
    if up && step <= 0 || !up && step >= 0 {
        return Ok(Vec::new());
    }
    let (distance, size) = (i128::from(stop) - i128::from(start), i128::from(step));
    let count = (distance.abs() + size.abs() - 1) / size.abs();
    if count > MAX_ITEMS as i128 {
        return Err(Failure::new(format!(
            "makes a list of more than {MAX_ITEMS} elements"
        )));
    }
    let count = i64::try_from(count).unwrap_or(0);
    Ok((0..count)
        .map(|at| start.wrapping_add(at.wrapping_mul(step)))
        .collect())
}

fn numbers(meter: &mut Meter, found: Vec<i64>) -> Result<Value, Failure> {
    meter.items(found.len())?;
    let items = found.into_iter().map(Value::Int).collect();
    Ok(Value::List(List::new(items, Element::Int)?))
}

/// `strconv.Atoi` without its error: what is too large is the largest number.
fn atoi(text: &[u8]) -> i64 {
    let Ok(text) = std::str::from_utf8(text) else {
        return 0;
    };
    if let Some(value) = parse_int_radix(text, 10) {
        return value;
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    if text.starts_with('-') { i64::MIN } else { i64::MAX }
}
