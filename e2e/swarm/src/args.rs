//! Owns: the command line of `cargo sim`.
//! Never: plays anything.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use variants::{mutants, planted};

use crate::script::Size;

/// Plays worlds of hub, agents and clusters that a seed decides, with every fault that they must survive.
///
/// One seed is one world: the same seed does the same again, to the byte. When a law breaks, the seed, the step
/// and the law are printed; `shrink` then finds a short script that breaks it too.
#[derive(Debug, Parser)]
#[command(name = "cargo sim", bin_name = "cargo sim")]
pub struct Arguments {
    /// Size of the drawn worlds.
    #[arg(long, global = true, value_enum, default_value_t = Size::Small)]
    pub size: Size,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plays one world and says what happened in it.
    Run {
        /// The world's seed.
        #[arg(long)]
        seed: u64,
        /// Shows every step, message and log line on standard error.
        #[arg(long)]
        trace: bool,
    },
    /// Plays many worlds on all cores; the first that breaks a law ends it.
    Swarm {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Derives the first seed from a text, such as the hash of a commit, and plays the kept seeds before it.
        ///
        /// The same text gives the same seeds. The kept seeds are in `e2e/fixtures/seeds.txt`. A world that breaks a
        /// law is made shorter, for a minute at most, and printed.
        #[arg(long, value_name = "TEXT", conflicts_with = "seed")]
        seed_from: Option<String>,
        /// Number of seeds.
        #[arg(long, default_value_t = 1_000)]
        count: u64,
        /// Number of broken worlds after which it ends.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        broken: u64,
    },
    /// Plays seeds twice and compares every message and the log.
    Meta {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of seeds.
        #[arg(long, default_value_t = 20)]
        count: u64,
    },
    /// Plays scripts that `shrink` printed, until one breaks a law.
    Replay {
        /// The files they were written to.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Shows every step, message and log line on standard error.
        #[arg(long)]
        trace: bool,
    },
    /// Plants bugs in a copy of the product and requires that the rings of tests turn red that should.
    Planted(planted::args::Arguments),
    /// Changes the pure rooms one place at a time and says which changes no unit test sees.
    Mutants(mutants::args::Arguments),
    /// Finds a short script that breaks the same law as a seed, and prints it for `replay`.
    Shrink {
        /// The seed.
        #[arg(long)]
        seed: u64,
    },
}
