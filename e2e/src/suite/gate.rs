//! Owns: which scenarios guard a release and not every change, and how a run that guards a change says so.
//! Never: leaves one out in silence.

use anyhow::{Context, bail, ensure};
use libtest_mimic::Trial;
use std::collections::BTreeMap;

/// `change` leaves out what `release-only.txt` lists; `release`, which is the default, runs everything.
const VARIABLE: &str = "TRIBUTARY_GATE";
/// Each line: the name of a scenario, a colon, and why a change is guarded without it.
const LIST: &str = include_str!("../../release-only.txt");

/// Divides the tests into those that run and, in a line, those that are left out here; empty when none is.
pub(super) fn of_environment(trials: Vec<Trial>) -> anyhow::Result<(Vec<Trial>, String)> {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    let list = match value.as_str() {
        "" | "release" => return Ok((trials, String::new())),
        "change" => read(LIST)?,
        other => bail!("{VARIABLE} is change or release, not {other}"),
    };
    let (left_out, run): (Vec<Trial>, Vec<Trial>) = trials
        .into_iter()
        .partition(|trial| list.contains_key(trial.name()));
    let names: Vec<&str> = left_out.iter().map(Trial::name).collect();
    let line = format!(
        "{} scenarios guard a release and ran not here: {}\n",
        names.len(),
        names.join(", ")
    );
    Ok((run, line))
}

/// An error names every entry of the list that is no test among these names, and what is wrong with the list.
pub fn check(names: &[String]) -> anyhow::Result<()> {
    checked(LIST, names)
}

fn checked(list: &str, names: &[String]) -> anyhow::Result<()> {
    let list = read(list)?;
    let unknown: Vec<&&str> = list
        .keys()
        .filter(|name| !names.iter().any(|one| one == **name))
        .collect();
    ensure!(
        unknown.is_empty(),
        "e2e/release-only.txt lists scenarios that are not registered: {unknown:?}"
    );
    Ok(())
}

/// Names and reasons.
fn read(list: &str) -> anyhow::Result<BTreeMap<&str, &str>> {
    let mut read = BTreeMap::new();
    let lines = list.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, why) = line
            .split_once(": ")
            .with_context(|| format!("e2e/release-only.txt: {line:?} has no reason"))?;
        ensure!(
            read.insert(name.trim(), why.trim()).is_none(),
            "e2e/release-only.txt lists {name} twice"
        );
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_a_test_and_has_a_reason() {
        let names = ["real::a::b".to_owned(), "sim::a::b".to_owned()];
        checked("# why\n\nreal::a::b: sim::a::b has the same code\n", &names).expect("it is one");
        for (bad, why) in [
            ("real::a::c: it is long\n", "not registered"),
            ("real::a::b\n", "no reason"),
            ("real::a::b: once\nreal::a::b: again\n", "twice"),
        ] {
            let error = checked(bad, &names).expect_err(bad).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
