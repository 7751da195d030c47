//! The hub's command line. Flags and environment variables are the whole configuration.
//! It says what was typed; what it means is for the code that is called with it.

mod enrolment;
mod set;
mod state;
mod unless;
mod webhook;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use shared::{doctor::Output, process::LogArgs};

use crate::{
    certs::command::CertsArgs,
    log::limits::{DiskArgs, RetentionArgs},
    maintain::command::EventLogArgs,
    topology::own::hand_over::HandOverArgs,
};

pub(crate) use enrolment::{DRAIN_LIMIT, drain_limit};
pub use enrolment::{EnrolmentArgs, EnrolmentMode};
pub use set::{JoinArgs, SetArgs, TopologyMode};
pub(crate) use set::{MEMBER_CERT_LIFETIME, TOPOLOGY_ROLLOUTS, lifetime};
pub use state::StateArgs;
pub use unless::UnlessClustersets;
pub use webhook::WebhookArgs;

/// The hub of a Tributary clusterset
#[derive(Debug, Parser)]
#[command(
    name = "tributary-hub",
    version,
    long_about = "The hub of a Tributary clusterset.\n\n\
        Members report their exported services to it; it records every fact in an event log, resolves conflicts \
        (the oldest export wins) and pushes the derived imports back to every member.\n\n\
        Start with certificates, then serve:\n  \
        tributary-hub certs ca --out certs\n  \
        tributary-hub certs hub --ca certs --dns-name hub.example.org\n  \
        tributary-hub certs member --ca certs --cluster-id east\n  \
        tributary-hub serve --data data --listen 0.0.0.0:8443 --admin 127.0.0.1:9090 \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/hub.crt --tls-key certs/hub.key\n\n\
        Every flag can be given as the environment variable named beside it."
)]
pub struct Cli {
    /// Flags of logging.
    #[command(flatten)]
    pub log: LogArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the clusterset that the hub's certificate names, or several
    #[command(
        long_about = "Serve the clusterset that the hub's certificate names, or with --clustersets those of a file.\n\n\
        One port speaks gRPC over mutual TLS to members, operators and tools such as grpcurl; a second one \
        answers /livez, /readyz and /metrics over plain HTTP.\n\n\
        SIGTERM or Ctrl-C drains; a second signal ends the process at once. Exit code 0 after a drain, 1 after a \
        failure, whose reason is the last line.\n\n\
        Example:\n  \
        tributary-hub serve --data data --listen 0.0.0.0:8443 --admin 127.0.0.1:9090 \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/hub.crt --tls-key certs/hub.key\n  \
        grpcurl -cacert certs/ca.crt -cert certs/alice.crt -key certs/alice.key localhost:8443 list"
    )]
    Serve(Box<ServeArgs>),
    /// Make a certificate authority and certificates
    #[command(long_about = "Make a certificate authority and certificates.\n\n\
        Every connection uses mutual TLS: each certificate names, in its URI, a clusterset and its holder's role. \
        Run `ca` first, then `hub` once, `member` for each cluster, `operator` for each person or tool that decides, \
        `reader` for each one that only reads. Any issuer that writes the same URI into certificates (SPIFFE does) \
        can be used instead.")]
    Certs(CertsArgs),
    /// Verify, copy, restore and compact the event log
    Log(EventLogArgs),
    /// Find faults on the hub's host, each with its fix
    #[command(long_about = "Find faults on the hub's host, each with its fix.\n\n\
        It takes the flags of serve and checks what they name: certificates, data directory, disk, event log, ports, \
        the authority for joining clusters, the inventory in the hub's own cluster (definition, namespace, rights). \
        It changes nothing. It does not open the log of a running hub; it opens the log of a stopped one for a \
        moment, as log stats does.\n\n\
        The doctor of an agent checks the way from its member to the hub.\n\n\
        Exit code 0 if nothing is wrong, 1 if there is a fault, 2 if there is none but something could not be \
        checked.\n\n\
        Example:\n  \
        tributary-hub doctor --data data --listen 0.0.0.0:8443 --admin 127.0.0.1:9090 \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/hub.crt --tls-key certs/hub.key")]
    Doctor(Box<DoctorArgs>),
    /// Hand the topologies of Clusters over to a hub, or back to Cluster API
    #[command(
        long_about = "Hand the topologies of Clusters over from Cluster API's own controller to a hub with `--topology own`, or \
        back. Names stay and nothing is replaced: a Cluster that differs from its plan is not handed over, and no \
        Cluster is while Cluster API's own controller works. Each Cluster is paused meanwhile, and the field \
        managers of its objects are changed, object by object.\n\n\
        Without --confirm it only shows what would happen. Exit code 0, or 2 if something is left to do, 1 if \
        something is wrong.\n\n\
        Example:\n  tributary-hub hand-over --to tributary --kubeconfig management.kubeconfig default/shop"
    )]
    HandOver(HandOverArgs),
}

