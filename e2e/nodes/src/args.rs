//! Owns: the command line of `cargo nodes`, and what each of its commands does first.
//! Never: knows how a node is made.

use std::{path::PathBuf, process::Command as Program};

use anyhow::Context;
use clap::{Parser, Subcommand};

use super::{
    address::{CLUSTERS_MAX, Families},
    check, churn,
    configuration::Proxy,
    conformance, ended, first_answer, held, host, install,
    layout::{Directory, Layout},
    leave, lost, names,
    namespace::Namespace,
    planted,
    programs::Programs,
    row::{Asked, Row},
    state, three_commands, traffic, transcript, up,
    upgrade::{self, Order, REQUESTS},
};
use advice::NODES_STATUS;
use cluster::charts;

/// Real Kubernetes clusters with real nodes, on this machine and without a container engine.
///
/// Clusters are c1, c2, c3; c1 has two nodes, in two zones. Their pods reach each other, and CoreDNS answers for
/// clusterset.local. Nothing of this machine's own network is touched.
#[derive(Parser)]
#[command(name = "cargo nodes", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cargo nodes build                        once: about ten minutes on two cores
  cargo nodes up --clusters 2
  cargo nodes kubectl c1 get pods --all-namespaces
  cargo nodes check                        pods, Services, names and traffic between clusters
  cargo nodes install                      after `cargo image build`
  cargo nodes traffic                      who answers at clusterset IPs, from pods of every cluster
  cargo nodes names                        every row of the multicluster DNS specification, from pods
  cargo nodes churn --requests 2000 --runs 1
  cargo nodes lost --runs 1
  cargo nodes held
  cargo nodes ended
  cargo nodes first-answer --pods 20
  cargo nodes upgrade --order hub-first    from an earlier commit, on clusters without Tributary
  cargo nodes conformance ../mcs-api       upstream's suite, from a checkout of kubernetes-sigs/mcs-api
  cargo nodes uninstall                    every cluster leaves, then the hub; says what is left
  cargo nodes three-commands               after `cargo image build`, on clusters without Tributary
  cargo nodes down

It needs root, Debian's packages runc, containernetworking-plugins, iptables, nftables, conntrack and debootstrap, and Go.";

/// The commit that people installed first.
const FIRST: &str = "c1d0795";

/// The new versions, and the number of requests meanwhile.
#[derive(clap::Args)]
struct Under {
    /// Directory of `cargo image build`'s image.
    #[arg(long, value_name = "DIR", default_value = "target/images")]
    image: PathBuf,
    /// Requests at most, from one client across and one inside; they end with the last step.
    #[arg(long, default_value_t = REQUESTS)]
    requests: u32,
}

