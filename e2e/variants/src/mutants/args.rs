//! Owns: the command line of `cargo sim mutants`.
//! Never: runs anything.

use clap::Args;

/// Changes the pure rooms one place at a time, and says which changes no unit test of their package sees.
///
/// cargo-mutants, which is installed below target/tools, lists the changes as .cargo/mutants.toml says. All of them are
/// put into one build of a copy of the product, each as a copy of its function that an environment variable chooses.
/// What the compiler refuses is left out, and so are constants, const functions and functions that return `impl Trait`.
/// For each, the unit tests of its room are run until the first fails; if all pass, the others of the package.
///
/// Results are written down in target/variants/mutants.jsonl as they come. Survivors are listed, and do not fail the run.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Only mutants of files below this path (may be given several times; all rooms if it is not given)
    #[arg(long = "room", value_name = "PATH")]
    pub rooms: Vec<String>,

    /// Only so many of them, chosen by --seed
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,

    /// Seed of the sample
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Goes on where a run of the same sources and the same question was interrupted
    #[arg(long)]
    pub resume: bool,

    /// Says which mutants there are, and runs none
    #[arg(long)]
    pub list: bool,
}
