//! Owns: the program `tributary-hub`: its command line in, its exit code out.
//! Never: knows what a command does.

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command},
    certs, doctor, maintain, operate, run, topology,
};

/// Runs what the arguments of this process say; 0 when it was done, 1 after a failure, whose reason is the last line
/// on standard error. Wrong arguments end the process at once, with 2.
pub fn run() -> ExitCode {
    let Cli { log, command } = Cli::parse();
    shared::process::exit_code(match command {
        Command::Serve(args) => run::serve(&log, *args),
        Command::Log(args) => maintain::command::run(args),
        Command::Certs(args) => certs::command::run(args).map(|said| print!("{said}")),
        Command::Member(args) => operate::run_member(args).map(|said| print!("{said}")),
        Command::Operator(args) => operate::run_operator(args).map(|said| print!("{said}")),
        Command::Reader(args) => operate::run_reader(args).map(|said| print!("{said}")),
        Command::Token(args) => operate::run_token(args).map(|said| print!("{said}")),
        Command::Policy(args) => operate::run_policy(args).map(|said| print!("{said}")),
        Command::Doctor(args) => return doctor::run(&log, &args),
        Command::Gather(args) => operate::run_gather(*args).map(|said| print!("{said}")),
        Command::Topology(args) => topology::command::run(args).map(|said| print!("{said}")),
        Command::Events(args) => operate::run_events(*args).map(|said| print!("{said}")),
    })
}
