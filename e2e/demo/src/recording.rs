//! Owns: a recording of the demo as text: what was typed, what was printed and when; as an asciicast, as the blocks of
//! docs/demo.md, and compared with another one up to what differs from run to run. Pure.
//! Never: runs anything.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use regex::Regex;
use serde_json::json;

use advice::DEMO_RECORD;

/// Columns of the terminal.
pub(super) const COLUMNS: usize = 128;
/// Lines of it.
pub(super) const ROWS: usize = 30;
/// Prompt before a typed line.
const PROMPT: &str = "$ ";
/// Prefix of a remark.
const REMARK: &str = "# ";
/// Fence of a listing.
const FENCE: &str = "```";
/// Values that differ from run to run, with their replacement when recordings are compared.
const FLEETING: [(&str, &str); 9] = [
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b\d+-[0-9a-f]{16}\b", "EPOCH"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"\b\d+(\.\d+)?( ms| s|ms|s)\b", "SPAN"),
    // Who joins first, and so what the next revision and the next address are, is the machine's choice.
    (r#"("?revision"?:?|EPOCH is) "?\d+"?"#, "$1 N"),
    (r"^\d+ ", "N "),
    // A member's applied revision, and that at which it joined.
    (
        r"^(\S+ +live +TIME .*) \d+( +SPAN .*) \d+( +HASH .*)$",
        "$1 N$2 N$3",
    ),
    (r"\b10\.9\d\.\d+\.\d+\b", "IP"),
];

/// Something that appeared on the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scene {
    /// After the scene before it.
    pub(super) pause: Duration,
    pub(super) lines: Vec<String>,
}

/// A block of docs/demo.md: what was typed, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) name: &'static str,
    pub(super) lines: Vec<String>,
}

/// A recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recording {
    pub(super) scenes: Vec<Scene>,
    pub(super) blocks: Vec<Block>,
}

/// A line that a person typed.
pub(super) fn typed(line: &str) -> String {
    format!("{PROMPT}{line}")
}

/// A line that says what comes.
pub(super) fn remark(line: &str) -> String {
    format!("{REMARK}{line}")
}

/// Returns true if a line is a person's, and not a program's.
pub(super) fn is_a_persons(line: &str) -> bool {
    line.starts_with(PROMPT) || line.starts_with(REMARK)
}

impl Recording {
    /// As version 2 of asciinema's format: a header, and a line for each scene.
    pub(super) fn cast(&self) -> String {
        let header = json!({"version": 2, "width": COLUMNS, "height": ROWS, "title": DEMO_RECORD});
        let mut at = Duration::ZERO;
        let scenes = self.scenes.iter().map(|scene| {
            at += scene.pause;
            let text: String = scene.lines.iter().map(|line| format!("{line}\r\n")).collect();
            format!("{}\n", json!([at.as_millis() as f64 / 1000.0, "o", text]))
        });
        let scenes: String = scenes.collect();
        format!("{header}\n{scenes}")
    }

    /// The scenes of a cast; the blocks are in docs/demo.md and stay empty.
    pub(super) fn of_cast(cast: &str) -> anyhow::Result<Self> {
        let mut lines = cast.lines();
        let header: serde_json::Value = serde_json::from_str(lines.next().context("a header")?)?;
        ensure!(header["version"] == 2, "this is no asciicast of version 2");
        let mut before = Duration::ZERO;
        let mut scenes = Vec::new();
        for line in lines {
            let (at, _, text): (f64, String, String) = serde_json::from_str(line)?;
            let at = Duration::try_from_secs_f64(at)?;
            scenes.push(Scene {
                pause: at.saturating_sub(before),
                lines: text.lines().map(str::to_owned).collect(),
            });
            before = at;
        }
        Ok(Self {
            scenes,
            blocks: Vec::new(),
        })
    }

    /// The page with this recording's blocks in it.
    pub(super) fn filled_in(&self, page: &str) -> anyhow::Result<String> {
        let mut page = page.to_owned();
        for Block { name, lines } in &self.blocks {
            let (start, end) = place(&page, name)?;
            page.replace_range(start..end, &format!("{}\n", lines.join("\n")));
        }
        Ok(page)
    }

    /// Differences of a cast and a page from this recording, up to values that differ from run to run.
    pub(super) fn differences(&self, cast: &str, page: &str) -> anyhow::Result<Vec<String>> {
        let lines = |recording: &Self| -> Vec<String> {
            let lines = recording.scenes.iter().flat_map(|scene| &scene.lines);
            lines.cloned().collect()
        };
        let mut found = difference("the cast", &lines(&Self::of_cast(cast)?), &lines(self))?;
        for Block { name, lines } in &self.blocks {
            let (start, end) = place(page, name)?;
            let stands: Vec<String> = page[start..end].lines().map(str::to_owned).collect();
            found.extend(difference(&format!("the block {name}"), &stands, lines)?);
        }
        Ok(found)
    }
}

/// The line before a block of docs/demo.md, with its name.
fn marker(name: &str) -> String {
    format!("<!-- `{DEMO_RECORD}` writes this block: {name} -->")
}

