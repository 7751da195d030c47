//! The command line: consistent, and what is advised can be typed.

use clap::{CommandFactory, Parser};
use shared::testing::advice::{advised, examples, words};

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// A value that is left in an environment must not confirm a decision.
#[test]
fn every_flag_has_an_environment_variable() {
    let mut commands = vec![Cli::command()];
    let mut flags = 0;
    while let Some(command) = commands.pop() {
        for argument in command
            .get_arguments()
            .filter(|argument| !argument.is_positional())
        {
            let id = argument.get_id().as_str();
            if matches!(id, "help" | "version") {
                continue;
            }
            let variable = argument
                .get_env()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let name = command.get_name();
            assert!(
                variable.starts_with("TRIBUTARY_") != (id == "confirm"),
                "{name} --{id}"
            );
            assert!(argument.get_help().is_some(), "{name} --{id}");
            flags += 1;
        }
        commands.extend(command.get_subcommands().cloned());
    }
    assert!(flags > 20, "{flags}");
}

#[test]
fn every_advised_command_and_every_example_is_understood() {
    let mut commands = advised();
    let mut programs = vec![Cli::command()];
    while let Some(program) = programs.pop() {
        let help = program
            .get_long_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        commands.extend(examples("tributary", &help));
        programs.extend(program.get_subcommands().cloned());
    }
    commands.retain(|command| command.starts_with("tributary "));
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        if let Err(error) = Cli::try_parse_from(words(&command)) {
            panic!("{command}: {error}");
        }
    }
}
