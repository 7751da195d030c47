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
    /// How to log.
    #[command(flatten)]
    pub log: LogArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the agent
    #[command(long_about = "Run the agent.\n\n\
        Without a reachable hub it keeps everything it has applied and goes on trying. SIGTERM or Ctrl-C drains, \
        a second one ends the process at once. Exit code 0 after a drain, 1 after a failure, whose reason is the \
        last line.\n\n\
        Example:\n  \
        tributary-agent run --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key\n  \
        tributary-agent run --join-file east.join --cluster-id east --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key")]
    Run(Box<RunArgs>),
    /// Take over the agent's objects after a restore from a backup
    #[command(
        long_about = "Take over the agent's objects after a restore from a backup.\n\n\
        An object is the agent's by its label and by its managedFields. A backup tool that restores a cluster keeps \
        the label and becomes the owner of the fields itself, so that the agent sees strangers' objects under the \
        names it needs, reports them (NameTaken) and does not touch them. This command finds the ServiceImports, \
        derived Services and EndpointSlices that carry the agent's label and a name that an agent gives, and makes \
        the agent the owner of their fields again. It changes nothing else of them, and the agent may be running: \
        it brings them up to date, the clusterset IPs stay.\n\n\
        Without --confirm it says what would happen and changes nothing.\n\n\
        Example:\n  \
        tributary-agent adopt --kubeconfig ~/.kube/config\n  \
        tributary-agent adopt --kubeconfig ~/.kube/config --confirm"
    )]
    Adopt(AdoptArgs),
    /// Take this cluster out of its clusterset
    #[command(long_about = "Take this cluster out of its clusterset.\n\n\
        The hub is told, with the cluster's own certificate: the membership ends at once, and the other clusters let go of \
        what came from here. Then everything that agents wrote in this cluster goes: ServiceImports with their derived \
        Services and EndpointSlices, the conditions of ServiceExports, the ClusterProperty clusterset.k8s.io, Leases. The \
        cluster's id stays as the cluster's own. At the end everything with the agent's label that is left is listed.\n\n\
        No agent may run here meanwhile. Where the hub is gone, --without-hub cleans the cluster all the same. To have the \
        endpoints go first and the exports later, an operator says `member drain` at the hub before. A command that was \
        interrupted is run again.\n\n\
        Without --confirm it says what would happen and changes nothing.\n\n\
        Example:\n  \
        tributary-agent leave --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key\n  \
        tributary-agent leave --without-hub --keep imports --kubeconfig ~/.kube/config --confirm")]
    Leave(Box<LeaveArgs>),
    /// Put the clusterset's zone into the Corefile of CoreDNS, or take it out
    #[command(
        subcommand,
        subcommand_required = true,
        arg_required_else_help = true,
        long_about = "Put the clusterset's zone into the Corefile of CoreDNS, or take it out.\n\n\
        CoreDNS answers clusterset.local when its `kubernetes` directive lists the zone and says that it is one of a \
        clusterset. This command makes these two changes in the ConfigMap that CoreDNS reads, and undoes them. \
        Everything else in the Corefile stays byte for byte, and a Corefile that is not understood is left alone, with \
        the reason and what to do.\n\n\
        Without --apply it shows the lines that would change, and the command that changes them. If somebody else \
        changes the ConfigMap meanwhile, nothing is written. It needs the right to get and patch that ConfigMap: a \
        person's, not the agent's.\n\n\
        Where something else keeps the ConfigMap (a chart, a distribution, GitOps), change the Corefile there: --file \
        reads a file, or standard input.\n\n\
        Example:\n  \
        tributary-agent corefile add\n  \
        tributary-agent corefile add --apply\n  \
        tributary-agent corefile add --file Corefile\n  \
        tributary-agent corefile remove --apply"
    )]
    Corefile(CorefileCommand),
    /// Look for what is wrong, and say what to do about it
    #[command(long_about = "Look for what is wrong, and say what to do about it.\n\n\
        It looks at the certificate and its files, the hub (name, port, TLS, certificate, answer, clock), the cluster \
        (definitions, rights, id, Lease, CoreDNS) and the network between clusters (one endpoint of each source, addresses \
        that two clusters have). It changes nothing, and each step has a time of seconds.\n\n\
        In the agent's pod it looks with the agent's rights and from the agent's network; elsewhere, with a kubeconfig, names \
        and endpoints of the clusterset are not asked for.\n\n\
        Exit code 0 if nothing is wrong, 1 if something is, 2 if nothing that was seen is wrong and something could not be \
        looked at.\n\n\
        Example:\n  \
        tributary-agent doctor --hub https://hub.example.org:8443 --kubeconfig ~/.kube/config \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/east.crt --tls-key certs/east.key")]
    Doctor(Box<DoctorArgs>),
    /// Collect what a maintainer needs to help, without keys
    #[command(long_about = "Collect what a maintainer needs to help, without keys.\n\n\
        A directory is made with what doctor says, the agent's objects, Leases and logs as far as they may be read, and what \
        the hub says of this member: within a minute, and 48 MiB. Private keys and tokens are taken out, and no Secret is \
        read; names and addresses stay in it.\n\n\
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
    /// Only say what would be taken; that is also what happens without --confirm
    #[arg(long, env = "TRIBUTARY_DRY_RUN", conflicts_with = "confirm")]
    pub dry_run: bool,
    /// Take them
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
    /// How the cluster joins, if it is no member yet.
    #[command(flatten)]
    pub join: JoinArgs,
    /// Certificate, key and trust roots.
    #[command(flatten)]
    pub tls: TlsFiles,
    /// Kubeconfig of the member cluster. In a pod the service account is used instead
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// UID of the pod that the agent runs in, from the downward API: the name under which it holds the cluster's
    /// Lease, so that a restarted container goes on at once. Outside pods it is the host's name and the process id
    #[arg(long, env = "TRIBUTARY_POD_UID", value_name = "UID")]
    pub pod_uid: Option<String>,
    /// Id that this cluster is expected to have. The certificate decides; when they differ the agent refuses to
    /// start
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
    /// Which namespaces to hold imports for. `all` also serves namespaces that appear while the hub is away, for
    /// more memory
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
    /// Namespaces into which this cluster imports, by name or pattern (`*` stands for any characters), besides those
    /// that Kubernetes keeps for itself, into which it never does; several with commas. All unless given. What
    /// stands in others is removed
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
    /// Most imports that this cluster takes, whatever the hub sends. Nothing that stands is removed because of it
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
    /// What becomes of the Leases of source clusters while no hub confirms them: `retain` goes on renewing them, so that
    /// everything stays; with `expire` what came from other clusters goes when they expire, as the clusterset's policy on
    /// lost members says
    #[arg(
        long,
        env = "TRIBUTARY_ON_HUB_LOSS",
        value_name = "WHAT",
        value_enum,
        default_value_t = OnHubLoss::Retain
    )]
    pub on_hub_loss: OnHubLoss,
    /// How long the Lease of a source cluster holds without being renewed, in seconds: 5 to 86400
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_DURATION",
        value_name = "SECONDS",
        default_value_t = DURATION_DEFAULT.as_secs()
    )]
    pub source_lease_duration: u64,
    /// How often the Leases of source clusters are renewed, in seconds: at most half of their duration
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_RENEW",
        value_name = "SECONDS",
        default_value_t = RENEW_DEFAULT.as_secs()
    )]
    pub source_lease_renew: u64,
    /// Time for which imports stay that the hub takes away with most others of this cluster at once (half of them, and five at
    /// least, within 30 seconds), unless an operator confirms it before, in seconds: 0 to 86400; 0 holds nothing
    #[arg(
        long,
        env = "TRIBUTARY_WITHDRAWAL_HOLD",
        value_name = "SECONDS",
        default_value_t = BRAKE_LONGEST_MILLIS / 1_000,
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub withdrawal_hold: u64,
    /// How long a node may not be ready before AllNodesHealthy of this cluster is False, in seconds: 0 to 86400
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
    /// What is said of the Leases of source clusters; without sense it is refused before anything starts.
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
    /// Returns the line beyond which imports that the hub takes away are held, and the time of the hold.
    pub fn withdrawals(&self) -> Brake {
        Brake {
            enabled: self.withdrawal_hold > 0,
            longest_millis: Some(self.withdrawal_hold * 1_000),
            ..Brake::default()
        }
    }
}

/// What becomes of the Leases of source clusters while no hub confirms them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnHubLoss {
    /// They are renewed.
    Retain,
    /// They are not.
    Expire,
}

/// Which namespaces' imports an agent holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interest {
    /// Those that exist in the cluster.
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

    /// What a message advises can be typed.
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
