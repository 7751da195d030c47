//! A hub's part in the shared log: what its machine says is carried out over the replica, the fold and the engine.
//! Completions are collected, and run by its owner: they may call the log again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak, mpsc::SyncSender},
};

use bytes::Bytes;
use model::Cursor;
use replication::{
    engine::{Base, Engine, EngineBatch, EngineId, Head, Replica as Name, Term},
    machine::{AskId, Held, Input, Machine, Now, Output, Settings, Standing, TermEnd, Token, WriteError},
};

use super::{
    calls::{Call, Inbox, SharedInbox, What, Word},
    term::TermLog,
    types::{Fold, Happened, Lead, NewReplica, Refold},
};
use crate::{
    AppendError, Batch, Completion, Failure, LogError, Replica, SnapshotRows, StoredEvent, chain,
    record::chain_start,
};

/// A replica makes durable on its disk after so many milliseconds …
const SYNC_MILLIS: u64 = 100;
/// … or so many payload bytes what it applied.
const SYNC_BYTES: usize = 4 * 1024 * 1024;

/// Everything that a hub's part begins with.
pub struct Part<F> {
    /// The hub.
    pub settings: Settings,
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The log on this disk, if there is one.
    pub replica: Option<Box<dyn Replica>>,
    /// Folds a log.
    pub refold: Refold<F>,
    /// Makes the first log of a clusterset.
    pub new_replica: NewReplica,
}

/// A call that waits for its outcome.
enum Waits {
    Append(Completion),
    Confirm(Completion),
    Epoch(SyncSender<Result<Cursor, LogError>>),
}

/// A completion and its outcome.
type Told = Box<dyn FnOnce() + Send>;

pub(super) struct Node<F> {
    machine: Machine,
    engine: Arc<dyn Engine>,
    replica: Option<Box<dyn Replica>>,
    refold: Refold<F>,
    new_replica: NewReplica,
    /// The state at the replica's head; none while this hub leads.
    fold: Option<F>,
    /// The fold cannot take an event.
    is_stopped: bool,
    pub(super) inbox: SharedInbox,
    drive: Option<Weak<dyn Fn() + Send + Sync>>,
    calls: BTreeMap<Token, Waits>,
    epochs: BTreeMap<Token, SnapshotRows>,
    tokens: u64,
    is_able: bool,
    told_able: bool,
    term: Option<Term>,
    /// Nothing was missing at the last answer.
    was_level: bool,
    is_marked: bool,
    synced: Option<Cursor>,
    unsynced_bytes: usize,
    synced_at: u64,
    pub(super) is_over: bool,
    pub(super) told: Vec<Told>,
    pub(super) happened: VecDeque<Happened<F>>,
}

impl<F: Fold> Node<F> {
    /// A hub's part, over what its disk has. `drive` runs it where it has no thread.
    pub(super) fn new(
        part: Part<F>,
        drive: Option<Weak<dyn Fn() + Send + Sync>>,
        now: Now,
    ) -> Result<Self, LogError> {
        let Part {
            settings,
            engine,
            replica,
            mut refold,
            new_replica,
        } = part;
        let (mut held, mut fold, mut is_marked) = (Held::default(), None, false);
        if let Some(replica) = &replica {
            let folded = refold(replica.reader())?;
            let mark = replica.marked().map_err(|error| failed(&error))?;
            is_marked = mark.is_some();
            held = Held {
                at: Some(replica.head()),
                term: Term(folded.term()),
                engine: mark.map(|mark| parse(&mark)).transpose()?,
            };
            fold = Some(folded);
        }
        Ok(Self {
            machine: Machine::new(settings, held, now),
            engine,
            synced: replica.as_ref().map(|replica| replica.synced()),
            replica,
            refold,
            new_replica,
            fold,
            is_stopped: false,
            inbox: Arc::new(Inbox::default()),
            drive,
            calls: BTreeMap::new(),
            epochs: BTreeMap::new(),
            tokens: 0,
            is_able: false,
            told_able: false,
            term: None,
            was_level: false,
            is_marked,
            unsynced_bytes: 0,
            synced_at: now.ticks,
            is_over: false,
            told: Vec::new(),
            happened: VecDeque::new(),
        })
    }

    /// The hub's present part.
    pub(super) fn standing(&self) -> Standing {
        self.machine.standing()
    }

