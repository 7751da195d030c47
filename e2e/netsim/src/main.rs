//! `cargo netsim`: the programs of hub and agents in a simulated network. Owns nothing but its start.

use std::process::ExitCode;

use clap::Parser;
use shared::process::exit_code;
use tributary_netsim::{NetsimArgs, run};

fn main() -> ExitCode {
    let args = NetsimArgs::parse();
    if args.trace {
        let lines = tracing_subscriber::fmt().with_writer(std::io::stderr);
        lines.without_time().with_max_level(tracing::Level::DEBUG).init();
    }
    run(&args).unwrap_or_else(|error| exit_code(Err(error)))
}
