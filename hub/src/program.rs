//! Owns: the program `tributary-hub`: its command line in, its exit code out.
//! Never: knows what a command does.

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command},
    certs, doctor, maintain, operate, run,
    topology::{self, desired::change::Changes},
};

/// The exit code of a preview that changes something.
const PREVIEW_CHANGES: u8 = 2;

/// Runs what the arguments of this process say; 0 when it was done, 1 after a failure, whose reason is the last line
/// on standard error. Wrong arguments end the process at once, with 2; those of a preview, whose 2 says that something
/// would change, with 1.
pub fn run() -> ExitCode {
    let Cli { log, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && std::env::args().any(|word| word == "topology") => {
            let _ = error.print();
            return ExitCode::FAILURE;
        }
        Err(error) => error.exit(),
    };
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
        Command::Topology(args) => match topology::command::run(args) {
            Ok((said, changes)) => {
                print!("{said}");
                match changes {
                    Changes::Nothing => Ok(()),
                    Changes::Something => return ExitCode::from(PREVIEW_CHANGES),
                }
            }
            Err(error) => Err(error),
        },
        Command::Events(args) => operate::run_events(*args).map(|said| print!("{said}")),
    })
}
