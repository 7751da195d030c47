//! Owns: a piece of a file's text that becomes another, and the two ways to say which: whole lines, or a place.
//! Never: knows what the text means.

use std::ops::Range;

/// A piece of a text, in bytes, and what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The replaced bytes.
    pub range: Range<usize>,
    /// Their replacement.
    pub replacement: String,
}

/// A place in a text as tools tell it: line and column, both from one, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct LineColumn {
    line: usize,
    column: usize,
}

impl Edit {
    /// Replaces the lines of `find`, which must stand in the text exactly once; indentation does not matter.
    pub fn of_lines(text: &str, find: &str, replace: &str) -> Result<Self, String> {
        let wanted: Vec<&str> = find.lines().map(str::trim).collect();
        if wanted.is_empty() {
            return Err("there is nothing to look for".to_owned());
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let same = |lines: &[&str]| lines.iter().map(|line| line.trim()).eq(wanted.iter().copied());
        let mut places = lines.windows(wanted.len()).enumerate();
        let mut place = || places.find(|(_, lines)| same(lines)).map(|(at, _)| at);
        let at =
            place().ok_or("this text is not there any more; move the planted bug along with the product")?;
        if place().is_some() {
            return Err("this text is there more than once; make it longer".to_owned());
        }
        let start = lines[..at].iter().map(|line| line.len()).sum();
        Ok(smallest(start, &lines[at..at + wanted.len()], replace))
    }

    /// Replaces what is between two places.
    pub fn of_span(text: &str, start: LineColumn, end: LineColumn, replacement: &str) -> Option<Self> {
        let range = offset(text, start)?..offset(text, end)?;
        (range.start <= range.end).then(|| Self {
            range,
            replacement: replacement.to_owned(),
        })
    }

    /// The text with all of these edits, which must not overlap. They may be of a longer text that begins
    /// `offset` bytes before this one.
    pub fn apply_all<'a>(text: &str, offset: usize, edits: impl Iterator<Item = &'a Self>) -> String {
        let mut edits: Vec<&Self> = edits.collect();
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let (mut applied, mut from) = (String::with_capacity(text.len()), 0);
        for edit in edits {
            applied.push_str(&text[from..edit.range.start - offset]);
            applied.push_str(&edit.replacement);
            from = edit.range.end - offset;
        }
        applied.push_str(&text[from..]);
        applied
    }
}

/// The edit without the lines at its beginning and end that stay, so that it touches as little as it must: a
/// function's first line that is only there to make the place unique is no part of it.
fn smallest(start: usize, old: &[&str], replace: &str) -> Edit {
    let new: Vec<&str> = replace.split_inclusive('\n').collect();
    let same = |(one, other): &(&&str, &&str)| one.trim() == other.trim();
    let before = old.iter().zip(&new).take_while(same).count();
    let behind = old[before..].iter().rev().zip(new[before..].iter().rev());
    let behind = behind.take_while(same).count();
    let length = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let start = start + length(&old[..before]);
    let mut replacement = new[before..new.len() - behind].concat();
    if !replacement.is_empty() && !replacement.ends_with('\n') {
        replacement.push('\n');
    }
    Edit {
        range: start..start + length(&old[before..old.len() - behind]),
        replacement,
    }
}

fn offset(text: &str, place: LineColumn) -> Option<usize> {
    let lines = text.split_inclusive('\n');
    let before: usize = lines.clone().take(place.line.checked_sub(1)?).map(str::len).sum();
    let line = lines.clone().nth(place.line - 1).unwrap_or_default();
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.clone()
        .nth(place.column.checked_sub(1)?)
        .map(|at| before + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, find: &str, replace: &str) -> Result<String, String> {
        let edit = Edit::of_lines(text, find, replace)?;
        Ok(Edit::apply_all(text, 0, [&edit].into_iter()))
    }

    #[test]
    fn lines_are_found_without_their_indentation_and_only_once() {
        let text = "fn f() {\n    one();\n    two();\n}\n";
        let with = replaced(text, "one();\ntwo();\n", "three();\n").unwrap();
        assert_eq!(with, "fn f() {\nthree();\n}\n");
        assert_eq!(replaced(text, "two();", "").unwrap(), "fn f() {\n    one();\n}\n");
        let refused = |text, find| replaced(text, find, "x").unwrap_err();
        assert!(refused(text, "two();\none();").contains("not there"));
        assert!(refused("a\nb\n a\n", "a").contains("more than once"));
        assert!(refused(text, "").contains("nothing"));
    }

    #[test]
    fn lines_that_stay_are_no_part_of_an_edit() {
        let text = "fn f() {\n    one();\n}\n";
        let edit = Edit::of_lines(text, "fn f() {\none();\n}", "fn f() {\ntwo();\n}").unwrap();
        assert_eq!((edit.range.clone(), &*edit.replacement), (9..20, "two();\n"));
        let inserted = Edit::of_lines(text, "fn f() {\none();", "fn f() {\nzero();\none();").unwrap();
        assert_eq!((inserted.range, &*inserted.replacement), (9..9, "zero();\n"));
    }

    #[test]
    fn a_place_is_a_line_and_a_character() {
        let text = "a\nü = b > c\n";
        let place = |line, column| LineColumn { line, column };
        let edit = Edit::of_span(text, place(2, 7), place(2, 8), "<").unwrap();
        assert_eq!(Edit::apply_all(text, 0, [&edit].into_iter()), "a\nü = b < c\n");
        assert_eq!(Edit::of_span(text, place(2, 70), place(2, 71), "<"), None);
        assert_eq!(Edit::of_span(text, place(2, 8), place(2, 7), "<"), None);
    }
}
