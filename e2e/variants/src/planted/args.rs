//! Owns: the command line of `cargo sim planted`.
//! Never: runs anything.

use clap::Args;

/// Plants bugs in a copy of the product and requires that the tests and worlds turn red that should.
///
/// Each bug is a file in e2e/planted: a text of the product, found exactly once, what stands in its place, and which
/// tiers of tests see it (seen_by). The tracked files are copied below target/variants and built once with all bugs in
/// them, each as a copy of its function that an environment variable chooses; a bug that does not fit into that build has
/// one of its own. Then each bug is shown to the tiers that should see it: the tests that it names, the swarm, the
/// simulated network, and the scenarios that it names.
///
/// A bug that one of its tiers does not see, that does not apply any more or that does not build fails the run, by name.
/// Results are written down in target/variants/planted.jsonl as they come.
///
/// The last line is the verdict.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Only this bug (may be given several times; all bugs if it is not given)
    #[arg(long = "only", value_name = "NAME")]
    pub names: Vec<String>,

    /// Runs tests of the bug's own room only: no swarm, no simulated network, no scenarios
    #[arg(long)]
    pub tests_only: bool,

    /// Only bugs that name scenarios, and those scenarios alone; some need `cargo control-plane build`
    #[arg(long, conflicts_with = "tests_only")]
    pub scenarios_only: bool,

    /// The faults of what is installed instead: image, charts, Corefile, documents; each is shown to the tests that
    /// it names
    #[arg(long, conflicts_with_all = ["tests_only", "scenarios_only"])]
    pub installation: bool,

    /// Number of small worlds that the swarm plays against each bug; it stops at the first that breaks a law
    #[arg(long, default_value_t = 2_000)]
    pub worlds: u64,

    /// Number of large worlds that it plays if the small ones break no law
    #[arg(long, default_value_t = 400)]
    pub large_worlds: u64,

    /// Number of seeds of the simulated network to play against each bug; 0: none
    #[arg(long, default_value_t = 16)]
    pub netsim: u64,

    /// Shows each bug to the other tiers too, to learn whether more of them see it; takes several times as long
    #[arg(long)]
    pub every_tier: bool,

    /// Goes on where a run of the same sources and the same question was interrupted
    #[arg(long)]
    pub resume: bool,

    /// Says which bugs there are, and plants none
    #[arg(long)]
    pub list: bool,
}
