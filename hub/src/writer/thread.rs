//! The writer's thread: drain, decide, append, publish, answer. It owns the log and the ways back to those who
//! asked. Nothing is published or answered before the batch is durable; a failed append ends the thread.

use std::{collections::BTreeMap, thread};

use shared::{
    model::{ChainHash, Cursor, SessionId, sync::Source},
    process::random,
};
use tokio::sync::{mpsc, oneshot};

use super::{
    core::{Core, NotAdmitted, Operated, Options, Reply, Request, Token, publication},
    handle::{INBOX_MAX, Query, SessionEvent, SessionSink, Work, WriterHandle},
};
use crate::{
    clock::Clock,
    fold::{Change, Rejection, State, TOMBSTONES_MAX},
    log::{self, AppendError, Log, LogError},
    metrics::WriterMetrics,
    session::machine::Admission,
    view::{Publication, SharedView, View},
    wire,
};

/// A batch is closed at this many events …
const BATCH_EVENTS: usize = 8 * 1024;
/// … or this many bytes.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A snapshot is written after this many events …
const SNAPSHOT_EVENTS: u64 = 50_000;
/// … or this many for each fact of the state, if those are more: a snapshot has a row for each fact, and writing them
/// must not cost as much as the events themselves.
const SNAPSHOT_EVENTS_PER_FACT: u64 = 2;

const _: () = assert!(BATCH_EVENTS <= log::BATCH_EVENTS_MAX && BATCH_BYTES <= log::BATCH_BYTES_MAX);

