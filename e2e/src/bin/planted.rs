//! Owns: the command `cargo planted`.
//! Never: judges anything itself (`tributary_e2e::planted` does).

use std::process::ExitCode;

use clap::Parser;
use tributary_e2e::planted::{self, args::Arguments};

#[derive(Debug, Parser)]
#[command(name = "cargo planted", bin_name = "cargo planted", max_term_width = 110)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> ExitCode {
    match planted::run(&Command::parse().arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
