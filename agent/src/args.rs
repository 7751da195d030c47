//! The agent's command line. Flags and environment variables are the whole configuration.
//! It says what was typed; what it means is for the code that is called with it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use shared::{
    model::{
        ClusterId, name,
        policy::{BRAKE_LONGEST_MILLIS, Brake, Pattern},
        validate,
    },
    process::LogArgs,
    tls::{HubAddress, TlsFiles},
};

use crate::{
    corefile::args::CorefileCommand,
    doctor::args::{DoctorArgs, GatherArgs},
    expiry::upkeep::{self, DURATION_DEFAULT, RENEW_DEFAULT, Settings},
    health::nodes::TOLERANCE_DEFAULT,
    join::JoinArgs,
    leave::args::LeaveArgs,
    plan::IMPORTS_MAX,
    probe::ProbeArgs,
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

/// The flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Address of the hub, as https://HOST:PORT; several, with commas or by repeating the flag, are tried in turn.
    /// Names are resolved at every attempt. A join string names them too
    #[arg(
        long = "hub",
        env = "TRIBUTARY_HUB",
        value_name = "URL",
        value_delimiter = ',',
        required_unless_present_any = ["join", "join_file"]
    )]
    pub hubs: Vec<HubAddress>,
    /// Flags of joining, for a cluster that is not a member yet.
    #[command(flatten)]
    pub join: JoinArgs,
    /// Certificate, key and trust roots.
    #[command(flatten)]
    pub tls: TlsFiles,
    /// Kubeconfig of the member cluster. In a pod the service account is used instead
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// UID of the agent's pod, from the downward API: the holder's name in the cluster's Lease, so that a restarted
    /// container continues at once. Outside pods the name is the host's name and the process id
    #[arg(long, env = "TRIBUTARY_POD_UID", value_name = "UID")]
    pub pod_uid: Option<String>,
    /// Expected id of this cluster. The certificate decides; if the two differ, the agent does not start
    #[arg(long, env = "TRIBUTARY_CLUSTER_ID", value_name = "ID", value_parser = cluster_id)]
    pub cluster_id: Option<ClusterId>,
    /// Address of the admin port (/livez, /readyz, /metrics): plain HTTP, no cluster state
    #[arg(
        long,
        env = "TRIBUTARY_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:9091"
    )]
    pub admin: SocketAddr,
    /// Namespaces to hold imports for. `all` also serves namespaces that appear while the hub is away, for more memory
    #[arg(
        long,
        env = "TRIBUTARY_INTEREST",
        value_name = "INTEREST",
        value_enum,
        default_value_t = Interest::Namespaces
    )]
    pub interest: Interest,
    /// Namespaces whose exports are refused (condition Valid=False, NamespaceDenied), besides Kubernetes' own; several with
    /// commas
    #[arg(
        long,
        env = "TRIBUTARY_DENY_NAMESPACES",
        value_name = "NAMESPACE",
        value_delimiter = ',',
        value_parser = namespace
    )]
    pub deny_namespaces: Vec<String>,
    /// Namespaces into which this cluster imports, by name or pattern (`*` stands for any characters); several with
    /// commas; all unless given. Imports in other namespaces are removed. Kubernetes' own namespaces never receive
    /// imports
    #[arg(
        long,
        env = "TRIBUTARY_IMPORT_NAMESPACES",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    pub import_namespaces: Vec<Pattern>,
    /// Domains of exported labels and annotations that imports carry, by name or pattern (`*` stands for any characters);
    /// several with commas. Unless given, all but those by which other controllers act on an object, such as
    /// argocd.argoproj.io, meta.helm.sh or networking.istio.io. Keys without a domain are always carried
    #[arg(
        long,
        env = "TRIBUTARY_IMPORT_METADATA",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    pub import_metadata: Vec<Pattern>,
    /// Largest number of imports in this cluster, whatever the hub sends. Existing imports are not removed because of
    /// it
    #[arg(long, env = "TRIBUTARY_IMPORTS_MAX", value_name = "COUNT", default_value_t = IMPORTS_MAX)]
    pub imports_max: usize,
    /// Labels of every Service, EndpointSlice and ServiceImport that the agent makes, as KEY=VALUE; several with commas. For
    /// clusters whose policies demand a label. They win over exported labels of the same key
    #[arg(
        long,
        env = "TRIBUTARY_OBJECT_LABELS",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        value_parser = object_label
    )]
    pub object_labels: Vec<(Box<str>, Box<str>)>,
    /// Fate of the Leases of source clusters while no hub confirms them: with `retain` the agent goes on renewing them
    /// and everything stays; with `expire` they run out, and imports are then withdrawn as the clusterset's policy on
    /// lost members says
    #[arg(
        long,
        env = "TRIBUTARY_ON_HUB_LOSS",
        value_name = "WHAT",
        value_enum,
        default_value_t = OnHubLoss::Retain
    )]
    pub on_hub_loss: OnHubLoss,
    /// Duration of a source cluster's Lease without renewal, in seconds: 5 to 86400
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_DURATION",
        value_name = "SECONDS",
        default_value_t = DURATION_DEFAULT.as_secs()
    )]
    pub source_lease_duration: u64,
    /// Interval at which the agent renews the Leases of source clusters, in seconds: at most half of their duration
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_RENEW",
        value_name = "SECONDS",
        default_value_t = RENEW_DEFAULT.as_secs()
    )]
    pub source_lease_renew: u64,
    /// Time in seconds for which imports stay when the hub removes most of this cluster's imports at once (at least
    /// half, and at least five, within 30 seconds), unless an operator confirms the removal earlier: 0 to 86400; 0: no
    /// hold
    #[arg(
        long,
        env = "TRIBUTARY_WITHDRAWAL_HOLD",
        value_name = "SECONDS",
        default_value_t = BRAKE_LONGEST_MILLIS / 1_000,
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub withdrawal_hold: u64,
    /// Time for which a node may be not ready before AllNodesHealthy of this cluster is False, in seconds: 0 to 86400
    #[arg(
        long,
        env = "TRIBUTARY_NODE_TOLERANCE",
        value_name = "SECONDS",
        default_value_t = TOLERANCE_DEFAULT.as_secs(),
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub node_tolerance: u64,
}

