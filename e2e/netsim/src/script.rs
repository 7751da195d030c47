//! The schedule of one simulation: drawn from the seed before anything runs, so that a seed is the whole story. It
//! performs nothing.

use std::{fmt, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    credentials::Change,
    user::{Deed, PODS_MAX, SERVICES, SHAPES},
};

/// Clusters of the simulated clusterset, by name.
pub(super) const CLUSTERS: [&str; 3] = ["east", "north", "west"];
/// The machines of second agents, where there are some.
pub(super) const SECOND: [&str; CLUSTERS.len()] = ["east-2", "north-2", "west-2"];
/// Percentage of clusters with a second agent.
const SECOND_PERCENT: u32 = 35;
/// Separates the draws of second agents and of the story from all others of a seed.
const APART: u64 = 0x5ec0_7d1e;
/// Kinds of stories; see [`Story::draw`].
const STORIES: u64 = 8;
/// Largest error of a hub's clock, in milliseconds.
const CLOCK_OFF_MAX: i64 = 120_000;
/// Machines of the hub, one after the other: each has a clock of its own.
pub(super) const HUB_MACHINES: usize = 4;
/// Kinds that an agent watches, by their plurals.
pub(super) const WATCHED: [&str; 4] = ["services", "endpointslices", "serviceexports", "serviceimports"];
/// Time for which users act, in simulated milliseconds; their declarations then stay.
const DEEDS: u64 = 22_000;
/// Time of faults.
const TROUBLE: u64 = 50_000;
/// Faults and deeds begin after this.
const CALM: u64 = 4_000;
/// Longest time of a fault that ends by itself. A member that is cut off for longer than ten seconds counts as
/// lost; its endpoints would be withdrawn only a minute later.
const FAULT_LONGEST: u64 = 18_000;
/// Longest time until a machine that went down is up again.
const DOWN_LONGEST: u64 = 8_000;

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Nothing passes between a cluster and the hub.
    Partition(usize),
    /// Nothing passes to the hub.
    Deaf(usize),
    /// Nothing comes from the hub.
    Mute(usize),
    /// Everything waits, and comes later.
    Hold(usize),
    /// The link is slow.
    Latency(usize, Duration),
    /// The link is whole again.
    Mend(usize),
    /// The agent lets each piece of what it receives lie for so many milliseconds.
    SlowReader(usize, u64),
    /// The agent is killed; its connections are closed by the system.
    KillAgent(usize),
    /// The agent's machine is gone without a word.
    DropAgent(usize),
    /// The agent is asked to stop.
    StopAgent(usize),
    /// The agent's machine is up again, and the agent with it.
    StartAgent(usize),
    /// The hub is killed.
    KillHub,
    /// The hub's machine is gone without a word; so many unsynced batches survive.
    DropHub { kept: usize },
    /// The hub is asked to stop.
    StopHub,
    /// The hub is up again.
    StartHub,
    /// The hub's next sync fails.
    FailSync,
    /// The hub's volume has room for so many more writes.
    FillDisk(u64),
    /// The hub's disk says that it synced, and did not.
    LieAboutSync,
    /// The files of a machine, the hub's if it is no member's, are those of a step in the change of the authority.
    Authority(Option<usize>, Change),
    /// Somebody copies the hub's data.
    BackUp,
    /// The hub goes down and comes back with the copy, or with nothing.
    Restore { from_backup: bool },
    /// This many of a thousand requests to a cluster's API fail, each in its own way.
    ApiErrors(usize, u16),
    /// One of the kinds that the agent watches can be neither listed nor watched, by index.
    HideKind(usize, usize),
    /// The cluster's API is well again.
    ApiWell(usize),
    /// The definition of a kind that the agent watches is deleted.
    RemoveDefinition(usize),
    /// It is installed again.
    InstallDefinition(usize),
    /// All watches of a cluster end.
    DropWatches(usize),
    /// Watches of a cluster that resume are told that it is too late.
    ForgetHistory(usize),
}

