//! The agent's command line. Flags and environment variables are the whole configuration.
//! It says what was typed; what it means is for the code that is called with it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use shared::process::LogArgs;

use crate::{
    corefile::args::CorefileCommand,
    doctor::args::{DoctorArgs, GatherArgs},
    leave::args::LeaveArgs,
    probe::ProbeArgs,
    run::args::RunArgs,
};

/// The agent of one member cluster of a Tributary clusterset
#[derive(Debug, Parser)]
#[command(
    name = "tributary-agent",
    version,
    long_about = "The agent of one member cluster of a Tributary clusterset.\n\n\
        It reports the cluster's exported services to the hub and writes what the hub derives (ServiceImports, \
        derived Services, EndpointSlices, export conditions) back into the cluster.\n\n\
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
    /// Run the agent
    #[command(long_about = "Run the agent.\n\n\
        Without a reachable hub it keeps everything it has applied and tries to connect again. SIGTERM or Ctrl-C \
        drains; a second signal ends the process at once. Exit code 0 after a drain, 1 after a failure, whose reason \
        is the last line.\n\n\
        Example:\n  \
        tributary-agent run --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key\n  \
        tributary-agent run --join-file east.join --cluster-id east --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key")]
    Run(Box<RunArgs>),
    /// Take over the agent's objects after a restore from a backup
    #[command(
        long_about = "Take over the agent's objects after a restore from a backup.\n\n\
        The agent recognises its objects by its label and by their managedFields. A backup tool that restores a \
        cluster keeps the label and becomes the owner of the fields. The agent then sees unmanaged objects under the \
        names it needs, reports them (NameTaken) and does not touch them. This command finds the ServiceImports, \
        derived Services and EndpointSlices with the agent's label and an agent's name, and makes the agent the \
        owner of their fields again. It changes nothing else of them, and the clusterset IPs stay. The agent may be \
        running; it brings them up to date.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  \
        tributary-agent adopt --kubeconfig ~/.kube/config\n  \
        tributary-agent adopt --kubeconfig ~/.kube/config --confirm"
    )]
    Adopt(AdoptArgs),
    /// Take this cluster out of its clusterset
    #[command(long_about = "Take this cluster out of its clusterset.\n\n\
        The command tells the hub, with the cluster's own certificate: the membership ends at once, and the other \
        clusters remove what came from here. Then it removes everything that agents wrote in this cluster: \
        ServiceImports with their derived Services and EndpointSlices, the conditions of ServiceExports, the \
        ClusterProperty clusterset.k8s.io, Leases. The cluster's id stays. At the end it lists everything with the \
        agent's label that is left.\n\n\
        No agent may run here meanwhile. If the hub is gone, --without-hub cleans the cluster alone. To remove the \
        endpoints first and the exports later, an operator drains the member before. Run an interrupted \
        command again.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  \
        tributary-agent leave --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key\n  \
        tributary-agent leave --without-hub --keep imports --kubeconfig ~/.kube/config --confirm")]
    Leave(Box<LeaveArgs>),
    /// Add the clusterset's zone to CoreDNS' Corefile, or remove it
    #[command(
        subcommand,
        subcommand_required = true,
        arg_required_else_help = true,
        long_about = "Add the clusterset's zone to CoreDNS' Corefile, or remove it.\n\n\
        CoreDNS answers clusterset.local when its `kubernetes` directive lists the zone and has the option \
        `multicluster`. This command makes these two changes in the ConfigMap that CoreDNS reads, or undoes them. \
        Everything else in the Corefile stays byte for byte. If the command cannot read a Corefile it changes \
        nothing, and says why and what to do.\n\n\
        Without --apply it shows the lines that would change, and the command that changes them. If somebody else \
        changes the ConfigMap meanwhile, nothing is written. It needs the right to get and patch that ConfigMap: a \
        person's, not the agent's.\n\n\
        If something else maintains the ConfigMap (a chart, a distribution, GitOps), change the Corefile there: \
        --file works on a file, or standard input.\n\n\
        Example:\n  \
        tributary-agent corefile add\n  \
        tributary-agent corefile add --apply\n  \
        tributary-agent corefile add --file Corefile\n  \
        tributary-agent corefile remove --apply"
    )]
    Corefile(CorefileCommand),
    /// Find faults between this cluster and the clusterset, each with its fix
    #[command(
        long_about = "Find faults between this cluster and the clusterset, each with its fix.\n\n\
        It checks the certificate and its files, the hub (name, port, TLS, certificate, answer, clock), the cluster \
        (definitions, rights, id, Lease, CoreDNS) and the network between clusters (one endpoint of each source, \
        overlapping address ranges). It changes nothing, and each step ends within seconds.\n\n\
        In the agent's pod it uses the agent's rights and network; elsewhere, with a kubeconfig, it does not check \
        names and endpoints of the clusterset.\n\n\
        Exit code 0 if nothing is wrong, 1 if there is a fault, 2 if there is none but something could not be \
        checked.\n\n\
        Example:\n  \
        tributary-agent doctor --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key"
    )]
    Doctor(Box<DoctorArgs>),
    /// Collect what a maintainer needs to help, without keys
    #[command(long_about = "Collect what a maintainer needs to help, without keys.\n\n\
        The directory has the doctor's output, the agent's objects, Leases and logs as far as your rights allow, and \
        the hub's view of this member: within a minute, and 48 MiB. Private keys and tokens are removed, and no \
        Secret is read; names and addresses stay in it.\n\n\
        Example:\n  \
        tributary-agent gather --out gathered --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key")]
    Gather(Box<GatherArgs>),
    /// Resolve names and open connections, for `tributary verify`, which runs it in pods
    #[command(hide = true)]
    Probe(ProbeArgs),
}

