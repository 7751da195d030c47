//! `tributary-agent`: flags in, exit code out. Everything else is in the library.

use std::process::ExitCode;

use agent::args::{Cli, Command};
use clap::Parser;

/// An agent is mostly small allocations: JSON, keys, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { log, command } = Cli::parse();
    shared::process::exit_code(match command {
        Command::Run(args) => agent::run::run(&log, *args),
        Command::Adopt(args) => agent::adopt::run(&log, &args),
        Command::Corefile(command) => agent::corefile::run(&log, &command),
        Command::Doctor(args) => return agent::doctor::run(&log, &args),
        Command::Gather(args) => return agent::doctor::gather::run(&log, &args),
    })
}