impl Fault {
    /// Its class, for the histogram; what only ends another fault has none.
    pub(super) fn class(&self) -> Option<&'static str> {
        Some(match self {
            Self::Partition(_) => "link: partition",
            Self::Deaf(_) => "link: nothing reaches the hub",
            Self::Mute(_) => "link: nothing comes from the hub",
            Self::Hold(_) => "link: held",
            Self::Latency(..) => "link: slow",
            Self::SlowReader(..) => "agent: slow reader",
            Self::KillAgent(_) => "agent: killed",
            Self::DropAgent(_) => "agent: lost its machine",
            Self::StopAgent(_) => "agent: stopped",
            Self::KillHub => "hub: killed",
            Self::DropHub { .. } => "hub: lost its machine",
            Self::StopHub => "hub: stopped",
            Self::FailSync => "disk: sync failed",
            Self::FillDisk(_) => "disk: full",
            Self::LieAboutSync => "disk: lied about syncs",
            Self::Restore { from_backup: true } => "disk: restored from a backup",
            Self::Restore { from_backup: false } => "disk: emptied",
            Self::Authority(_, Change::Before | Change::Beside) => "authority: the next beside it",
            Self::Authority(_, Change::Certified) => "authority: certificate of the next",
            Self::Authority(_, Change::After) => "authority: the former away",
            Self::ApiErrors(..) => "API: errors",
            Self::HideKind(..) => "API: a kind cannot be listed",
            Self::RemoveDefinition(_) => "API: definition deleted",
            Self::DropWatches(_) => "API: watches dropped",
            Self::ForgetHistory(_) => "API: history forgotten",
            Self::Mend(_)
            | Self::StartAgent(_)
            | Self::StartHub
            | Self::BackUp
            | Self::ApiWell(_)
            | Self::InstallDefinition(_) => return None,
        })
    }
}

/// A story about members once everything is right and nothing is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    /// All agents of a cluster end in good order, and are away for longer than a loss needs.
    Goodbye(usize),
    /// Its machines are gone without a word, until it is withdrawn.
    Lost(usize),
    /// So are those of this one and of the next.
    HalfAway(usize),
    /// The agent that leads in a cluster ends in good order, and the next one is killed.
    HandOver(usize),
    /// A member is to leave, and stays after all.
    Drained(usize),
    /// The definition of exports is deleted in a cluster.
    TakenBack {
        member: usize,
        /// All of it comes back; if not, an operator lets it go.
        returns: bool,
    },
    /// The hub is away for longer than what a cluster has of others may stand without it, there and nowhere else.
    Expired(usize),
    /// A cluster is restored from a backup, beside the one of which that is, and goes on while that one is away.
    Copied {
        member: usize,
        /// Its agent has a name of its own; if not, it goes on under the name of the original's.
        own_name: bool,
    },
}

impl Story {
    /// Seeds that follow each other have all kinds in turn.
    fn draw(seed: u64, random: &mut StdRng) -> Self {
        let member = random.random_range(0..CLUSTERS.len());
        let either = random.random_range(0..2) == 0;
        match seed % STORIES {
            0 => Self::Goodbye(member),
            1 => Self::Lost(member),
            2 => Self::HalfAway(member),
            3 => Self::HandOver(member),
            4 => Self::Drained(member),
            5 => Self::Expired(member),
            6 => Self::Copied {
                member,
                own_name: either,
            },
            _ => Self::TakenBack {
                member,
                returns: either,
            },
        }
    }

    /// Its class, for the histogram.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Goodbye(_) => "story: said goodbye and was away",
            Self::Lost(_) => "story: lost and withdrawn",
            Self::HalfAway(_) => "story: half of the fleet away",
            Self::HandOver(_) => "story: leaders ended and killed",
            Self::Drained(_) => "story: was to leave, and stayed",
            Self::Expired(_) => "story: Leases of sources expired",
            Self::Copied { own_name: true, .. } => "story: copied, with an agent of another name",
            Self::Copied { own_name: false, .. } => "story: copied, with an agent of the same name",
            Self::TakenBack { returns: true, .. } => "story: definition deleted, exports came back",
            Self::TakenBack { returns: false, .. } => "story: definition deleted, exports let go",
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Goodbye(member)
        | Self::Lost(member)
        | Self::HalfAway(member)
        | Self::HandOver(member)
        | Self::Drained(member)
        | Self::TakenBack { member, .. }
        | Self::Copied { member, .. }
        | Self::Expired(member)) = self;
        write!(f, "{}: {}", CLUSTERS[*member], self.class())
    }
}

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Deed(usize, Deed),
    Fault(Fault),
}

