//! Owns: objects as YAML that readers of version 1.1 and 1.2 understand alike: a text that one of them would misread is
//! quoted, a text of several lines is a block.

use serde_json::{Map, Value};

use crate::template::yaml_to_json;

/// An object as one document, without a line that begins it.
pub fn yaml(object: &Value) -> String {
    let mut out = String::new();
    match object {
        Value::Object(fields) if !fields.is_empty() => write_fields(&mut out, fields, 0),
        Value::Array(items) if !items.is_empty() => write_items(&mut out, items, 0),
        scalar => {
            write_scalar(&mut out, scalar, 1);
            out.push('\n');
        }
    }
    out
}

fn write_fields(out: &mut String, fields: &Map<String, Value>, depth: usize) {
    for (name, value) in fields {
        indent(out, depth);
        write_text(out, name);
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                write_fields(out, fields, depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_items(out, items, depth);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn write_items(out: &mut String, items: &[Value], depth: usize) {
    for item in items {
        indent(out, depth);
        out.push('-');
        match item {
            Value::Object(fields) if !fields.is_empty() => {
                let mut below = String::new();
                write_fields(&mut below, fields, depth + 1);
                out.push(' ');
                out.push_str(below.trim_start_matches(' '));
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_items(out, items, depth + 1);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn write_scalar(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(text) if is_block(text) => write_block(out, text, depth),
        Value::String(text) => write_text(out, text),
        // Empty ones, too: they are the same in JSON.
        other => out.push_str(&other.to_string()),
    }
}

/// Returns true if a text of several lines may be written as it is.
fn is_block(text: &str) -> bool {
    let odd = |character: char| (character.is_control() && character != '\n') || is_break(character);
    text.contains('\n') && !text.starts_with([' ', '\n']) && !text.contains(odd)
}

/// A text of several lines; what follows `|` says how many line ends it ends with.
fn write_block(out: &mut String, text: &str, depth: usize) {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    out.push_str(match text.strip_suffix('\n') {
        None => "|-",
        Some(before) if before.ends_with('\n') => "|+",
        Some(_) => "|",
    });
    for line in lines.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, depth);
            out.push_str(line);
        }
    }
}

/// A text of one line, or a name.
fn write_text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            odd if odd.is_control() || is_break(odd) => out.push_str(&format!("\\u{:04x}", odd as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Returns true if a text needs no quotation marks.
fn is_plain(text: &str) -> bool {
    let known = |character: char| character.is_ascii_alphanumeric() || "-_./:@ ".contains(character);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(known)
        && yaml_to_json(text.as_bytes())
            .is_ok_and(|json| serde_json::from_str::<Value>(&json).is_ok_and(|read| read == text))
}

/// Returns true for line breaks of YAML 1.1 that are no control characters, and for the byte order mark.
fn is_break(character: char) -> bool {
    ['\u{2028}', '\u{2029}', '\u{feff}'].contains(&character)
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_printed_in_blocks() {
        let value = json!({
            "kind": "K",
            "spec": {
                "files": [{"content": "a\n b\n", "path": "/etc/x"}, ["x", [1]], {}],
                "no": "no",
                "on the way": "v1.30.0",
            },
        });
        let expected = "\
kind: K
spec:
  files:
  - content: |
      a
       b
    path: /etc/x
  -
    - x
    -
      - 1
  - {}
  \"no\": \"no\"
  on the way: v1.30.0
";
        assert_eq!(yaml(&value), expected);
    }

    #[test]
    fn what_is_printed_means_the_same_to_readers_of_yaml_1_1() {
        let texts = [
            "yes",
            "No",
            "on",
            "y",
            "N",
            "~",
            "null",
            "",
            "0123",
            "1_000",
            "0b11",
            "0o7",
            "1:30",
            "1.30",
            "1e3",
            ".5",
            "+1",
            "-",
            "? a",
            "a: b",
            "a:",
            "a:b",
            "# c",
            "a #b",
            "- d",
            "'",
            "\"",
            "\\",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "a\nb\n",
            "a\n\n",
            "a\n\n\nb",
            "a\n  \nb",
            "\na",
            " a\nb",
            "a\r\nb",
            "a\tb\nc",
            "a\u{85}b\nc",
            " a",
            "a ",
            "\n",
            "=",
            "<<",
            "2001-01-01",
            ".inf",
            ".NaN",
            "0x1F",
            "!a",
            "&a",
            "*a",
            "%a",
            "@a",
            "`a",
            "é",
            "\t",
            "a\tb",
            "---",
            "---\na",
            "...",
            "12e03",
            "1__0",
            "0.",
            "0_",
            "190:20:30",
            "\u{feff}a",
            "😀",
            "a  b",
            "x: |\n  y\n",
            "#a\nb",
            "{{ x }}\n",
            "- a\n- b",
        ];
        let fields: Map<String, Value> = texts
            .iter()
            .map(|text| ((*text).to_owned(), json!(text)))
            .collect();
        let numbers = json!([1, -2, 1.5, 1e21, 1e-7, true, false, null]);
        let value = json!({
            "texts": texts.as_slice(),
            "lists": [texts.as_slice(), [texts.as_slice()]],
            "fields": [fields],
            "numbers": numbers,
            "empty": {"a": {}, "b": []},
        });
        let printed = yaml(&value);
        let read = yaml_to_json(printed.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{printed}"));
        let read: Value = serde_json::from_str(&read).expect("JSON");
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(read["texts"][at], json!(text), "{printed}");
        }
        assert_eq!(read, value);
        for scalar in [json!("no"), json!(1), json!([1]), json!({})] {
            let read = yaml_to_json(yaml(&scalar).as_bytes()).expect("YAML");
            assert_eq!(read, scalar.to_string());
        }
    }
}