    /// Takes what waits and does what is due; true if there may be more at once.
    pub(super) fn step(&mut self, now: Now) -> bool {
        if self.is_over {
            return false;
        }
        let (word, answer) = {
            let mut waiting = self.inbox.lock();
            (waiting.words.pop_front(), waiting.answers.pop_front())
        };
        let mut worked = word.is_some() || answer.is_some();
        if let Some(word) = word {
            self.word(word, now);
        }
        if let Some((ask, outcome)) = answer {
            self.was_level = self.machine.standing() == Standing::Follows { is_level: true };
            self.give(Input::Answered { ask, outcome }, now);
        }
        let (has_room, term) = (self.machine.has_room(), self.term);
        let may = |call: &Call| {
            let needs_room = matches!(call.what, What::Append(..) | What::BeginEpoch(..));
            has_room || !needs_room || term != Some(Term(call.term))
        };
        if !self.is_over
            && let Some(call) = self.inbox.next_call(may)
        {
            worked = true;
            self.call(call, now);
        }
        self.tick(now);
        worked && !self.is_over
    }

    fn word(&mut self, word: Word, now: Now) {
        match word {
            Word::Able(is_able) => self.is_able = is_able,
            Word::Copied(replica) => {
                let folded = (self.refold)(replica.reader());
                let folded = match folded {
                    Ok(folded) => folded,
                    Err(error) => return self.fail(error),
                };
                let (at, term) = (replica.head(), Term(folded.term()));
                (self.fold, self.is_stopped, self.is_marked) = (Some(folded), false, false);
                self.synced = Some(replica.synced());
                self.replica = Some(replica);
                self.give(Input::Copied { at, term }, now);
            }
            Word::Stop => self.end(),
        }
    }

    /// Time goes on, and what is due besides.
    fn tick(&mut self, now: Now) {
        if self.is_over {
            return;
        }
        if let Some(replica) = &mut self.replica {
            if let Some(failure) = replica.stats().failure {
                return self.fail(failure.into());
            }
            let (head, synced) = (replica.head(), replica.synced());
            let is_due = now.ticks >= self.synced_at + SYNC_MILLIS || self.unsynced_bytes >= SYNC_BYTES;
            if head != synced && is_due {
                (self.synced_at, self.unsynced_bytes) = (now.ticks, 0);
                replica.begin_sync();
            }
            let synced = replica.synced();
            if self.synced != Some(synced) {
                self.synced = Some(synced);
                self.give(Input::Synced(synced), now);
            }
        }
        let able = self.is_able && !self.is_stopped;
        if able != self.told_able {
            self.told_able = able;
            self.give(Input::Able(able), now);
        }
        self.mark();
        self.give(Input::Tick, now);
    }

    /// Notes on the disk whose log it is, as soon as that is certain.
    fn mark(&mut self) {
        let is_certain = matches!(
            self.machine.standing(),
            Standing::Leads | Standing::Follows { is_level: true }
        );
        let engine = self.machine.head().map(|head| head.engine);
        if !self.is_marked
            && is_certain
            && let (Some(replica), Some(engine)) = (&mut self.replica, engine)
        {
            match replica.mark(&engine.to_string()) {
                Ok(()) => self.is_marked = true,
                Err(error) => self.fail(failed(&error)),
            }
        }
    }

    fn call(&mut self, call: Call, now: Now) {
        if self.term != Some(Term(call.term)) {
            let head = self.head();
            self.told.push(Box::new(move || call.fence(head)));
            return;
        }
        let Some(replica) = &mut self.replica else {
            return;
        };
        self.tokens += 1;
        let token = Token(self.tokens);
        match call.what {
            What::Append(batch, done) => self.append(token, batch, done, now),
            What::Confirm(done) => {
                self.calls.insert(token, Waits::Confirm(done));
                self.give(Input::Confirm { token }, now);
            }
            What::BeginEpoch(epoch, rows, answer) => {
                let current = replica.head().epoch;
                if epoch <= current {
                    let why = format!("epoch {epoch} is not above the current one, {current}");
                    drop(answer.send(Err(LogError::Refused(why))));
                    return;
                }
                self.calls.insert(token, Waits::Epoch(answer));
                self.epochs.insert(token, rows);
                self.give(Input::BeginEpoch { token, epoch }, now);
            }
            What::WriteSnapshot(at, rows, done) => replica.write_snapshot(at, rows, done),
            What::Seal(at, rows, done) => {
                // The others seal before the next batch, which is at the same position.
                replica.seal(at, rows, done);
                self.give(Input::BeginSegment, now);
            }
            What::Retain(retention, at) => replica.retain(retention, at),
            What::Resign(next) => {
                let next = next.and_then(|next| Name::new(&next).ok());
                self.give(Input::Resign { next }, now);
            }
        }
    }

