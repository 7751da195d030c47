//! Owns: where the Helm is that renders and installs our charts, and running it.
//! Never: builds or installs one; a missing one is an answer (`Unavailable`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Unavailable;
use super::build;
use super::command::printed;
use super::module::Module;

/// The Helm that `cargo control-plane helm` builds.
#[derive(Debug, Clone)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// The one of this workspace.
    pub fn find() -> Result<Self, Unavailable> {
        let program = build::built_helm(&Module::of_this_workspace())?;
        Ok(Self { program })
    }

    /// Runs it in `directory`, and returns what it printed; an error has what it said. It reads and keeps nothing of
    /// its user's: `home` is where it looks.
    pub fn run(&self, directory: &Path, home: &Path, arguments: &[String]) -> anyhow::Result<String> {
        let mut helm = Command::new(&self.program);
        helm.args(arguments).current_dir(directory);
        printed(Self::at_home(&mut helm, home))
    }

    /// The program itself, for whoever runs it elsewhere.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Keeps a command of it away from what its user has.
    pub fn at_home<'a>(helm: &'a mut Command, home: &Path) -> &'a mut Command {
        helm.env("HOME", home)
            .env("HELM_CACHE_HOME", home)
            .env("HELM_CONFIG_HOME", home)
            .env("HELM_DATA_HOME", home)
            .env_remove("KUBECONFIG")
    }
}
