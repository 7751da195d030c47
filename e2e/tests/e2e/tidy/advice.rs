//! Owns: the law of advice: commands that messages print are written in one place, whose commands the tests of the
//! programs parse.
//! Never: parses one itself.

use std::collections::BTreeSet;

use super::source;
use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// File of the advice.
const PLACE: &str = "shared/model/src/advice.rs";
/// File with one of each, for the tests that parse them.
const ALL: &str = "shared/model/src/testing/advice.rs";
/// Functions that build no command, but a part of one that no list needs by itself.
const PARTS: [&str; 1] = ["quoted"];
/// File of this workspace's advice.
const PLACE_OF_E2E: &str = "e2e/advice/src/lib.rs";
/// File of commands that are typed and not advised: each is parsed when it is carried out.
const TYPED: &str = "e2e/demo/src/record.rs";
/// Names of tools, which are no commands.
const TOOLS: [&str; 1] = ["tributary-hub certs"];

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::commands_are_advised_in_one_place", in_one_place),
        plain_test("tidy::every_advised_command_is_parsed", all_are_listed),
        plain_test(
            "tidy::commands_of_the_workspace_are_advised_in_one_place",
            of_the_workspace,
        ),
    ]
}

fn in_one_place() -> anyhow::Result<()> {
    let command = Regex::new(r"`(tributary(?:-hub|-agent)? [a-z]+(?: [^`]*)?)`?")?;
    let product = |path: &str| source::is_product(path);
    let sources = source::files(&[".rs"])?;
    let (mut found, mut in_place) = (Vec::new(), 0);
    for source in sources
        .iter()
        .filter(|source| product(&source.path) && !source.is_test())
    {
        if source.path == PLACE {
            in_place = source.text.matches("\"tributary").count();
            continue;
        }
        for (number, line) in source.code() {
            let told = command.captures_iter(line).map(|captured| captured[1].to_owned());
            let told = told.filter(|told| !TOOLS.contains(&told.as_str()));
            found.extend(told.map(|told| format!("{}:{number}: {told}", source.path)));
        }
    }
    ensure!(in_place > 5, "{PLACE} was not read: {in_place}");
    ensure!(
        found.is_empty(),
        "commands that are advised outside {PLACE}, where no program parses them:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// A command that is built there and not listed here would be parsed by nobody.
fn all_are_listed() -> anyhow::Result<()> {
    let built = names(&source::text_of(PLACE)?, r"(?m)^pub fn ([a-z0-9_]+)")?;
    let list = source::text_of(ALL)?;
    let (_, list) = list
        .split_once("pub fn advised()")
        .with_context(|| format!("{ALL} has no list"))?;
    let (list, _) = list.split_once("\n}\n").context("the end of the list")?;
    let listed = names(list, r"advice::([a-z0-9_]+)\(")?;
    ensure!(built.len() > 5, "{PLACE} was not read: {built:?}");
    let missing: Vec<&String> = built
        .difference(&listed)
        .filter(|name| !PARTS.contains(&name.as_str()))
        .collect();
    ensure!(
        missing.is_empty(),
        "commands of {PLACE} that `advised` in {ALL} does not list, so that no test parses them: {missing:?}"
    );
    Ok(())
}

fn names(text: &str, pattern: &str) -> anyhow::Result<BTreeSet<String>> {
    let pattern = Regex::new(pattern)?;
    let found = pattern.captures_iter(text);
    Ok(found.map(|captured| captured[1].to_owned()).collect())
}

fn of_the_workspace() -> anyhow::Result<()> {
    // The name of a command alone is no advice; help, which has examples, is in files of its own.
    let command = Regex::new(r"cargo (?:control-plane|crash|demo|load|netsim|sim) [a-z{-]")?;
    let (mut found, mut in_place) = (Vec::new(), 0);
    for source in source::files(&[".rs"])? {
        let e2e = source::is_e2e(&source.path) && !source.path.ends_with("/args.rs");
        if !e2e || source.is_test() || source.path == TYPED {
            continue;
        }
        let told = source
            .code()
            .into_iter()
            .filter(|(_, line)| command.is_match(line));
        let told: Vec<String> = told
            .map(|(number, _)| format!("{}:{number}", source.path))
            .collect();
        if source.path == PLACE_OF_E2E {
            in_place = told.len();
        } else {
            found.extend(told);
        }
    }
    ensure!(in_place > 5, "{PLACE_OF_E2E} was not read: {in_place}");
    ensure!(
        found.is_empty(),
        "commands that are advised outside {PLACE_OF_E2E}, where no program parses them:\n{}",
        found.join("\n")
    );
    Ok(())
}
