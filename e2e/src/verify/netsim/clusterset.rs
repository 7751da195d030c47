//! The simulated clusterset: a network, a hub's machine, the clusters and the machine of each agent. It performs what
//! the script says and lets time pass; it judges nothing.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::anyhow;
use hub::log::{Faults, MemoryDisk, MemoryLog};
use serde_json::json;
use shared::{
    api::names::TRIBUTARY_NAMESPACE,
    identity::Role,
    model::{ClusterId, Clusterset, Epoch, UnixMillis},
};
use turmoil::Sim;

use super::{
    credentials::{Authorities, Change},
    program::{AgentMachine, HUB, HubMachine, Life, WALL_AT_START, run_agent, run_hub},
    script::{CLUSTERS, Event, Fault, Script, WATCHED},
    trace::Trace,
    user,
};
use crate::{
    laws::{Guarded, Law, requests::Requests},
    sim::{ALWAYS, Entry, Fault as ApiFault, ManualClock, SimCluster, SimConfig, current_crds},
};

/// How far time goes in one step.
pub(super) const STEP: Duration = Duration::from_millis(5);
/// Longest simulation, which only bounds the simulator.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The supervisor of processes (a kubelet) starts a process that ended again after this.
const RESTART_AFTER: Duration = Duration::from_millis(1_500);
/// Fewest milliseconds that a message takes.
const LATENCY_FLOOR: Duration = Duration::from_millis(1);
/// The definition that may be missing: what agents watch, and nothing that users declared.
const DEFINITION: &str = "clusterproperties.about.k8s.io";
/// How slow a slow API server is.
const API_SLOW_MS: u64 = 700;

/// One member's cluster and machine.
pub(super) struct SimulatedMember {
    pub(super) cluster: SimCluster,
    pub(super) machine: Rc<AgentMachine>,
    clock: Arc<ManualClock>,
    requests: Requests,
}

/// A write that an agent of a cluster asked for.
pub(super) type Written = (String, Entry);

/// Everything that is simulated.
pub(super) struct SimulatedClusterset {
    sim: Sim<'static>,
    pub(super) members: Vec<SimulatedMember>,
    pub(super) hub: Rc<HubMachine>,
    pub(super) trace: Trace,
    /// What happened, by class.
    pub(super) counts: BTreeMap<&'static str, u64>,
    /// What the laws guarded that are looked at here.
    pub(super) guarded: Guarded,
    authorities: Authorities,
    backup: MemoryDisk,
    latency: Duration,
    /// Machines that are down until the script starts them.
    down: RefCell<Vec<&'static str>>,
    /// Processes that ended by themselves: when they are started again.
    restarts: BTreeMap<&'static str, Duration>,
}

impl SimulatedClusterset {
    pub(super) fn build(seed: u64, script: &Script, trace: Trace) -> anyhow::Result<Self> {
        let clusterset = Clusterset::new("simulation.internal", "netsim")?;
        let authorities = Authorities::new(&clusterset)?;
        let mut sim = turmoil::Builder::new()
            .rng_seed(seed)
            .simulation_duration(LONGEST)
            .tick_duration(STEP)
            .min_message_latency(LATENCY_FLOOR)
            .max_message_latency(script.latency)
            .tcp_capacity(script.tcp_capacity)
            .build();
        let disk = MemoryDisk::default();
        let hub = Rc::new(HubMachine {
            life: Life::default(),
            disk: RefCell::new(disk.clone()),
            adopt_epoch: Cell::default(),
            sessions: RefCell::default(),
            credentials: authorities.issue(Role::hub(HUB)?)?,
            clusterset,
        });
        let machine = hub.clone();
        sim.host(HUB, move || run_hub(machine.clone()));
        let mut members = Vec::new();
        for (number, name) in (0_u64..).zip(CLUSTERS) {
            let member = member(name, seed.wrapping_mul(16) + number, &authorities)?;
            let machine = member.machine.clone();
            sim.host(name, move || run_agent(machine.clone()));
            members.push(member);
        }
        Ok(Self {
            sim,
            members,
            hub,
            trace,
            counts: BTreeMap::new(),
            guarded: Guarded::default(),
            authorities,
            backup: disk.copy(),
            latency: script.latency,
            down: RefCell::default(),
            restarts: BTreeMap::new(),
        })
    }

    /// Simulated milliseconds since the beginning.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.sim.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Time passes for everybody, and processes that ended are started again.
    pub(super) fn step(&mut self) -> anyhow::Result<()> {
        self.sim
            .step()
            .map_err(|error| anyhow!("the simulator failed: {error}"))?;
        for member in &self.members {
            member.clock.advance(STEP.as_millis() as i64);
        }
        for name in CLUSTERS.into_iter().chain([HUB]) {
            let idle = !self.sim.is_host_running(name) && !self.down.borrow().contains(&name);
            if idle {
                let elapsed = self.sim.elapsed();
                let due = *self.restarts.entry(name).or_insert(elapsed + RESTART_AFTER);
                if elapsed >= due {
                    self.start(name);
                }
            }
        }
        Ok(())
    }