/// Lines of a block in a page.
fn place(page: &str, name: &str) -> anyhow::Result<(usize, usize)> {
    let marker = marker(name);
    let Some(marked) = page.find(&marker) else {
        bail!("the page has no line {marker}");
    };
    let after = |from: usize, text: &str| page[from..].find(text).map(|at| from + at);
    let fence = after(marked, FENCE).and_then(|fence| after(fence, "\n"));
    let start = fence.context("a listing comes after a marker")? + 1;
    let end = after(start, FENCE).context("a listing ends")?;
    Ok((start, end))
}

/// The words of a line, with what is fleeting replaced.
fn words(line: &str) -> anyhow::Result<String> {
    let mut line = line.to_owned();
    for (pattern, instead) in FLEETING {
        line = Regex::new(pattern)?.replace_all(&line, instead).into_owned();
    }
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first line that differs.
fn difference(what: &str, stands: &[String], today: &[String]) -> anyhow::Result<Vec<String>> {
    let lines = stands.len().max(today.len());
    for index in 0..lines {
        let line = |lines: &[String]| lines.get(index).map_or(Ok(String::new()), |line| words(line));
        let (stands, today) = (line(stands)?, line(today)?);
        if stands != today {
            let line = index + 1;
            return Ok(vec![format!(
                "{what}, line {line}: `{stands}` stands there, today it is `{today}`"
            )]);
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(took: &str, word: &str) -> Recording {
        Recording {
            scenes: vec![
                Scene {
                    pause: Duration::from_millis(500),
                    lines: vec![typed("cargo demo get imports")],
                },
                Scene {
                    pause: Duration::from_millis(1500),
                    lines: vec![format!("cart   {took} {word}"), "\"quoted\"".to_owned()],
                },
            ],
            blocks: vec![Block {
                name: "imports",
                lines: vec![typed("cargo demo get imports"), format!("cart {took} {word}")],
            }],
        }
    }

    const PAGE: &str = "Before.\n\n<!-- `cargo demo --record` writes this block: imports -->\n```console\nold\n```\n\nAfter.\n";

    #[test]
    fn a_cast_is_read_as_it_was_written() {
        let recording = recording("12 ms", "True");
        let read = Recording::of_cast(&recording.cast()).expect("a cast");
        assert_eq!(read.scenes, recording.scenes);
        assert!(Recording::of_cast("{\"version\":1}").is_err());
    }

    #[test]
    fn times_may_differ_and_words_may_not() {
        let stands = recording("12 ms", "True");
        let page = stands.filled_in(PAGE).expect("a marker");
        assert!(page.contains("cart 12 ms True\n```\n\nAfter.") && !page.contains("old"));
        let compared = |today: Recording| today.differences(&stands.cast(), &page).expect("compared");
        assert!(compared(recording("1.4 s", "True")).is_empty());
        let told = compared(recording("12 ms", "False"));
        assert_eq!(told.len(), 2, "{told:?}");
        let mut shorter = stands.clone();
        shorter.scenes.pop();
        assert_eq!(compared(shorter).len(), 1);
    }

    #[test]
    fn what_is_fleeting_is_known() {
        let line =
            "2 2026-11-24T20:53:58.759Z east 7 1795553638759-0123456789abcdef 3.2 s 41 ms 10.12.0.11 true";
        assert_eq!(
            words(line).expect("patterns"),
            "N TIME east 7 EPOCH SPAN SPAN 10.12.0.11 true"
        );
    }

    #[test]
    fn what_is_said_is_not_fleeting() {
        let same = |one: &str, other: &str| words(one).expect("patterns") == words(other).expect("patterns");
        assert!(same(
            "at revision 10); 3 conflicts.",
            "at revision 12); 3 conflicts."
        ));
        assert!(same("  \"revision\": \"10\",", "  \"revision\": \"12\","));
        assert!(same("10.97.0.12  http 80/TCP", "10.97.0.13 http 80/TCP"));
        let member = |applied: u64, exports: u64, joined: u64| {
            format!(
                "east  live  2026-11-25T03:00:08Z  yes  0.1.0  {applied}  0.2s  -  0  {exports}  2  {joined}  1cd5b2b0d4e8f1b7  -"
            )
        };
        assert!(same(&member(16, 1, 2), &member(17, 1, 3)));
        let (one_export, two_exports) = (member(16, 1, 2), member(16, 2, 2));
        for (one, other) in [
            (one_export.as_str(), two_exports.as_str()),
            ("3 conflicts.; at", "none; at"),
            ("at revision 10); 3 conflicts.", "at revision 12); 2 conflicts."),
            ("http 80/TCP", "http 81/TCP"),
            ("10.12.0.11", "10.12.0.12"),
            ("True (Valid)", "False (Valid)"),
            ("\"winner\": \"west\"", "\"winner\": \"east\""),
        ] {
            assert!(!same(one, other), "{one}, {other}");
        }
    }

    #[test]
    fn a_page_without_the_marker_is_refused() {
        let error = recording("1 s", "True")
            .filled_in("# A page\n")
            .expect_err("no marker");
        assert!(error.to_string().contains("imports"), "{error}");
    }
}
