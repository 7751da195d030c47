//! Hubs over one simulated engine, with a disk and a writer each, and the laws that hold whatever goes wrong.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use model::{ChainHash, Cursor, Epoch, Revision, UnixMillis};

use super::super::{
    AskId, Held, Input, Machine, Now, Output, Settings, Standing, TermEnd, Token, WriteError,
    following::epoch_start,
};
use crate::{
    engine::{
        Answer, Commit, EngineBatch, EngineError, EngineId, Head, Instance, Keys, LogName, Replica, Request,
        Term,
    },
    testing::{Dice, LinkFaults, SimulatedEngine, suite::clusterset},
};

/// So little stays in the engine that logs which were away are copied.
const TAIL_BYTES: u64 = 4 * 1024;
/// Milliseconds of a step.
pub(super) const STEP: u64 = 10;
const ENGINE: EngineId = EngineId([7; 16]);
const FIRST_EPOCH: Epoch = Epoch {
    created_at: UnixMillis(1),
    random: 1,
};
/// Calls of one writer that wait at a time.
const CALLS_MAX: usize = 4;

type Answered = (AskId, Result<Answer, EngineError>);

/// Number of sights, by kind.
#[derive(Debug, Default)]
pub(super) struct Guarded(pub(super) BTreeMap<&'static str, u64>);

impl Guarded {
    pub(super) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn count(&self, what: &'static str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// The events of a log on disk: the hash at each, with its term.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) events: BTreeMap<(Epoch, Revision), (ChainHash, Term)>,
    at: Option<Cursor>,
}

impl Disk {
    fn apply(&mut self, batch: &EngineBatch) {
        assert_eq!(
            self.at,
            Some(batch.before()),
            "a batch is applied behind the log's head"
        );
        let mut at = batch.before();
        for payload in batch.payloads() {
            at.revision = at.revision.next();
            at.hash = at.hash.after(&payload);
            self.events
                .insert((at.epoch, at.revision), (at.hash, batch.term()));
        }
        self.at = Some(at);
    }

    fn truncate(&mut self, at: Option<Cursor>) {
        self.at = at;
        let after = at.unwrap_or_default();
        self.events
            .retain(|place, _| *place <= (after.epoch, after.revision));
    }

    pub(super) fn holds(&self, at: &Cursor) -> bool {
        let held = self.events.get(&(at.epoch, at.revision));
        held.is_some_and(|(hash, _)| *hash == at.hash)
    }

    fn term(&self) -> Term {
        self.events
            .values()
            .next_back()
            .map_or(Term(0), |(_, term)| *term)
    }
}

#[derive(Debug)]
enum Call {
    /// Ends at this position.
    Append(Cursor),
    /// Was called when so many heads had been written.
    Confirm(usize),
    Epoch,
}

/// A process of a hub.
pub(super) struct Hub {
    replica: Replica,
    instance: Instance,
    pub(super) machine: Machine,
    mail: Arc<Mutex<Vec<Answered>>>,
    pub(super) disk: Disk,
    /// Up to where it survives a crash.
    synced: Option<Cursor>,
    pub(super) paused_until: u64,
    pub(super) link: LinkFaults,
    pub(super) link_until: u64,
    /// The term that it leads, the end of what its writer appended, and the heads that were written before.
    pub(super) term: Option<(Head, Cursor, usize)>,
    calls: BTreeMap<Token, Call>,
    /// Writes without an answer.
    writes: BTreeMap<AskId, Request>,
    copies: bool,
}

/// Hubs, their engine, and what was promised to whom.
pub(super) struct SimulatedHubs {
    pub(super) engine: SimulatedEngine,
    pub(super) hubs: Vec<Hub>,
    pub(super) dice: Dice,
    pub(super) now: u64,
    pub(super) guarded: Guarded,
    /// True while writers are at work.
    pub(super) writes: bool,
    /// True if the engine's contents went back.
    pub(super) was_restored: bool,
    tokens: u64,
    instances: u8,
    acknowledged: Vec<Cursor>,
    fenced: Vec<Cursor>,
    undecided: Vec<Cursor>,
    /// The hash that every log has at a position.
    chain: BTreeMap<(Epoch, Revision), ChainHash>,
    /// The commits that a process wants over a head in a term.
    wanted: BTreeMap<(Instance, Term, String), Commit>,
}

impl SimulatedHubs {
    pub(super) fn new(seed: u64, names: &[&str]) -> Self {
        let mut world = Self {
            engine: SimulatedEngine::new(Keys::new(&clusterset(), LogName::Events), seed),
            hubs: Vec::new(),
            dice: Dice::new(seed ^ 0x5eed),
            now: 0,
            guarded: Guarded::default(),
            writes: true,
            was_restored: false,
            tokens: 0,
            instances: 0,
            acknowledged: Vec::new(),
            fenced: Vec::new(),
            undecided: Vec::new(),
            chain: BTreeMap::new(),
            wanted: BTreeMap::new(),
        };
        for (index, name) in names.iter().enumerate() {
            // The first one has a log already, which it brings into the engine.
            let disk = Disk {
                events: BTreeMap::new(),
                at: (index == 0).then(|| epoch_start(&clusterset(), FIRST_EPOCH)),
            };
            let hub = world.hub(Replica::new(name).unwrap(), index == 0, disk, None);
            world.hubs.push(hub);
            world.give(index, Input::Able(true));
        }
        world
    }

    fn now(&self) -> Now {
        Now {
            ticks: self.now,
            time: UnixMillis(1_000_000 + self.now),
        }
    }

    fn hub(&mut self, replica: Replica, is_origin: bool, disk: Disk, engine: Option<EngineId>) -> Hub {
        self.instances += 1;
        let instance = Instance([self.instances; 8]);
        let settings = Settings {
            clusterset: clusterset(),
            replica: replica.clone(),
            instance,
            address: "hub:1".to_owned(),
            version: "1".to_owned(),
            rules: 1,
            takeover_after_millis: 1_500,
            origin: is_origin.then_some(ENGINE),
            random: u64::from(self.instances),
            tail_bytes: TAIL_BYTES,
            tail_bytes_max: 4 * TAIL_BYTES,
        };
        let held = Held {
            at: disk.at,
            term: disk.term(),
            engine,
        };
        Hub {
            replica,
            instance,
            machine: Machine::new(settings, held, self.now()),
            mail: Arc::default(),
            synced: disk.at,
            disk,
            paused_until: 0,
            link: LinkFaults::default(),
            link_until: 0,
            term: None,
            calls: BTreeMap::new(),
            writes: BTreeMap::new(),
            copies: false,
        }
    }

    /// Ends a process and starts another one over what was on its disk.
    pub(super) fn restart(&mut self, index: usize) {
        let hub = &mut self.hubs[index];
        let (replica, mut disk) = (hub.replica.clone(), std::mem::take(&mut hub.disk));
        disk.truncate(hub.synced);
        let engine = disk.at.map(|_| ENGINE);
        self.guarded.note("restarts");
        self.hubs[index] = self.hub(replica, false, disk, engine);
        self.give(index, Input::Able(true));
    }

    /// The hubs that believe to lead.
    pub(super) fn leaders(&self) -> Vec<usize> {
        let leads = |index: &usize| self.hubs[*index].machine.standing() == Standing::Leads;
        (0..self.hubs.len()).filter(leads).collect()
    }

    /// Ten milliseconds.
    pub(super) fn step(&mut self) {
        self.now += STEP;
        self.engine.advance(self.now);
        for index in 0..self.hubs.len() {
            if self.hubs[index].link_until <= self.now {
                self.hubs[index].link = LinkFaults::default();
            }
            if self.hubs[index].paused_until > self.now {
                continue;
            }
            // A question may come before what has arrived in the meantime.
            self.work(index);
            let mail = std::mem::take(&mut *self.hubs[index].mail.lock().unwrap());
            for (ask, outcome) in mail {
                self.hubs[index].writes.remove(&ask);
                self.note_answer(&outcome);
                self.give(index, Input::Answered { ask, outcome });
            }
            self.give(index, Input::Tick);
            if self.dice.in_thousand(100) {
                self.hubs[index].synced = self.hubs[index].disk.at;
                if let Some(at) = self.hubs[index].synced {
                    self.give(index, Input::Synced(at));
                }
            }
            self.copy(index);
        }
    }

    pub(super) fn run(&mut self, millis: u64) {
        for _ in 0..millis / STEP {
            self.step();
        }
    }

    fn note_answer(&mut self, outcome: &Result<Answer, EngineError>) {
        match outcome {
            Err(EngineError::Unanswered(_)) => self.guarded.note("unanswered requests"),
            Ok(Answer::HeadIs(_)) => self.guarded.note("failed comparisons"),
            _ => {}
        }
    }

    /// The writer of a leader: it appends behind what it appended, and asks whether it still leads.
    fn work(&mut self, index: usize) {
        let Some((head, end, _)) = self.hubs[index].term.clone() else {
            return;
        };
        if !self.writes || self.hubs[index].calls.len() >= CALLS_MAX {
            return;
        }
        self.tokens += 1;
        let token = Token(self.tokens);
        match self.dice.between(0, 999) {
            0..400 if self.hubs[index].machine.has_room() => {
                let count = self.dice.between(1, 3);
                let payloads: Vec<Bytes> = (0..count)
                    .map(|_| Bytes::from(self.dice.roll().to_string()))
                    .collect();
                let slices = payloads.iter().map(|payload| &payload[..]);
                let after = EngineBatch::new(end, head.term, false, slices).unwrap().after();
                self.hubs[index].calls.insert(token, Call::Append(after));
                self.hubs[index].term = Some((head, after, self.hubs[index].term.as_ref().unwrap().2));
                let before = end;
                self.give(
                    index,
                    Input::Append {
                        token,
                        before,
                        payloads,
                    },
                );
            }
            400..600 => {
                let heads = self.engine.head_count();
                self.hubs[index].calls.insert(token, Call::Confirm(heads));
                self.give(index, Input::Confirm { token });
            }
            600..602 if self.hubs[index].machine.has_room() => {
                let epoch = end.epoch.next(self.now().time, 9);
                let at = epoch_start(&clusterset(), epoch);
                self.hubs[index].calls.insert(token, Call::Epoch);
                self.hubs[index].term = Some((head, at, self.hubs[index].term.as_ref().unwrap().2));
                self.give(index, Input::BeginEpoch { token, epoch });
            }
            602..606 => self.give(index, Input::BeginSegment),
            _ => {}
        }
    }

    pub(super) fn give(&mut self, index: usize, input: Input) {
        let now = self.now();
        let outputs = self.hubs[index].machine.on(input, now);
        for output in outputs {
            self.perform(index, output);
        }
    }

    fn perform(&mut self, index: usize, output: Output) {
        match output {
            Output::Ask { ask, request } => self.ask(index, ask, request),
            Output::Apply(batch) => {
                self.guarded.note("applied batches");
                if batch.begins_segment() {
                    self.guarded.note("segments");
                }
                let disk = &mut self.hubs[index].disk;
                disk.apply(&batch);
                self.check_chain(&batch);
            }
            Output::BeginEpoch(base) => {
                self.guarded.note("epochs begun");
                let disk = &mut self.hubs[index].disk;
                assert_eq!(
                    disk.at,
                    Some(base.over),
                    "an epoch begins over the state that its base names"
                );
                disk.at = Some(epoch_start(&clusterset(), base.epoch));
            }
            Output::NewLog(at) => self.hubs[index].disk.at = Some(at),
            Output::Copy { .. } => self.hubs[index].copies = true,
            Output::Trimmed(_) => self.guarded.note("trims"),
            Output::LeavesBehind(_) => self.guarded.note("hubs left behind"),
            Output::Lead(head) => {
                self.guarded.note("terms");
                assert_eq!(
                    self.hubs[index].disk.at,
                    Some(head.at),
                    "whoever leads holds everything"
                );
                let heads = self.engine.head_count();
                self.hubs[index].term = Some((head.clone(), head.at, heads));
            }
            Output::Released { token, outcome } => self.released(index, token, outcome),
            Output::Ended(end) => self.ended(index, &end),
        }
    }

    fn ask(&mut self, index: usize, ask: AskId, request: Request) {
        let hub = &mut self.hubs[index];
        if let Request::Commit(commit) = &request {
            let expected = commit.expected.as_ref().map(Head::encode).unwrap_or_default();
            let key = (hub.instance, commit.next.term, expected);
            let repeated = self.wanted.insert(key, (**commit).clone());
            if let Some(before) = repeated {
                assert!(before == **commit, "a commit is repeated with the same bytes");
                self.guarded.note("repeated commits");
            }
        }
        if matches!(
            request,
            Request::Commit(_) | Request::Pulse { .. } | Request::Trim { .. }
        ) {
            assert!(
                hub.writes.values().all(|other| *other == request),
                "one write is under way at a time"
            );
            hub.writes.insert(ask, request.clone());
        }
        let mail = Arc::clone(&hub.mail);
        let done = move |outcome| mail.lock().unwrap().push((ask, outcome));
        self.engine.ask_over(hub.link, request, Box::new(done));
    }

    fn check_chain(&mut self, batch: &EngineBatch) {
        let mut at = batch.before();
        for payload in batch.payloads() {
            at.revision = at.revision.next();
            at.hash = at.hash.after(&payload);
            let known = *self.chain.entry((at.epoch, at.revision)).or_insert(at.hash);
            assert!(
                known == at.hash || self.was_restored,
                "all logs are prefixes of one: {at}"
            );
        }
    }

    fn released(&mut self, index: usize, token: Token, outcome: Result<Cursor, WriteError>) {
        let call = self.hubs[index]
            .calls
            .remove(&token)
            .expect("a call is released once");
        match (call, outcome) {
            (Call::Append(after), Ok(at)) => {
                assert_eq!(after, at);
                self.guarded.note("acknowledged");
                self.acknowledged.push(after);
            }
            (Call::Append(after), Err(WriteError::Fenced(_) | WriteError::Refused(_))) => {
                self.guarded.note("fenced appends");
                self.fenced.push(after);
            }
            (Call::Append(after), Err(WriteError::Undecided(_))) => {
                self.guarded.note("undecided appends");
                self.undecided.push(after);
            }
            (Call::Confirm(heads), Ok(_)) => {
                self.guarded.note("confirmed");
                let (head, ..) = self.hubs[index].term.as_ref().expect("only a leader confirms");
                let since = self.engine.heads_after(heads.saturating_sub(1));
                let is_true = since.iter().any(|held| held.is_of(head));
                assert!(is_true, "what is confirmed was true after the question");
                if since.iter().any(|held| !held.is_of(head)) {
                    self.guarded.note("confirmed and taken over since");
                }
            }
            (Call::Confirm(_), Err(_)) => self.guarded.note("unconfirmed"),
            (Call::Epoch, _) => {}
            (Call::Append(_), Err(WriteError::Full)) => panic!("the writer looked whether there is room"),
        }
    }

    fn ended(&mut self, index: usize, end: &TermEnd) {
        let hub = &mut self.hubs[index];
        let (head, _, heads) = hub.term.take().expect("a term ends once");
        assert!(
            hub.calls.is_empty(),
            "every call is released before: {:?}",
            hub.calls
        );
        hub.writes.clear();
        let since = self.engine.heads_after(heads.saturating_sub(1));
        let is_over = since.iter().any(|held| !held.is_of(&head));
        match end {
            TermEnd::Fenced => {
                assert!(
                    is_over || self.was_restored,
                    "nobody is fenced but by another hub"
                );
                self.guarded.note("fenced terms");
            }
            TermEnd::Undecided => self.guarded.note("undecided terms"),
            TermEnd::Resigned => self.guarded.note("resigned"),
            TermEnd::Refused(_) => self.guarded.note("refused terms"),
        }
    }

    /// Copies the log of a leader, if there is one.
    fn copy(&mut self, index: usize) {
        let Some(leader) = self
            .leaders()
            .into_iter()
            .find(|leader| self.hubs[*leader].paused_until <= self.now)
        else {
            return;
        };
        if !self.hubs[index].copies {
            return;
        }
        self.guarded.note("copies");
        let disk = self.hubs[leader].disk.clone();
        let (at, term) = (disk.at.expect("a leader has a log"), disk.term());
        let hub = &mut self.hubs[index];
        hub.copies = false;
        hub.synced = disk.at;
        hub.disk = disk;
        self.give(index, Input::Copied { at, term });
    }

    /// Everything works again, and after a while all is as it should be.
    pub(super) fn settle(&mut self) {
        self.engine.set_faults(crate::testing::Faults {
            latency_millis: 2,
            ..Default::default()
        });
        for hub in &mut self.hubs {
            (hub.paused_until, hub.link_until) = (0, 0);
        }
        self.run(10_000);
        self.writes = false;
        self.run(5_000);
        let head = self.engine.heads_after(0).pop().expect("there is a head");
        assert_eq!(self.leaders().len(), 1, "one hub leads: {:?}", self.standings());
        for hub in &self.hubs {
            assert_eq!(
                hub.disk.at,
                Some(head.at),
                "every log is level: {:?}",
                self.standings()
            );
        }
        let disk = &self.hubs[0].disk;
        for at in &self.acknowledged {
            assert!(disk.holds(at), "an acknowledged batch is lost: {at}");
        }
        for at in &self.fenced {
            assert!(
                !disk.holds(at),
                "a batch was written though its hub said that it was not: {at}"
            );
        }
        let written = self.undecided.iter().filter(|at| disk.holds(at)).count() as u64;
        *self.guarded.0.entry("undecided and written").or_default() += written;
        *self.guarded.0.entry("undecided and not written").or_default() +=
            self.undecided.len() as u64 - written;
        let mut writers = BTreeMap::new();
        for head in self.engine.heads_after(0) {
            let writer = *writers.entry(head.term).or_insert(head.instance);
            assert_eq!(writer, head.instance, "term {} has one writer", head.term);
        }
    }

    fn standings(&self) -> Vec<Standing> {
        self.hubs.iter().map(|hub| hub.machine.standing()).collect()
    }
}
