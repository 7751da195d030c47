//! The program `clusterclass`: tries, checks and previews ClusterClasses, from files or with a management cluster.
//!
//! * [`command`]: the flags, and what is printed; `files`: those that are read.
//! * `plan`: what `plan`, `diff` and `explain` do; `dry`: the answers of a server; `extension`: those of extensions.
//! * `rebase`: Clusters get another class.
//!
//! It needs no hub. Only `rebase` writes to a cluster.

pub mod command;
mod dry;
mod extension;
mod files;
mod plan;
mod rebase;

use std::process::ExitCode;

use clap::Parser;
use clusterclass::desired::change::Changes;

use self::command::Cli;

/// The exit code of a preview that changes something.
const PREVIEW_CHANGES: u8 = 2;
/// The exit code of everything that fails. Wrong arguments have it too: 2, which clap has for them, is a preview's.
const FAILED: u8 = 1;

/// Runs the command that the arguments of this process name. The reason of a failure is the last line on standard error.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(FAILED)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match command::run(cli) {
        Ok((said, changes)) => {
            print!("{said}");
            match changes {
                Changes::Nothing => ExitCode::SUCCESS,
                Changes::Something => ExitCode::from(PREVIEW_CHANGES),
            }
        }
        Err(error) => {
            eprintln!("error: {}", api_client::reason(&error));
            ExitCode::from(FAILED)
        }
    }
}
