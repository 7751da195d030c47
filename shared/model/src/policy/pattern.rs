//! Patterns of names: literal characters, and `*` for any number of characters, including none. Matching is bounded by
//! the lengths of both; it never goes back further than to the last `*`.

use std::{fmt, str::FromStr};

use super::super::name::DNS_SUBDOMAIN_BYTES_MAX;

/// Longest pattern, in bytes: as long as the longest name.
pub const PATTERN_BYTES_MAX: usize = DNS_SUBDOMAIN_BYTES_MAX;

/// A name, or a pattern of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(Box<str>);

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no name or pattern: use 1 to {PATTERN_BYTES_MAX} of a-z, 0-9, '-', '.', and '*' for any characters; quote \
     what begins with '*'"
)]
pub struct InvalidPattern;

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.*".contains(&b);
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX || !text.bytes().all(known) {
            return Err(InvalidPattern);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// Every name.
    pub fn any() -> Self {
        Self("*".into())
    }

    /// Returns true if it matches a whole name.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut seen) = (0, 0);
        // The last `*`, and the end of the name's part that was tried for it.
        let mut star: Option<(usize, usize)> = None;
        while seen < name.len() {
            match (pattern.get(at), star) {
                (Some(b'*'), _) => {
                    star = Some((at, seen));
                    at += 1;
                }
                (Some(byte), _) if *byte == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                (_, Some((place, tried))) => {
                    star = Some((place, tried + 1));
                    at = place + 1;
                    seen = tried + 1;
                }
                (_, None) => return false,
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_nothing_else_does() {
        for (pattern, name, matches) in [
            ("east", "east", true),
            ("east", "east-1", false),
            ("east", "eas", false),
            ("*", "", true),
            ("*", "anything", true),
            ("west-*", "west-1", true),
            ("west-*", "west-", true),
            ("west-*", "west", false),
            ("*-db", "shop-db", true),
            ("*-db", "shop-db-1", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-c-b", false),
            ("a.b", "axb", false),
            ("**", "x", true),
        ] {
            let read: Pattern = pattern.parse().expect("a pattern");
            assert_eq!(read.matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for text in ["", "East", "a b", "a_b", "a?", &long] {
            assert_eq!(text.parse::<Pattern>(), Err(InvalidPattern), "{text}");
        }
        assert!("a".repeat(PATTERN_BYTES_MAX).parse::<Pattern>().is_ok());
    }
}
