//! Owns: the command line of `cargo load`.
//! Never: decides how a shape is played.

use std::{fmt, path::PathBuf};

use clap::{Parser, ValueEnum};

/// Facts of 400 bytes have about 6 endpoints, those of 6 KB about 100.
const FACT_BYTES: [usize; 2] = [400, 6_000];
/// Slices of shape churn-8.
const CHURN_SLICES: [usize; 2] = [1_500, 10_000];
/// Updates a second of shape churn-8.
const CHURN_RATES: [u32; 3] = [10, 50, 325];
/// Updates a second on real clusters.
const REAL_RATES: [u32; 4] = [10, 50, 150, 200];
/// Seconds of a step with `--short`.
const SHORT_SECONDS: u64 = 10;
/// Most members that one process plays.
pub const MEMBERS_MAX: usize = 1_000;

/// The command line of `cargo load`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "cargo load",
    about = "Measure a hub: members played over mutual TLS against a real hub process",
    long_about = "Measure a hub: members played over mutual TLS against a real hub process.\n\n\
        The hub is `tributary-hub serve` as a process of its own, of the same build as this program unless --programs \
        names others. Hub and generator are processes of their own on different cores (with `taskset`), the event log lies on a \
        real disk and is synced. Rates are open loop: an update that is sent late counts its lateness as \
        latency. Latencies are read at the receiving members, on the generator's clock.\n\n\
        Each shape is played three times, each step of it for a minute. \
        A table is printed; everything that was measured is written to a JSON file beside the logs, and plots next \
        to it. A shape that fails does not end the others.",
    after_long_help = "Examples:\n  \
        cargo load --short                       ingest, churn-8 and replay, once and briefly\n  \
        cargo load all                           every shape three times: hours\n  \
        cargo load ingest --fact-bytes 400       facts a second that become durable, etcd beside it\n  \
        cargo load churn-8 --rates 325 --seconds 60\n  \
        cargo load replay --events 2000000\n  \
        cargo load retention --runs 1            60 million events while old history goes\n  \
        cargo load mesh-250                      250 members, 250,000 endpoints\n  \
        cargo load fleet-1000 storm              1,000 members: idle, busy, and after a restart of the hub\n  \
        cargo load restart-agent --slices 1500   an agent that comes back\n  \
        cargo load doors --short                 attacks on the port: every operator's call must be answered in 3 s\n  \
        cargo load --programs DIR storm          the hub of an image: unpack an archive of `cargo image build` into DIR\n  \
        cargo load flood --seconds 20            what 249 members notice of one that floods\n  \
        cargo load questions                     mesh-250 without and with ten readers\n  \
        cargo load renewals                      1,000 members renew their certificates\n  \
        cargo load handovers --runs 1            a hundred times another agent of a cluster leads\n  \
        cargo load losses                        members that go without a word, and come back\n  \
        cargo load preview                       an edit of a ClusterClass, planned for 1,000 clusters\n  \
        cargo load real                          two real clusters, the bare relay beside them\n\n\
        Real clusters, and etcd beside ingest and churn, come from KUBEBUILDER_ASSETS or from `cargo control-plane build`; without either, real \
        and handovers are refused and the comparison left out, and the table says so.\n\n\
        Figures of a machine that does other work at the same time are worth little: the table shows the load \
        average before each shape."
)]
pub struct Arguments {
    /// Shapes to measure; none: ingest, churn-8 and replay
    #[arg(value_enum)]
    pub shapes: Vec<Shape>,
    /// Directory for event logs, hub logs and the JSON file; it must lie on a real disk
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Measure although the directory lies in memory; nothing is durable then, and the table says so
    #[arg(long)]
    pub allow_memory_disk: bool,
    /// Keep the event logs and the hub's log lines
    #[arg(long)]
    pub keep: bool,
    /// Directory with the tributary-hub and tributary-agent that are measured, such as those of an image; default: this
    /// build
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,
    /// Cores of the hub, as taskset writes them ("0" or "0-3"); default: the first half of those we may use
    #[arg(long, value_name = "LIST")]
    pub hub_cores: Option<String>,
    /// Cores of the generator; default: the other half
    #[arg(long, value_name = "LIST")]
    pub generator_cores: Option<String>,
    /// Duration of each step of ingest, churn, idle and real
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Number of runs of each shape; the table has minimum, median and maximum
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Once, ten seconds a step: to see that something works, not to state a figure
    #[arg(long, conflicts_with_all = ["seconds", "runs"])]
    pub short: bool,
    /// ingest: bytes of a fact
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = FACT_BYTES)]
    pub fact_bytes: Vec<usize>,
    /// ingest: members that report at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = members)]
    pub ingest_members: usize,
    /// churn-8, restart-agent: EndpointSlices in the clusterset
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = CHURN_SLICES)]
    pub slices: Vec<usize>,
    /// churn-8: updates a second
    #[arg(long, value_name = "PER SECOND", value_delimiter = ',', default_values_t = CHURN_RATES)]
    pub rates: Vec<u32>,
    /// churn-8: endpoints of a slice
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub endpoints: usize,
    /// real: updates a second
    #[arg(long, value_name = "PER SECOND", value_delimiter = ',', default_values_t = REAL_RATES)]
    pub real_rates: Vec<u32>,
    /// replay: events in the log
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub events: usize,
    /// retention: events that are recorded at full speed
    #[arg(long, value_name = "COUNT", default_value_t = 60_000_000)]
    pub retained_events: u64,
    /// handovers: how often the leader ends
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub handovers: u32,
    /// preview: clusters of one class
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clusters: u32,
    /// storm: agents over simulated clusters; 0: none
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub agents: usize,
}

