//! `cargo shell`: the shell of hub and agents under a simulated network. Owns nothing but its flags.

use std::process::ExitCode;

use clap::Parser;
use shared::shell::exit_code;
use tributary_e2e::shell::{ShellArgs, run};

/// Runs the programs of hub and agents on simulated machines, in a simulated network, for any number of seeds.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    shell: ShellArgs,
}

fn main() -> ExitCode {
    run(&Args::parse().shell).unwrap_or_else(|error| exit_code(Err(error)))
}
