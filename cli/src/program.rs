//! The program `tributary`: its command line in, its exit code out.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use client::Usage;

use crate::{
    command::{Cli, Command},
    context, doctor, operate, setup, show,
};

/// The exit code of arguments that are wrong or incomplete; clap has the same.
const USAGE: u8 = 2;

/// Runs the command that the arguments of this process name; returns 0 on success and 1 on failure, whose reason is the
/// last line on standard error. Wrong arguments end the process with 2.
pub fn run() -> ExitCode {
    let Cli { command } = Cli::parse();
    if let Command::Doctor(args) = &command {
        return doctor::run(args);
    }
    if let Command::Verify(args) = &command {
        return setup::run_verify(args);
    }
    exit_code(text(command).map(|text| print!("{text}")))
}

/// Runs a command and returns what to print.
pub fn text(command: Command) -> anyhow::Result<String> {
    match command {
        Command::Setup(command) => client::run(setup::run(command)),
        Command::Status(args) => client::run(show::status(args)),
        Command::Get(args) => client::run(show::get(*args)),
        Command::Explain(args) => client::run(show::explain(*args)),
        Command::Context(command) => context::command::run(command),
        Command::Member(args) => operate::run_member(args),
        Command::Operator(args) => operate::run_operator(args),
        Command::Reader(args) => operate::run_reader(args),
        Command::Token(args) => operate::run_token(args),
        Command::Policy(args) => operate::run_policy(args),
        Command::Events(args) => operate::run_events(*args),
        Command::Gather(args) => operate::run_gather(*args),
        Command::Completion(args) => completion::completion(&args, Cli::command()),
        Command::Man(args) => completion::man(&args, Cli::command()),
        // These have exit codes of their own.
        Command::Verify(args) => client::run(setup::verify(&args, None)).map(|(_, text)| text),
        Command::Doctor(args) => client::run(doctor::report(&args)),
    }
}

fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Err(error) if error.is::<Usage>() => {
            let _ = shared::process::exit_code(Err(error));
            ExitCode::from(USAGE)
        }
        result => shared::process::exit_code(result),
    }
}
