//! Owns: the command line of `cargo crash`.
//! Never: runs anything.

use clap::{Parser, ValueEnum};

/// Kills of the hub, and of agents, unless told otherwise.
const ROUNDS: u32 = 500;
/// The same in the short form.
const ROUNDS_SHORT: u32 = 40;
/// One copy of a running log is restored for so many kills.
const KILLS_PER_RESTORE: u32 = 25;
/// A process is paused, and a volume filled, once for so many kills.
const KILLS_PER_SLOW_ROUND: u32 = 100;

/// Crashes hubs and agents, which are real processes over simulated clusters, and says what came of it.
///
/// Each kind of crash has a clusterset of its own: a hub, three clusters, an agent in each, services that come and
/// go, and one or two more members that report facts as fast as the hub takes them. All kinds run at once.
///
/// After each crash everything that the hub had acknowledged must be in its log, with no gap; nothing that lives
/// may have gone from any cluster, at any moment; and every cluster must come to hold exactly what the exports say,
/// those too that changed while somebody was down. In the end the hash chain of each log is verified from its first
/// row. What breaks one of these rules is a violation: its kind stops there, and its logs are kept.
///
/// The seed decides who is killed and when as far as a program can decide it: the machine's own timing remains.
///
/// The last line is the verdict. The exit code is 0 if there was no violation and every kind ran; a kind that
/// cannot run here is named, and fails the run when CI=true.
#[derive(Debug, Clone, Parser)]
#[command(name = "cargo crash", bin_name = "cargo crash", version, max_term_width = 110)]
pub struct Arguments {
    /// Kills of the hub, and as many of agents; the slower kinds follow from it
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,

    /// The form for the gate: 40 kills of each, and one or two rounds of the slower kinds
    #[arg(long, conflicts_with = "rounds")]
    pub short: bool,

    /// Repeats the schedule of an earlier run, which printed it
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,

    /// Only these kinds (all of them if it is not given)
    #[arg(long, value_name = "KIND", value_enum)]
    pub only: Vec<Crash>,
}

/// A kind of crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Crash {
    /// SIGKILL of the hub under load, sometimes again while it starts, sometimes of all agents with it
    Hub,
    /// SIGKILL of an agent while exports change, sometimes again while it starts
    Agent,
    /// SIGSTOP of the hub until every agent has given it up, then SIGCONT
    PausedHub,
    /// SIGSTOP of an agent until the hub has declared it lost, then SIGCONT
    PausedAgent,
    /// The hub's volume fills up; later there is room again
    FullDisk,
    /// Little of the hub's volume is free for a while
    LowDisk,
    /// The log's directory is copied while the hub writes to it, and put back later
    RestoredCopy,
    /// The log is backed up while the hub writes to it; later its volume is lost, and the backup restored
    RestoredBackup,
}

impl Crash {
    /// As it is typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Agent => "agent",
            Self::PausedHub => "paused-hub",
            Self::PausedAgent => "paused-agent",
            Self::FullDisk => "full-disk",
            Self::LowDisk => "low-disk",
            Self::RestoredCopy => "restored-copy",
            Self::RestoredBackup => "restored-backup",
        }
    }
}

impl Arguments {
    /// The kinds to run, each with its rounds.
    pub fn plan(&self) -> Vec<(Crash, u32)> {
        let kills = if self.short { ROUNDS_SHORT } else { self.rounds };
        let wanted = |kind: &Crash| self.only.is_empty() || self.only.contains(kind);
        let rounds = |kind: Crash| match kind {
            Crash::Hub | Crash::Agent => kills,
            Crash::RestoredCopy | Crash::RestoredBackup => kills.div_ceil(KILLS_PER_RESTORE),
            Crash::PausedHub | Crash::PausedAgent | Crash::FullDisk | Crash::LowDisk => {
                kills.div_ceil(KILLS_PER_SLOW_ROUND)
            }
        };
        let kinds = Crash::value_variants().iter().copied().filter(wanted);
        kinds.map(|kind| (kind, rounds(kind))).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_names_are_as_typed() {
        Arguments::command().debug_assert();
        for kind in Crash::value_variants() {
            assert_eq!(kind.to_possible_value().unwrap().get_name(), kind.name());
        }
        let plan = Arguments::parse_from(["crash", "--rounds", "500"]).plan();
        let rounds = [500, 500, 5, 5, 5, 5, 20, 20];
        assert!(plan.iter().map(|(_, rounds)| *rounds).eq(rounds));
    }
}
