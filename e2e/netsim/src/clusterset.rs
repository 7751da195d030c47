//! The simulated clusterset: a network, a hub's machine, the clusters and the machine of each agent. It performs what
//! the script says and lets time pass; it judges nothing.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use agent::expiry::upkeep::{OnHubLoss, Settings};
use anyhow::anyhow;
use hub::log::{Faults, MemoryDisk};
use serde_json::json;
use shared::{
    api::names::{AGENT_LEASE, TRIBUTARY_NAMESPACE},
    identity::Role,
    model::{ClusterId, Clusterset},
};
use turmoil::Sim;

use super::{
    credentials::{Authorities, Change},
    operator::{OPERATOR, OperatorMachine, run_operator},
    program::{AgentMachine, HUB, HubMachine, Life, WALL_AT_START, run_agent, run_hub},
    script::{CLUSTERS, Event, Fault, SECOND, Script, Story, WATCHED},
    trace::Trace,
    user::{self, Deed},
};
use oracle::laws::{Guarded, Law};
use sim::{
    ALWAYS, Entry, Fault as ApiFault, ManualClock, SimCluster, SimConfig, current_crds, limits::Requests,
};

/// Simulated time of one step.
pub(super) const STEP: Duration = Duration::from_millis(5);
/// Longest simulation, which only bounds the simulator.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The supervisor of processes (a kubelet) starts a process that ended again after this.
const RESTART_AFTER: Duration = Duration::from_millis(1_500);
/// Fewest milliseconds that a message takes.
const LATENCY_FLOOR: Duration = Duration::from_millis(1);
/// The definition that may be missing: what agents watch, and nothing that users declared.
const DEFINITION: &str = "clusterproperties.about.k8s.io";
/// Time for which imports stay without the hub if they do not stay for ever: longer than any hub is away by chance.
pub(super) const EXPIRING: Settings = Settings {
    duration: Duration::from_secs(120),
    renew: Duration::from_secs(20),
    on_hub_loss: OnHubLoss::Expire,
};
/// The definition of what users ask for.
const EXPORTS: &str = "serviceexports.multicluster.x-k8s.io";
/// Delay of a slow API server.
const API_SLOW_MS: u64 = 700;

/// One member's cluster and the machines of its agents.
pub(super) struct SimulatedMember {
    pub(super) cluster: SimCluster,
    /// One, or two.
    pub(super) machines: Vec<Rc<AgentMachine>>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) requests: Requests,
    /// Holder of the Lease at the last look.
    pub(super) led_by: Option<String>,
}

impl SimulatedMember {
    /// The machine whose agent has the Lease; the first one while nobody has it.
    pub(super) fn leader(&self) -> &Rc<AgentMachine> {
        let holder = holder_of(&self.cluster);
        let leads = |machine: &&Rc<AgentMachine>| holder.as_deref() == Some(machine.name);
        self.machines.iter().find(leads).unwrap_or(&self.machines[0])
    }
}

/// Holder of the Lease of a cluster's agents.
pub(super) fn holder_of(cluster: &SimCluster) -> Option<String> {
    let lease = cluster.get("Lease", TRIBUTARY_NAMESPACE, AGENT_LEASE)?;
    let holder = lease["spec"]["holderIdentity"].as_str()?;
    Some(holder.to_owned()).filter(|holder| !holder.is_empty())
}

/// Number of elections of a cluster's agents.
pub(super) fn elections(cluster: &SimCluster) -> i64 {
    let lease = cluster.get("Lease", TRIBUTARY_NAMESPACE, AGENT_LEASE);
    let transitions = lease.and_then(|lease| lease["spec"]["leaseTransitions"].as_i64());
    transitions.unwrap_or_default()
}

/// A write that an agent of a cluster asked for.
pub(super) type Written = (String, Entry);