    fn append(&mut self, token: Token, batch: Batch, done: Completion, now: Now) {
        let before = batch.expected();
        let mut hash = before.hash;
        for (expected, payload) in batch.events() {
            hash = chain(hash, payload);
            // The writer has hashed these bytes; what changed in between is never committed.
            if hash != *expected {
                self.calls.insert(token, Waits::Append(done));
                let why = "an event's bytes changed between hashing and writing";
                return self.fail(Failure(why.into()).into());
            }
        }
        self.calls.insert(token, Waits::Append(done));
        let payloads = batch.events.into_iter().map(|(_, payload)| Bytes::from(payload));
        let payloads = payloads.collect();
        self.give(
            Input::Append {
                token,
                before,
                payloads,
            },
            now,
        );
    }

    fn give(&mut self, input: Input, now: Now) {
        for output in self.machine.on(input, now) {
            if self.is_over {
                return;
            }
            if let Err(error) = self.perform(output, now) {
                return self.fail(error);
            }
        }
    }

    fn perform(&mut self, output: Output, now: Now) -> Result<(), LogError> {
        match output {
            Output::Ask { ask, request } => {
                let inbox = Arc::clone(&self.inbox);
                let done = move |outcome| inbox.answer(ask, outcome);
                let _: AskId = ask;
                self.engine.ask(request, Box::new(done));
            }
            Output::Apply(batch) => self.apply(&batch, now)?,
            Output::BeginEpoch(base) => self.begin_epoch(base)?,
            Output::NewLog(at) => {
                let replica = (self.new_replica)(at)?;
                self.fold = Some((self.refold)(replica.reader())?);
                self.synced = Some(replica.synced());
                self.replica = Some(replica);
            }
            Output::Copy { diverged } => self.happened.push_back(Happened::MustCopy { diverged }),
            Output::Trimmed(below) => {
                tracing::debug!(epoch = %below.epoch, revision = %below.revision, "trimmed the engine's log");
            }
            Output::LeavesBehind(below) => tracing::warn!(
                epoch = %below.epoch,
                revision = %below.revision,
                "the engine's log is too long: what goes before this position another hub lacks, which copies the log \
                 when it comes back; until then there is one copy fewer"
            ),
            Output::Lead(head) => self.lead(head)?,
            Output::Released { token, outcome } => self.released(token, outcome),
            Output::Ended(end) => self.ended(end)?,
        }
        Ok(())
    }

    fn replica(&mut self) -> Result<&mut Box<dyn Replica>, LogError> {
        let none = || LogError::Refused("there is no log on this disk".into());
        self.replica.as_mut().ok_or_else(none)
    }

    /// A batch that is committed. A mark comes first: on every disk the segment begins at the same position.
    fn apply(&mut self, batch: &EngineBatch, now: Now) -> Result<(), LogError> {
        if batch.begins_segment()
            && !self.is_stopped
            && let Some(rows) = self.fold.as_ref().map(Fold::rows)
        {
            let told = |outcome: Result<(), LogError>| {
                if let Err(error) = outcome {
                    tracing::warn!(%error, "a segment of the log begins without a snapshot; starting takes longer");
                }
            };
            self.replica()?.seal(now.time, rows, Box::new(told));
        }
        let mut hash = batch.before().hash;
        let events: Vec<_> = batch
            .payloads()
            .map(|payload| {
                hash = chain(hash, &payload);
                (hash, payload.to_vec())
            })
            .collect();
        self.unsynced_bytes += batch.encoded().len();
        let local = Batch::chained(batch.before(), events.clone());
        let local = local.map_err(|error| LogError::Refused(error.to_string()))?;
        self.replica()?.apply(local).map_err(LogError::Term)?;
        let is_level = self.was_level;
        let Some(fold) = self.fold.as_mut().filter(|_| !self.is_stopped) else {
            return Ok(());
        };
        let mut revision = batch.before().revision;
        for (hash, payload) in events {
            revision = revision.next();
            let event = StoredEvent {
                revision,
                hash,
                payload,
            };
            if let Err(why) = fold.take(event, is_level) {
                tracing::warn!(%revision, why, "this build cannot fold the log any further: it follows, and does not lead");
                self.is_stopped = true;
                break;
            }
        }
        Ok(())
    }

