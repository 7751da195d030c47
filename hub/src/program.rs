//! Owns: the program `tributary-hub`: its command line in, its exit code out.
//! Never: knows what a command does.

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser};

use crate::{
    args::{Cli, Command},
    certs, doctor, maintain, run,
    topology::{desired::change::Changes, own::hand_over},
};

/// The exit code of a preview that changes something.
const PREVIEW_CHANGES: u8 = 2;
/// The exit code of wrong arguments, as clap has it.
const WRONG_ARGUMENTS: u8 = 2;
/// The exit code of wrong arguments of [`PREVIEWS`], whose 2 says that something would change.
const WRONG_ARGUMENTS_OF_PREVIEW: u8 = 1;
/// The subcommand that previews.
const PREVIEWS: &str = "hand-over";

/// Runs what the arguments of this process say; 0 when it was done, 1 after a failure, whose reason is the last line
/// on standard error. Wrong arguments end the process at once, with 2; those of `hand-over`, whose 2 says that something
/// would change, with 1.
pub fn run() -> ExitCode {
    let Cli { log, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return exit_code_of(&error, std::env::args_os());
        }
    };
    shared::process::exit_code(match command {
        Command::Serve(args) => run::serve(&log, *args),
        Command::Log(args) => maintain::command::run(args),
        Command::Certs(args) => certs::command::run(args).map(|said| print!("{said}")),
        Command::Doctor(args) => return doctor::run(&log, &args),
        Command::HandOver(args) => match hand_over::run(&args) {
            Ok((said, changes)) => {
                print!("{said}");
                match changes {
                    Changes::Nothing => Ok(()),
                    Changes::Something => return ExitCode::from(PREVIEW_CHANGES),
                }
            }
            Err(error) => Err(error),
        },
    })
}

/// The exit code after these words, the program's name first, could not be parsed: 0 if they ask for help or the version.
fn exit_code_of(error: &clap::Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // A second parse that skips what is wrong tells the subcommand from a value that happens to read the same.
    let lenient = Cli::command().ignore_errors(true).try_get_matches_from(words);
    let of_previews = lenient.is_ok_and(|matches| matches.subcommand_name() == Some(PREVIEWS));
    ExitCode::from(if of_previews {
        WRONG_ARGUMENTS_OF_PREVIEW
    } else {
        WRONG_ARGUMENTS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exit code of a command line that cannot be parsed; `ExitCode` shows its number in its debug output only.
    fn exit_code(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::try_parse_from(&words).expect_err(line);
        format!("{:?}", exit_code_of(&error, words))
    }

    #[test]
    fn only_the_command_that_previews_ends_with_1_for_wrong_arguments() {
        let code = |number: u8| format!("{:?}", ExitCode::from(number));
        for line in [
            "tributary-hub hand-over --no-such-flag",
            "tributary-hub hand-over",
            "tributary-hub --log-format json hand-over --no-such-flag",
        ] {
            assert_eq!(exit_code(line), code(1), "{line}");
        }
        for line in [
            "tributary-hub certs ca --out hand-over --no-such-flag",
            "tributary-hub log evict hand-over --no-such-flag",
            "tributary-hub serve --data hand-over --no-such-flag",
            "tributary-hub no-such-command hand-over",
        ] {
            assert_eq!(exit_code(line), code(2), "{line}");
        }
        assert_eq!(exit_code("tributary-hub hand-over --help"), code(0));
    }
}
