//! Owns: that every command of ours in the documents, in the help of our programs and in their hints is understood by
//! the program that it calls.
//! Never: runs one.

use super::{programs, root};
use anyhow::{Context, ensure};
use clap::{CommandFactory, error::ErrorKind};
use regex::Regex;
use shared::testing::advice::{examples, words};
use std::path::Path;

/// The pages that people type from, and the folders of which every page is one.
const PAGES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    ".github/ISSUE_TEMPLATE/defect.md",
    "deploy/README.md",
    "deploy/charts/agent/README.md",
    "deploy/charts/hub/README.md",
];
const FOLDERS: [&str; 4] = ["docs", "docs/guides", "docs/reference", "docs/runbooks"];
/// Placeholders for a reader's own words, each with a word that the programs accept there.
const STAND_INS: [(&str, &str); 7] = [
    ("ID", "east"),
    ("SIZE", "1GB"),
    ("S", "7"),
    ("N", "7"),
    ("HOST", "hub.example.org"),
    (
        "…",
        "0707070707070707070707070707070707070707070707070707070707070707",
    ),
    ("FILE", "file"),
];
/// Beginnings of our commands.
const OURS: &str = r"^(cargo (control-plane|crash|demo|image|load|netsim|nodes|sim)|tributary(-hub|-agent)?|clusterclass)( |$)";

/// A command as it stands somewhere.
#[derive(Debug)]
struct Found {
    place: String,
    command: String,
    /// A command in prose may lack what it cannot go without: it names rather than tells what to type.
    whole: bool,
}

pub(super) fn in_documents() -> anyhow::Result<()> {
    let mut found = Vec::new();
    let mut pages: Vec<String> = PAGES.map(str::to_owned).to_vec();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(root().join(folder)).context(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            pages.extend(name.ends_with(".md").then(|| format!("{folder}/{name}")));
        }
    }
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).with_context(|| page.clone())?;
        found.extend(commands(&page, &text)?);
    }
    ensure!(found.len() > 60, "the pages were not read: {}", found.len());
    all_understood(&found)
}

pub(super) fn in_hints() -> anyhow::Result<()> {
    let suggested = [None, Some(Path::new("a directory"))]
        .into_iter()
        .flat_map(demo::suggestions)
        .map(|(command, _)| command);
    let mut found: Vec<Found> = advice::advised()
        .into_iter()
        .chain(suggested)
        .map(|command| typed("a hint", command))
        .collect();
    let helps = [
        ("cargo load", bench::args::Arguments::command()),
        ("cargo crash", crash::args::Arguments::command()),
        ("cargo sim", swarm::args::Arguments::command()),
        ("cargo control-plane", cluster::real::args::Arguments::command()),
        ("cargo demo", demo::command_line()),
    ];
    for (program, mut command) in helps {
        let help = command.render_long_help().to_string();
        let typed = |command: String| typed(program, without_comment(&command));
        found.extend(examples(program, &help).into_iter().map(typed));
    }
    ensure!(found.len() > 30, "too few hints: {}", found.len());
    all_understood(&found)
}

fn typed(place: &str, command: String) -> Found {
    Found {
        place: place.to_owned(),
        command,
        whole: true,
    }
}

/// In help a comment is set apart by spaces.
fn without_comment(line: &str) -> String {
    line.split("  ").next().unwrap_or_default().to_owned()
}

pub(super) fn misspelt() -> anyhow::Result<()> {
    let page = "Prose with `cargo demo --chek` and `tributary-hub log verfy|stats --data DIR`.\n\n```sh\n\
                cargo sim sworm   # many\ncargo demo get imports && cargo demo kill hubb\n\
                tributary-hub certs member --ca certs\nkubectl get pods\n```\n\
                `cargo test` is not ours, and `tributary member evict` is a name.\n";
    let found = commands("page", page)?;
    let refused: Vec<&str> = found
        .iter()
        .filter(|found| understood(found).is_err())
        .map(|found| found.command.as_str())
        .collect();
    let planted = [
        "cargo demo --chek",
        "tributary-hub log verfy --data DIR",
        "cargo sim sworm",
        "cargo demo kill hubb",
        "tributary-hub certs member --ca certs",
    ];
    ensure!(refused == planted, "refused: {refused:?}");
    ensure!(found.len() == planted.len() + 3, "{found:?}");
    let hint = typed("a hint", advice::LIST_PLANTED.replace("planted", "plantet"));
    ensure!(understood(&hint).is_err(), "{hint:?}");
    Ok(())
}

fn all_understood(found: &[Found]) -> anyhow::Result<()> {
    let refused: Vec<String> = found.iter().filter_map(|found| understood(found).err()).collect();
    ensure!(
        refused.is_empty(),
        "commands that their programs do not understand:\n{}",
        refused.join("\n")
    );
    Ok(())
}

fn understood(found: &Found) -> Result<(), String> {
    let stand_in = |word: String| {
        let known = STAND_INS.iter().find(|(stands, _)| *stands == word);
        known.map_or(word, |(_, instead)| (*instead).to_owned())
    };
    let words: Vec<String> = words(&found.command).into_iter().map(stand_in).collect();
    let Found {
        place,
        command,
        whole,
    } = found;
    let read = programs::read(&words).ok_or_else(|| format!("{place}: {command}: of no program of ours"))?;
    match read {
        Ok(()) => Ok(()),
        Err(error) if is_shown(error.kind()) || (!whole && lacks(error.kind())) => Ok(()),
        Err(error) => Err(format!("{place}: {command}: {}", first_line(&error.to_string()))),
    }
}

fn is_shown(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

fn lacks(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Our commands in a page: the lines of its listings, and what stands between backticks in its prose.
fn commands(page: &str, text: &str) -> anyhow::Result<Vec<Found>> {
    let ours = Regex::new(OURS)?;
    let quoted = Regex::new("`([^`]+)`")?;
    let mut found = Vec::new();
    let mut listing = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            listing = !listing;
            continue;
        }
        let spans: Vec<&str> = if listing {
            vec![line]
        } else {
            quoted
                .captures_iter(line)
                .filter_map(|captured| captured.get(1))
                .map(|span| span.as_str())
                .collect()
        };
        // A line that goes on, here or in the reader's head, says the beginning of a command.
        let goes_on = line.ends_with(['\\', '…']);
        let steps = spans.iter().flat_map(|span| span.split(" && "));
        for command in steps.map(typed_part).filter(|command| ours.is_match(command)) {
            let command = match (listing, goes_on) {
                (true, true) => command.trim_end_matches(['\\', '…', ' ']),
                _ => command,
            };
            found.extend(spelled_out(command).into_iter().map(|command| Found {
                place: format!("{page}:{}", index + 1),
                command,
                whole: listing && !goes_on,
            }));
        }
    }
    Ok(found)
}

/// A command without its comment, and without where its output goes.
fn typed_part(step: &str) -> &str {
    let command = step.split(" #").next().unwrap_or_default();
    command.split(" > ").next().unwrap_or_default().trim()
}

/// `log verify|stats --data DIR` stands for two commands.
fn spelled_out(command: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    for word in command.split(' ').filter(|word| !word.is_empty()) {
        let choices: Vec<&str> = word.split('|').collect();
        commands = commands
            .iter()
            .flat_map(|before| choices.iter().map(move |choice| format!("{before} {choice}")))
            .collect();
    }
    commands.iter().map(|command| command.trim().to_owned()).collect()
}
