//! Owns: the start of `cargo demo`.
//! Never: decides anything; the demo stands in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tributary_e2e::clusterset::child::run_if_child() {
        Some(code) => code,
        None => tributary_e2e::demo::main(),
    }
}
