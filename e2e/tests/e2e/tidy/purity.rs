//! Owns: the law of purity: pure rooms name only `std`, the domain model and each other; no async, clock,
//! randomness, socket, file, log line or random iteration order.
//! Never: says what the rooms do.

use super::{
    rooms::{PureRoom, ROOMS},
    source::{self, Source},
};
use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use regex::Regex;
use std::collections::BTreeSet;
use tributary_e2e::suite::plain_test;

/// Rooms of the product: those of e2e are judged by its rings, and no mutant is made of them.
const PRODUCT: [&str; 3] = ["shared/", "hub/", "agent/"];

/// Words that no pure room has, whatever it imports.
const IMPURE: &str = r"\basync\b|\.await\b|\btokio\b|\bfutures\b|\bInstant\b|\bSystemTime\b|\brand\b|\bHashMap\b|\bHashSet\b|\bTcp\w+|\bUdp\w+|\bUnix(Stream|Listener|Datagram)\b|\bstd::(env|fs|io|process|thread|time::Instant)\b|\b(Mutex|RwLock|Condvar|OnceLock|LazyLock|Atomic\w+)\b|\bprost\b|\bproto::|\bkube\b|\bk8s_openapi\b|\btonic\b|\bsled\b|\btracing\b|\b(e?println|e?print)!|\bstatic mut\b|\bthread_local\b";

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::pure_rooms_are_pure", rooms_are_pure),
        plain_test("tidy::the_check_of_pure_rooms_sees_what_is_forbidden", check_sees),
        plain_test("tidy::all_lists_of_pure_rooms_are_one", lists_are_one),
    ]
}

fn rooms_are_pure() -> anyhow::Result<()> {
    let sources = source::files(&[".rs"])?;
    let mut found = Vec::new();
    for room in ROOMS {
        let inside = |path: &str| path == room.path || path.starts_with(&format!("{}/", room.path));
        let mut files = 0;
        for source in sources
            .iter()
            .filter(|source| inside(&source.path) && !source.is_test())
        {
            files += 1;
            found.extend(impurities(source, room)?);
        }
        ensure!(
            files > 0,
            "{} is a room without files: correct the list",
            room.path
        );
    }
    ensure!(found.is_empty(), "pure rooms stay pure:\n{}", found.join("\n"));
    Ok(())
}

/// The rooms that are read here, those that ARCHITECTURE.md names, and those that mutants are made of.
fn lists_are_one() -> anyhow::Result<()> {
    let product = |path: &&str| PRODUCT.iter().any(|part| path.starts_with(part));
    let read: BTreeSet<String> = ROOMS
        .iter()
        .map(|room| room.path)
        .filter(product)
        .map(str::to_owned)
        .collect();
    let named = rooms_in(&source::text_of("ARCHITECTURE.md")?)?;
    ensure!(
        named == read,
        "ARCHITECTURE.md, \"pure rooms\", and this test differ in {:?}",
        named.symmetric_difference(&read).collect::<Vec<_>>()
    );
    let changed = mutated_in(&source::text_of(".cargo/mutants.toml")?)?;
    ensure!(
        changed == read,
        ".cargo/mutants.toml and the pure rooms of ARCHITECTURE.md differ in {:?}",
        changed.symmetric_difference(&read).collect::<Vec<_>>()
    );
    Ok(())
}

/// The paths of the invariant *pure rooms*; `a/{b,c}.rs` stands for two.
fn rooms_in(architecture: &str) -> anyhow::Result<BTreeSet<String>> {
    let invariant = architecture.split_once("**Architecture Invariant: pure rooms.**");
    let (_, invariant) = invariant.context("ARCHITECTURE.md has the invariant")?;
    let sentence = invariant.trim_start().lines().next().unwrap_or_default();
    let path = Regex::new(r"`([^`]+)`")?;
    let mut rooms = BTreeSet::new();
    for captured in path.captures_iter(sentence) {
        match captured[1].split_once('{') {
            None => rooms.extend([captured[1].to_owned()]),
            Some((before, rest)) => {
                let (names, after) = rest.split_once('}').context("a group ends")?;
                rooms.extend(names.split(',').map(|name| format!("{before}{name}{after}")));
            }
        }
    }
    Ok(rooms)
}

/// The paths that `examine_globs` lists.
fn mutated_in(settings: &str) -> anyhow::Result<BTreeSet<String>> {
    let globs = settings.split_once("examine_globs = [");
    let (globs, _) = globs
        .and_then(|(_, rest)| rest.split_once(']'))
        .context(".cargo/mutants.toml has examine_globs")?;
    let paths = globs.split('"').skip(1).step_by(2);
    Ok(paths.map(|glob| glob.replace("/**/*.rs", "")).collect())
}

