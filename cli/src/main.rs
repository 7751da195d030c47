//! `tributary`. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tributary_cli::program::run()
}
