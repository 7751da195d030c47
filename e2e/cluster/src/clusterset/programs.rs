//! Owns: which files are started as hub and agents: this binary again, or the programs of a directory.
//! Never: starts anything but `--version`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, ensure};

use super::child::Role;

/// Directory of the programs; without it they are this binary.
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
/// Lets a program end with its parent; this binary, as a child, ends by itself.
const ENDS_WITH_PARENT: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

impl Role {
    /// Name of the file.
    fn program(self) -> &'static str {
        match self {
            Self::Hub => "tributary-hub",
            Self::Agent => "tributary-agent",
            Self::Client => "tributary",
        }
    }
}

/// From here on hub and agents are the programs of a directory, of an image for example; what they say of themselves.
/// An error: one is missing or does not run here, or programs were chosen before.
pub fn take_from(directory: &Path) -> anyhow::Result<String> {
    let directory = directory
        .canonicalize()
        .with_context(|| format!("{} cannot be found", directory.display()))?;
    let versions = [Role::Hub, Role::Agent].map(|role| version(&directory.join(role.program())));
    let [hub, agent] = versions;
    let said = format!("{}, {}", hub?, agent?);
    ensure!(DIRECTORY.set(directory).is_ok(), "programs are chosen only once");
    Ok(said)
}

/// The program's version and the beginning of its digest.
fn version(program: &Path) -> anyhow::Result<String> {
    let [first, rest @ ..] = ENDS_WITH_PARENT;
    let said = Command::new(first)
        .args(rest)
        .arg(program)
        .arg("--version")
        .output()
        .with_context(|| {
            format!(
                "cannot run {first} (util-linux), which starts {}",
                program.display()
            )
        })?;
    ensure!(
        said.status.success(),
        "{} does not run here: {}",
        program.display(),
        String::from_utf8_lossy(&said.stderr).trim()
    );
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let digest = blake3::hash(&bytes).to_hex();
    let said = String::from_utf8_lossy(&said.stdout);
    Ok(format!("{} (blake3 {})", said.trim(), &digest[..12]))
}

/// The command for this role, without its arguments.
pub fn command_line(role: Role) -> anyhow::Result<Vec<OsString>> {
    let Some(directory) = DIRECTORY.get() else {
        let this = std::env::current_exe().context("this program cannot be found")?;
        return Ok(vec![this.into()]);
    };
    let mut line: Vec<OsString> = ENDS_WITH_PARENT.map(OsString::from).to_vec();
    line.push(directory.join(role.program()).into());
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_refused_and_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let missing = take_from(directory.path()).expect_err("it is empty").to_string();
        assert!(missing.contains("tributary-hub does not run here"), "{missing}");
        let nowhere = take_from(&directory.path().join("nowhere")).expect_err("it is not there");
        assert!(nowhere.to_string().ends_with("cannot be found"), "{nowhere}");
        let this = std::env::current_exe().expect("this program");
        assert_eq!(
            command_line(Role::Agent).expect("a program"),
            [OsString::from(this)]
        );
    }
}