/// A whole simulation.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// Events by simulated milliseconds, in order.
    pub(super) events: Vec<(u64, Event)>,
    /// Time at which all faults end.
    pub(super) trouble_ends: u64,
    /// Longest usual latency of a message.
    pub(super) latency: Duration,
    /// Segments that a TCP buffer holds.
    pub(super) tcp_capacity: usize,
    /// Clusters with a second agent.
    pub(super) doubled: [bool; CLUSTERS.len()],
    /// The story once everything is right.
    pub(super) story: Story,
    /// By how many milliseconds the clock of each of the hub's machines is ahead.
    pub(super) clocks_ahead: [i64; HUB_MACHINES],
}

impl Script {
    pub(super) fn draw(seed: u64) -> Self {
        let mut draft = Draft {
            random: StdRng::seed_from_u64(seed),
            events: Vec::new(),
            link_free: [CALM; CLUSTERS.len()],
            agent_free: [CALM; CLUSTERS.len()],
            hub_free: CALM,
        };
        draft.deeds();
        draft.faults();
        draft.authority();
        let latency = draft.random.random_range(2..120);
        let tcp_capacity = [4, 16, 64][draft.random.random_range(0..3)];
        draft.events.sort_by_key(|(at, _)| *at);
        let mut apart = StdRng::seed_from_u64(seed ^ APART);
        let story = Story::draw(seed, &mut apart);
        let doubled = std::array::from_fn(|member| {
            story == Story::HandOver(member) || apart.random_range(0..100) < SECOND_PERCENT
        });
        Self {
            events: draft.events,
            trouble_ends: TROUBLE,
            latency: Duration::from_millis(latency),
            tcp_capacity,
            doubled,
            story,
            clocks_ahead: std::array::from_fn(|_| apart.random_range(-CLOCK_OFF_MAX..=CLOCK_OFF_MAX)),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in &self.events {
            writeln!(f, "{at:>7} {event:?}")?;
        }
        writeln!(f, "{:>7} everything is mended", self.trouble_ends)?;
        writeln!(f, "        {}; second agents: {:?}", self.story, self.doubled)
    }
}

struct Draft {
    random: StdRng,
    events: Vec<(u64, Event)>,
    /// Times from which a link, an agent, the hub can have another fault.
    link_free: [u64; CLUSTERS.len()],
    agent_free: [u64; CLUSTERS.len()],
    hub_free: u64,
}

impl Draft {
    fn deeds(&mut self) {
        for cluster in 0..CLUSTERS.len() {
            self.events.push((0, Event::Deed(cluster, Deed::MakeNamespace)));
        }
        let mut at = 0;
        while at < DEEDS {
            let cluster = self.random.random_range(0..CLUSTERS.len());
            let generation = u8::try_from(self.events.len()).unwrap_or(u8::MAX);
            let deed = self.deed(at, generation);
            if matches!(deed, Deed::DropNamespace) {
                let back = at + self.random.random_range(500..6_000);
                self.events
                    .push((back, Event::Deed(cluster, Deed::MakeNamespace)));
            }
            self.events.push((at, Event::Deed(cluster, deed)));
            at += self.random.random_range(100..if at < CALM { 600 } else { 4_000 });
        }
    }

    fn deed(&mut self, at: u64, generation: u8) -> Deed {
        let service = self.random.random_range(0..SERVICES.len());
        let pods = self.random.random_range(1..=PODS_MAX);
        let which = if at < CALM {
            0
        } else {
            self.random.random_range(0..100)
        };
        match which {
            0..45 => Deed::Export {
                service,
                shape: SHAPES[self.random.random_range(0..SHAPES.len())],
                pods,
                generation,
            },
            45..75 => Deed::Scale {
                service,
                pods,
                generation,
            },
            75..85 => Deed::Unexport { service },
            85..93 => Deed::Withdraw { service },
            93..97 => Deed::DropNamespace,
            _ => Deed::MakeNamespace,
        }
    }

    fn faults(&mut self) {
        let mut at = CALM;
        loop {
            at += self.random.random_range(300..6_000);
            if at >= TROUBLE {
                return;
            }
            let member = self.random.random_range(0..CLUSTERS.len());
            match self.random.random_range(0..100) {
                0..30 => self.link(at, member),
                30..50 => self.agent(at, member),
                50..78 => self.hub(at),
                _ => self.api(at, member),
            }
        }
    }

