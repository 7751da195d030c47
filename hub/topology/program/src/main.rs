//! `clusterclass`. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    clusterclass_program::run()
}
