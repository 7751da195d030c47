//! Owns: constraints on versions as Masterminds/semver reads them: `>= 1.30.0-0, < 2 || ~1.28`.

use std::cmp::Ordering;

use super::super::version::{MAX_VERSION, Version, order_prerelease};

/// One condition.
#[derive(Debug)]
struct Condition {
    operator: &'static str,
    version: Version,
    /// A part is not written, or is `x`.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// Operators, those first that others begin with.
const OPERATORS: [&str; 11] = ["!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"];

/// Returns true if a version satisfies a constraint; an error if that is none.
pub(super) fn satisfied(constraint: &str, version: &str) -> Result<bool, String> {
    let improper = || format!("improper constraint: {constraint}");
    if constraint.len() > MAX_VERSION {
        return Err("improper constraint: it is too long".to_owned());
    }
    let rewritten = ranges(constraint);
    let mut alternatives = Vec::new();
    for part in rewritten.split("||") {
        alternatives.push(conditions(part).ok_or_else(improper)??);
    }
    let version = Version::parse(version)?;
    Ok(alternatives.iter().any(|all| are_met(all, &version)))
}

/// A prerelease meets conditions only if one of them has one, too.
fn are_met(all: &[Condition], version: &Version) -> bool {
    let is_release = |version: &Version| version.prerelease.is_empty();
    (is_release(version) || !all.iter().all(|condition| is_release(&condition.version)))
        && all.iter().all(|condition| condition.holds(version))
}

/// A version as written in a constraint: the text, and its parts.
struct Written<'a> {
    parts: [&'a str; 3],
    /// The prerelease with its `-`.
    prerelease: &'a str,
    text: &'a str,
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// A version at the start of a text, as much of it as there is.
fn written(text: &str) -> Option<(Written<'_>, &str)> {
    let part = |text: &str| {
        text.len()
            - text
                .trim_start_matches(|sign: char| sign.is_ascii_digit() || "|xX*".contains(sign))
                .len()
    };
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let mut parts = [""; 3];
    for (at, slot) in parts.iter_mut().enumerate() {
        let body = if at == 0 {
            Some(rest)
        } else {
            rest.strip_prefix('.')
        };
        let Some(body) = body else {
            break;
        };
        let length = part(body);
        if length == 0 {
            if at == 0 {
                return None;
            }
            break;
        }
        *slot = &body[..length];
        rest = &body[length..];
    }
    let (prerelease, after) = labels(rest, '-');
    let (_, after) = labels(after, '+');
    let length = text.len() - after.len();
    let written = Written {
        parts,
        prerelease,
        text: &text[..length],
    };
    Some((written, after))
}

/// Labels with dots between them, behind a sign.
fn labels(text: &str, sign: char) -> (&str, &str) {
    let label = |text: &str| {
        text.len()
            - text
                .trim_start_matches(|sign: char| sign.is_ascii_alphanumeric() || sign == '-')
                .len()
    };
    let Some(body) = text.strip_prefix(sign) else {
        return ("", text);
    };
    let mut length = label(body);
    if length == 0 {
        return ("", text);
    }
    while let Some(more) = body[length..].strip_prefix('.') {
        let next = label(more);
        if next == 0 {
            break;
        }
        length += 1 + next;
    }
    text.split_at(length + 1)
}

/// `1.2 - 1.4` as two conditions.
fn ranges(constraint: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < constraint.len() {
        let found = range(&constraint[at..]);
        if let Some((from, to, length)) = found {
            // White space before it goes with it.
            let kept = out.trim_end_matches(is_space).len();
            out.truncate(kept);
            out.push_str(&format!(">= {from}, <= {to} "));
            at += length;
            continue;
        }
        let next = constraint[at..].chars().next().map_or(1, char::len_utf8);
        out.push_str(&constraint[at..at + next]);
        at += next;
    }
    out
}

fn range(text: &str) -> Option<(&str, &str, usize)> {
    let (from, rest) = written(text)?;
    let spaced = rest.trim_start_matches(is_space);
    let dash = spaced.strip_prefix('-').filter(|_| spaced.len() < rest.len())?;
    let after = dash.trim_start_matches(is_space);
    if after.len() == dash.len() {
        return None;
    }
    let (to, rest) = written(after)?;
    let rest = rest.trim_start_matches(is_space);
    Some((from.text, to.text, text.len() - rest.len()))
}

/// All conditions of one alternative; `None` if there is something else.
fn conditions(text: &str) -> Option<Result<Vec<Condition>, String>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let operator = OPERATORS
            .iter()
            .copied()
            .find(|operator| rest.starts_with(*operator))
            .unwrap_or("");
        let body = rest[operator.len()..].trim_start_matches(is_space);
        let (version, after) = written(body)?;
        match Condition::new(operator, &version) {
            Ok(condition) => found.push(condition),
            Err(message) => return Some(Err(message)),
        }
        let spaced = after.trim_start_matches(is_space);
        if spaced.is_empty() {
            return Some(Ok(found));
        }
        let next = spaced.strip_prefix(',');
        if next.is_none() && spaced.len() == after.len() {
            return None;
        }
        rest = next.unwrap_or(spaced).trim_start_matches(is_space);
    }
}

