//! Owns: where the Lua is in which Argo CD runs health checks, and running a program in it.
//! Never: builds one; a missing one is an answer (`Unavailable`).

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use super::Unavailable;
use super::build;
use super::command::printed;
use super::module::Module;

/// The interpreter that `cargo control-plane lua` builds.
#[derive(Debug, Clone)]
pub struct Lua {
    program: PathBuf,
}

impl Lua {
    /// The one of this workspace.
    pub fn find() -> Result<Self, Unavailable> {
        let program = build::built_lua(&Module::of_this_workspace())?;
        Ok(Self { program })
    }

    /// Runs this text as a program, and returns what it printed; an error has what it said.
    pub fn run(&self, text: &str) -> anyhow::Result<String> {
        let mut file = tempfile::NamedTempFile::new().context("a file for the program")?;
        file.write_all(text.as_bytes())
            .context("the program is written")?;
        printed(Command::new(&self.program).arg(file.path()))
    }
}
