//! Owns: the command `cargo crash`. The hubs and the agents that it kills are this binary again.
//! Never: judges anything itself (`tributary_crash` does).

use std::process::ExitCode;

use clap::Parser;
use cluster::clusterset::child::run_if_child;
use tributary_crash::args::Arguments;

/// As in the programs that it starts, which are this binary again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = run_if_child() {
        return code;
    }
    match tributary_crash::run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
