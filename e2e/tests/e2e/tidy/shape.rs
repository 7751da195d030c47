//! Owns: sizes and openings: how long files and functions may be, how they begin, what no file says.
//! Never: judges what is written within the limits.

use super::source::{self, Source};
use anyhow::ensure;
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// A file longer than this is split.
const FILE_LINES_MAX: usize = 600;
/// A file of tests longer than this is split: a list of cases is read from top to bottom.
const TEST_FILE_LINES_MAX: usize = 800;
/// A function longer than this is split; tests do not count.
const FUNCTION_LINES_MAX: usize = 70;
/// So many functions may be longer, for lists of steps that have no parts (the wiring of a program) ...
const LONG_FUNCTIONS_MAX: usize = 10;
/// ... but never longer than this.
const LONG_FUNCTION_LINES_MAX: usize = 100;
/// The simulated clusters stay small enough to be read; docs/adr says why this is not less.
const SIMULATED_LINES_MAX: usize = 6_000;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::files_are_short_and_open_with_what_they_own", files),
        plain_test("tidy::functions_are_short", functions),
        plain_test("tidy::function_lengths_are_measured", lengths),
        plain_test("tidy::simulated_clusters_stay_small", simulated),
        plain_test("tidy::nothing_is_left_to_do_and_nothing_names_a_machine", words),
        plain_test("tidy::documents_have_one_sentence_a_line", sentences),
        plain_test("tidy::sentences_of_documents_are_counted", sentences_are_counted),
    ]
}

fn files() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for source in source::files(&[".rs"])? {
        let lines = source.text.lines().count();
        let limit = if source.is_test() {
            TEST_FILE_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        if lines > limit {
            found.push(format!(
                "{}: {lines} lines, the limit is {limit}: split it",
                source.path
            ));
        }
        if !source.text.starts_with("//!") {
            found.push(format!(
                "{}: begin with `//!`: what it owns, what it never does",
                source.path
            ));
        }
    }
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn functions() -> anyhow::Result<()> {
    let (mut long, mut too_long) = (Vec::new(), 0);
    for source in source::files(&[".rs"])? {
        if source.is_test() {
            continue;
        }
        for (number, lines) in function_lengths(&source)? {
            if lines > FUNCTION_LINES_MAX {
                long.push(format!("{}:{number}: {lines} lines", source.path));
            }
            too_long += usize::from(lines > LONG_FUNCTION_LINES_MAX);
        }
    }
    ensure!(
        too_long == 0 && long.len() <= LONG_FUNCTIONS_MAX,
        "functions have at most {FUNCTION_LINES_MAX} lines; {LONG_FUNCTIONS_MAX} may have up to \
         {LONG_FUNCTION_LINES_MAX}:\n{}",
        long.join("\n")
    );
    Ok(())
}

/// The beginning and the number of lines of each function. rustfmt puts a function's end under its beginning.
fn function_lengths(source: &Source) -> anyhow::Result<Vec<(usize, usize)>> {
    let head = Regex::new(r#"^(\s*)(pub(\([a-z]+\))? )?(const )?(async )?(extern "C" )?fn \w"#)?;
    let code = source.code();
    let mut lengths = Vec::new();
    for (index, (number, line)) in code.iter().enumerate() {
        let Some(indent) = head.captures(line).map(|captured| captured[1].to_owned()) else {
            continue;
        };
        let one_line = line.ends_with(['}', ';']);
        let end = code[index..]
            .iter()
            .position(|(_, line)| *line == format!("{indent}}}") || *line == format!("{indent});"));
        let lines = if one_line { 1 } else { end.map_or(1, |end| end + 1) };
        lengths.push((*number, lines));
    }
    Ok(lengths)
}

fn lengths() -> anyhow::Result<()> {
    let source = Source {
        path: "example.rs".to_owned(),
        text: "fn one() {}\nimpl A {\n    pub(super) async fn two(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n\n    \
               fn three() {\n        if x {\n            y\n        }\n    }\n}\n"
            .to_owned(),
    };
    let measured = function_lengths(&source)?;
    ensure!(measured == [(1, 1), (3, 5), (9, 5)], "{measured:?}");
    Ok(())
}

fn simulated() -> anyhow::Result<()> {
    let sources = source::files(&[".rs"])?;
    let simulated = sources
        .iter()
        .filter(|source| source.path.starts_with("e2e/sim/src/") && !source.is_test());
    let lines: usize = simulated.map(|source| source.code().len()).sum();
    ensure!(lines > 0, "e2e/sim has no files: correct the path");
    ensure!(
        lines <= SIMULATED_LINES_MAX,
        "the simulated clusters have {lines} lines of code, the limit is {SIMULATED_LINES_MAX}: real clusters are there \
         for what is left out"
    );
    Ok(())
}

/// Words that are spelled apart here, so that this file does not say them.
fn words() -> anyhow::Result<()> {
    let unfinished = Regex::new(&format!(
        r"\b({}|{}|{})\b|\b{}!\(",
        "TO\u{44}O", "FIX\u{4d}E", "XX\u{58}", "db\u{67}"
    ))?;
    let machine = Regex::new(r#"(^|[\s"'`(=:])/(home|root|Users|work|workspace)/[A-Za-z.]"#)?;
    let endings = [
        ".rs",
        ".md",
        ".toml",
        ".yaml",
        ".proto",
        ".go",
        ".mod",
        ".json",
        ".ci/run",
        ".ci/release",
        ".ci/gate.sh",
    ];
    let mut found = Vec::new();
    for source in source::files(&endings)? {
        let upstream = source.path.starts_with("e2e/fixtures/upstream/");
        for (index, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path, index + 1);
            if !upstream && let Some(said) = unfinished.find(line) {
                found.push(format!(
                    "{place}: {}: finish it, or file it where work is planned",
                    said.as_str()
                ));
            }
            if let Some(said) = machine.find(line) {
                found.push(format!(
                    "{place}: {}: a path of one machine",
                    said.as_str().trim()
                ));
            }
        }
    }
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// A change of a sentence is a change of a line, which makes changes of documents readable.
fn sentences() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for source in source::files(&[".md"])? {
        let lines = lines_of_several_sentences(&source.text)?;
        found.extend(
            lines
                .into_iter()
                .map(|number| format!("{}:{number}", source.path)),
        );
    }
    ensure!(
        found.is_empty(),
        "more than one sentence in a line; begin a new line with each:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// The numbers of the lines of prose that have several sentences. Tables, headings, quotes, lists and listings are none.
fn lines_of_several_sentences(text: &str) -> anyhow::Result<Vec<usize>> {
    let several = Regex::new(r"[a-z)`]\. [A-Z]")?;
    let mut listing = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            listing = !listing;
        } else if !listing && !line.starts_with(['|', '#', '>', ' ', '*']) && several.is_match(line) {
            found.push(index + 1);
        }
    }
    Ok(found)
}

fn sentences_are_counted() -> anyhow::Result<()> {
    let text = "One. Two.\nOne line (e.g. this one).\n| One. Two. |\n* One. Two.\n```sh\necho one. Two\n```\n`one`. Two.\n";
    let found = lines_of_several_sentences(text)?;
    ensure!(found == [1, 8], "{found:?}");
    Ok(())
}
