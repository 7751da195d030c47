//! Owns: where the promtool is by which our alerts are read and tried.
//! Never: installs one; a missing one is an answer (`Unavailable`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Unavailable;
use super::command::printed;
use super::module::Module;

/// Path of Debian's package as `.ci/run` unpacks it, below the directory of tools.
const UNPACKED: &str = "prometheus/usr/bin/promtool";

/// A promtool that runs here.
#[derive(Debug, Clone)]
pub struct Promtool {
    program: PathBuf,
}

impl Promtool {
    /// The one that is unpacked from Debian's package, or one in the path.
    pub fn find() -> Result<Self, Unavailable> {
        let tools = Module::of_this_workspace().tools();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&path).map(|directory| directory.join("promtool"));
        let mut places = std::iter::once(tools.join(UNPACKED)).chain(installed);
        match places.find(|place| place.is_file()) {
            Some(program) => Ok(Self { program }),
            None => Err(Unavailable {
                reason: format!(
                    "there is no promtool; unpack Debian 12's package prometheus: `apt-get download prometheus && \
                     dpkg-deb --extract prometheus_*.deb {}/prometheus`",
                    tools.display()
                ),
            }),
        }
    }

    /// Runs it in `directory`, and returns what it printed; an error has what it said.
    pub fn run(&self, directory: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        printed(Command::new(&self.program).args(arguments).current_dir(directory))
    }
}
