//! Owns: semantic versions as Masterminds/semver reads and orders them: lenient, with or without `v`.

use std::{cmp::Ordering, fmt};

/// A version; parts that are not written are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// Major, minor and patch.
    pub(crate) numbers: [u64; 3],
    /// Behind `-`.
    pub(crate) prerelease: String,
    /// Behind `+`.
    pub(crate) metadata: String,
    /// As it was written.
    pub(crate) original: String,
}

/// Longest text that is read as a version or a constraint, bytes.
pub(crate) const MAX_VERSION: usize = 4_096;

impl Version {
    /// Reads a version.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "invalid semantic version".to_owned();
        if text.len() > MAX_VERSION {
            return Err(invalid());
        }
        let mut rest = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = [0; 3];
        for (at, number) in numbers.iter_mut().enumerate() {
            let body = if at == 0 {
                Some(rest)
            } else {
                rest.strip_prefix('.')
            };
            let Some(body) = body else {
                break;
            };
            let length = body.bytes().take_while(u8::is_ascii_digit).count();
            if length == 0 {
                return Err(invalid());
            }
            *number = body[..length]
                .parse()
                .map_err(|_| "error parsing version segment: value out of range".to_owned())?;
            rest = &body[length..];
        }
        let (prerelease, rest) = labels(rest, '-').ok_or_else(invalid)?;
        let (metadata, rest) = labels(rest, '+').ok_or_else(invalid)?;
        if !rest.is_empty() {
            return Err(invalid());
        }
        let version = Self {
            numbers,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
        };
        check_prerelease(&version.prerelease)?;
        Ok(version)
    }

    /// Another version made from this one, with `v` if this one has it.
    pub(crate) fn derived(&self, numbers: [u64; 3], prerelease: &str, metadata: &str) -> Self {
        let mut next = Self {
            numbers,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: String::new(),
        };
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{next}");
        next
    }

    /// The order of precedence; metadata does not count.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.as_str(), other.prerelease.as_str()) {
                ("", "") => Ordering::Equal,
                ("", _) => Ordering::Greater,
                (_, "") => Ordering::Less,
                (one, two) => order_prerelease(one, two),
            }
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Labels with dots between them behind a sign, and what follows; none if the sign is not there.
fn labels(text: &str, sign: char) -> Option<(&str, &str)> {
    let Some(body) = text.strip_prefix(sign) else {
        return Some(("", text));
    };
    let length = body
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        .count();
    let (labels, rest) = body.split_at(length);
    labels
        .split('.')
        .all(|label| !label.is_empty())
        .then_some((labels, rest))
}

/// Checks the text behind `-`.
pub(crate) fn check_prerelease(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    for part in text.split('.') {
        let numeric = part.bytes().all(|byte| byte.is_ascii_digit());
        if numeric && part.len() > 1 && part.starts_with('0') {
            return Err("version segment starts with 0".to_owned());
        }
        if !allowed(part) {
            return Err("invalid prerelease string".to_owned());
        }
    }
    Ok(())
}

/// Checks the text behind `+`.
pub(crate) fn check_metadata(text: &str) -> Result<(), String> {
    if text.is_empty() || text.split('.').all(allowed) {
        return Ok(());
    }
    Err("invalid metadata string".to_owned())
}

fn allowed(part: &str) -> bool {
    !part.is_empty()
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The order of two prereleases, part by part.
pub(crate) fn order_prerelease(one: &str, two: &str) -> Ordering {
    let (mut ones, mut twos) = (one.split('.'), two.split('.'));
    loop {
        let (one, two) = (ones.next(), twos.next());
        if one.is_none() && two.is_none() {
            return Ordering::Equal;
        }
        let order = order_part(one.unwrap_or(""), two.unwrap_or(""));
        if order.is_ne() {
            return order;
        }
    }
}

fn order_part(one: &str, two: &str) -> Ordering {
    if one == two {
        return Ordering::Equal;
    }
    if one.is_empty() {
        return Ordering::Less;
    }
    if two.is_empty() {
        return Ordering::Greater;
    }
    let number = |part: &str| part.parse::<u64>().ok().filter(|_| !part.starts_with('+'));
    match (number(one), number(two)) {
        (None, None) => one.cmp(two),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(one), Some(two)) if one > two => Ordering::Greater,
        _ => Ordering::Less,
    }
}
