//! The demo's command line.
//! It says what was typed; what it means is for the code that is called with it.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::{control::HUB, get::Kind, kept::Name};
use cluster::real::module::Module;

/// The names of the demo's clusters.
pub(super) const CLUSTERS: [&str; 3] = ["east", "west", "north"];

/// Three clusters, a hub and an agent in each, on this machine
#[derive(Debug, Parser)]
#[command(
    name = "cargo demo",
    bin_name = "cargo demo",
    long_about = "Three clusters, a hub and an agent in each, on this machine.\n\n\
        Without a sub-command it starts them, exports services with a conflict among them and shows, live, who \
        exports what, whose settings won, where it arrived and how long that took. All of the table is read from the \
        clusters' own APIs. Ctrl-C stops everything in good order.\n\n\
        The clusters are simulated: an API server in memory each, over loopback HTTP, good enough for kubectl \
        (`apply -f`, `create -f`, `get`, `delete`) and in need of nothing but Rust. With --real they are real \
        kube-apiservers, built from source the first time (about four minutes on two cores; needs Go).\n\n\
        While it runs, use it from another terminal:\n  \
        cargo demo get imports              what each cluster can use\n  \
        cargo demo apply east FILE          apply YAML to a cluster\n  \
        cargo demo export east shop/cart    export a Service; unexport takes it back\n  \
        cargo demo events --follow          the hub's event log\n  \
        cargo demo kill hub                 nothing vanishes; start hub\n  \
        kubectl --kubeconfig target/demo/kubeconfig --context north get serviceimports -A\n\n\
        Files in target/demo while it runs: kubeconfig (a context per cluster), ca.crt, operator.crt and operator.key \
        (for grpcurl), hub.addr; logs are below clusterset/."
)]
pub(crate) struct Arguments {
    /// Use real kube-apiservers. The first time they are built from source, which needs Go and minutes
    #[arg(long)]
    pub(super) real: bool,
    /// Use clusters with nodes, and Tributary as pods from our own image and charts; a client in a pod prints who
    /// answered. It needs root and Debian's packages (it says which), Go, and the first time half an hour
    #[arg(long, conflicts_with_all = ["real", "directory"])]
    pub(super) nodes: bool,
    /// Show a hub that keeps topologies: a management cluster (a real kube-apiserver) with a ClusterClass, two Clusters and
    /// a provider that pretends; an edit of the class is previewed and rolled out in waves, which stop at a Cluster that
    /// fails. Then Clusters get another class beside Cluster API's own manager
    #[arg(long, conflicts_with_all = ["real", "nodes", "record", "directory"])]
    pub(super) topology: bool,
    /// Play it unattended in a directory of its own, check every step through the clusters' APIs, exit with 0 or 1
    #[arg(long, conflicts_with = "directory")]
    pub(super) check: bool,
    /// Play the story of docs/demo.md and write what was typed and printed into it, docs/demo.cast and docs/demo.svg; a
    /// test compares them with what is played today. It needs grpcurl (`cargo control-plane grpcurl`)
    #[arg(long, conflicts_with_all = ["real", "nodes", "check", "directory"])]
    pub(super) record: bool,
    /// Directory of the demo [default: target/demo]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,
    /// Command for a running demo.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// Commands for a running demo.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Apply the objects of a YAML file to a cluster
    Apply {
        /// Name of the cluster
        #[arg(value_parser = CLUSTERS)]
        cluster: String,
        /// The file; - is the standard input
        file: PathBuf,
    },
    /// Export a Service of a cluster to all others
    Export {
        /// Name of the cluster
        #[arg(value_parser = CLUSTERS)]
        cluster: String,
        /// Name of the Service
        #[arg(value_name = "NAMESPACE/NAME", value_parser = service)]
        service: Name,
    },
    /// Take an export back
    Unexport {
        /// Name of the cluster
        #[arg(value_parser = CLUSTERS)]
        cluster: String,
        /// Name of the Service
        #[arg(value_name = "NAMESPACE/NAME", value_parser = service)]
        service: Name,
    },
    /// Show objects of all clusters
    Get {
        /// Kind of the objects
        kind: Kind,
        /// Of this cluster only
        #[arg(value_parser = CLUSTERS)]
        cluster: Option<String>,
    },
    /// Show the hub's event log
    Events {
        /// Go on with what is added, until Ctrl-C
        #[arg(long, short)]
        follow: bool,
    },
    /// Kill the hub, or the agent of a cluster, without a chance to say goodbye
    Kill {
        /// Name of the program
        #[arg(value_parser = [HUB, CLUSTERS[0], CLUSTERS[1], CLUSTERS[2]])]
        program: String,
    },
    /// Start the hub, or the agent of a cluster, again
    Start {
        /// Name of the program
        #[arg(value_parser = [HUB, CLUSTERS[0], CLUSTERS[1], CLUSTERS[2]])]
        program: String,
    },
}

/// `target/demo`, wherever cargo's target directory is.
pub(super) fn default_directory() -> PathBuf {
    Module::of_this_workspace().target().join("demo")
}

fn service(text: &str) -> Result<Name, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Name::new(namespace, name))
        }
        _ => Err("write NAMESPACE/NAME, for example shop/cart".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_advertised_lines_are_understood() {
        for line in [
            "",
            "--real",
            "--real --check",
            "--nodes",
            "--nodes --check",
            "--topology",
            "--topology --check",
            "--record",
            "apply east file.yaml",
            "export east shop/cart",
            "unexport west shop/cart",
            "get imports",
            "get slices north",
            "events --follow",
            "kill hub",
            "start west",
            "get exports --directory elsewhere",
        ] {
            let words = ["demo"].into_iter().chain(line.split_whitespace());
            Arguments::try_parse_from(words).expect(line);
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (line, told) in [
            ("kill south", "possible values"),
            ("export east cart", "NAMESPACE/NAME"),
            ("get pods", "possible values"),
            ("--check --directory x", "cannot be used with"),
            ("--record --check", "cannot be used with"),
            ("--nodes --real", "cannot be used with"),
            ("--topology --real", "cannot be used with"),
            ("--nodes --directory x", "cannot be used with"),
        ] {
            let words = ["demo"].into_iter().chain(line.split_whitespace());
            let error = Arguments::try_parse_from(words).expect_err(line).to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
