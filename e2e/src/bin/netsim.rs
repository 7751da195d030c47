//! `cargo netsim`: the shell of hub and agents under a simulated network. Owns nothing but its flags.

use std::process::ExitCode;

use clap::Parser;
use shared::process::exit_code;
use tributary_e2e::verify::netsim::{NetsimArgs, run};

/// Runs the programs of hub and agents on simulated machines, in a simulated network, for any number of seeds.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    netsim: NetsimArgs,
}

fn main() -> ExitCode {
    run(&Args::parse().netsim).unwrap_or_else(|error| exit_code(Err(error)))
}