    /// An epoch that is committed, over the state at this log's head.
    fn begin_epoch(&mut self, base: Base) -> Result<(), LogError> {
        let replica = self.replica()?;
        let over = replica.head();
        if over != base.over {
            let what = format!(
                "epoch {} begins over {}, and this log ends at {over}",
                base.epoch, base.over
            );
            return Err(LogError::Refused(what));
        }
        let head = Cursor {
            epoch: base.epoch,
            revision: model::Revision(0),
            hash: chain_start(replica.clusterset(), base.epoch),
        };
        let rows = match (&mut self.fold, self.epochs.pop_first()) {
            (None, Some((_, rows))) => rows,
            (Some(fold), _) => {
                fold.begin_epoch(head);
                fold.rows()
            }
            (None, None) => return Err(LogError::Refused("an epoch begins without its state".into())),
        };
        self.replica()?.begin_epoch(base.epoch, rows)?;
        Ok(())
    }

    fn lead(&mut self, head: Head) -> Result<(), LogError> {
        self.term = Some(head.term);
        let view = self.replica()?.view();
        let none = || LogError::Refused("this hub leads without a state".into());
        let fold = self.fold.take().ok_or_else(none)?;
        let log = Box::new(TermLog {
            term: head.term.0,
            inbox: Arc::clone(&self.inbox),
            view,
            drive: self.drive.as_ref().and_then(Weak::upgrade),
        });
        self.happened.push_back(Happened::Leads(Lead { head, fold, log }));
        Ok(())
    }

    /// Nothing of the term is kept: the state is that of the log.
    fn ended(&mut self, end: TermEnd) -> Result<(), LogError> {
        self.term = None;
        self.epochs.clear();
        let reader = self.replica()?.reader();
        self.fold = Some((self.refold)(reader)?);
        self.happened.push_back(Happened::Ended(end));
        Ok(())
    }

    fn released(&mut self, token: Token, outcome: Result<Cursor, WriteError>) {
        let Some(waits) = self.calls.remove(&token) else {
            return;
        };
        self.epochs.remove(&token);
        let outcome = outcome.map_err(|error| append_error(error, self.head()));
        self.told.push(match waits {
            Waits::Append(done) | Waits::Confirm(done) => Box::new(move || done(outcome)),
            Waits::Epoch(answer) => Box::new(move || drop(answer.send(outcome.map_err(LogError::Term)))),
        });
    }

    fn head(&self) -> Cursor {
        self.replica
            .as_ref()
            .map_or_else(Cursor::default, |replica| replica.head())
    }

    /// This hub takes no further part: another one leads when it is silent for long enough.
    fn fail(&mut self, error: LogError) {
        let failure = match &error {
            LogError::Failed(failure) => failure.clone(),
            other => Failure(other.to_string().into()),
        };
        tracing::error!(%error, "this hub takes no further part in the shared log");
        for (_, waits) in std::mem::take(&mut self.calls) {
            let failure = failure.clone();
            self.told.push(match waits {
                Waits::Append(done) | Waits::Confirm(done) => Box::new(move || done(Err(failure.into()))),
                Waits::Epoch(answer) => Box::new(move || drop(answer.send(Err(failure.into())))),
            });
        }
        self.happened.push_back(Happened::Failed(error));
        self.end();
    }

    fn end(&mut self) {
        self.is_over = true;
        self.epochs.clear();
        for call in self.inbox.close() {
            self.told.push(Box::new(move || call.fail()));
        }
    }
}

fn append_error(error: WriteError, head: Cursor) -> AppendError {
    match error {
        WriteError::Fenced(at) => AppendError::Fenced(at),
        WriteError::Undecided(at) => AppendError::Undecided(at),
        WriteError::Refused(refusal) => AppendError::Failed(Failure(refusal.to_string().into())),
        // Nothing is known of it.
        WriteError::Full => AppendError::Undecided(head),
    }
}

fn failed(error: &std::io::Error) -> LogError {
    Failure(error.to_string().into()).into()
}

/// The id that a disk is marked with.
fn parse(mark: &str) -> Result<EngineId, LogError> {
    let number = u128::from_str_radix(mark, 16).ok().filter(|_| mark.len() == 32);
    let unknown = || LogError::Refused(format!("{mark:?} is not the id of an engine"));
    Ok(EngineId(number.ok_or_else(unknown)?.to_be_bytes()))
}