#[derive(Subcommand)]
enum Command {
    /// Names the packages of Debian that nodes need and this machine lacks; fails where nodes cannot run at all.
    Host,
    /// Builds what nodes run: Kubernetes, containerd, CoreDNS, and three images.
    Build,
    /// Starts clusters and waits until they are ready.
    Up {
        /// Number of clusters.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(CLUSTERS_MAX)))]
        clusters: u8,
        /// The families of pods and Services.
        #[arg(long, value_enum, default_value_t = Families::Dual)]
        families: Families,
        /// Mode of kube-proxy.
        #[arg(long, value_enum, default_value_t = Proxy::Nftables)]
        proxy: Proxy,
    },
    /// Ends all clusters and removes what is left of them, after a crash too.
    Down,
    /// Shows which clusters there are, and whether their nodes run.
    Status {
        /// Details of clusters too: nodes, pods, warnings, exports, slices, and the ends of our logs.
        #[arg(long)]
        details: bool,
    },
    /// Looks whether the clusters do what clusters do.
    Check,
    /// Installs Tributary as a user does: hub in c1, an agent in each cluster, from our image and charts.
    Install {
        /// Directory of `cargo image build`'s image.
        #[arg(long, value_name = "DIR", default_value = "target/images")]
        image: PathBuf,
    },
    /// Takes Tributary off again, as docs/guides/leaving.md says, and looks at what is left.
    Uninstall {
        /// The hub first, as if it were lost: every cluster leaves without it, and until then keeps what it holds of
        /// the others.
        #[arg(long)]
        hub_first: bool,
    },
    /// Asks services of the clusterset from pods, and looks who answers.
    Traffic {
        /// Only these questions.
        #[arg(long, value_enum)]
        only: Option<Row>,
    },
    /// Shows faults of hub and agent to the questions of `traffic`, `names` and `churn`: each must be seen.
    ///
    /// Hub and agents are replaced by programs with every fault of e2e/planted/nodes in them, of which a variable
    /// chooses one at a time, in the program that has it; afterwards they are put back.
    Planted {
        /// Names of the rows; all of them by default.
        names: Vec<String>,
        /// Builds the programs with the faults, which takes minutes the first time, and shows none.
        #[arg(long, conflicts_with = "names")]
        build: bool,
    },
    /// Asks for every name of the clusterset from pods, and looks at the answers.
    Names,
    /// Asks across clusters while deployments roll, a kubelet stops, hub and agents are replaced; and inside a cluster.
    Churn {
        /// Requests of a run, each from one client across and one inside.
        #[arg(long, default_value_t = churn::REQUESTS)]
        requests: u32,
        /// Number of runs.
        #[arg(long, default_value_t = 3)]
        runs: u8,
    },
    /// Cuts the power of c2 while a pod in c1 asks for a service of both, and gives it back.
    ///
    /// Requests may fail until its endpoints are withdrawn, by a policy that is applied for it, and 1 s more. Afterwards
    /// the policy is what it was.
    Lost {
        /// Requests after the withdrawal, of which none may fail.
        #[arg(long, default_value_t = lost::REQUESTS)]
        requests: u32,
        /// Number of runs.
        #[arg(long, default_value_t = 3)]
        runs: u8,
    },
    /// Deletes all ServiceExports of c2 under requests, and makes them anew: none may fail while they are on hold.
    ///
    /// A policy that is applied for it puts a withdrawal of any size on hold. Afterwards the policy is what it was.
    Held {
        /// Requests while they are on hold, all of which the other cluster must answer.
        #[arg(long, default_value_t = held::REQUESTS)]
        requests: u32,
    },
    /// Evicts c2 under requests while its agent runs, and lets it join again with a new key.
    ///
    /// Needs what `install` installed. The agent of c2 has short source Leases meanwhile.
    Ended,
    /// Measures from a pod's readiness in c1 to its first answer in c2.
    FirstAnswer {
        /// Over how many pods.
        #[arg(long, default_value_t = 200)]
        pods: u16,
    },
    /// Puts what is here in the place of an earlier commit, installed as its users did, while requests go on.
    ///
    /// On clusters without Tributary. No more requests may fail across clusters than inside one.
    Upgrade {
        /// The earlier commit; its programs are built first, minutes the first time.
        #[arg(long, value_name = "COMMIT", default_value = FIRST)]
        from: String,
        /// Programs to replace first.
        #[arg(long, value_enum)]
        order: Order,
        #[command(flatten)]
        under: Under,
    },
    /// Upgrades the charts from one of our images to another and rolls them back, while requests go on.
    Rollback {
        /// Directory of `cargo image build`'s earlier image.
        #[arg(long, value_name = "DIR")]
        before: PathBuf,
        #[command(flatten)]
        under: Under,
    },
    /// Runs the upstream conformance suite of the Multi-Cluster Services API on the clusters, after `install`.
    ///
    /// An error: a spec failed, or none ran. docs/conformance.md says more.
    Conformance {
        /// A checkout of https://github.com/kubernetes-sigs/mcs-api.
        #[arg(value_name = "DIR")]
        checkout: PathBuf,
        /// Writes how each spec ended to this page too.
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Carries out the lines of deploy/README.md on clusters without Tributary, and writes what each printed to a page.
    ///
    /// Nothing else installs anything; afterwards `down` and `up` give clusters to go on with.
    Transcript {
        /// The page.
        #[arg(value_name = "FILE")]
        page: PathBuf,
        /// Directory of `cargo image build`'s image.
        #[arg(long, value_name = "DIR", default_value = "target/images")]
        image: PathBuf,
    },
    /// Types `tributary init`, `join`, `export`, `leave` and `uninstall` on clusters without Tributary, with the programs of
    /// the image.
    ThreeCommands {
        /// Shows in README.md from now on what they printed.
        #[arg(long)]
        write: bool,
        /// Directory of `cargo image build`'s image.
        #[arg(long, value_name = "DIR", default_value = "target/images")]
        image: PathBuf,
    },
    /// Runs kubectl as administrator of a cluster.
    Kubectl {
        /// c1, c2 or c3.
        #[arg(value_parser = parse_cluster)]
        cluster: u8,
        /// Arguments of kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Runs a program in the namespaces of a node, such as c1n2, or of the control planes (`control`).
    Run {
        /// The place.
        place: String,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn parse_cluster(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix('c').and_then(|number| number.parse().ok());
    number
        .filter(|number| (1..=CLUSTERS_MAX).contains(number))
        .ok_or_else(|| format!("clusters are called c1 to c{CLUSTERS_MAX}"))
}

/// Does what was asked for.
pub fn carry_out(arguments: Arguments) -> anyhow::Result<()> {
    let directory = Directory::of_this_workspace();
    let at = |path: PathBuf| charts::root().join(path);
    match arguments.command {
        Command::Host => {
            println!("{}", host::packages()?.join(" "));
            Ok(())
        }
        Command::Build => Programs::of_this_workspace().build(),
        Command::Up {
            clusters,
            families,
            proxy,
        } => {
            let layout = Layout {
                clusters,
                families,
                proxy,
            };
            up::up(&directory, layout)
        }
        Command::Down => directory.remove(),
        Command::Status { details } => {
            state::runs(&directory)?;
            if details {
                state::show(&directory);
            }
            Ok(())
        }
        Command::Check => check::check(&directory),
        Command::Install { image } => install::install(&directory, &at(image)),
        Command::Uninstall { hub_first } => leave::leave(&directory, hub_first).map(drop),
        Command::Traffic { only } => traffic::traffic(&directory, Asked::all(only)),
        Command::Planted { build: true, .. } => planted::build_all(),
        Command::Planted { names, .. } => planted::planted(&directory, &names),
        Command::Names => names::names(&directory, Asked::all(None)),
        Command::Churn { requests, runs } => churn::churn(&directory, requests, runs),
        Command::Lost { requests, runs } => lost::lost(&directory, requests, runs),
        Command::Held { requests } => held::held(&directory, requests),
        Command::Ended => ended::ended(&directory),
        Command::FirstAnswer { pods } => first_answer::first_answer(&directory, pods),
        Command::Upgrade { from, order, under } => {
            upgrade::upgrade(&directory, &from, order, &at(under.image), under.requests)
        }
        Command::Rollback { before, under } => {
            upgrade::rollback(&directory, &at(before), &at(under.image), under.requests)
        }
        Command::Conformance { checkout, page } => {
            conformance::conformance(&directory, &checkout, page.as_deref())
        }
        Command::Transcript { page, image } => transcript::transcript(&directory, &at(image), &page),
        Command::ThreeCommands { image, write } => {
            three_commands::three_commands(&directory, &at(image), write)
        }
        Command::Kubectl { cluster, arguments } => {
            let programs = Programs::of_this_workspace();
            let kubeconfig = up::kubeconfig(&directory, cluster);
            let mut kubectl = namespace(&directory, "control")?.command(programs.kubectl());
            kubectl.arg("--kubeconfig").arg(kubeconfig).args(arguments);
            run(&mut kubectl)
        }
        Command::Run { place, command } => {
            let mut program = namespace(&directory, &place)?.command(&command[0]);
            program.args(&command[1..]);
            run(&mut program)
        }
    }
}

fn namespace(directory: &Directory, name: &str) -> anyhow::Result<Namespace> {
    directory.layout()?;
    Namespace::of(&directory.path().join(name))
        .with_context(|| format!("{name} does not run; see `{NODES_STATUS}`"))
}

fn run(program: &mut Program) -> anyhow::Result<()> {
    let status = program.status().context("cannot run nsenter")?;
    // A command that a person gave has said itself why it failed.
    std::process::exit(status.code().unwrap_or(1))
}
