//! Owns: versions of Kubernetes: strict semantic versions, with or without `v`, and their order.

use std::cmp::Ordering;

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Major, minor, patch.
    pub numbers: [u64; 3],
    prerelease: Vec<String>,
}

impl Version {
    /// Reads a version; none if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = match text.split_once('+') {
            Some((text, build)) => (text, Some(build)),
            None => (text, None),
        };
        let (core, prerelease) = match text.split_once('-') {
            Some((core, prerelease)) => (core, Some(prerelease)),
            None => (text, None),
        };
        let mut parts = core.split('.').map(number);
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        let labels_fit = |text: &str| {
            text.split('.').all(|label| {
                !label.is_empty()
                    && label
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            })
        };
        let labelled = [prerelease, build].into_iter().flatten().all(labels_fit);
        (parts.next().is_none() && labelled).then(|| Self {
            numbers,
            prerelease: prerelease
                .map(|text| text.split('.').map(str::to_owned).collect())
                .unwrap_or_default(),
        })
    }

    /// The order of semantic versions, in which builds do not count.
    pub fn order(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        numbers.then_with(
            || match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => labels(&self.prerelease, &other.prerelease),
            },
        )
    }
}

/// True for a version that may be listed behind another: a later one, or another build of the same. Upstream knows no order of
/// builds that are named by words, such as hashes of commits; numbers must rise.
pub fn may_follow(version: &str, before: &str) -> bool {
    let (Some(is), Some(was)) = (Version::read(version), Version::read(before)) else {
        return false;
    };
    is.order(&was)
        .then_with(|| builds(build(version), build(before)))
        .is_gt()
}

fn build(version: &str) -> &str {
    version.split_once('+').map_or("", |(_, build)| build)
}

/// Words without a known order count as later.
fn builds(one: &str, other: &str) -> Ordering {
    let identifiers = |text: &'_ str| -> Vec<String> {
        text.split('.')
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (one, other) = (identifiers(one), identifiers(other));
    for (one, other) in one.iter().zip(&other) {
        let order = match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) if one == other => Ordering::Equal,
            (Err(_), Err(_)) => Ordering::Greater,
        };
        if order.is_ne() {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

fn labels(one: &[String], other: &[String]) -> Ordering {
    for (one, other) in one.iter().zip(other) {
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => one.cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => one.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_strict() {
        for good in ["v1.30.0", "1.30.0", "v1.30.0-rc.1+build.2", "v0.0.0+a-b"] {
            assert!(Version::read(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "v1",
            "v1.30",
            "v1.30.0.1",
            "v01.30.0",
            "v1.30.x",
            "v1.30.0-",
            "v1.30.0+a_b",
        ] {
            assert!(Version::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn versions_are_ordered() {
        let ordered = [
            "v1.2.9-alpha",
            "v1.2.9-alpha.1",
            "v1.2.9-alpha.b",
            "v1.2.9-beta",
            "v1.2.9",
            "v1.2.10",
            "v1.10.0",
        ];
        let read = ordered.map(|text| Version::read(text).unwrap());
        for pair in read.windows(2) {
            assert_eq!(pair[0].order(&pair[1]), Ordering::Less);
            assert_eq!(pair[1].order(&pair[0]), Ordering::Greater);
        }
        let builds = ["v1.2.3+a", "v1.2.3+b"].map(|text| Version::read(text).unwrap());
        assert_eq!(builds[0].order(&builds[1]), Ordering::Equal);
    }
}
