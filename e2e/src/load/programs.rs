//! Owns: finding the programs under test beside this one, and having cargo build them when they are stale.
//! Never: decides what is stale (cargo does).

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

/// Where the programs under test are.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// `tributary-hub`.
    pub(super) hub: PathBuf,
    /// "release", or what else this build is.
    pub(super) profile: String,
}

impl Programs {
    /// Finds the programs; with `build`, cargo first makes sure that they are current.
    pub(super) fn find(build: bool) -> anyhow::Result<Self> {
        let running = std::env::current_exe().context("this program cannot be found")?;
        let directory = running.parent().context("this program lies in no directory")?;
        let profile = directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if build {
            cargo_build(&profile)?;
        }
        let hub = directory.join("tributary-hub");
        ensure!(
            hub.is_file(),
            "{} is missing; build it with `cargo build --release -p tributary-hub`",
            hub.display()
        );
        Ok(Self { hub, profile })
    }
}

fn cargo_build(profile: &str) -> anyhow::Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("build").arg("--manifest-path").arg(manifest);
    // With our own package among them, cargo uses the features it has compiled the dependencies with already.
    command.args([
        "--package",
        "tributary-e2e",
        "--package",
        "tributary-hub",
        "--bin",
        "tributary-hub",
    ]);
    // The directory of the profile "dev" is called "debug".
    command.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    eprintln!("asking cargo for a current tributary-hub");
    let status = command
        .status()
        .context("cannot run cargo; --no-build uses the programs as they are")?;
    ensure!(status.success(), "cargo could not build tributary-hub");
    Ok(())
}
