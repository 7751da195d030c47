//! `cargo netsim`: the programs of hub and agents in a simulated network. Owns nothing but its start.

use std::process::ExitCode;

use clap::Parser;
use shared::process::exit_code;
use tributary_e2e::verify::netsim::{NetsimArgs, run};

fn main() -> ExitCode {
    run(&NetsimArgs::parse()).unwrap_or_else(|error| exit_code(Err(error)))
}
