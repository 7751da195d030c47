//! Owns: the command `cargo crash`. The hubs and the agents that it kills are this binary again.
//! Never: judges anything itself (`tributary_e2e::verify::crash` does).

use std::process::ExitCode;

use clap::Parser;
use tributary_e2e::{
    clusterset::child::run_if_child,
    verify::crash::{self, args::Arguments},
};

/// As in the programs that it starts, which are this binary again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = run_if_child() {
        return code;
    }
    match crash::run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
