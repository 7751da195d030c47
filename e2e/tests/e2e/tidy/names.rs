//! Owns: the law of names: a word of docs/glossary.md that is a type means one thing in all crates.
//! Never: judges words that are local by nature, such as `Kind` or `Part`.

use super::source::{self, Source};
use anyhow::ensure;
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// A type, and the only files that may define one of this name.
const PLACES: &[(&str, &[&str])] = &[
    ("World", &["e2e/swarm/src/world/mod.rs"]),
    ("LocalClusterset", &["e2e/cluster/src/clusterset/mod.rs"]),
    ("View", &["hub/core/src/view/mod.rs"]),
    ("Room", &["hub/core/src/view/mod.rs"]),
    ("DiskRoom", &["hub/core/src/writer/disk_room.rs"]),
    ("Permit", &["hub/core/src/writer/handle.rs"]),
    (
        "Session",
        &[
            // Its two ends ...
            "agent/core/src/link.rs",
            "hub/core/src/session/machine.rs",
            // ... and one that load plays.
            "e2e/bench/src/player.rs",
        ],
    ),
];

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::a_word_is_defined_once", once),
        plain_test("tidy::second_definitions_are_seen", check_sees),
    ]
}

fn once() -> anyhow::Result<()> {
    let found = defined_elsewhere(&source::files(&[".rs"])?)?;
    ensure!(
        found.is_empty(),
        "names that mean something else already:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// Definitions outside their places, and places that define nothing.
fn defined_elsewhere(sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, places) in PLACES {
        let definition = Regex::new(&format!(
            r"(?m)^\s*(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait|type|union) {name}\b"
        ))?;
        let defines = |source: &&Source| definition.is_match(&source.text);
        let defining: Vec<&str> = sources
            .iter()
            .filter(defines)
            .map(|source| source.path.as_str())
            .collect();
        let elsewhere = defining.iter().filter(|path| !places.contains(path));
        found.extend(elsewhere.map(|path| format!("{path}: {name}, which is that of {}", places[0])));
        let empty = places.iter().filter(|place| !defining.contains(place));
        found.extend(empty.map(|place| format!("{place}: no {name} any more: correct the list")));
    }
    Ok(found)
}

fn check_sees() -> anyhow::Result<()> {
    let mut sources = Vec::new();
    for (name, places) in PLACES {
        sources.extend(places.iter().map(|place| Source {
            path: (*place).to_owned(),
            text: format!("//! It.\npub struct {name};\n"),
        }));
    }
    ensure!(
        defined_elsewhere(&sources)?.is_empty(),
        "seen where there is nothing"
    );
    for second in [
        "struct World {\n",
        "pub(crate) struct World(u8);\n",
        "    type World = u8;\n",
    ] {
        sources.push(Source {
            path: "hub/fold/src/tests/given.rs".to_owned(),
            text: second.to_owned(),
        });
        let seen = defined_elsewhere(&sources)?;
        ensure!(
            seen.len() == 1 && seen[0].starts_with("hub/fold/src/tests/given.rs: World"),
            "{seen:?}"
        );
        sources.pop();
    }
    sources.retain(|source| source.path != "hub/core/src/writer/disk_room.rs");
    let seen = defined_elsewhere(&sources)?;
    ensure!(
        seen.len() == 1 && seen[0].contains("no DiskRoom any more"),
        "{seen:?}"
    );
    Ok(())
}
