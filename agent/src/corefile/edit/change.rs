//! Owns: the changes of a Corefile's text, as pieces that go and pieces that come; whatever is not in them stays.
//! Never: decides whether a change is wanted.

use std::ops::Range;

use super::{
    blocks::Block,
    kubernetes::{Braces, Configured, Kubernetes},
    words::Word,
    zone::{Zone, is_reverse},
};

/// Extra indentation of an option if the Corefile gives no example.
const INDENT: &str = "    ";

/// A piece of the text, and what takes its place.
type Piece = (Range<usize>, String);

/// The text with the zone in the list, and the option in the braces.
pub(super) fn with(text: &str, block: &Block<'_>, kubernetes: &Kubernetes<'_>, zone: &Zone) -> String {
    let forward = kubernetes.zones.iter().rfind(|word| !is_reverse(word.text));
    let behind = forward.unwrap_or(&kubernetes.name).end;
    let mut pieces = vec![(behind..behind, format!(" {zone}"))];
    let outer = indent_at(text, kubernetes.name.start);
    let inner = match example(kubernetes) {
        Some(option) => indent_at(text, option.start).to_owned(),
        None => {
            let step = outer
                .strip_prefix(indent_at(text, block.start))
                .unwrap_or_default();
            format!("{outer}{}", if step.is_empty() { INDENT } else { step })
        }
    };
    match &kubernetes.braces {
        Some(Braces { open, .. }) => {
            let (next, newline) = next_line(text, open.end);
            pieces.push((next..next, format!("{inner}multicluster {zone}{newline}")));
        }
        None => {
            let end = last(kubernetes).end;
            pieces.push((end..end, " {".to_owned()));
            let (next, newline) = next_line(text, end);
            let lines = format!("{inner}multicluster {zone}{newline}{outer}}}{newline}");
            pieces.push((next..next, lines));
        }
    }
    replaced(text, pieces)
}

/// The text without the zone in the list and the option; without the braces too, if nothing else is in them.
pub(super) fn without(text: &str, kubernetes: &Kubernetes<'_>, configured: &Configured<'_>) -> String {
    let mut pieces = Vec::new();
    if let Some(word) = kubernetes.zones.get(configured.zone) {
        let before = configured
            .zone
            .checked_sub(1)
            .and_then(|at| kubernetes.zones.get(at));
        pieces.push((before.unwrap_or(&kubernetes.name).end..word.end, String::new()));
    }
    let option = lines_of(text, configured.option);
    match &kubernetes.braces {
        Some(braces) if holds_only(text, braces, &option) => {
            pieces.push((last(kubernetes).end..braces.open.end, String::new()));
            let (first, _) = next_line(text, braces.open.end);
            let (next, _) = next_line(text, braces.close.end);
            pieces.push((first..next, String::new()));
        }
        _ => pieces.push((option, String::new())),
    }
    replaced(text, pieces)
}

/// The last word of the directive's list.
fn last<'a>(kubernetes: &'a Kubernetes<'a>) -> &'a Word<'a> {
    kubernetes.zones.last().unwrap_or(&kubernetes.name)
}

/// The first option: others stand below it.
fn example<'a>(kubernetes: &Kubernetes<'a>) -> Option<Word<'a>> {
    let braces = kubernetes.braces.as_ref()?;
    braces.options.first()?.first().copied()
}

/// The spaces that the line of this place begins with.
fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..indent]
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Offset of the line after this place, and the line ending there.
fn next_line(text: &str, at: usize) -> (usize, &'static str) {
    match text[at..].find('\n') {
        Some(newline) if text[..at + newline].ends_with('\r') => (at + newline + 1, "\r\n"),
        Some(newline) => (at + newline + 1, "\n"),
        None => (text.len(), "\n"),
    }
}

/// The lines of an option as wholes; a comment behind it stays where it is.
fn lines_of(text: &str, option: &[Word<'_>]) -> Range<usize> {
    let start = option.first().map_or(0, |word| word.start);
    let end = option.last().map_or(start, |word| word.end);
    let (next, _) = next_line(text, end);
    let behind = &text[end..next];
    if behind.trim().is_empty() {
        line_start(text, start)..next
    } else {
        let spaces = behind.len() - behind.trim_start().len();
        start..end + spaces
    }
}

/// True if there is nothing between the braces, nor behind the closing one, but these lines.
fn holds_only(text: &str, braces: &Braces<'_>, lines: &Range<usize>) -> bool {
    let (first, _) = next_line(text, braces.open.end);
    let (next, _) = next_line(text, braces.close.end);
    let behind = text[braces.close.end..next].trim();
    first == lines.start && lines.end == line_start(text, braces.close.start) && behind.is_empty()
}

/// The text with other pieces in it; they come in order.
fn replaced(text: &str, pieces: Vec<Piece>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (place, piece) in pieces {
        result.push_str(&text[at..place.start]);
        result.push_str(&piece);
        at = place.end;
    }
    result.push_str(&text[at..]);
    result
}
