//! Owns: the command `cargo load`.
//! Never: measures anything itself (`tributary_e2e::load` does).

use clap::Parser;
use tributary_e2e::load::{self, args::Arguments};

fn main() -> anyhow::Result<()> {
    load::run(&Arguments::parse())
}