    /// The authority is replaced in the order that operators are told, each machine at a moment of its own: when all
    /// trust both, certificates change; when all have those of the next, the former goes.
    fn authority(&mut self) {
        let machines: Vec<Option<usize>> = (0..CLUSTERS.len()).map(Some).chain([None]).collect();
        let third = (TROUBLE - CALM) / 3;
        for (number, to) in (0..).zip([Change::Beside, Change::Certified, Change::After]) {
            let begins = CALM + number * third;
            for machine in &machines {
                let at = begins + self.random.random_range(0..third);
                self.push(at, Fault::Authority(*machine, to));
            }
        }
    }

    fn push(&mut self, at: u64, fault: Fault) {
        self.events.push((at, Event::Fault(fault)));
    }

    fn link(&mut self, at: u64, member: usize) {
        if self.link_free[member] > at {
            return;
        }
        let slow = Duration::from_millis(self.random.random_range(200..1_800));
        let pace = self.random.random_range(50..400);
        let fault = match self.random.random_range(0..6) {
            0 => Fault::Partition(member),
            1 => Fault::Deaf(member),
            2 => Fault::Mute(member),
            3 => Fault::Hold(member),
            4 => Fault::Latency(member, slow),
            _ => Fault::SlowReader(member, pace),
        };
        let until = at + self.random.random_range(300..FAULT_LONGEST);
        self.push(at, fault);
        let end = match fault {
            Fault::SlowReader(member, _) => Fault::SlowReader(member, 0),
            _ => Fault::Mend(member),
        };
        self.push(until, end);
        self.link_free[member] = until + 1;
    }

    fn agent(&mut self, at: u64, member: usize) {
        if self.agent_free[member] > at {
            return;
        }
        let fault = match self.random.random_range(0..3) {
            0 => Fault::KillAgent(member),
            1 => Fault::DropAgent(member),
            _ => Fault::StopAgent(member),
        };
        let until = at + self.random.random_range(200..DOWN_LONGEST);
        self.push(at, fault);
        self.push(until, Fault::StartAgent(member));
        self.agent_free[member] = until + 1;
    }

    fn hub(&mut self, at: u64) {
        if self.hub_free > at {
            return;
        }
        let until = at + self.random.random_range(200..DOWN_LONGEST);
        let lying = at + self.random.random_range(300..4_000);
        let kept = self.random.random_range(0..3);
        self.hub_free = until + 1;
        match self.random.random_range(0..8) {
            0 | 1 => self.push(at, Fault::KillHub),
            2 => self.push(at, Fault::DropHub { kept }),
            3 => self.push(at, Fault::StopHub),
            4 => self.push(at, Fault::FailSync),
            5 => {
                let left = self.random.random_range(0..10);
                self.push(at, Fault::FillDisk(left));
            }
            6 => {
                self.push(at, Fault::LieAboutSync);
                self.push(lying, Fault::DropHub { kept });
                self.push(lying + until - at, Fault::StartHub);
                self.hub_free = lying + until - at + 1;
            }
            _ => {
                let copied = self.random.random_range(CALM..=at);
                let from_backup = self.random.random_range(0..3) > 0;
                self.push(copied, Fault::BackUp);
                self.push(at, Fault::Restore { from_backup });
            }
        }
        self.push(until, Fault::StartHub);
    }

    fn api(&mut self, at: u64, member: usize) {
        match self.random.random_range(0..6) {
            0 => self.push(at, Fault::DropWatches(member)),
            5 => {
                let until = at + self.random.random_range(500..FAULT_LONGEST);
                let kind = self.random.random_range(0..WATCHED.len());
                self.push(at, Fault::HideKind(member, kind));
                self.push(at + 1, Fault::DropWatches(member));
                self.push(until, Fault::ApiWell(member));
            }
            4 => {
                self.push(at, Fault::RemoveDefinition(member));
                let until = at + self.random.random_range(500..FAULT_LONGEST);
                self.push(until, Fault::InstallDefinition(member));
            }
            1 => {
                self.push(at, Fault::ForgetHistory(member));
                self.push(at + 1, Fault::DropWatches(member));
            }
            _ => {
                let permille = self.random.random_range(5..120);
                let until = at + self.random.random_range(500..8_000);
                self.push(at, Fault::ApiErrors(member, permille));
                self.push(until, Fault::ApiWell(member));
            }
        }
    }
}
