//! The loop around the health of a cluster: it follows Leases and Nodes, asks the API server, and reports what the pure
//! rooms beside it conclude. It decides nothing.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use shared::{
    api::names::{KUBE_SYSTEM_NAMESPACE, SELECTOR_API_SERVER_IDENTITY, SELECTOR_API_SERVER_IDENTITY_OLD},
    model::{ControlPlaneReason, Health, NodesHealth},
    process::random,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    ask::{Answers, LeaderRead, Questions},
    judge::{Judge, STARTING},
    nodes::Nodes,
    observed::{KeptLease, KeptNode, picture},
    pace::Pace,
    report,
};
use crate::{
    lease::Monotonic,
    watch::{Dirty, Watched, follow, follow_labelled},
};

/// Longest interval between probes of the control plane. An agent probes up to a tenth sooner, so that a fleet started
/// at one moment spreads its probes.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// The part of the interval by which agents differ.
const PROBE_SPREAD: f64 = 0.1;
/// Probe interval while probes fail: a recovery is to be seen within half a minute.
const PROBE_INTERVAL_FAILED: Duration = Duration::from_secs(5);
/// Interval of listing all identity Leases anew: a silent watch may be dead itself.
const LIST_INTERVAL: Duration = Duration::from_secs(60);
/// Interval of checks that depend on time alone.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Inputs of the questions.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    failed: bool,
    list: bool,
}

/// The watcher of a cluster's health.
pub struct HealthWatch {
    client: Client,
    clock: Monotonic,
    started: Duration,
    current: Watched<KeptLease>,
    old: Watched<KeptLease>,
    nodes: Watched<KeptNode>,
    judge: Judge,
    counted: Nodes,
    pace: Pace,
    version: Box<str>,
    leases_were_listed: bool,
    nodes_changed: bool,
    nodes_counted: bool,
    said: Option<ControlPlaneReason>,
}

impl HealthWatch {
    /// One that has seen nothing; a node may be not ready for `tolerance`.
    pub fn new(client: Client, clock: Monotonic, tolerance: Duration) -> Self {
        let started = clock();
        Self {
            client,
            started,
            current: Watched::new(|_| None),
            old: Watched::new(|_| None),
            nodes: Watched::new(|_| None),
            judge: Judge::new(started),
            counted: Nodes::new(tolerance),
            pace: Pace::default(),
            version: "".into(),
            leases_were_listed: false,
            nodes_changed: true,
            nodes_counted: false,
            said: None,
            clock,
        }
    }

