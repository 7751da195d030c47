//! Owns: texts of YAML, right ones and almost right ones, as a template or as a variable that one writes.

use serde_json::json;

use super::{Case, Draw, words::WORDS};

/// Deepest nesting.
const DEPTH: usize = 3;

/// A text as it is, or written by a template.
pub(super) fn case(draw: &mut Draw) -> Case {
    if draw.percent(25) {
        let text = node(draw, 2);
        let text = changed(draw, text);
        return Case {
            template: "{{ .s }}".to_owned(),
            variables: json!({"s": text}),
        };
    }
    let text = node(draw, DEPTH);
    let text = changed(draw, text);
    Case {
        template: text.replace("{{", "{ {").replace("}}", "} }"),
        variables: json!({}),
    }
}

fn node(draw: &mut Draw, depth: usize) -> String {
    match draw.below(100) {
        0..35 => draw.one(&WORDS.scalars).to_owned(),
        _ if depth == 0 => draw.one(&WORDS.scalars).to_owned(),
        35..65 => mapping(draw, depth),
        65..90 => sequence(draw, depth),
        _ => draw.one(&WORDS.before).to_owned() + &node(draw, depth - 1) + draw.one(&WORDS.behind),
    }
}

fn mapping(draw: &mut Draw, depth: usize) -> String {
    let count = [1, 2, 2, 3][draw.below(4)];
    let entries: Vec<String> = (0..count).map(|_| entry(draw, depth)).collect();
    entries.join("\n")
}

fn entry(draw: &mut Draw, depth: usize) -> String {
    let (value, key, colon) = (
        node(draw, depth - 1),
        draw.one(&WORDS.keys),
        draw.one(&WORDS.colons),
    );
    if value.contains('\n') && draw.percent(90) {
        let after = draw.one(&WORDS.after_colon);
        let by = [2, 2, 2, 1, 0, 4][draw.below(6)];
        return format!("{key}{}{after}\n{}", colon.trim_end(), indented(&value, by));
    }
    format!("{key}{colon}{value}{}", draw.one(&WORDS.ends))
}

fn sequence(draw: &mut Draw, depth: usize) -> String {
    let count = 1 + draw.below(3);
    let items: Vec<String> = (0..count)
        .map(|_| {
            let value = node(draw, depth - 1);
            let value = if draw.percent(90) {
                indented(&value, 2).trim_start_matches(' ').to_owned()
            } else {
                value
            };
            draw.one(&WORDS.dashes).to_owned() + &value
        })
        .collect();
    items.join("\n")
}

fn indented(text: &str, by: usize) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            if line.is_empty() {
                String::new()
            } else {
                " ".repeat(by) + line
            }
        })
        .collect();
    lines.join("\n")
}

/// Input that Go's YAML reads wrongly (adr/0048): two byte order marks.
const MARKS: &str = "\u{feff}\u{feff}";

/// A text that is spoilt now and then, with one byte order mark at most.
fn changed(draw: &mut Draw, text: String) -> String {
    let mut text = spoilt(draw, text);
    while text.contains(MARKS) {
        text = text.replace(MARKS, &MARKS[..MARKS.len() / 2]);
    }
    text
}

/// A quarter of the texts is spoilt in one to three places.
fn spoilt(draw: &mut Draw, text: String) -> String {
    if draw.percent(75) {
        return text;
    }
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + draw.below(3) {
        let at = draw.below(characters.len() + 1);
        match draw.below(5) {
            0 | 1 if at < characters.len() => drop(characters.remove(at)),
            2 | 3 => drop(characters.splice(at..at, draw.one(&WORDS.stray).chars())),
            _ => {
                let from = draw.below(characters.len() + 1);
                let copied: Vec<char> = characters.iter().skip(from).take(5).copied().collect();
                drop(characters.splice(at..at, copied));
            }
        }
    }
    characters.into_iter().collect()
}
