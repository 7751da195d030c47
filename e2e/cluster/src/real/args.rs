//! Owns: the command line of `cargo control-plane`.
//! Never: builds or runs anything.

use clap::{Parser, Subcommand};

/// Longer than what a scenario waits for takes when nothing is missing, on two cores.
const SECONDS_WITHOUT_A_RIGHT: u64 = 10;

/// Seeds of a comparison before a release.
const TOPOLOGY_SEEDS: u32 = 200;
/// Edits of each seed: enough that each comes and goes in the first ones.
const TOPOLOGY_EDITS: u32 = 16;
/// Seeds and cases of a comparison of templates before a release.
const TEMPLATES_SEEDS: u32 = 100;
const TEMPLATES_CASES: u32 = 2_000;

/// Real Kubernetes control planes for tests and the demo, without containers.
#[derive(Debug, Parser)]
#[command(name = "cargo control-plane", bin_name = "cargo control-plane")]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the control plane into the target directory, unless that is done already; prints its path.
    Build {
        /// An older minor version, such as 1.33; tests run on it with TRIBUTARY_KUBERNETES=1.33.
        #[arg(long, value_name = "MINOR")]
        kubernetes: Option<String>,
    },
    /// Print where the built control plane is; fails when it is absent or older than its sources.
    Path,
    /// Install grpcurl into the target directory, unless that is done already; prints its path.
    Grpcurl,
    /// Build the kubectl of the same version into the target directory, unless that is done already; prints its path.
    Kubectl,
    /// Build Helm into the target directory, unless that is done already; prints its path.
    Helm,
    /// Build the Lua in which Argo CD runs health checks into the target directory, unless that is done already; prints
    /// its path.
    Lua,
    /// Build the manager of Cluster API into the target directory and copy its definitions, unless that is done already;
    /// prints its path.
    ClusterApi,
    /// Render deploy/manifests from deploy/charts; prints the files that changed.
    Manifests,
    /// Take each right of the charts' accounts away, one at a time, and see the scenario fail that needs it.
    Permissions {
        /// Only rights that `--list` shows with this text, such as "agent delete services"; may be given several
        /// times.
        #[arg(long, value_name = "RIGHT")]
        only: Vec<String>,
        /// Print the rights, why each is needed and its scenario; take nothing away.
        #[arg(long)]
        list: bool,
        /// Seconds that anything may take in a scenario that lacks a right.
        #[arg(long, value_name = "N", default_value_t = SECONDS_WITHOUT_A_RIGHT,
            value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
    /// Compare our plans of topologies with what upstream's manager of Cluster API does, for many Clusters at once on one
    /// real API server: every edit of every seed is planned while the manager stands still.
    Topology {
        /// Number of seeds, each a namespace with a class, its templates and a Cluster.
        #[arg(long, value_name = "N", default_value_t = TOPOLOGY_SEEDS)]
        seeds: u32,
        /// The first seed.
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        first: u64,
        /// Edits of each seed, one after the other.
        #[arg(long, value_name = "N", default_value_t = TOPOLOGY_EDITS)]
        edits: u32,
    },
    /// Compare our templates with what Go's own engine, sprig and YAML make of them, in the versions that Cluster API has:
    /// drawn templates of nested calls, rows of tokens, texts of YAML and regular expressions.
    Templates {
        /// Number of seeds.
        #[arg(long, value_name = "N", default_value_t = TEMPLATES_SEEDS)]
        seeds: u32,
        /// The first seed.
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        first: u64,
        /// Cases of each seed.
        #[arg(long, value_name = "N", default_value_t = TEMPLATES_CASES)]
        cases: u32,
    },
    /// Run clusters until Ctrl-C; prints the kubeconfig file of each.
    Run {
        /// Names of the clusters.
        #[arg(default_values = ["east", "west", "north"])]
        names: Vec<String>,
        /// Give Services addresses of both families.
        #[arg(long)]
        dual_stack: bool,
        /// Wait for the disk on every write.
        #[arg(long)]
        sync_to_disk: bool,
    },
}