/// Words of a file that its room forbids.
fn impurities(source: &Source, room: &PureRoom) -> anyhow::Result<Vec<String>> {
    let impure = Regex::new(IMPURE)?;
    let imported = Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?use (.+)$")?;
    let code = source.code();
    let mut found = Vec::new();
    for (number, line) in &code {
        let line = without_text(line);
        if let Some(said) = impure.find(&line) {
            found.push(format!("{}:{number}: {}", source.path, said.as_str()));
        }
        if let Some(captured) = imported.captures(&line)
            && let Some(path) = foreign(&whole_import(&code, *number, &captured[1]), room)
        {
            found.push(format!("{}:{number}: use {path}", source.path));
        }
    }
    Ok(found)
}

/// An import may run over several lines; its end is the semicolon.
fn whole_import(code: &[(usize, &str)], number: usize, first: &str) -> String {
    let mut text = first.trim().to_owned();
    let following = code.iter().filter(|(at, _)| *at > number);
    for (_, line) in following {
        if text.ends_with(';') {
            break;
        }
        text.push_str(line.trim());
    }
    text
}

/// The first path of an import that the room may not name.
fn foreign(import: &str, room: &PureRoom) -> Option<String> {
    let paths = expanded(import.trim_end_matches(';'));
    paths.into_iter().find(|path| {
        let head = path.split("::").next().unwrap_or_default();
        // A path that begins with a module of the room itself has no crate in front of it.
        let outside = [
            "crate",
            "shared",
            "model",
            "wire",
            "fold",
            "event_log",
            "replication",
            "etcd_engine",
            "hub_core",
            "clusterclass",
            "topology_reader",
            "api_client",
            "hub",
            "agent_core",
            "agent_engine",
            "agent",
            "api",
            "pace",
            "proto",
        ]
        .contains(&head)
            || is_crate(head);
        let allowed = |name: &&str| path == *name || path.starts_with(&format!("{name}::"));
        outside && !room.may_name.iter().any(allowed) && !path.starts_with("shared::model") && head != "model"
    })
}

/// The dependencies of the crates that have pure rooms, as far as one could slip in; `std` is not among them.
fn is_crate(head: &str) -> bool {
    [
        "anyhow",
        "axum",
        "blake3",
        "bytes",
        "clap",
        "data_encoding",
        "hyper",
        "hyper_util",
        "jiff",
        "prometheus_client",
        "regex",
        "rpds",
        "rustls",
        "schemars",
        "serde",
        "serde_json",
        "sha2",
        "thiserror",
        "tower",
        "x509_parser",
    ]
    .contains(&head)
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expanded(import: &str) -> Vec<String> {
    let Some((prefix, group)) = import.split_once("::{") else {
        return vec![import.trim().to_owned()];
    };
    let group = group.strip_suffix('}').unwrap_or(group);
    let (mut parts, mut depth, mut part) = (Vec::new(), 0_usize, String::new());
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(letter);
        }
    }
    parts.push(part);
    let parts = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty());
    parts
        .flat_map(|part| expanded(&format!("{prefix}::{part}")))
        .collect()
}

/// The line without what stands between quotation marks and behind `//`.
fn without_text(line: &str) -> String {
    let code = line.split(" //").next().unwrap_or_default();
    code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

fn check_sees() -> anyhow::Result<()> {
    let room = &PureRoom {
        path: "hub/fold/src",
        // A persistent map is a value: it has the order of its keys and no other.
        may_name: &["bytes", "crate", "rpds"],
    };
    let judged = |text: &str| {
        let source = Source {
            path: "hub/fold/src/example.rs".to_owned(),
            text: text.to_owned(),
        };
        impurities(&source, room)
    };
    for bad in [
        "use std::collections::HashMap;\n",
        "use shared::{\n    model::Fact,\n    wire,\n};\n",
        "use event_log::Log;\n",
        "use prost::Message;\n",
        "pub async fn f() {}\n",
        "    let now = std::time::Instant::now();\n",
        "    tracing::info!(\"said\");\n",
    ] {
        ensure!(!judged(bad)?.is_empty(), "not seen: {bad}");
    }
    let good = "use std::{collections::BTreeMap, net::IpAddr};\nuse shared::model::{Fact, fact::MEMBER_FACTS_MAX};\n\
                use super::state::State;\nlet text = \"tokio\"; // no HashMap here\n";
    ensure!(judged(good)?.is_empty(), "{:?}", judged(good)?);
    let rooms =
        rooms_in("**Architecture Invariant: pure rooms.**\n`a/src/x` and `b/{y,z}.rs` are.\n`c` is none.\n")?;
    ensure!(rooms.iter().eq(["a/src/x", "b/y.rs", "b/z.rs"]), "{rooms:?}");
    let rooms =
        mutated_in("examine_globs = [\n    \"a/src/x/**/*.rs\",\n    \"b/y.rs\",\n]\nother = [\"c\"]\n")?;
    ensure!(rooms.iter().eq(["a/src/x", "b/y.rs"]), "{rooms:?}");
    Ok(())
}
