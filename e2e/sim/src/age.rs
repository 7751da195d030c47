//! The age of a time, as `kubectl get` prints it. A pure function of two times.

use jiff::Timestamp;
use serde_json::Value;

/// The age of a time, in words.
pub(super) fn age(time: &Value, now_ms: i64) -> String {
    let Some(time) = time.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "<unknown>".to_owned();
    };
    let seconds = (now_ms - time.as_millisecond()).div_euclid(1_000);
    let two = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{part}"),
    };
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(hours / 24, "d", hours % 24, "h"),
        _ => format!("{}d", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ages_are_said_as_kubectl_says_them() {
        let ages = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3_599, "59m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (36_000, "10h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ];
        for (seconds, said) in ages {
            assert_eq!(
                age(&json!("1970-01-01T00:00:00Z"), seconds * 1_000),
                said,
                "{seconds}"
            );
        }
        assert_eq!(age(&Value::Null, 0), "<unknown>");
    }
}
