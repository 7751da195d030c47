//! A hub of a world: the product's writer and sessions over a log in memory, stepped turn by turn. What the writer's
//! thread and the sessions' tasks wait for, the world's draw brings about; what is done then is the product's.

mod contests;
mod counted;
mod declared;
mod due;
mod goodbyes;
mod holders;
mod left;
mod operator;
mod promises;
mod recorded;
mod session;
mod silence;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use event_log::{Log, MemoryDisk, MemoryLog, Retention};
use fold::State;
use hub_core::{
    bounds::{Bounds, StateBounds},
    clock::Moment,
    replay,
    view::SharedView,
    writer::{Completed, DiskRoom, Inbox, Options, Request, TICK_MILLIS, Work, Writer, WriterHandle},
};
use model::{ClusterId, Clusterset, Cursor, Epoch, FactKey, KeyFingerprint, Revision, ServiceKey};
use tokio::sync::mpsc::UnboundedReceiver;

use self::{
    due::{Before, Due},
    holders::Holders,
    promises::Promises,
    session::HubSession,
    silence::{Losses, Silence},
};
pub(super) use self::{left::Left, recorded::Recorded};
use oracle::laws::Law;

use super::{draw::Draw, histogram::Histogram, network::StreamId};

/// Small worlds are to meet the bounds: batches that are full, snapshots that take several messages, and more
/// removals than are remembered.
const BOUNDS: Bounds = Bounds {
    inbox: 8,
    batch_events: 6,
    batch_bytes: 64 * 1024,
    batches_in_flight: 2,
    difference_bytes: 32,
    snapshot_events: 40,
    snapshot_events_per_fact: 2,
    segment_bytes: 4_000,
    retention: Retention {
        age_millis: 16_000,
        bytes: 1_000,
    },
    disk_alarm_percent: 15,
    disk_reserve_percent: 5,
    tombstones: 3,
    effects: 3,
    chunk_bytes: 300,
    state: StateBounds::PRODUCT,
};

/// A process of the hub.
pub(super) struct Hub {
    writer: Writer,
    completed: UnboundedReceiver<Completed>,
    handle: WriterHandle,
    inbox: Inbox,
    log: MemoryLog,
    view: SharedView,
    sessions: BTreeMap<StreamId, HubSession>,
    /// Sessions that are over, and do not know yet whether the writer admitted them.
    leaving: Vec<HubSession>,
    /// Last requests of ended sessions to the writer.
    farewells: VecDeque<Request>,
    ticked_at: u64,
    oldest: Revision,
    draw: Draw,
    promises: Promises,
    /// Members' signs of life, and the times of withdrawals.
    silence: Silence,
    holders: Holders,
    /// Times that run.
    due: Due,
    /// Requests that the writer took while the disk's reserve was touched, not counted yet.
    reserved_works: u64,
    /// An operator was told to forget a cluster that is gone, and did.
    has_forgotten: bool,
    /// The cluster whose session hears nothing from the writer at present.
    pub(super) slow: Option<ClusterId>,
    /// The process ended by itself: its log failed.
    pub(super) failed: Option<String>,
}

impl Hub {
    /// Starts over a disk: replays, and takes up the rules if others folded the log. `recorded`: what is known to be
    /// durable there, if anything is.
    pub(super) fn start(
        disk: &MemoryDisk,
        set: &Clusterset,
        at: Moment,
        random: u64,
        recorded: Option<Recorded>,
    ) -> Result<Self, String> {
        let epoch = Epoch {
            created_at: at.wall,
            random,
        };
        let log = MemoryLog::open(disk, set, epoch).map_err(|error| error.to_string())?;
        let (state, _) = replay::replay(&log.reader()).map_err(|error| error.to_string())?;
        log.hold_syncs(true);
        let oldest = log.stats().oldest_revision;
        let recorded = recorded.unwrap_or_else(|| Recorded::of(&state, log.head()));
        let options = Options {
            hub: "hub".into(),
            hub_version: "swarm".into(),
            // An operator of a swarm answers the question whether another hub runs with no.
            adopt_epoch: true,
            bounds: BOUNDS,
        };
        let promises = Promises::new(recorded, &log);
        let own_log = Box::new(log.clone());
        let (mut writer, view, completed) = Writer::new(state, own_log, options, Default::default(), at);
        writer.begin(at);
        let due = Due::of(writer.core().state(), at);
        let (handle, inbox) = WriterHandle::new(BOUNDS.inbox);
        Ok(Self {
            writer,
            completed,
            handle,
            inbox,
            log,
            view,
            sessions: BTreeMap::new(),
            leaving: Vec::new(),
            farewells: VecDeque::new(),
            ticked_at: at.now(),
            oldest,
            draw: Draw::new(random),
            promises,
            silence: Silence::since(at.now()),
            holders: Holders::default(),
            due,
            reserved_works: 0,
            has_forgotten: false,
            slow: None,
            failed: None,
        })
    }

