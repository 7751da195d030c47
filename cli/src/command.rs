//! The command line.
//! It holds what was typed; the modules that are called with it give it a meaning.

use clap::{Parser, Subcommand};

use crate::setup;

/// The client of a Tributary clusterset
#[derive(Debug, Parser)]
#[command(
    name = "tributary",
    version,
    long_about = "The client of a Tributary clusterset.\n\n\
        Exit codes: 0 the command did its work, 1 it failed, 2 the arguments are wrong."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// All commands of the client.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Commands that make a clusterset, add clusters to it, and remove both.
    #[command(flatten)]
    Setup(setup::Command),
}
