//! Owns: the program `cargo image`.
//! Never: does anything but read its arguments and say how it ended.

use std::process::ExitCode;

use clap::Parser;
use tributary_image::command::{Arguments, carry_out};

fn main() -> ExitCode {
    match carry_out(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