/// Why the writer ended by itself: the process ends with it.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// Events could not be made durable.
    #[error("the event log cannot be written, so nothing more is acknowledged: {0}")]
    Append(#[from] AppendError),
    /// A new epoch could not be begun, or another operation of the log failed.
    #[error("the event log failed: {0}")]
    Log(#[from] LogError),
}

/// The thread's own state.
pub struct Writer {
    core: Core,
    log: Box<dyn Log>,
    view: SharedView,
    clock: Clock,
    metrics: WriterMetrics,
    durable: Cursor,
    snapshot_at: u64,
    next_token: Token,
    sessions: BTreeMap<SessionId, SessionSink>,
    admissions: BTreeMap<Token, Admitting>,
    operations: BTreeMap<Token, oneshot::Sender<Result<Operated, Rejection>>>,
    queries: Vec<Query>,
    pings: Vec<(SessionId, oneshot::Sender<()>)>,
    stopping: bool,
}

struct Admitting {
    sink: SessionSink,
    reply: oneshot::Sender<Result<Box<Admission>, NotAdmitted>>,
}

impl Writer {
    /// A writer over a replayed state, and the view of that state.
    pub fn new(
        state: State,
        log: Box<dyn Log>,
        options: Options,
        clock: Clock,
        metrics: WriterMetrics,
    ) -> (Self, SharedView) {
        let (durable, snapshot_at) = (log.head(), log.stats().snapshot_revision);
        let view = SharedView::new(view_of(&state, durable));
        let recorded_at = state.recorded_at();
        let core = Core::new(state, durable, recorded_at, options, clock.now());
        let writer = Self {
            core,
            log,
            view: view.clone(),
            clock,
            metrics,
            durable,
            // A hub that crashes often must not have ever more to replay: what follows the snapshot counts.
            snapshot_at: snapshot_at.map_or(0, |revision| revision.0),
            next_token: 1,
            sessions: BTreeMap::new(),
            admissions: BTreeMap::new(),
            operations: BTreeMap::new(),
            queries: Vec::new(),
            pings: Vec::new(),
            stopping: false,
        };
        (writer, view)
    }

    /// Starts the thread. The receiver tells how it ended.
    pub fn spawn(self) -> std::io::Result<(WriterHandle, oneshot::Receiver<Result<(), WriterError>>)> {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let (ended, end) = oneshot::channel();
        thread::Builder::new().name("writer".into()).spawn(move || {
            // Whoever supervised it may be gone already.
            let _ = ended.send(self.run(inbox));
        })?;
        Ok((WriterHandle { inbox: sender }, end))
    }

    /// Starts it as a task instead, for simulations over a log in memory, which never blocks. Needs a runtime.
    pub fn spawn_task(self) -> (WriterHandle, oneshot::Receiver<Result<(), WriterError>>) {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let (ended, end) = oneshot::channel();
        tokio::spawn(async move {
            // Whoever supervised it may be gone already.
            let _ = ended.send(self.run_task(inbox).await);
        });
        (WriterHandle { inbox: sender }, end)
    }

    fn run(mut self, mut inbox: mpsc::Receiver<Work>) -> Result<(), WriterError> {
        self.begin()?;
        while !self.stopping {
            let Some(work) = inbox.blocking_recv() else { break };
            self.turn(work, &mut inbox)?;
        }
        self.finish()
    }

    async fn run_task(mut self, mut inbox: mpsc::Receiver<Work>) -> Result<(), WriterError> {
        self.begin()?;
        while !self.stopping {
            let Some(work) = inbox.recv().await else { break };
            self.turn(work, &mut inbox)?;
        }
        self.finish()
    }

    fn begin(&mut self) -> Result<(), WriterError> {
        self.core.adopt_fold_version(self.clock.wall());
        self.commit()
    }

    /// One batch: this work and what waits behind it.
    fn turn(&mut self, work: Work, inbox: &mut mpsc::Receiver<Work>) -> Result<(), WriterError> {
        self.take(work);
        while self.has_room() {
            let Ok(work) = inbox.try_recv() else { break };
            self.take(work);
        }
        self.commit()?;
        self.begin_epoch_if_due()?;
        self.snapshot_if_due();
        Ok(())
    }

    fn has_room(&self) -> bool {
        let (events, bytes) = self.core.pending();
        events < BATCH_EVENTS && bytes < BATCH_BYTES && self.core.must_mint().is_none() && !self.stopping
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Request(request) => self.handle(request),
            Work::Admit { request, sink, reply } => {
                let token = self.token();
                self.admissions.insert(token, Admitting { sink, reply });
                self.handle(Request::Admit(token, request));
            }
            Work::Operate {
                command,
                confirm,
                describe,
                reply,
            } => {
                let token = self.token();
                self.operations.insert(token, reply);
                self.handle(Request::Operate {
                    token,
                    command,
                    confirm,
                    describe,
                });
            }
            Work::PingHolder { session, reply } => self.pings.push((session, reply)),
            Work::Query(query) => self.queries.push(query),
            Work::Tick => self.tick(),
            Work::Stop => self.stopping = true,
        }
    }

    fn handle(&mut self, request: Request) {
        if let Request::Closed { session, .. } = &request {
            self.sessions.remove(session);
        }
        self.core.handle(request, self.clock.wall(), self.clock.now());
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    fn tick(&mut self) {
        let heard = self
            .sessions
            .values()
            .map(|sink| (sink.cluster.clone(), sink.heard_at()));
        self.core.tick(self.clock.wall(), self.clock.now(), heard);
        self.metrics.observe_log(&self.log.stats());
    }

    /// Makes the batch durable, then publishes it, then answers.
    fn commit(&mut self) -> Result<(), WriterError> {
        let batch = self.core.take_batch();
        self.append(batch.events)?;
        if self.durable != batch.head {
            // Never seen: the log and the core number and chain the same bytes.
            let what = format!(
                "the log stands at {:?}, the state at {:?}",
                self.durable, batch.head
            );
            return Err(LogError::Refused(what).into());
        }
        self.measure(batch.sources.as_deref());
        publish(&self.view, self.durable, batch.publications, batch.sources);
        self.answer(batch.replies);
        for (session, reply) in std::mem::take(&mut self.pings) {
            if let Some(sink) = self.sessions.get(&session) {
                // A session that just ended drops the reply, which tells as much.
                let _ = sink.events.send(SessionEvent::Ping(reply));
            }
        }
        for query in std::mem::take(&mut self.queries) {
            query(&self.core);
        }
        Ok(())
    }

    /// What is durable now, as gauges; `sources` are all there are, if any of them changed.
    fn measure(&self, sources: Option<&[Source]>) {
        if let Some(sources) = sources {
            self.metrics.members(sources);
        }
        self.metrics.conflicts(|reason| self.core.open_conflicts(reason));
    }

    fn append(&mut self, events: Vec<(ChainHash, Vec<u8>)>) -> Result<(), WriterError> {
        let mut events = events.into_iter().peekable();
        while events.peek().is_some() {
            let (mut part, mut bytes) = (Vec::new(), 0);
            while let Some(event) = events.next_if(|(_, next)| {
                part.is_empty() || (part.len() < BATCH_EVENTS && bytes + next.len() <= BATCH_BYTES)
            }) {
                bytes += event.1.len();
                part.push(event);
            }
            let count = part.len();
            // The core chained these bytes, and the store chains them again before it writes them.
            let batch = log::Batch::chained(self.durable, part)
                .map_err(|error| LogError::Refused(error.to_string()))?;
            let started = self.clock.now_micros();
            self.durable = self.log.append_and_wait(batch)?;
            self.metrics
                .observe_batch(count, bytes, self.clock.now_micros() - started);
        }
        Ok(())
    }

    fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            match reply {
                Reply::Admitted(token, admission) => self.answer_admitted(token, admission),
                Reply::NotAdmitted(token, why) => {
                    if let Some(Admitting { reply, .. }) = self.admissions.remove(&token) {
                        let _ = reply.send(Err(why));
                    }
                }
                Reply::Acknowledged(session, sequence) => {
                    self.tell(session, SessionEvent::Acknowledged(sequence));
                }
                Reply::Refused(session, refused) => {
                    self.metrics.refused(refused.reason);
                    self.tell(session, SessionEvent::Refused(refused));
                }
                Reply::Close(session, why) => {
                    self.tell(session, SessionEvent::Close(why));
                    self.sessions.remove(&session);
                }
                Reply::Operated(token, outcome) => {
                    if let Some(reply) = self.operations.remove(&token) {
                        let _ = reply.send(outcome);
                    }
                }
            }
        }
        self.metrics.sessions(self.sessions.len());
    }

    fn answer_admitted(&mut self, token: Token, admission: Box<Admission>) {
        let Some(Admitting { sink, reply }) = self.admissions.remove(&token) else {
            return;
        };
        let session = admission.welcome.session;
        let closed = Request::Closed {
            session,
            cluster: sink.cluster.clone(),
            heard_at: sink.heard_at(),
        };
        self.sessions.insert(session, sink);
        if reply.send(Ok(admission)).is_err() {
            // The stream went away while it was being admitted.
            self.handle(closed);
        }
    }

    fn tell(&self, session: SessionId, event: SessionEvent) {
        if let Some(sink) = self.sessions.get(&session) {
            // A session that just ended needs no word.
            let _ = sink.events.send(event);
        }
    }

    fn begin_epoch_if_due(&mut self) -> Result<(), WriterError> {
        let Some(known) = self.core.must_mint() else {
            return Ok(());
        };
        let epoch = known.max(self.durable.epoch).next(self.clock.wall(), random());
        let mut carried = self.core.state().clone();
        carried.begin_epoch();
        self.durable = self
            .log
            .begin_epoch(epoch, Box::new(wire::snapshot::rows(carried)))?;
        self.core.epoch_begun(self.durable);
        self.metrics.epoch_begun();
        self.snapshot_at = 0;
        tracing::warn!(%epoch, "began a new epoch: the log was rewound, or members know a later one");
        let view = view_of(self.core.state(), self.durable);
        self.view.replace(view);
        self.commit()
    }

    fn snapshot_if_due(&mut self) {
        let facts = self.core.state().fact_count() as u64;
        if is_snapshot_due(self.durable.revision.0 - self.snapshot_at, facts) {
            self.snapshot_at = self.durable.revision.0;
            let rows = wire::snapshot::rows(self.core.state().clone());
            let done = |outcome: Result<(), LogError>| match outcome {
                Ok(()) => tracing::debug!("wrote a snapshot"),
                Err(error) => tracing::warn!(%error, "could not write a snapshot; starting takes longer"),
            };
            self.log
                .write_snapshot(self.durable, Box::new(rows), Box::new(done));
        }
    }

    /// On an orderly stop the next start replays nothing.
    fn finish(mut self) -> Result<(), WriterError> {
        self.commit()?;
        if self.durable.revision.0 > self.snapshot_at {
            let rows = wire::snapshot::rows(self.core.state().clone());
            match self.log.write_snapshot_and_wait(self.durable, Box::new(rows)) {
                // Such as while another is being written: everything is durable without it.
                Err(LogError::Refused(why)) => {
                    tracing::info!(%why, "stops without a snapshot; starting takes longer")
                }
                written => written?,
            }
        }
        Ok(())
    }
}

/// Whether so many events behind the newest snapshot are worth another, of a state with so many facts.
fn is_snapshot_due(events: u64, facts: u64) -> bool {
    events >= SNAPSHOT_EVENTS.max(SNAPSHOT_EVENTS_PER_FACT * facts)
}

/// The view of a state in which everything is durable.
pub fn view_of(state: &State, head: Cursor) -> View {
    let mut view = View::new(head, state.tombstone_floor());
    let objects = state.all_derived().map(|(key, derived)| Change {
        key: key.clone(),
        revision: derived.revision,
        content: Some(derived.content.clone()),
    });
    let removed = state.tombstones().map(|(key, revision)| Change {
        key: key.clone(),
        revision,
        content: None,
    });
    view.publish(
        head,
        objects.chain(removed).filter_map(publication).collect(),
        TOMBSTONES_MAX,
    );
    view
}

fn publish(view: &SharedView, head: Cursor, publications: Vec<Publication>, sources: Option<Vec<Source>>) {
    let unchanged = publications.is_empty() && sources.is_none() && view.read().head() == head;
    if !unchanged {
        view.publish(head, publications, sources, TOMBSTONES_MAX);
    }
}

#[cfg(test)]
mod tests;
