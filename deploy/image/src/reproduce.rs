//! Owns: the proof that a build depends on nothing but its commit: a second checkout, built and compared.
//! Never: changes the first one.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::{architecture::Architecture, package, run, source::Source};

/// Builds the commit of `source` in a clone elsewhere, and compares what comes of it with `expected`.
pub(crate) fn reproduce(
    source: &Source,
    architectures: &[Architecture],
    expected: &str,
) -> anyhow::Result<()> {
    ensure!(
        !source.revision.ends_with("-dirty"),
        "files differ from the commit, and a clone has the commit: commit them first"
    );
    let elsewhere = tempfile::tempdir().context("there is no place for a second checkout")?;
    let clone = elsewhere.path().join("a-second-checkout");
    eprintln!("building a second checkout in {}", clone.display());
    let mut git = Command::new("git");
    run::shown(git.args(["clone", "--quiet"]).arg(&source.root).arg(&clone))?;
    let second = Source::at(&clone)?;
    let found = package::published(&second, architectures, &clone.join("target/images"))?;
    let differing: Vec<&str> = found
        .lines()
        .filter(|line| !expected.lines().any(|other| other == *line))
        .collect();
    if !differing.is_empty() || found.lines().count() != expected.lines().count() {
        bail!("a second checkout gives other files:\n{}", differing.join("\n"));
    }
    print!("{found}");
    println!("{} files are the same from two checkouts", found.lines().count());
    Ok(())
}