/// Most members that metrics name: each has four series.
const MEMBER_METRICS_MAX: u16 = 1_000;

/// The flags of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Flags of the one clusterset that is served; nothing if a file names several.
    #[command(flatten)]
    pub set: UnlessClustersets<SetArgs>,
    /// File (YAML) with several clustersets to serve in one process, each with its data directory, port and
    /// certificates. It replaces the flags of a single clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSETS", value_name = "FILE")]
    pub clustersets: Option<PathBuf>,
    /// Address of the admin port: plain HTTP, no cluster state
    #[arg(
        long,
        env = "TRIBUTARY_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:9090"
    )]
    pub admin: SocketAddr,
    /// Number of members of each clusterset that metrics may name (label `member`), those in trouble first; none unless
    /// given. Whoever reads the admin port then learns their ids
    #[arg(long, env = "TRIBUTARY_MEMBER_METRICS", value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MEMBER_METRICS_MAX)))]
    pub member_metrics: Option<u16>,
    /// Bounds of the event log's history.
    #[command(flatten)]
    pub retention: RetentionArgs,
    /// Bounds of the log's disk.
    #[command(flatten)]
    pub disk: DiskArgs,
    /// The bounds on what all members may have recorded.
    #[command(flatten)]
    pub state: StateArgs,
    /// Kubeconfig of the hub's own cluster, where ClusterProfiles are written. In a pod the service account is
    /// used; without either, profiles are shown over gRPC only
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The address at which the hub's own API server asks about classes and clusters.
    #[command(flatten)]
    pub webhook: WebhookArgs,
}

/// The flags of `doctor`: those of `serve`, and how to print.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// The hub's address and parts.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Output format
    #[arg(long, env = "TRIBUTARY_OUTPUT", value_name = "FORM", default_value = "text")]
    pub output: Output,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every flag, of every sub-command, can be given by the environment, but one: what is left in an environment must not
    /// confirm a decision.
    #[test]
    fn every_flag_has_an_environment_variable() {
        let mut commands = vec![Cli::command()];
        let mut flags = 0;
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments().filter(|a| !a.is_positional()) {
                let id = argument.get_id().as_str();
                if matches!(id, "help" | "version") {
                    continue;
                }
                let variable = argument
                    .get_env()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                assert!(
                    variable.starts_with("TRIBUTARY_") != matches!(id, "confirm" | "force"),
                    "{} --{id}",
                    command.get_name()
                );
                assert!(argument.get_help().is_some(), "{} --{id}", command.get_name());
                flags += 1;
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(flags > 20, "{flags}");
    }

    /// Every command in a message can be typed as written.
    #[test]
    fn every_advised_command_and_every_example_is_understood() {
        use shared::testing::advice::{advised, examples, words};
        let mut commands = advised();
        let mut programs = vec![Cli::command()];
        while let Some(program) = programs.pop() {
            let help = program
                .get_long_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            commands.extend(examples("tributary-hub", &help));
            programs.extend(program.get_subcommands().cloned());
        }
        commands.retain(|command| command.starts_with("tributary-hub "));
        assert!(commands.len() > 20, "{commands:?}");
        for command in commands {
            if let Err(error) = Cli::try_parse_from(words(&command)) {
                panic!("{command}: {error}");
            }
        }
    }
}
