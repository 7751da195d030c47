//! Owns: searching, cutting and replacing in bytes, as Go's `strings` does it.

use super::super::runes;

/// Position of the first occurrence of a text in another one.
pub(super) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// Parts between separators, at most `most`; an empty separator parts characters.
pub(super) fn split<'a>(text: &'a [u8], separator: &[u8], most: usize) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    if separator.is_empty() {
        while parts.len() + 1 < most && !rest.is_empty() {
            let length = runes::first(rest).map_or(1, |(_, length)| length);
            parts.push(&rest[..length]);
            rest = &rest[length..];
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return parts;
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, separator) else {
            break;
        };
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// The length of a text after [`replace`], and the number of replacements.
pub(super) fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> usize {
    let count = if old.is_empty() {
        runes::count(text) + 1
    } else {
        split(text, old, usize::MAX).len() - 1
    };
    (text.len() + count.saturating_mul(new.len())).saturating_sub(count * old.len())
}

/// Every replacement; an empty text matches before each character and at the end.
pub(super) fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    if !old.is_empty() {
        return split(text, old, usize::MAX).join(new);
    }
    let mut out = new.to_vec();
    for (at, _, length) in runes::indexed(text) {
        out.extend_from_slice(&text[at..at + length]);
        out.extend_from_slice(new);
    }
    out
}

/// Without characters at both ends.
pub(super) fn trim(text: &[u8], drop: impl Fn(char) -> bool) -> &[u8] {
    let all: Vec<(usize, char, usize)> = runes::indexed(text).collect();
    let Some(first) = all.iter().position(|(_, character, _)| !drop(*character)) else {
        return &[];
    };
    let last = all
        .iter()
        .rposition(|(_, character, _)| !drop(*character))
        .unwrap_or(first);
    &text[all[first].0..all[last].0 + all[last].2]
}
