//! A world: sites, a network and a hub, played step by step. It owns time and whose turn it is; everything it
//! decides comes from the script.

use std::sync::LazyLock;

use hub::log::{Faults, MemoryDisk};
use serde_json::Value;
use shared::model::{Clusterset, Cursor, UnixMillis};
use tokio::runtime::Runtime;

use super::{
    agent::Agent,
    histogram::Histogram,
    hub::{Hub, Moment},
    laws::{self, Standing},
    network::{Blocked, Network},
    script::{Draw, Script, Step, What},
    site::Site,
};
use crate::sim::{Crd, current_crds};

/// When every world begins, in milliseconds since the epoch.
const START_MILLIS: u64 = 1_700_000_000_000;
/// Longest time between two turns, in milliseconds.
const TURN_MILLIS: u64 = 120;
/// How often in a hundred turns an agent looks at its Lease.
const RENEWS_PERCENT: u64 = 5;
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
    /// Which law, and how.
    pub what: String,
}

/// A world that was played to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What happened.
    pub seen: Histogram,
    /// Digest of every message in its order, and of the log's last position.
    pub trace: [u8; 32],
}

/// Plays a script.
pub fn play(script: &Script) -> Result<Outcome, Failure> {
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
    pub(super) sites: Vec<Site>,
    pub(super) standing: Vec<Standing>,
    pub(super) network: Network,
    pub(super) set: Clusterset,
    pub(super) disk: MemoryDisk,
    pub(super) backup: Option<MemoryDisk>,
    pub(super) hub: Option<Hub>,
    pub(super) ids: Draw,
    pub(super) seen: Histogram,
    pub(super) trace: blake3::Hasher,
    /// The last position that was promised by the hub over the present disk.
    pub(super) promised: Option<Cursor>,
    pub(super) sync_fails: bool,
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
            standing: sites.iter().map(|_| Standing::default()).collect(),
            network: Network::new(sites.len()),
            sites,
            set: Clusterset::new("swarm.example", "default")?,
            disk: MemoryDisk::default(),
            backup: None,
            hub: None,
            ids: Draw::new(script.seed ^ 0x5eed),
            seen: Histogram::default(),
            trace: blake3::Hasher::new(),
            promised: None,
            sync_fails: false,
        })
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            now: self.now,
            wall: UnixMillis(START_MILLIS + self.now),
        }
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now += millis;
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
        self.look()
    }

    /// The laws that hold at every moment.
    pub(super) fn look(&mut self) -> Result<(), String> {
        laws::bounds(&self.sites, self.hub.as_ref())?;
        let sites = &self.sites;
        let touched = |service: &_| sites.iter().any(|site| site.touched.contains(service));
        for (site, standing) in sites.iter().zip(&self.standing) {
            for _ in 0..laws::deletions(site, standing, touched)? {
                self.seen.count("removal applied");
            }
        }
        for site in &self.sites {
            site.cluster.requests().clear();
        }
        Ok(())
    }

    fn happen(&mut self, what: &What) -> Result<(), String> {
        let seen = &mut self.seen;
        let count = self.sites.len();
        let index = |site: &usize| site % count;
        match what {
            What::Namespace(site, name) => self.sites[index(site)].make_namespace(*name, seen),
            What::RemoveNamespace(site, name) => self.sites[index(site)].remove_namespace(*name, seen),
            What::Service(site, name, shape) => self.sites[index(site)].make_service(*name, *shape),
            What::RemoveService(site, name) => self.sites[index(site)].remove_service(*name, seen),
            What::Export(site, name) => self.sites[index(site)].export(*name),
            What::Unexport(site, name) => self.sites[index(site)].unexport(*name, seen),
            What::Slice(site, name, slice, endpoints) => {
                self.sites[index(site)].make_slice(index(site), *name, *slice, *endpoints);
            }
            What::RemoveSlice(site, name, slice) => self.sites[index(site)].remove_slice(*name, *slice, seen),
            What::Stranger(site, name, import) => self.sites[index(site)].make_stranger(*name, *import, seen),
            What::RemoveStranger(site, name, import) => {
                self.sites[index(site)].remove_stranger(*name, *import)
            }
            What::Drift(site, which) => self.sites[index(site)].drift(*which, seen),
            What::RemoveCrd(site, exports) => self.remove_crd(index(site), *exports),
            What::InstallCrds(site) => self.install_crds(index(site)),
            What::DropWatches(site) => {
                self.sites[index(site)].cluster.faults().drop_watches();
                seen.count("watch dropped");
            }
            What::ForgetHistory(site) => {
                self.sites[index(site)].cluster.forget_history();
                seen.count("watch history lost");
            }
            What::Errors(site, which, times) => self.sites[index(site)].errors(*which, *times, seen),
            What::CutListings(site, times) => self.sites[index(site)].cuts += times,
            What::Forge(site) => self.sites[index(site)].agents.iter_mut().for_each(Agent::forge),
            What::CrashAgent(site) => self.crash_agent(index(site)),
            What::DoubleAgent(site) => self.double_agent(index(site)),
            What::CrashHub(kept, torn) => self.crash_hub(*kept, *torn)?,
            What::StopHub => self.stop_hub()?,
            What::FailSync => self.fail_sync(),
            What::Backup => self.backup = Some(self.disk.copy()),
            What::Restore => self.restore()?,
            What::EmptyHub => self.empty_hub()?,
            What::Block(site, up, down) => {
                self.network.ways[index(site)] = Blocked { up: *up, down: *down };
                seen.count(if *up && *down {
                    "partition"
                } else {
                    "half partition"
                });
            }
            What::Unblock(site) => self.network.ways[index(site)] = Blocked::default(),
            What::Reset(site) => {
                (0..self.network.reset(index(site))).for_each(|_| seen.count("connection broken"));
            }
            What::Skew(site, by) => {
                self.sites[index(site)].clock.advance(i64::from(*by));
                seen.count("clock skewed");
            }
            What::Pass(millis) => {
                self.pass(u64::from(*millis));
                self.seen.count("time passed");
            }
            What::Rest(restart) => self.rest(*restart)?,
        }
        Ok(())
    }

    fn remove_crd(&mut self, index: usize, exports: bool) {
        let name = if exports {
            "serviceexports"
        } else {
            "serviceimports"
        };
        let site = &mut self.sites[index];
        if site
            .cluster
            .remove_crd(&format!("{name}.multicluster.x-k8s.io"))
            .is_ok()
        {
            site.touch_all();
            if !exports {
                site.strangers.retain(|(kind, _), _| kind != "ServiceImport");
            }
            self.seen.count("crd removed");
        }
    }

    pub(super) fn install_crds(&mut self, index: usize) {
        let site = &mut self.sites[index];
        for crd in &*CRDS {
            let group = crd.name().ends_with(".multicluster.x-k8s.io");
            // Replacing a served one would end its watches for no reason.
            if group && !site.cluster.serves(crd.name()) {
                site.cluster.install_crd(crd);
                site.touch_all();
                site.agents.iter_mut().for_each(Agent::schema_changed);
            }
        }
    }

    pub(super) fn start_agent(&mut self, index: usize) -> Option<Agent> {
        let site = &self.sites[index];
        let _entered = self.runtime.enter();
        Agent::start(
            &self.runtime,
            &site.cluster,
            site.client.clone(),
            &site.name,
            self.ids.number(),
        )
    }

    pub(super) fn crash_agent(&mut self, index: usize) {
        for mut agent in std::mem::take(&mut self.sites[index].agents) {
            agent.disconnect(&mut self.network);
            self.seen.count("agent crashed");
        }
        let started = self.start_agent(index);
        self.sites[index].agents.extend(started);
    }

    fn double_agent(&mut self, index: usize) {
        if self.sites[index].agents.len() >= AGENTS_MAX {
            return;
        }
        if let Some(second) = self.start_agent(index) {
            self.sites[index].agents.push(second);
            self.seen.count("agent doubled");
        }
    }

    /// Starts the hub over the present disk; a log that does not open is put back from the copy, or begun anew, as
    /// its message tells an operator to.
    pub(super) fn start_hub(&mut self) -> Result<(), String> {
        let random = self.ids.number();
        let mut hub = Hub::start(&self.disk, &self.set, self.moment(), random);
        if hub.is_err() && std::mem::take(&mut self.sync_fails) {
            // It said so and ended; somebody replaces the disk's cable.
            self.heal_disk();
            hub = Hub::start(&self.disk, &self.set, self.moment(), random);
        }
        let hub = hub.map_err(|why| format!("the hub does not start: {why}"))?;
        if let Some(promised) = self.promised
            && !hub.holds(promised)
        {
            return Err(format!(
                "durable before ack: the hub had promised {promised:?}, after its crash the log stands at {:?}",
                hub.head()
            ));
        }
        self.promised = None;
        self.hub = Some(hub);
        Ok(())
    }

    /// Ends the hub's process, as a kill does.
    fn kill_hub(&mut self, lose: bool) {
        if let Some(hub) = self.hub.take() {
            self.promised = Some(hub.promised);
        }
        self.network.hub_crashes(lose);
    }

    fn crash_hub(&mut self, kept: u8, torn: bool) -> Result<(), String> {
        self.kill_hub(kept == 0);
        self.seen.count("hub crashed");
        if self.disk.unsynced() > usize::from(kept) {
            self.seen.count("hub lost unsynced batches");
        }
        if !torn {
            self.disk.crash(usize::from(kept));
            return self.start_hub();
        }
        let whole = self.disk.copy();
        self.disk.crash_torn(usize::from(kept), 1);
        self.seen.count("torn batch");
        let epoch = shared::model::Epoch {
            created_at: UnixMillis(START_MILLIS),
            random: 0,
        };
        // sled's batches are whole or not there; a store that tears one must be noticed, or have kept whole events.
        if hub::log::MemoryLog::open(&self.disk, &self.set, epoch).is_err() {
            self.disk = whole;
            self.disk.crash(usize::from(kept));
        }
        self.start_hub()
    }

    fn stop_hub(&mut self) -> Result<(), String> {
        let at = self.moment();
        if let Some(hub) = self.hub.take() {
            hub.stop(&mut self.network, at, &mut self.seen);
        }
        self.seen.count("hub stopped in order");
        self.start_hub()
    }

    /// Syncs work again; what was not synced is lost.
    fn heal_disk(&mut self) {
        self.sync_fails = false;
        self.disk.set_faults(Faults::default());
        self.disk.crash(0);
    }

    fn fail_sync(&mut self) {
        self.sync_fails = true;
        self.disk.set_faults(Faults {
            fail_sync: true,
            ..Faults::default()
        });
    }

    fn restore(&mut self) -> Result<(), String> {
        let Some(backup) = &self.backup else { return Ok(()) };
        let backup = backup.copy();
        self.kill_hub(true);
        self.disk = backup;
        self.heal_disk();
        self.promised = None;
        self.seen.count("hub restored from a backup");
        self.start_hub()
    }

    fn empty_hub(&mut self) -> Result<(), String> {
        self.kill_hub(true);
        self.disk = MemoryDisk::default();
        self.sync_fails = false;
        self.promised = None;
        self.seen.count("hub started empty");
        self.start_hub()
    }

    /// One turn of somebody.
    fn turn(&mut self, draw: &mut Draw) -> Result<(), String> {
        self.pass(draw.below(TURN_MILLIS));
        if draw.percent(45) {
            self.hub_turn(draw)
        } else {
            self.site_turn(draw.index(self.sites.len()), draw)
        }
    }

    fn hub_turn(&mut self, draw: &mut Draw) -> Result<(), String> {
        let at = self.moment();
        let Some(hub) = &mut self.hub else {
            return self.start_hub();
        };
        let streams = hub.streams();
        let stream = streams.get(draw.index(streams.len())).copied();
        let (network, seen) = (&mut self.network, &mut self.seen);
        match (draw.below(12), stream) {
            (0..=2, Some(id)) => drop(hub.listen(id, network, at, seen)),
            (3 | 4, Some(id)) => drop(hub.hand_over(id, at)),
            (5..=7, Some(id)) => drop(hub.speak(id, network, at.now, &mut self.trace)),
            (8, _) => drop(hub.append()),
            (9, _) => drop(hub.sync(network, at, seen)),
            (10, _) => drop(hub.look_at_clocks(network, at, seen)),
            (11, _) if draw.percent(10) => hub.snapshot(),
            _ => {}
        }
        self.bury_hub();
        Ok(())
    }

    /// A hub whose log failed ends; it is started again with its disk well, as a supervisor does.
    pub(super) fn bury_hub(&mut self) {
        if self.hub.as_ref().is_some_and(|hub| hub.failed.is_some()) {
            self.seen.count("sync failed");
            self.kill_hub(true);
            self.heal_disk();
        }
    }

    fn site_turn(&mut self, index: usize, draw: &mut Draw) -> Result<(), String> {
        if self.sites[index].agents.is_empty() {
            let started = self.start_agent(index);
            self.sites[index].agents.extend(started);
            return Ok(());
        }
        let site = &mut self.sites[index];
        let which = draw.index(site.agents.len());
        let now = self.now;
        if draw.percent(RENEWS_PERCENT) && site.agents[which].is_replaced(&site.cluster) {
            // It tried to renew its Lease, and found another holder.
            let mut agent = site.agents.remove(which);
            agent.disconnect(&mut self.network);
            return Ok(());
        }
        let agent = &mut site.agents[which];
        match draw.below(10) {
            0..=2 => {
                let cut = site.cuts > 0;
                site.cuts = site.cuts.saturating_sub(1);
                agent.follow(draw.index(6), &site.cluster, cut, &mut self.seen);
            }
            3 => drop(agent.observe()),
            4 => {
                if let (Some(stream), Some(hub)) =
                    (agent.connect(index, &mut self.network, now), &mut self.hub)
                {
                    hub.accept(stream, &site.name, now);
                }
            }
            5 => drop(agent.speak(&mut self.network, now, &mut self.trace)),
            6 | 7 => drop(agent.listen(&self.runtime, &mut self.network, now, &mut self.seen)?),
            _ => drop(agent.apply(&self.runtime, draw)),
        }
        Ok(())
    }

    fn end(mut self) -> Outcome {
        if let Some(hub) = &self.hub {
            let head = hub.head();
            self.trace.update(&head.revision.0.to_be_bytes());
            self.trace.update(&head.hash.0);
            let facts = hub.state().fact_count() as u64;
            self.trace.update(&facts.to_be_bytes());
        }
        Outcome {
            seen: self.seen,
            trace: *self.trace.finalize().as_bytes(),
        }
    }
}