    /// Of how many members something waits for room in their budgets.
    pub(super) fn waiting(&self) -> usize {
        self.writer.core().over_budget_members()
    }

    /// The state, for looking at.
    pub(super) fn state(&self) -> &State {
        self.writer.core().state()
    }

    /// The last durable position.
    pub(super) fn head(&self) -> Cursor {
        self.log.head()
    }

    /// The last position at which somebody was promised something.
    fn promised(&self) -> Cursor {
        self.view.read().head()
    }

    /// The state at the last durable position, if nothing behind it is folded yet.
    fn durable_state(&self) -> Option<(Cursor, State)> {
        let core = self.writer.core();
        (core.head() == self.head()).then(|| (self.head(), core.state().clone()))
    }

    /// Returns true if `cursor` is on this log's history.
    pub(super) fn holds(&self, cursor: Cursor) -> bool {
        promises::is_on_history(&self.log, cursor)
    }

    /// The durable state on its disk.
    pub(super) fn recorded(&self) -> Recorded {
        self.promises.recorded.clone()
    }

    /// All history goes that may go.
    pub(super) fn retain_nothing(&mut self, at: Moment, seen: &mut Histogram) {
        let nothing = Retention {
            age_millis: 0,
            bytes: 0,
        };
        let before = self.log.stats().oldest_revision;
        self.log.retain(nothing, at.wall);
        if self.log.stats().oldest_revision > before {
            seen.count("history forced out");
        }
    }

    /// Members whose export of each service keeps the first place though another one claims to be older.
    pub(super) fn kept_first(&self) -> impl Iterator<Item = (&ServiceKey, &ClusterId)> {
        self.promises.recorded.contests.kept_first()
    }

    /// The first cluster in whose name a stream is open under a key that it never had.
    pub(super) fn held_by_a_stranger(
        &self,
        has: impl Fn(&ClusterId, KeyFingerprint) -> bool,
    ) -> Option<&ClusterId> {
        self.promises.held_by_a_stranger(has)
    }

    /// Number of open sessions, and the cluster of one whose key was revoked.
    pub(super) fn open_under_revoked_key(&self) -> (u64, Option<&ClusterId>) {
        self.promises.open_under_revoked_key()
    }

    /// The first law that it broke by what it said.
    pub(super) fn broken(&self) -> Option<&String> {
        self.promises.broken()
    }

    /// The clusters that have listed.
    pub(super) fn listed(&self) -> &BTreeSet<ClusterId> {
        self.writer.core().listed()
    }

    /// Objects and tombstones that are published.
    pub(super) fn view_size(&self) -> (usize, usize) {
        self.view.read().len()
    }

    /// Nothing waits to be written, released or handed over.
    pub(super) fn is_idle(&self) -> bool {
        let gone = self.leaving.is_empty() && self.farewells.is_empty();
        let idle = self.writer.is_idle() && self.inbox.is_empty();
        gone && idle && self.sessions.values().all(HubSession::is_idle)
    }

