//! Owns: the program `tributary-agent`: its command line in, its exit code out.
//! Never: knows what a command does.

use std::process::ExitCode;

use clap::Parser;

use crate::{
    adopt,
    args::{Cli, Command},
    corefile, doctor, leave, probe, run,
};

/// Runs what the arguments of this process say; 0 when it was done, 1 after a failure, whose reason is the last line
/// on standard error. Wrong arguments end the process at once, with 2.
pub fn run() -> ExitCode {
    let Cli { log, command } = Cli::parse();
    shared::process::exit_code(match command {
        Command::Run(args) => run::run(&log, *args),
        Command::Adopt(args) => adopt::run(&log, &args),
        Command::Leave(args) => leave::run(&log, &args),
        Command::Corefile(command) => corefile::run(&log, &command),
        Command::Probe(args) => probe::run(args),
        Command::Doctor(args) => return doctor::run(&log, &args),
        Command::Gather(args) => return doctor::gather::run(&log, &args),
    })
}
