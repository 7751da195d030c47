//! Owns: the start of `cargo demo`.
//! Never: decides anything; the demo stands in the library.

use std::process::ExitCode;

/// As in the programs that it starts, which are this binary again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cluster::clusterset::child::run_if_child() {
        Some(code) => code,
        None => tributary_demo::main(),
    }
}
