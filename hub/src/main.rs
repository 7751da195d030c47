//! `tributary-hub`: flags in, exit code out. Everything else is in the library.

use std::process::ExitCode;

use clap::Parser;
use hub::args::{Cli, Command};

/// A hub is mostly small allocations: keys, facts, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { log, command } = Cli::parse();
    shared::process::exit_code(match command {
        Command::Serve(args) => hub::run::serve(&log, *args),
        Command::Log(args) => hub::maintain::command::run(args),
        Command::Certs(args) => hub::certs::command::run(args).map(|said| print!("{said}")),
        Command::Member(args) => hub::operate::run_member(args).map(|said| print!("{said}")),
        Command::Operator(args) => hub::operate::run_operator(args).map(|said| print!("{said}")),
        Command::Reader(args) => hub::operate::run_reader(args).map(|said| print!("{said}")),
        Command::Token(args) => hub::operate::run_token(args).map(|said| print!("{said}")),
        Command::Policy(args) => hub::operate::run_policy(args).map(|said| print!("{said}")),
        Command::Topology(args) => hub::topology::command::run(args).map(|said| print!("{said}")),
        Command::Events(args) => hub::operate::run_events(*args).map(|said| print!("{said}")),
    })
}
