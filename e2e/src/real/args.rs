//! Owns: the command line of `cargo control-plane`.
//! Never: builds or runs anything.

use clap::{Parser, Subcommand};

/// Real Kubernetes control planes for tests and the demo, without containers.
#[derive(Debug, Parser)]
#[command(name = "cargo control-plane", bin_name = "cargo control-plane")]
pub struct Arguments {
    /// What to provide.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be provided.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the control plane into the target directory, unless that is done already; prints its path.
    Build,
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
    /// Render deploy/manifests from deploy/charts; prints the files that changed.
    Manifests,
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
