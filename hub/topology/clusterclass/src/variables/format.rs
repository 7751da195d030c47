//! Owns: the formats that a text of a schema may have, as the API server's validation knows them.

use std::net::{Ipv4Addr, Ipv6Addr};

use regex::Regex;

/// Formats that an API server checks and we do not.
pub(super) const LEFT_OUT: &[&str] = &[
    "bsonobjectid",
    "creditcard",
    "duration",
    "email",
    "hexcolor",
    "isbn",
    "isbn10",
    "isbn13",
    "rgbcolor",
    "ssn",
];

/// Returns true if a text has a format; every text has an unknown one, as upstream does it.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_block(text),
        "mac" => matches(&mac(), text),
        "uuid" => matches(UUID, text),
        "uuid3" => matches(UUID, text) && digit(text, 12) == Some(b'3'),
        "uuid4" => matches(UUID, text) && digit(text, 12) == Some(b'4') && variant(text),
        "uuid5" => matches(UUID, text) && digit(text, 12) == Some(b'5') && variant(text),
        "byte" => matches(BYTE, text),
        "hostname" => text.len() <= 255 && matches(&hostname(), text),
        "uri" => is_uri(text),
        "date" => is_date(text),
        "date-time" | "datetime" => text
            .split_once(['T', 't'])
            .is_some_and(|(date, time)| is_date(date) && matches(&clock(), time)),
        _ => true,
    }
}

/// A block of addresses, `address/bits`.
pub fn is_block(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
    digits && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn mac() -> String {
    let pairs = |count, by: char| format!("(?:[0-9a-fA-F]{{2}}{by}){{{count}}}[0-9a-fA-F]{{2}}");
    let fours = |count| format!(r"(?:[0-9a-fA-F]{{4}}\.){{{count}}}[0-9a-fA-F]{{4}}");
    let all = [5, 7, 19].map(|count| format!("{}|{}", pairs(count, ':'), pairs(count, '-')));
    let dotted = [2, 3, 9].map(fours);
    format!("^(?:{}|{})$", all.join("|"), dotted.join("|"))
}

fn hostname() -> String {
    const LABEL: &str = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    format!(r"^{LABEL}(?:\.{LABEL})*$")
}

fn clock() -> String {
    const HOUR: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
    format!(r"^{HOUR}:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-]{HOUR})$")
}

const UUID: &str = "^(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})$";
const BYTE: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
const DATE: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
const URI: &str =
    r"^(?:/|[a-zA-Z][a-zA-Z0-9+.-]*:(?://[^\x00-\x20\x7f<>\x22]*)?)(?:[^%\x00-\x1f\x7f]|%[0-9a-fA-F]{2})*$";

/// The expression is made each time: formats are rare, and nothing is kept here.
fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

fn is_uri(text: &str) -> bool {
    matches(URI, text) && !text.contains("://:")
}

fn digit(uuid: &str, at: usize) -> Option<u8> {
    uuid.bytes().filter(|byte| *byte != b'-').nth(at)
}

fn variant(uuid: &str) -> bool {
    digit(uuid, 16).is_some_and(|byte| b"89abAB".contains(&byte))
}

fn is_date(text: &str) -> bool {
    if !matches(DATE, text) {
        return false;
    }
    let part = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_what_fits_and_what_does_not() {
        let uuid = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let uuid3 = "6ba7b810-9dad-31d1-80b4-00c04fd430c8";
        let uuid5 = "6ba7b810-9dad-51d1-80b4-00c04fd430c8";
        for (format, good, bad) in [
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fd00::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/64", "fd00::/129"),
            ("cidr", "10.0.0.0/0", "10.0.0.0/08"),
            ("mac", "00:11:22:33:44:55", "00:11:22:33:44"),
            ("mac", "0011.2233.4455", "0011:2233:4455"),
            ("uuid", uuid, "6ba7b810"),
            ("uuid3", uuid3, uuid),
            ("uuid4", uuid, uuid5),
            ("uuid5", uuid5, uuid3),
            ("byte", "YWJj", "YWJ"),
            ("hostname", "a-b.example", "-a"),
            ("uri", "https://a.example/b?c", "a b"),
            ("uri", "/a", "a%zz:"),
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2024-02-29T10:00:00.5Z", "2024-02-29 10:00:00Z"),
            ("date-time", "2024-02-29T10:00:00+01:00", "2024-02-29T24:00:00Z"),
        ] {
            assert!(fits(format, good), "{format} {good}");
            assert!(!fits(format, bad), "{format} {bad}");
        }
        assert!(fits("of our own", "anything"));
    }
}
