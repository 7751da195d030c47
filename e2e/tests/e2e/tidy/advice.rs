//! Owns: the law of advice: commands that messages print are written in one place, whose commands the tests of the
//! programs parse.
//! Never: parses one itself.

use super::source;
use anyhow::ensure;
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// Where they are written.
const PLACE: &str = "shared/src/model/advice.rs";
/// Names of tools, which are no commands.
const TOOLS: [&str; 1] = ["tributary-hub certs"];

pub(super) fn trials() -> Vec<Trial> {
    vec![plain_test(
        "tidy::commands_are_advised_in_one_place",
        in_one_place,
    )]
}

fn in_one_place() -> anyhow::Result<()> {
    let command = Regex::new(r"`(tributary-(?:hub|agent) [a-z]+(?: [^`]*)?)`?")?;
    let product = |path: &str| {
        let rooms = ["hub/src/", "agent/src/", "shared/src/"];
        rooms.iter().any(|room| path.starts_with(room))
    };
    let sources = source::files(&[".rs"])?;
    let (mut found, mut in_place) = (Vec::new(), 0);
    for source in sources
        .iter()
        .filter(|source| product(&source.path) && !source.is_test())
    {
        if source.path == PLACE {
            in_place = source.text.matches("\"tributary-").count();
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
