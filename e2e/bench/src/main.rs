//! Owns: the command `cargo load`. The hub and the agents that it measures are this binary again.
//! Never: measures anything itself (`tributary_bench` does).

use std::process::ExitCode;

use clap::Parser;
use cluster::clusterset::child::run_if_child;
use tributary_bench::args::Arguments;

/// As in the programs that it starts, which are this binary again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = run_if_child() {
        return code;
    }
    match tributary_bench::run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
