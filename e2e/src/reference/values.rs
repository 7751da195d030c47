//! Owns: the values of a chart, read from its values.yaml with the comments above them.
//! Never: renders a chart.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

/// A value of a chart, or a group of values that has a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartValue {
    /// As `--set` takes it.
    pub path: String,
    /// As JSON, a text without its quotes. A group has none.
    pub default: Option<String>,
    /// The comment above it; empty if there is none.
    pub meaning: String,
}

/// The values of `deploy/charts/CHART`, in the order of the file.
///
/// # Errors
///
/// The file cannot be read, is no YAML, or has a key where this reader finds none.
pub fn values(root: &Path, chart: &str) -> anyhow::Result<Vec<ChartValue>> {
    let path = root.join("deploy/charts").join(chart).join("values.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    read(&text).with_context(|| path.display().to_string())
}

fn read(text: &str) -> anyhow::Result<Vec<ChartValue>> {
    let parsed: Value = serde_norway::from_str(text)?;
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    // The keys around the line, each with its indentation.
    let mut around: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let words = line.trim_start();
        if let Some(words) = words.strip_prefix('#') {
            comment.push(words.trim());
            continue;
        }
        let meaning = std::mem::take(&mut comment).join(" ");
        let key = words.split_once(':').map(|(key, _)| key);
        let Some(key) = key.filter(|key| key.chars().all(|one| one.is_ascii_alphanumeric())) else {
            continue;
        };
        let depth = line.len() - words.len();
        around.retain(|(other, _)| *other < depth);
        around.push((depth, key));
        let path: Vec<&str> = around.iter().map(|(_, key)| *key).collect();
        let value = parsed.pointer(&format!("/{}", path.join("/")));
        let value = value.with_context(|| format!("{} is no value", path.join(".")))?;
        let default = default(value);
        if default.is_some() || !meaning.is_empty() {
            found.push(ChartValue {
                path: path.join("."),
                default,
                meaning,
            });
        }
    }
    let leaves = found.iter().filter(|value| value.default.is_some()).count();
    ensure!(
        leaves == count(&parsed),
        "{leaves} values were read of {}",
        count(&parsed)
    );
    Ok(found)
}

fn default(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The number of values that are no groups.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.values().map(count).sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_comments_above_them_and_groups_only_if_they_have_one() {
        let text = "# Two\n# lines.\na: \"\"\n\n# No longer above.\n\nb:\n  c: [1]\n  # Of d.\n  d: {}\n# Of e.\ne:\n  f: true\n";
        let read = read(text).expect("values");
        let shown: Vec<_> = read
            .iter()
            .map(|value| (&*value.path, value.default.as_deref(), &*value.meaning))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", Some(""), "Two lines."),
                ("b.c", Some("[1]"), ""),
                ("b.d", Some("{}"), "Of d."),
                ("e", None, "Of e."),
                ("e.f", Some("true"), ""),
            ]
        );
    }

    #[test]
    fn a_value_that_this_reader_does_not_find_is_an_error() {
        let refused = read("a: 1\n\"b-c\": 2\n").expect_err("a quoted key");
        assert!(
            refused.to_string().contains("1 values were read of 2"),
            "{refused}"
        );
    }
}
