//! Owns: the program `cargo nodes`.
//! Never: does anything but read its arguments and say how it ended.

use std::process::ExitCode;

use clap::Parser;
use shared::process::exit_code;
use tributary_nodes::args::{Arguments, carry_out};

fn main() -> ExitCode {
    exit_code(carry_out(Arguments::parse()))
}
