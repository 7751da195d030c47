//! A world: sites, a network and a hub, played step by step. It owns time and whose turn it is; everything it
//! decides comes from the script.

mod clocks;
mod copied;
mod happen;
mod hostile;
mod leading;
mod turn;

use std::{collections::BTreeSet, sync::LazyLock};

use event_log::MemoryDisk;
use hub_core::clock::Moment;
use model::{Clusterset, ServiceKey};
use serde_json::Value;
use tokio::runtime::Runtime;

use sim::{Crd, current_crds};

use super::{
    agent::Agent,
    draw::Draw,
    happening::What,
    held::{Definitions, HeldBefore},
    histogram::Histogram,
    hostile::{Copied, Hostile},
    hub::{Hub, Left, Recorded},
    imports::Withheld,
    laws::{self, Stood, Writers},
    leaving, lost,
    network::{Blocked, Network, StreamId},
    refusals,
    script::{Script, Step},
    site::Site,
    time::{START_MILLIS, Time},
};

/// Longest time between two turns, in milliseconds.
const TURN_MILLIS: u64 = 120;
/// Percentage of turns in which an agent that was cut off is reached again.
const RETURNS_PERCENT: u64 = 5;
/// Percentage of turns that are the hostile member's, in worlds that have it.
const HOSTILE_PERCENT: u64 = 15;
/// Agents that may run in one cluster.
const AGENTS_MAX: usize = 3;

/// The definitions are read once for all worlds.
static CRDS: LazyLock<Vec<Crd>> = LazyLock::new(|| current_crds().iter().map(undescribed).collect());

/// Without the texts for people, which are the larger part of it.
fn undescribed(crd: &Crd) -> Crd {
    let mut definition = crd.definition().clone();
    forget_descriptions(&mut definition);
    Crd::read(definition).expect("a description decides nothing")
}

fn forget_descriptions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(forget_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_descriptions),
        _ => {}
    }
}

/// A world that broke a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Index of the step.
    pub step: usize,
    /// The law, and its breach.
    pub what: String,
}

/// A world that was played to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldResult {
    /// The happenings.
    pub seen: Histogram,
    /// Digest of every message in its order, and of the log's last position.
    pub trace: [u8; 32],
}

impl WorldResult {
    /// The digest in hexadecimal digits.
    pub fn digest(&self) -> String {
        self.trace.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Plays a script.
pub fn play(script: &Script) -> Result<WorldResult, Failure> {
    let at = |step: usize| move |what: String| Failure { step, what };
    let mut world = World::new(script).map_err(|error| at(0)(error.to_string()))?;
    for (index, step) in script.steps.iter().enumerate() {
        world.step(step).map_err(at(index))?;
    }
    Ok(world.end())
}

pub(super) struct World {
    pub(super) runtime: Runtime,
    pub(super) now: u64,
    /// The same, for the clocks of agents.
    pub(super) time: Time,
    pub(super) sites: Vec<Site>,
    pub(super) writers: Vec<Writers>,
    pub(super) stood: Vec<Stood>,
    pub(super) network: Network,
    pub(super) set: Clusterset,
    pub(super) disk: MemoryDisk,
    pub(super) backup: Option<MemoryDisk>,
    /// The known durable state on the present disk.
    pub(super) recorded: Option<Recorded>,
    pub(super) hub: Option<Hub>,
    pub(super) ids: Draw,
    pub(super) seen: Histogram,
    pub(super) trace: blake3::Hasher,
    /// The last hub's state on the present disk.
    pub(super) left: Option<Left>,
    pub(super) sync_fails: bool,
    /// The law that a hub broke which is gone.
    pub(super) broken: Option<String>,
    /// By how much the hub's clock is wrong, in milliseconds.
    pub(super) hub_skew: i64,
    /// By how much it is wrong beside that until the next rest, in milliseconds.
    pub(super) hub_clock_off: i64,
    /// The member that means no good, once it came.
    pub(super) hostile: Option<Hostile>,
    /// A copy of a member, state and key, that was made and may run.
    pub(super) copied: Option<Copied>,
    /// Streams of strangers.
    pub(super) strangers: Vec<StreamId>,
    /// Exports that a policy refused at the last rest under it.
    pub(super) refused: BTreeSet<(String, ServiceKey)>,
    /// Imports that a policy kept from clusters then.
    pub(super) withheld: Withheld,
    /// All history goes that may go, after every step.
    pub(super) retains_nothing: bool,
    /// Counted exports of members on hold, at the last look.
    pub(super) held: HeldBefore,
    /// Clusters' exports when their definition went.
    pub(super) definitions: Definitions,
}

impl World {
    fn new(script: &Script) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let entered = runtime.enter();
        let start = i64::try_from(START_MILLIS)?;
        let sites = (0..script.clusters)
            .map(|index| Site::new(index, script.seed, &CRDS, start))
            .collect::<anyhow::Result<Vec<_>>>()?;
        drop(entered);
        Ok(Self {
            runtime,
            now: 1_000,
            time: Time::default(),
            writers: sites.iter().map(|_| Writers::default()).collect(),
            stood: sites.iter().map(|_| Stood::default()).collect(),
            network: Network::new(sites.len()),
            sites,
            set: Clusterset::new("swarm.example", "default")?,
            disk: MemoryDisk::default(),
            backup: None,
            recorded: None,
            hub: None,
            ids: Draw::new(script.seed ^ 0x5eed),
            seen: Histogram::default(),
            trace: blake3::Hasher::new(),
            left: None,
            sync_fails: false,
            broken: None,
            hub_skew: 0,
            hub_clock_off: 0,
            hostile: None,
            copied: None,
            strangers: Vec::new(),
            refused: BTreeSet::new(),
            withheld: BTreeSet::new(),
            retains_nothing: false,
            held: HeldBefore::default(),
            definitions: Definitions::default(),
        })
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            micros: self.now * 1_000,
            wall: self.hub_wall(),
        }
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now += millis;
        self.time.set(self.now);
        let by = i64::try_from(millis).unwrap_or_default();
        self.sites.iter().for_each(|site| site.clock.advance(by));
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        tracing::debug!(now = self.now, what = ?step.what, turns = step.turns, "step");
        let mut draw = Draw::new(step.seed);
        self.happen(&step.what)?;
        for _ in 0..step.turns {
            self.turn(&mut draw)?;
        }
        if self.retains_nothing {
            self.retain_nothing();
        }
        self.look()
    }

