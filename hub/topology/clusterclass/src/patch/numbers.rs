//! Owns: numbers as an API server keeps them.

use serde_json::{Number, Value};

/// The first number above 64-bit integers.
const WHOLE: f64 = 9_223_372_036_854_775_808.0;

/// The value with its numbers as a Kubernetes client decodes them and writes them again: whole ones without a point,
/// and none beyond 64 bits with a sign that is exact. `1.0` and `1` are no difference between two templates.
pub(super) fn kept(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(kept_number(number)),
        Value::Array(items) => items.into_iter().map(kept).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, kept(value)))
            .collect(),
        other => other,
    }
}

fn kept_number(number: Number) -> Number {
    if number.is_i64() {
        return number;
    }
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && (-WHOLE..WHOLE).contains(&float) => Number::from(float as i64),
        Some(float) => Number::from_f64(float).unwrap_or(number),
        None => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_point() {
        for (written, kept_as) in [
            ("1.0", "1"),
            ("1e+06", "1000000"),
            ("-0.0", "0"),
            ("2.5", "2.5"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("[{\"a\":3.0}]", "[{\"a\":3}]"),
        ] {
            let value: Value = serde_json::from_str(written).expect("JSON");
            assert_eq!(kept(value).to_string(), kept_as, "{written}");
        }
        let large: Value = serde_json::from_str("18446744073709551615").expect("JSON");
        assert_eq!(kept(large).as_f64(), Some(18_446_744_073_709_551_615.0));
    }
}