    pub(super) fn count(&mut self, class: &'static str) {
        *self.counts.entry(class).or_default() += 1;
    }

    pub(super) fn perform(&mut self, event: Event) {
        let now = self.now();
        self.trace.line(now, format_args!("{event:?}"));
        match event {
            Event::Deed(number, deed) => {
                self.count(deed.class());
                user::act(&self.members[number].cluster, number, deed);
            }
            Event::Fault(fault) => {
                if let Some(class) = fault.class() {
                    self.count(class);
                }
                self.fault(fault);
            }
        }
    }

    /// Everything works again: links, machines, disks, APIs.
    pub(super) fn mend_everything(&mut self) {
        for (number, name) in CLUSTERS.into_iter().enumerate() {
            for fault in [
                Fault::Mend(number),
                Fault::SlowReader(number, 0),
                Fault::ApiWell(number),
                Fault::InstallDefinition(number),
            ] {
                self.fault(fault);
            }
            self.start_if_down(name);
        }
        self.hub.disk.borrow().set_faults(Faults::default());
        self.start_if_down(HUB);
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Partition(member) => self.sim.partition(CLUSTERS[member], HUB),
            Fault::Deaf(member) => self.sim.partition_oneway(CLUSTERS[member], HUB),
            Fault::Mute(member) => self.sim.partition_oneway(HUB, CLUSTERS[member]),
            Fault::Hold(member) => self.sim.hold(CLUSTERS[member], HUB),
            Fault::Latency(member, latency) => self.sim.set_link_latency(CLUSTERS[member], HUB, latency),
            Fault::Mend(member) => self.mend(CLUSTERS[member]),
            Fault::SlowReader(member, millis) => {
                self.members[member].machine.pace.store(millis, Ordering::Relaxed);
            }
            Fault::KillAgent(member) => self.crash(CLUSTERS[member]),
            Fault::DropAgent(member) => {
                self.sim.partition(CLUSTERS[member], HUB);
                self.crash(CLUSTERS[member]);
            }
            Fault::StopAgent(member) => self.members[member].machine.life.terminate(),
            Fault::StartAgent(member) => self.start_if_down(CLUSTERS[member]),
            Fault::KillHub => self.crash(HUB),
            Fault::DropHub { kept } => self.drop_hub(kept),
            Fault::StopHub => self.hub.life.terminate(),
            Fault::StartHub => self.start_if_down(HUB),
            Fault::FailSync => self.disk_fault(Faults {
                fail_sync: true,
                ..Faults::default()
            }),
            Fault::FillDisk(left) => self.disk_fault(Faults {
                writes_before_full: Some(left),
                ..Faults::default()
            }),
            Fault::LieAboutSync => self.disk_fault(Faults {
                lie_about_sync: true,
                ..Faults::default()
            }),
            Fault::Authority(machine, to) => self.change_authority(machine, to),
            Fault::BackUp => self.backup = self.hub.disk.borrow().copy(),
            Fault::Restore { from_backup } => self.restore_hub(from_backup),
            Fault::HideKind(member, kind) => {
                let faults = self.members[member].cluster.faults();
                faults.rate(ApiFault::Gone, ALWAYS, WATCHED[kind]);
            }
            Fault::ApiErrors(member, permille) => self.api_errors(member, permille),
            Fault::ApiWell(member) => self.members[member].cluster.faults().clear(),
            Fault::RemoveDefinition(member) => {
                // It is there, unless it was removed before.
                let _ = self.members[member].cluster.remove_crd(DEFINITION);
            }
            Fault::InstallDefinition(member) => self.install_definition(member),
            Fault::DropWatches(member) => self.members[member].cluster.faults().drop_watches(),
            Fault::ForgetHistory(member) => self.members[member].cluster.forget_history(),
        }
    }

    /// A machine's files change while its process runs, or is away.
    fn change_authority(&self, machine: Option<usize>, to: Change) {
        let live = match machine {
            Some(member) => &self.members[member].machine.credentials,
            None => &self.hub.credentials,
        };
        let changed = self.authorities.change(live, to);
        changed.expect("identity and key are those that the machine had");
    }

    fn drop_hub(&mut self, kept: usize) {
        for cluster in CLUSTERS {
            self.sim.partition(HUB, cluster);
        }
        self.crash(HUB);
        let disk = self.hub.disk.borrow();
        disk.crash(kept);
        disk.set_faults(Faults::default());
    }

    fn restore_hub(&mut self, from_backup: bool) {
        self.crash(HUB);
        let disk = if from_backup {
            self.backup.copy()
        } else {
            MemoryDisk::default()
        };
        disk.crash(0);
        disk.set_faults(Faults::default());
        self.hub.disk.replace(disk);
        // As the operations page tells whoever restores a hub.
        self.hub.adopt_epoch.set(from_backup);
    }

    fn api_errors(&self, member: usize, permille: u16) {
        let faults = self.members[member].cluster.faults();
        for fault in [
            ApiFault::Conflict,
            ApiFault::Gone,
            ApiFault::TooManyRequests,
            ApiFault::InternalError,
            ApiFault::AnswerLost,
            ApiFault::Slow { by_ms: API_SLOW_MS },
        ] {
            faults.rate(fault, permille, "");
        }
    }

    fn install_definition(&self, member: usize) {
        let cluster = &self.members[member].cluster;
        let definitions = current_crds();
        let removed = definitions
            .iter()
            .find(|definition| definition.name() == DEFINITION);
        if let Some(definition) = removed.filter(|_| !cluster.serves(DEFINITION)) {
            cluster.install_crd(definition);
        }
    }

    fn disk_fault(&self, faults: Faults) {
        self.hub.disk.borrow().set_faults(faults);
    }

    fn mend(&mut self, name: &'static str) {
        self.sim.repair(name, HUB);
        self.sim.release(name, HUB);
        self.sim.set_link_latency(name, HUB, LATENCY_FLOOR);
        self.sim.set_link_max_message_latency(name, HUB, self.latency);
    }

    fn crash(&mut self, name: &'static str) {
        self.sim.crash(name);
        self.restarts.remove(name);
        self.down.borrow_mut().push(name);
    }

    fn start_if_down(&mut self, name: &'static str) {
        if self.down.borrow().contains(&name) {
            self.start(name);
        }
    }

    fn start(&mut self, name: &'static str) {
        self.down.borrow_mut().retain(|down| *down != name);
        self.restarts.remove(name);
        if name == HUB {
            // Whoever starts a hub whose disk failed sees to the disk first; what was not synced may be gone.
            let disk = self.hub.disk.borrow();
            disk.crash(0);
            disk.set_faults(Faults::default());
            drop(disk);
            for cluster in CLUSTERS {
                self.sim.repair(cluster, HUB);
            }
        } else {
            self.sim.repair(name, HUB);
        }
        let now = self.now();
        self.trace.line(now, format_args!("start {name}"));
        self.sim.bounce(name);
    }

    /// Restarts every process in an orderly way.
    pub(super) fn restart_everything(&mut self) {
        for member in &self.members {
            member.machine.life.terminate();
        }
        self.hub.life.terminate();
    }

    /// The log opens again, whole, and gives a state.
    pub(super) fn log_is_whole(&self) -> anyhow::Result<()> {
        let copy = self.hub.disk.borrow().copy();
        let log = MemoryLog::open(
            &copy,
            &self.hub.clusterset,
            Epoch::default().next(UnixMillis(1), 1),
        )?;
        let reader = hub::log::Log::reader(&log);
        hub::replay::replay(&reader)?;
        Ok(())
    }

    /// Puts the requests that agents made since the last look into the trace; the writes among them. An error is
    /// what an agent asked too often.
    pub(super) fn note_requests(&mut self) -> anyhow::Result<Vec<Written>> {
        let now = self.now();
        let mut writes = Vec::new();
        for member in &mut self.members {
            let entries = member.cluster.requests().take();
            let before = member.requests.guarded();
            let noted = member.requests.note(entries.iter());
            noted.map_err(|why| {
                let law = Law::Requests.broken(format!("the agent of {}: {why}", member.cluster.name()));
                anyhow!("at {now} ms: {law}")
            })?;
            self.guarded
                .count(Law::Requests, member.requests.guarded() - before);
            for entry in entries {
                self.trace.line(
                    now,
                    format_args!(
                        "{} {} {} {}/{} {} at {}",
                        member.cluster.name(),
                        entry.verb,
                        entry.resource,
                        entry.namespace,
                        entry.name,
                        entry.code,
                        entry.at_ms
                    ),
                );
                if entry.is_write() {
                    writes.push((member.cluster.name().to_owned(), entry));
                }
            }
        }
        Ok(writes)
    }
}

fn member(name: &'static str, seed: u64, authorities: &Authorities) -> anyhow::Result<SimulatedMember> {
    let clock = Arc::new(ManualClock::new(WALL_AT_START as i64));
    let cluster = SimCluster::new(SimConfig {
        name: name.into(),
        seed,
        clock: clock.clone(),
        ..SimConfig::default()
    })?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TRIBUTARY_NAMESPACE}});
    cluster.apply(namespace)?;
    let id = ClusterId::new(name)?;
    let machine = Rc::new(AgentMachine {
        life: Life::default(),
        cluster: cluster.clone(),
        pace: Arc::default(),
        credentials: authorities.issue(Role::Cluster(id.clone()))?,
        id,
    });
    Ok(SimulatedMember {
        cluster,
        machine,
        clock,
        requests: Requests::default(),
    })
}