    /// The laws that hold at every moment.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let now = self.hub.as_ref().and_then(Hub::broken);
        if let Some(broken) = self.broken.as_ref().or(now) {
            return Err(broken.clone());
        }
        laws::bounds(&self.sites, self.hub.as_ref(), &mut self.seen.guarded)?;
        if let (Some(hub), Some(_)) = (&self.hub, &self.hostile) {
            refusals::nothing_leads_elsewhere(hub, &self.sites, &mut self.seen.guarded)?;
        }
        if self.copied.as_ref().is_some_and(Copied::held_it) {
            // What the original changed since the copy was made goes, and comes again with it.
            self.sites.iter_mut().for_each(Site::touch_all);
        }
        if let Some(hub) = &self.hub {
            lost::withdrawn(hub, &mut self.seen.guarded)?;
            if hub.state().members().values().any(|member| member.is_withdrawn()) {
                // What was of lost members goes, and comes again with them.
                self.sites.iter_mut().for_each(Site::touch_all);
                self.seen.count("member withdrawn");
            }
            leaving::look(hub, &mut self.seen.guarded)?;
            if hub.state().leaving().next().is_some() {
                // What is of them goes, and comes again if they stay.
                self.sites.iter_mut().for_each(Site::touch_all);
            }
            self.held.look(hub, &mut self.seen.guarded)?;
            if hub.held().next().is_some() {
                // What is held goes in its time, and comes again with its exports.
                self.sites.iter_mut().for_each(Site::touch_all);
                self.seen.count("member held");
            }
        }
        let sites = &self.sites;
        let touched = |service: &_| sites.iter().any(|site| site.touched.contains(service));
        for ((site, stood), writers) in sites.iter().zip(&mut self.stood).zip(&mut self.writers) {
            let entries = site.cluster.requests().take();
            writers.look(site, &entries, &mut self.seen.guarded)?;
            stood.release(touched);
            for _ in 0..stood.look(site, &entries, &mut self.seen.guarded)? {
                self.seen.count("removal applied");
            }
        }
        Ok(())
    }

    fn end(mut self) -> WorldResult {
        if let Some(hub) = &self.hub {
            let head = hub.head();
            self.trace.update(&head.revision.0.to_be_bytes());
            self.trace.update(&head.hash.0);
            let facts = hub.state().fact_count() as u64;
            self.trace.update(&facts.to_be_bytes());
        }
        WorldResult {
            seen: self.seen,
            trace: *self.trace.finalize().as_bytes(),
        }
    }
}