/// The flags of `adopt`.
#[derive(Debug, Clone, Args)]
pub struct AdoptArgs {
    /// Kubeconfig of the member cluster. In a pod the service account is used instead
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Only show what would be taken over, as without --confirm
    #[arg(long, env = "TRIBUTARY_DRY_RUN", conflicts_with = "confirm")]
    pub dry_run: bool,
    /// Take the objects over. Without this flag the command only shows them
    #[arg(long)]
    pub confirm: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{
        expiry::upkeep::{self, Settings},
        run::args::Interest,
    };

    fn parse(line: &str) -> Result<RunArgs, clap::Error> {
        let tls = "--tls-ca ca.crt --tls-cert a.crt --tls-key a.key";
        let line = format!("tributary-agent run {tls} {line}");
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Run(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn hubs_and_namespaces_are_lists() {
        let line = "--hub https://a:1,https://b:2 --hub https://[fd00::1]:3 --deny-namespaces x,y";
        let args = parse(line).expect("valid");
        let hubs: Vec<_> = args.hubs.iter().map(ToString::to_string).collect();
        assert_eq!(hubs, ["https://a:1", "https://b:2", "https://[fd00::1]:3"]);
        assert_eq!(args.deny_namespaces, ["x", "y"]);
        assert_eq!(args.interest, Interest::Namespaces);
    }

    #[test]
    fn mistakes_are_refused_before_anything_starts() {
        for (line, told) in [
            ("", "--hub"),
            ("--hub http://a:1", "https://HOST:PORT"),
            ("--hub https://a:1 --cluster-id East", "RFC 1123"),
            ("--hub https://a:1 --deny-namespaces team-*", "patterns"),
            ("--hub https://a:1 --interest none", "possible values"),
            (
                "--hub https://a:1 --import-namespaces Shop",
                "is no name or pattern",
            ),
            ("--hub https://a:1 --imports-max many", "invalid"),
            ("--hub https://a:1 --object-labels team", "KEY=VALUE"),
            ("--hub https://a:1 --object-labels team=-", "is no label value"),
            (
                "--hub https://a:1 --object-labels endpointslice.kubernetes.io/managed-by=me",
                "is reserved",
            ),
            (
                "--hub https://a:1 --object-labels app.kubernetes.io/managed-by=Helm",
                "is reserved",
            ),
            ("--hub https://a:1 --on-hub-loss panic", "possible values"),
            (
                "--hub https://a:1 --node-tolerance 86401",
                "86401 is not in 0..=86400",
            ),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn times_without_sense_are_refused() {
        let said = |line: &str| {
            parse(&format!("--hub https://a:1 {line}"))
                .expect("parsed")
                .source_leases()
        };
        assert_eq!(said("").expect("sense"), Settings::default());
        let error = said("--source-lease-duration 60").expect_err("300 s").to_string();
        assert!(error.contains("--source-lease-renew is 300 s"), "{error}");
        let expire = said("--on-hub-loss expire").expect("sense").on_hub_loss;
        assert_eq!(expire, upkeep::OnHubLoss::Expire);
    }

    /// All but those that confirm: what is left in an environment must not decide.
    #[test]
    fn every_flag_has_an_environment_variable() {
        let command = Cli::command();
        let direct: Vec<_> = command.get_subcommands().collect();
        let below = direct.iter().flat_map(|command| command.get_subcommands());
        let commands = direct.iter().copied().chain(below).chain([&command]);
        for argument in commands.flat_map(clap::Command::get_arguments) {
            let id = argument.get_id().as_str();
            if !matches!(id, "help" | "version") {
                let variable = argument
                    .get_env()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                let confirms = matches!(id, "confirm" | "apply");
                assert!(variable.starts_with("TRIBUTARY_") != confirms, "--{id}");
                assert!(argument.get_help().is_some(), "--{id}");
            }
        }
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
            commands.extend(examples("tributary-agent", &help));
            programs.extend(program.get_subcommands().cloned());
        }
        commands.retain(|command| command.starts_with("tributary-agent "));
        assert!(commands.len() > 1, "{commands:?}");
        for command in commands {
            if let Err(error) = Cli::try_parse_from(words(&command)) {
                panic!("{command}: {error}");
            }
        }
    }
}
