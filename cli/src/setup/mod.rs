//! The commands that make a clusterset, add clusters to it, and remove both.

use clap::Subcommand;

/// All commands of setup.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a clusterset: its authority and its hub
    #[command(hide = true)]
    Init,
}

/// Runs a command and returns what to print.
pub(crate) async fn run(command: Command) -> anyhow::Result<String> {
    match command {
        Command::Init => anyhow::bail!("`tributary init` is not built yet"),
    }
}