    /// Streams that have a session.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        self.sessions.keys().copied().collect()
    }

    /// The writer takes what waits longest, if it has room: a request, a Hello, a tick.
    fn take(&mut self, at: Moment) -> bool {
        if !self.writer.has_room() {
            return false;
        }
        let Some(work) = self.inbox.try_next() else {
            return false;
        };
        let before = self.reserved_facts();
        let (losses, ticked) = (Losses::of(self.state()), matches!(work, Work::Tick));
        if let Work::Request(Request::Closed {
            cluster,
            goodbye: true,
            ..
        }) = &work
        {
            self.silence.told_of_goodbye(cluster, at.now());
        }
        self.holders.looked(self.writer.core().state(), at.now());
        let serves = self.writer.core().not_serving().is_none();
        let timed = (ticked && serves).then(|| Before::of(self.state()));
        self.writer.take(work, at);
        let state = self.writer.core().state();
        self.holders.looked(state, at.now());
        self.due
            .looked(timed.as_ref(), state, at)
            .unwrap_or_else(|why| self.promises.breaks(why));
        if ticked && self.writer.core().not_serving().is_none() {
            let sessions = self.sessions.values().chain(&self.leaving);
            let present = sessions.map(|session| session.cluster().clone()).collect();
            let ticked = self.silence.ticked(&losses, state, &present, at.now());
            ticked.unwrap_or_else(|why| self.promises.breaks(why));
        } else {
            self.silence.took(&losses, state);
        }
        // Whether it was a tick that found room, or the end of it, says what was before.
        if let Some((before, now)) = before.zip(self.reserved_facts()) {
            self.reserved_works += 1;
            self.promises.grew(before, now);
        }
        true
    }

    /// Number of facts while the disk's reserve is touched. Health may come nevertheless.
    fn reserved_facts(&self) -> Option<usize> {
        let core = self.writer.core();
        (core.room() == DiskRoom::Reserve).then(|| {
            let facts = core
                .state()
                .members()
                .values()
                .flat_map(|member| member.facts().keys());
            facts.filter(|key| **key != FactKey::Health).count()
        })
    }

    /// The writer does one thing that is due: appends, begins an epoch, shows it, writes a snapshot.
    fn step(&mut self, at: Moment, seen: &mut Histogram) -> bool {
        let before = self.log.head();
        let segments = self.log.stats().segments;
        let draw = &mut self.draw;
        let stepped = self.writer.step(at, || draw.number());
        self.look_at_history(segments, seen);
        if self.log.head().epoch != before.epoch {
            seen.count("epoch begun");
            self.promises.begun(&self.log, before, at, &mut seen.guarded);
        }
        self.unless_failed(stepped)
    }

    /// Notes whether a segment was sealed since there were so many, and whether history went since the last look.
    fn look_at_history(&mut self, segments: u64, seen: &mut Histogram) {
        let stats = self.log.stats();
        if stats.segments > segments {
            seen.count("segment sealed");
        }
        if stats.oldest_revision > std::mem::replace(&mut self.oldest, stats.oldest_revision) {
            seen.count("history went");
        }
    }

    /// The disk makes durable what was appended.
    fn sync(&mut self, seen: &mut Histogram) {
        let before = self.log.head();
        self.log.sync();
        self.promises.synced(&self.log, before, &mut seen.guarded);
        self.silence.count(seen);
        seen.guarded.count(Law::Due, self.due.take_guarded());
        for _ in 0..promises::differences(&self.log, before) {
            seen.count("fact stored as a difference");
        }
        seen.guarded
            .count(Law::Reserve, std::mem::take(&mut self.reserved_works));
    }

    /// The writer hears of one batch that is durable: it publishes and answers.
    fn complete(&mut self, at: Moment) -> bool {
        let Ok(completed) = self.completed.try_recv() else {
            return false;
        };
        let released = self.writer.on_completed(completed, at);
        self.unless_failed(released.map(|()| true))
    }

    fn unless_failed<E: ToString>(&mut self, outcome: Result<bool, E>) -> bool {
        if let Ok(present) = self.writer.present().read() {
            self.promises
                .asked(&present, self.view.read().head(), self.log.head());
        }
        outcome.unwrap_or_else(|error| {
            self.failed = Some(error.to_string());
            true
        })
    }

    /// Has the writer look at every member's silence, when it is time and there is room.
    fn tick(&mut self, at: Moment) {
        if at.now() >= self.ticked_at + TICK_MILLIS
            && let Some(permit) = self.handle.try_permit()
        {
            permit.work(Work::Tick);
            self.ticked_at = at.now();
        }
    }

    /// A session that is over says so to the writer.
    fn farewell(&mut self, at: Moment) -> bool {
        self.let_go(at);
        let Some(permit) = self.handle.try_permit() else {
            return false;
        };
        let request = self.farewells.pop_front();
        request.map(|request| permit.send(request)).is_some()
    }
}