impl RunArgs {
    /// Settings of the Leases of source clusters; inconsistent ones are refused before anything starts.
    pub fn source_leases(&self) -> anyhow::Result<Settings> {
        let settings = Settings {
            duration: Duration::from_secs(self.source_lease_duration),
            renew: Duration::from_secs(self.source_lease_renew),
            on_hub_loss: match self.on_hub_loss {
                OnHubLoss::Retain => upkeep::OnHubLoss::Retain,
                OnHubLoss::Expire => upkeep::OnHubLoss::Expire,
            },
        };
        match settings.problem() {
            Some(problem) => anyhow::bail!(problem),
            None => Ok(settings),
        }
    }
}

impl RunArgs {
    /// Returns the number of imports above which the hub's removals are put on hold, and the time of the hold.
    pub fn withdrawals(&self) -> Brake {
        Brake {
            enabled: self.withdrawal_hold > 0,
            longest_millis: Some(self.withdrawal_hold * 1_000),
            ..Brake::default()
        }
    }
}

/// Fate of the Leases of source clusters while no hub confirms them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnHubLoss {
    /// They are renewed.
    Retain,
    /// They are not.
    Expire,
}

/// The namespaces for which an agent holds imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interest {
    /// The namespaces that exist in the cluster.
    Namespaces,
    /// All of the clusterset.
    All,
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    ClusterId::new(text).map_err(|error| error.to_string())
}

fn object_label(text: &str) -> Result<(Box<str>, Box<str>), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("a label is written as KEY=VALUE".to_owned());
    };
    validate::object_label(key, value).map_err(|invalid| invalid.problem)?;
    Ok((key.into(), value.into()))
}

fn namespace(text: &str) -> Result<String, String> {
    if !name::is_dns_label(text) {
        return Err("a namespace is an RFC 1123 DNS label; patterns are not supported".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

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
