//! Owns: what may be a name, a label, an annotation.

use super::super::model::{Metadata, Report};

/// A label of DNS: lower-case letters, digits and `-`, at most 63.
pub(super) fn is_dns_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A name of DNS: labels with dots between them, at most 253.
pub(super) fn is_dns_name(text: &str) -> bool {
    let part = |part: &str| part.len() > 63 || is_dns_label(part);
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text.len() <= 253 && text.bytes().all(inside) && text.split('.').all(part)
}

/// A label's value, which may be empty.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |at: Option<u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric());
    (1..=63).contains(&text.len())
        && text.bytes().all(inside)
        && ends(text.bytes().next())
        && ends(text.bytes().next_back())
}

/// A key of a label, an annotation or a taint, perhaps with a name of DNS before it.
pub(super) fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_name(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// Tells which labels and annotations an API server would not take.
pub(super) fn check_metadata(metadata: &Metadata, report: &mut Report) {
    const RULE: &str = "metadata";
    for (key, value) in &metadata.labels {
        let at = format!("{}.labels[{key}]", metadata.field);
        if !is_key(key) {
            report.say(RULE, at, "is no key of a label");
        } else if !is_label_value(value) {
            report.say(
                RULE,
                at,
                "is no value of a label: at most 63 letters, digits, -, _ and .",
            );
        }
    }
    // An API server has the keys of annotations in small letters before it looks at them.
    for key in metadata.annotations.keys() {
        if !is_key(&key.to_lowercase()) {
            let at = format!("{}.annotations[{key}]", metadata.field);
            report.say(RULE, at, "is no key of an annotation");
        }
    }
}