fn is_x(part: &str) -> bool {
    matches!(part, "x" | "X" | "*" | "")
}

impl Condition {
    fn new(operator: &'static str, written: &Written<'_>) -> Result<Self, String> {
        let [major, minor, patch] = written.parts;
        let prerelease = written.prerelease;
        let (dirty, minor_dirty, patch_dirty, text) = if is_x(major) {
            (true, false, false, format!("0.0.0{prerelease}"))
        } else if is_x(minor) {
            (true, true, false, format!("{major}.0.0{prerelease}"))
        } else if is_x(patch) {
            (true, false, true, format!("{major}.{minor}.0{prerelease}"))
        } else {
            (false, false, false, written.text.to_owned())
        };
        let version = Version::parse(&text).map_err(|_| "constraint parser error".to_owned())?;
        Ok(Self {
            operator,
            version,
            dirty,
            minor_dirty,
            patch_dirty,
        })
    }

    fn holds(&self, version: &Version) -> bool {
        let order = version.order(&self.version);
        match self.operator {
            "!=" => self.differs(version, order),
            ">" => self.is_above(version, order),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" => self.is_not_above(version, order),
            "~" | "~>" => self.is_near(version, order),
            "^" => self.is_compatible(version, order),
            _ if self.dirty => self.is_near(version, order),
            _ => order.is_eq(),
        }
    }

    fn differs(&self, version: &Version, order: Ordering) -> bool {
        let [major, minor, patch] = version.numbers;
        let wanted = self.version.numbers;
        if !self.dirty {
            return order.is_ne();
        }
        if wanted[0] != major {
            return true;
        }
        if wanted[1] != minor && !self.minor_dirty {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if wanted[2] != patch && !self.patch_dirty {
            return true;
        }
        if self.patch_dirty {
            let labels = (version.prerelease.as_str(), self.version.prerelease.as_str());
            return match labels {
                ("", "") => false,
                ("", _) | (_, "") => true,
                (one, two) => order_prerelease(one, two).is_ne(),
            };
        }
        order.is_ne()
    }

    fn is_above(&self, version: &Version, order: Ordering) -> bool {
        let [major, minor, _] = version.numbers;
        let wanted = self.version.numbers;
        if !self.dirty || major == wanted[0] && !self.minor_dirty && !self.patch_dirty {
            return order.is_gt();
        }
        match major.cmp(&wanted[0]) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => self.patch_dirty && minor > wanted[1],
        }
    }

    fn is_not_above(&self, version: &Version, order: Ordering) -> bool {
        if !self.dirty {
            return order.is_le();
        }
        let [major, minor, _] = version.numbers;
        let wanted = self.version.numbers;
        major < wanted[0] || major == wanted[0] && (minor <= wanted[1] || self.minor_dirty)
    }

    fn is_near(&self, version: &Version, order: Ordering) -> bool {
        if order.is_lt() {
            return false;
        }
        let wanted = self.version.numbers;
        if wanted == [0, 0, 0] && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.numbers[0] == wanted[0] && (version.numbers[1] == wanted[1] || self.minor_dirty)
    }

    fn is_compatible(&self, version: &Version, order: Ordering) -> bool {
        if order.is_lt() {
            return false;
        }
        let [major, minor, patch] = version.numbers;
        let wanted = self.version.numbers;
        if wanted[0] > 0 || self.minor_dirty {
            return major == wanted[0];
        }
        if major > 0 {
            return false;
        }
        if wanted[1] > 0 || self.patch_dirty {
            return minor == wanted[1];
        }
        minor == 0 && patch == wanted[2]
    }
}
