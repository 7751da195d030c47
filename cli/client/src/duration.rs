//! Times as people type them: a number with its unit.

use std::time::Duration;

/// A time with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write it as 90s, 30m, 24h or 7d".to_owned();
    let split = text
        .len()
        .checked_sub(1)
        .filter(|at| text.is_char_boundary(*at))
        .ok_or_else(wrong)?;
    let seconds = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..split].parse().map_err(|_| wrong())?;
    count
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        for text in ["", "h", "24", "1w", "-1h", "1é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