/// Everything that is simulated.
pub(super) struct SimulatedClusterset {
    pub(super) sim: Sim<'static>,
    pub(super) members: Vec<SimulatedMember>,
    /// A cluster restored from a backup of a member's.
    pub(super) copy: Option<SimulatedMember>,
    pub(super) hub: Rc<HubMachine>,
    pub(super) operator: Rc<OperatorMachine>,
    pub(super) trace: Trace,
    /// Numbers of happenings, by class.
    pub(super) counts: BTreeMap<&'static str, u64>,
    /// Objects guarded by the laws that are checked here.
    pub(super) guarded: Guarded,
    authorities: Authorities,
    backup: MemoryDisk,
    latency: Duration,
    /// Machines that are down until the script starts them.
    pub(super) down: RefCell<Vec<&'static str>>,
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
            clocks_ahead: script.clocks_ahead,
        });
        let machine = hub.clone();
        sim.host(HUB, move || run_hub(machine.clone()));
        let mut members = Vec::new();
        for number in 0..CLUSTERS.len() {
            let member = member(number, seed, script, &authorities)?;
            for machine in member.machines.clone() {
                sim.host(machine.name, move || run_agent(machine.clone()));
            }
            members.push(member);
        }
        let operator = OperatorMachine::new(authorities.issue(Role::operator(OPERATOR)?)?);
        let machine = operator.clone();
        sim.host(OPERATOR, move || run_operator(machine.clone()));
        Ok(Self {
            sim,
            members,
            copy: None,
            hub,
            operator,
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

    /// Longest usual latency of a message, in milliseconds.
    pub(super) fn latency_millis(&self) -> u64 {
        u64::try_from(self.latency.as_millis()).unwrap_or(u64::MAX)
    }

    /// Time passes for everybody, and processes that ended are started again.
    pub(super) fn step(&mut self) -> anyhow::Result<()> {
        self.sim
            .step()
            .map_err(|error| anyhow!("the simulator failed: {error}"))?;
        for member in self.members.iter().chain(&self.copy) {
            member.clock.advance(STEP.as_millis() as i64);
        }
        for name in self.names() {
            let idle = !self.down.borrow().contains(&name) && !self.sim.is_host_running(name);
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

    /// The machines on which programs of ours run.
    fn names(&self) -> Vec<&'static str> {
        let members = self.members.iter().chain(&self.copy);
        let agents = members.flat_map(|member| &member.machines);
        agents.map(|machine| machine.name).chain([HUB]).collect()
    }

    /// The machines of a member's agents.
    fn names_of(&self, member: usize) -> Vec<&'static str> {
        let machines = self.members[member].machines.iter();
        machines.map(|machine| machine.name).collect()
    }

    pub(super) fn count(&mut self, class: &'static str) {
        *self.counts.entry(class).or_default() += 1;
    }

    pub(super) fn perform(&mut self, event: Event) {
        match event {
            Event::Deed(number, deed) => {
                // A user's kubectl prints the error and that is that.
                let _ = self.act(number, deed);
            }
            Event::Fault(fault) => {
                let now = self.now();
                self.trace.line(now, format_args!("{event:?}"));
                if let Some(class) = fault.class() {
                    self.count(class);
                }
                self.fault(fault);
            }
        }
    }

    /// Users of a cluster do something. What is impossible is an error, and left undone.
    pub(super) fn act(&mut self, number: usize, deed: Deed) -> anyhow::Result<()> {
        let (now, event) = (self.now(), Event::Deed(number, deed));
        self.trace.line(now, format_args!("{event:?}"));
        self.count(deed.class());
        user::act(&self.members[number].cluster, number, deed)
    }

    /// Everything works again: links, machines, disks, APIs.
    pub(super) fn mend_everything(&mut self) {
        for number in 0..CLUSTERS.len() {
            for fault in [
                Fault::Mend(number),
                Fault::SlowReader(number, 0),
                Fault::ApiWell(number),
                Fault::InstallDefinition(number),
            ] {
                self.fault(fault);
            }
            self.start_agents(number);
        }
        self.hub.disk.borrow().set_faults(Faults::default());
        self.start_if_down(HUB);
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Partition(member) => self.link(member, |sim, name| sim.partition(name, HUB)),
            Fault::Deaf(member) => self.link(member, |sim, name| sim.partition_oneway(name, HUB)),
            Fault::Mute(member) => self.link(member, |sim, name| sim.partition_oneway(HUB, name)),
            Fault::Hold(member) => self.link(member, |sim, name| sim.hold(name, HUB)),
            Fault::Latency(member, latency) => {
                self.link(member, |sim, name| sim.set_link_latency(name, HUB, latency));
            }
            Fault::Mend(member) => {
                let usual = self.latency;
                self.link(member, |sim, name| mend(sim, name, usual));
            }
            Fault::SlowReader(member, millis) => {
                for machine in &self.members[member].machines {
                    machine.pace.store(millis, Ordering::Relaxed);
                }
            }
            Fault::KillAgent(member) => self.crash(self.members[member].leader().name),
            Fault::DropAgent(member) => self.drop_machine(self.members[member].leader().name),
            Fault::StopAgent(member) => self.members[member].leader().life.terminate(),
            Fault::StartAgent(member) => self.start_agents(member),
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
            Fault::LieAboutSync => self.lie_about_sync(),
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
            Fault::InstallDefinition(member) => self.install(member, DEFINITION),
            Fault::DropWatches(member) => self.members[member].cluster.faults().drop_watches(),
            Fault::ForgetHistory(member) => self.members[member].cluster.forget_history(),
        }
    }

    /// A machine's files change while its process runs, or is away.
    fn change_authority(&self, machine: Option<usize>, to: Change) {
        let live = match machine {
            Some(member) => &self.members[member].machines[0].credentials,
            None => &self.hub.credentials,
        };
        // An operator has its files from where the hub has them.
        let with_it = machine.is_none().then_some(&self.operator.credentials);
        for live in [live].into_iter().chain(with_it) {
            let changed = self.authorities.change(live, to);
            changed.expect("identity and key are those that the machine had");
        }
    }

    fn drop_hub(&mut self, kept: usize) {
        for member in 0..CLUSTERS.len() {
            self.link(member, |sim, name| sim.partition(HUB, name));
        }
        self.crash(HUB);
        let disk = self.hub.disk.borrow();
        disk.crash(kept);
        disk.set_faults(Faults::default());
    }

    /// The epoch that begins on such a disk may be lost though members know it. Only an operator can say then that this
    /// log is the one to go on with.
    fn lie_about_sync(&self) {
        self.disk_fault(Faults {
            lie_about_sync: true,
            ..Faults::default()
        });
        self.hub.adopt_epoch.set(true);
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
        // As docs/guides/backup.md tells whoever restores a hub.
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

    fn install(&self, member: usize, definition: &str) {
        let cluster = &self.members[member].cluster;
        let definitions = current_crds();
        let wanted = definitions.iter().find(|one| one.name() == definition);
        if let Some(wanted) = wanted.filter(|_| !cluster.serves(definition)) {
            cluster.install_crd(wanted);
        }
    }

    /// Somebody deletes the definition of exports in a cluster, and with it all that its users asked for.
    pub(super) fn remove_exports(&self, member: usize) -> anyhow::Result<()> {
        self.members[member].cluster.remove_crd(EXPORTS)
    }

    /// The definition of exports is there again.
    pub(super) fn install_exports(&self, member: usize) {
        self.install(member, EXPORTS);
    }

    fn disk_fault(&self, faults: Faults) {
        self.hub.disk.borrow().set_faults(faults);
    }

    /// Something becomes of what leads from a cluster to the hub, whichever of its agents speaks.
    fn link(&self, member: usize, change: impl Fn(&Sim<'static>, &'static str)) {
        for name in self.names_of(member) {
            change(&self.sim, name);
        }
    }

    /// A machine is gone without a word.
    pub(super) fn drop_machine(&mut self, name: &'static str) {
        self.sim.partition(name, HUB);
        self.crash(name);
    }

    /// All machines of a member are gone without a word, until its agents are started.
    pub(super) fn drop_agents(&mut self, member: usize) {
        for name in self.names_of(member) {
            self.drop_machine(name);
        }
    }

    /// The agents of a member end in good order, and nobody starts one until its agents are started.
    pub(super) fn send_away(&mut self, member: usize) {
        for machine in &self.members[member].machines {
            machine.life.terminate();
            self.down.borrow_mut().push(machine.name);
        }
    }

    /// Returns true if a program of a member runs.
    pub(super) fn is_any_running(&mut self, member: usize) -> bool {
        let names = self.names_of(member);
        names.into_iter().any(|name| self.sim.is_host_running(name))
    }

    /// Machines of a member's agents that are down are up again, and the agents with them.
    pub(super) fn start_agents(&mut self, member: usize) {
        for name in self.names_of(member) {
            self.start_if_down(name);
        }
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
            for member in 0..CLUSTERS.len() {
                self.link(member, |sim, name| sim.repair(name, HUB));
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
        for machine in self.members.iter().flat_map(|member| &member.machines) {
            machine.life.terminate();
        }
        self.hub.life.terminate();
    }

    /// Puts the requests that agents made since the last look into the trace; the writes among them. An error is
    /// what an agent asked too often.
    pub(super) fn note_requests(&mut self) -> anyhow::Result<Vec<Written>> {
        let now = self.now();
        let mut writes = Vec::new();
        for member in self.members.iter_mut().chain(&mut self.copy) {
            let leads = holder_of(&member.cluster);
            if leads.is_some() && leads != member.led_by {
                let changed = member.led_by.is_some();
                member.led_by = leads;
                *self.counts.entry("leadership changed hands").or_default() += u64::from(changed);
            }
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

/// The link between a machine and the hub is whole, and as fast as usual.
fn mend(sim: &Sim<'static>, name: &'static str, latency: Duration) {
    sim.repair(name, HUB);
    sim.release(name, HUB);
    sim.set_link_latency(name, HUB, LATENCY_FLOOR);
    sim.set_link_max_message_latency(name, HUB, latency);
}

fn member(
    number: usize,
    seed: u64,
    script: &Script,
    authorities: &Authorities,
) -> anyhow::Result<SimulatedMember> {
    let clock = Arc::new(ManualClock::new(WALL_AT_START as i64));
    let cluster = SimCluster::new(SimConfig {
        name: CLUSTERS[number].into(),
        seed: seed.wrapping_mul(16) + number as u64,
        clock: clock.clone(),
        ..SimConfig::default()
    })?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TRIBUTARY_NAMESPACE}});
    cluster.apply(namespace)?;
    let id = ClusterId::new(CLUSTERS[number])?;
    // Both have the files of one Secret.
    let credentials = authorities.issue(Role::Cluster(id.clone()))?;
    let source_leases = match script.story {
        Story::Expired(expiring) if expiring == number => EXPIRING,
        _ => Settings::default(),
    };
    let machine = |name| {
        Rc::new(AgentMachine {
            name,
            holder: name,
            life: Life::default(),
            cluster: cluster.clone(),
            pace: Arc::default(),
            source_leases,
            credentials: credentials.clone(),
            id: id.clone(),
        })
    };
    let names = [CLUSTERS[number]]
        .into_iter()
        .chain(script.doubled[number].then_some(SECOND[number]));
    let machines = names.map(machine).collect();
    Ok(SimulatedMember {
        cluster,
        machines,
        clock,
        requests: Requests::default(),
        led_by: None,
    })
}
