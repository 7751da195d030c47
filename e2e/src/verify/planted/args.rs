//! Owns: the command line of `cargo sim planted`.
//! Never: runs anything.

use clap::Args;

/// Plants bugs in a copy of the product and requires that the swarm or a test turns red.
///
/// Each bug is a file in e2e/planted: a text of the product, found exactly once, and what stands in its place. The
/// tracked files are copied below target/planted; one bug after the other is put into the copy, built, and tried: first by the tests that it names, then by the swarm.
/// A bug that nothing catches, that does not apply any more or that does not build fails the run, by name.
///
/// The last line is the verdict.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Only these bugs (all of them if none is given)
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Runs tests only, and does not play the swarm
    #[arg(long)]
    pub tests_only: bool,

    /// Says which bugs there are, and plants none
    #[arg(long)]
    pub list: bool,
}