    /// Watches until `drain`, and sends what is to be reported.
    pub async fn run(mut self, reports: mpsc::Sender<Arc<Health>>, drain: CancellationToken) {
        let (leases_changed, nodes_changed) = (Dirty::<()>::default(), Dirty::<()>::default());
        for store in [&self.current, &self.old] {
            store.mark_changes(&leases_changed, |_| Some(()));
        }
        self.nodes.mark_changes(&nodes_changed, |_| Some(()));
        let (wants, wanted) = watch::channel(Wanted::default());
        let (answers_sender, mut answers) = mpsc::channel(1);
        let questions = Questions::new(self.client.clone(), self.current.clone(), self.old.clone());
        let mut asking = std::pin::pin!(ask(questions, wanted, answers_sender));
        let mut following = std::pin::pin!(self.follow(&drain));
        let mut looks = tokio::time::interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return,
                () = &mut following => return,
                () = &mut asking => return,
                Some((answered, version)) = answers.recv() => self.answered(&answered, version),
                _ = leases_changed.taken() => self.look_at_leases(),
                _ = nodes_changed.taken() => self.nodes_changed = true,
                _ = looks.tick() => self.second(),
            }
            if let Some(health) = self.look()
                && reports.send(health).await.is_err()
            {
                return;
            }
            let now = (self.clock)();
            wants.send_replace(Wanted {
                failed: self.judge.has_failed(),
                list: self.judge.misses_renewals(now),
            });
        }
    }

    /// Follows what can be watched.
    fn follow(&self, drain: &CancellationToken) -> impl Future<Output = ()> + use<> {
        let leases = Api::<Lease>::namespaced(self.client.clone(), KUBE_SYSTEM_NAMESPACE);
        let nodes = Api::all(self.client.clone());
        let (current, old, kept_nodes) = (self.current.clone(), self.old.clone(), self.nodes.clone());
        let drain = drain.clone();
        async move {
            tokio::join!(
                follow_labelled(leases.clone(), SELECTOR_API_SERVER_IDENTITY, &current, &drain),
                follow_labelled(leases, SELECTOR_API_SERVER_IDENTITY_OLD, &old, &drain),
                follow(nodes, &kept_nodes, &drain),
            );
        }
    }

    fn answered(&mut self, answers: &Answers, version: Box<str>) {
        let now = (self.clock)();
        self.version = version;
        self.judge.answered(now, answers.readyz.clone(), &answers.livez);
        match &answers.controller_manager {
            LeaderRead::Version(version) => self.judge.controller_manager(now, Some(version)),
            LeaderRead::Absent => self.judge.controller_manager(now, None),
            LeaderRead::Unanswered => {}
        }
        match &answers.scheduler {
            LeaderRead::Version(version) => self.judge.scheduler(now, Some(version)),
            LeaderRead::Absent => self.judge.scheduler(now, None),
            LeaderRead::Unanswered => {}
        }
        if let Some(no_time) = answers.no_time {
            self.judge.blind(no_time);
        }
        self.look_at_leases();
    }

    fn look_at_leases(&mut self) {
        let now = (self.clock)();
        if self.current.is_listed() && self.old.is_listed() {
            self.leases_were_listed = true;
            self.judge.leases(now, Some(&picture(&self.current, &self.old)));
        } else if std::mem::take(&mut self.leases_were_listed) {
            self.judge.leases(now, None);
        }
    }

    /// Checks what no event announces.
    fn second(&mut self) {
        let listed = self.current.is_listed() && self.old.is_listed();
        if listed != self.leases_were_listed {
            self.look_at_leases();
        }
        self.look_at_nodes();
    }

    fn look_at_nodes(&mut self) {
        if self.nodes.is_listed() && std::mem::take(&mut self.nodes_changed) {
            let nodes = self.nodes.all();
            let names: Vec<Box<str>> = nodes.iter().map(|node| node.name()).collect();
            let seen = names.iter().zip(&nodes).map(|(name, node)| (&**name, node.ready));
            self.counted.take((self.clock)(), seen);
            self.nodes_counted = true;
        }
    }

    /// The health, if it is to be reported now. Before everything is known once, nothing is: what an agent before this
    /// one said holds.
    fn look(&mut self) -> Option<Arc<Health>> {
        let now = (self.clock)();
        let verdict = self.judge.verdict(now)?;
        self.tell(verdict.reason);
        if !self.nodes_counted {
            self.look_at_nodes();
        }
        let nodes = if self.nodes.is_listed() {
            self.counted.health(now)
        } else if now.saturating_sub(self.started) >= STARTING {
            NodesHealth::NotReadable
        } else {
            return None;
        };
        if nodes == NodesHealth::Starting && now.saturating_sub(self.started) < STARTING {
            return None;
        }
        let checks = self.judge.failed_checks();
        let health = report::health(&self.version, verdict, checks, Some(nodes));
        self.pace.due(now, health)
    }

    fn tell(&mut self, reason: ControlPlaneReason) {
        if self.said.replace(reason) == Some(reason) {
            return;
        }
        let reason_said = reason.as_str();
        if reason.is_healthy() == Some(true) {
            info!(reason = reason_said, "the control plane is healthy");
        } else {
            warn!(
                reason = reason_said,
                "the control plane is not known to be healthy"
            );
        }
    }
}

/// Asks again and again; answers that are not taken yet wait.
async fn ask(
    mut questions: Questions,
    wanted: watch::Receiver<Wanted>,
    answers: mpsc::Sender<(Answers, Box<str>)>,
) {
    let interval = PROBE_INTERVAL.mul_f64(1.0 - PROBE_SPREAD * random::<f64>());
    let mut listed = Instant::now();
    loop {
        let began = Instant::now();
        let list = wanted.borrow().list || began.duration_since(listed) >= LIST_INTERVAL;
        if list {
            listed = began;
        }
        let answered = questions.ask(list).await;
        if answers.send((answered, questions.version.clone())).await.is_err() {
            return;
        }
        let failed = wanted.borrow().failed;
        let wait = if failed { PROBE_INTERVAL_FAILED } else { interval };
        tokio::time::sleep_until(began + wait).await;
    }
}