impl Arguments {
    /// Replaces `--short` by its values.
    pub fn resolved(mut self) -> Self {
        if self.short {
            (self.seconds, self.runs) = (SHORT_SECONDS, 1);
        }
        self
    }
}

/// A load shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Facts a second that become durable, many in flight, beside etcd's puts on the same disk
    Ingest,
    /// 8 members, EndpointSlices that change at several rates, every member receives every change
    #[value(name = "churn-8")]
    Churn8,
    /// Start a hub over a long log
    Replay,
    /// 250 members, 250,000 endpoints, 325 updates a second, each namespace in 10 members
    #[value(name = "mesh-250")]
    Mesh250,
    /// mesh-250 with every namespace in every member: 81,000 pushes a second
    #[value(name = "mesh-250-all")]
    Mesh250All,
    /// 1,000 members of 20 exports with 10 endpoints each: idle, then 100 updates a second
    #[value(name = "fleet-1000")]
    Fleet1000,
    /// All members of fleet-1000 lose their hub and come back at once
    Storm,
    /// An agent killed and started again over thousands of imported slices, nothing changed
    #[value(name = "restart-agent")]
    RestartAgent,
    /// Record 60 million events while old history goes: the disk they take, and the latency while segments go
    Retention,
    /// Attacks on the hub's port (silent sockets, connections, streams and floods of one member), beside an operator
    /// who calls and members in session
    Doors,
    /// One member that floods (bytes, toggles, invalid items, signs of life, unread answers) beside 249 of mesh-250
    Flood,
    /// mesh-250 while nobody asks, and while ten operators ask about members, state and imports once a second each
    Questions,
    /// All members of fleet-1000 have certificates made for new keys, while they report, and come again with those
    Renewals,
    /// Two agents of a real cluster: the leader ends in good order or is killed by turns, while an export changes
    Handovers,
    /// Members that go without a word: until the loss is noticed, their endpoints go, and are back with them
    Losses,
    /// An edit of one ClusterClass planned for all its clusters, from files
    Preview,
    /// Every shape, real clusters last
    All,
    /// Two real clusters with an agent each: an EndpointSlice changed in one, applied in the other
    Real,
}

impl Shape {
    /// The default shapes: those that need nothing but Rust and take some minutes.
    pub const DEFAULT: [Self; 3] = [Self::Ingest, Self::Churn8, Self::Replay];
    /// The shapes of `all`.
    pub const ALL: [Self; 17] = [
        Self::Churn8,
        Self::Mesh250,
        Self::Mesh250All,
        Self::Fleet1000,
        Self::Storm,
        Self::RestartAgent,
        Self::Ingest,
        Self::Replay,
        Self::Retention,
        Self::Doors,
        Self::Flood,
        Self::Questions,
        Self::Renewals,
        Self::Handovers,
        Self::Losses,
        Self::Preview,
        Self::Real,
    ];
}

impl fmt::Display for Shape {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = self.to_possible_value();
        f.write_str(typed.as_ref().map_or("", |typed| typed.get_name()))
    }
}

fn members(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=MEMBERS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("one process plays 1 to {MEMBERS_MAX} members")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn lists_are_given_with_commas() {
        let line = ["load", "churn-8", "--rates", "10,20", "--slices", "5"];
        let arguments = Arguments::try_parse_from(line).expect("valid");
        assert_eq!(arguments.rates, [10, 20]);
        assert_eq!(arguments.slices, [5]);
        assert_eq!(arguments.shapes, [Shape::Churn8]);
        assert_eq!(Shape::RestartAgent.to_string(), "restart-agent");
        Arguments::try_parse_from(["load", "--ingest-members", "5000"]).expect_err("too many");
    }
}
