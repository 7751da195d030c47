//! Owns: the writer's steps over its log and the ways back to those who asked: take, append, publish, answer; close
//! sessions, replace the view. Nothing is published or answered before its batch is durable.
//! Never: waits, reads a clock or makes randomness; its caller does, and chooses when.

use std::collections::{BTreeMap, VecDeque};

use model::{ClusterId, Cursor, SessionId, sync::Source};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::views::view_of;
use self::{disk::Retaining, views::import_rules_of};
use super::{
    core::{Batch, Core, Options},
    disk_room::DiskRoom,
    handle::{SessionEvent, SessionSink, Work},
    present::{Present, Publisher},
    published::Published,
    request::{Admission, NotAdmitted, Operated, Reply, Request, Token},
    segments,
    service::ServiceTold,
    takeover::Takeover,
};
use crate::snapshot;
use crate::{
    bounds::Bounds,
    clock::Moment,
    metrics::WriterMetrics,
    view::{ImportRules, Publication, SharedView},
};
use event_log::{self, AppendError, Failure, Log, LogError};
use fold::{Rejection, State};

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

impl WriterError {
    /// Another holder writes the log, or may: this writer told nobody of what it decided, and is not to write any more.
    pub fn ends_term(&self) -> bool {
        match self {
            Self::Append(error) => error.ends_term(),
            Self::Log(error) => matches!(error, LogError::Term(_)),
        }
    }
}

/// The log's word on what was appended, in order: it is handed to [`Writer::on_completed`].
#[derive(Debug)]
pub struct Completed(Result<Cursor, AppendError>);

/// A writer between two steps.
pub struct Writer {
    core: Core,
    log: Box<dyn Log>,
    view: SharedView,
    publisher: Publisher,
    metrics: WriterMetrics,
    /// Position that is on disk, published and answered.
    durable: Cursor,
    in_flight: VecDeque<InFlight>,
    completed: mpsc::UnboundedSender<Completed>,
    /// A new epoch began, and its sessions are closed: what it shows is to be published.
    view_outdated: bool,
    snapshot_at: u64,
    /// The newest snapshot says what does not follow from its facts.
    snapshot_wanted: bool,
    /// The log's current segment is to be sealed, as of the last tick.
    segment_full: bool,
    retaining: Retaining,
    /// The alarm on what all members have recorded is on.
    state_alarm: bool,
    /// The log cannot write any more, whether there is something to append or not.
    failure: Option<Failure>,
    next_token: Token,
    service: ServiceTold,
    sessions: BTreeMap<SessionId, SessionSink>,
    admissions: BTreeMap<Token, Admitting>,
    operations: BTreeMap<Token, oneshot::Sender<Result<Operated, Rejection>>>,
    stopping: bool,
}

/// A batch that was handed to the log, and what of it is not durable yet.
struct InFlight {
    batch: Batch,
    /// The state for queries, shown once it is durable.
    published: Published,
    parts: VecDeque<Part>,
}

/// One batch of the log: what is decided at once may be too large for one.
struct Part {
    events: usize,
    bytes: usize,
    appended_at_micros: u64,
}

struct Admitting {
    sink: SessionSink,
    reply: oneshot::Sender<Result<Box<Admission>, NotAdmitted>>,
}

impl Writer {
    /// A writer over a replayed state, the view of that state, and where the log says what became durable.
    pub fn new(
        state: State,
        log: Box<dyn Log>,
        options: Options,
        metrics: WriterMetrics,
        at: Moment,
    ) -> (Self, SharedView, mpsc::UnboundedReceiver<Completed>) {
        let (durable, snapshot_at) = (log.head(), log.stats().snapshot_revision);
        let view = SharedView::new(view_of(&state, durable));
        let recorded_at = state.recorded_at();
        // Bounded by the parts of the batches in flight.
        let (completed, completions) = mpsc::unbounded_channel();
        let core = Core::new(state, durable, recorded_at, options, at.now());
        let mut core = core.within(log.limits()).in_term(log.term());
        let writer = Self {
            publisher: Publisher::new(core.published()),
            core,
            log,
            view: view.clone(),
            metrics,
            durable,
            in_flight: VecDeque::new(),
            completed,
            view_outdated: false,
            // A hub that crashes often must not have ever more to replay: what follows the snapshot counts.
            snapshot_at: snapshot_at.map_or(0, |revision| revision.0),
            snapshot_wanted: false,
            segment_full: false,
            retaining: Retaining::since(at),
            state_alarm: false,
            failure: None,
            next_token: 1,
            service: ServiceTold::default(),
            sessions: BTreeMap::new(),
            admissions: BTreeMap::new(),
            operations: BTreeMap::new(),
            stopping: false,
        };
        (writer, view, completions)
    }

    /// The same for a hub that takes the lead from another.
    pub fn taking_over(mut self, takeover: Takeover, at: Moment) -> Self {
        self.core = self.core.taking_over(takeover, at.now());
        self
    }

    /// Its bounds.
    pub fn bounds(&self) -> Bounds {
        self.core.bounds()
    }

    /// Its mind, which may be ahead of the disk.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The place at which queries find the durable state, until this writer ends.
    pub fn present(&self) -> Present {
        self.publisher.present()
    }

    /// The first step: its rules and bounds take the log over.
    pub fn begin(&mut self, at: Moment) {
        let state = self.core.state();
        if !state.can_resume_from(state.revision()) {
            self.metrics.derived_anew();
            // The next start is not to find the same difference.
            self.snapshot_wanted = true;
        }
        self.core.begin(at.wall);
        let stats = self.log.stats();
        self.look_at_the_disk(&stats);
        self.look_at_the_state();
    }

    /// Returns true if it takes more. Not while the batch is full, nor while something waits that is done between
    /// batches.
    pub fn has_room(&self) -> bool {
        let between = self.failure.is_some()
            || self.view_outdated
            || self.core.must_mint().is_some()
            || self.is_snapshot_due();
        !between && !self.stopping && !self.is_batch_full()
    }

    /// Nothing waits for the disk, to be appended or to be done between batches.
    pub fn is_idle(&self) -> bool {
        self.is_settled() && !self.view_outdated && self.core.must_mint().is_none()
    }

    /// It was told to stop, and everything before is done.
    pub fn is_finished(&self) -> bool {
        self.stopping && self.is_idle()
    }

    /// Everything that was decided is durable and answered.
    fn is_settled(&self) -> bool {
        self.in_flight.is_empty() && self.core.is_idle()
    }

    fn is_batch_full(&self) -> bool {
        let (events, bytes) = self.core.pending();
        events >= self.bounds().batch_events || bytes >= self.bounds().batch_bytes
    }

    /// Takes what waited longest in the inbox.
    pub fn take(&mut self, work: Work, at: Moment) {
        match work {
            Work::Request(request) => self.handle(request, at),
            Work::Admit { request, sink, reply } => {
                self.note_holder(&request.cluster);
                let token = self.token();
                self.admissions.insert(token, Admitting { sink, reply });
                self.handle(Request::Admit(token, request), at);
            }
            Work::Certify { certification, reply } => {
                let token = self.token();
                self.operations.insert(token, reply);
                self.handle(Request::Certify(token, certification), at);
            }
            Work::Operate {
                command,
                confirm,
                describe,
                reply,
            } => {
                let token = self.token();
                self.operations.insert(token, reply);
                let operate = Request::Operate {
                    token,
                    command,
                    confirm,
                    describe,
                };
                self.handle(operate, at);
            }
            // A session that just ended drops the reply, which tells as much.
            Work::PingHolder { session, reply } => self.tell(session, SessionEvent::Ping(reply)),
            Work::Tick => self.tick(at),
            Work::Stop => self.stopping = true,
        }
    }

    fn handle(&mut self, request: Request, at: Moment) {
        if let Request::Closed { session, .. } = &request {
            self.sessions.remove(session);
        }
        self.core.handle(request, at.wall, at.now());
        self.service.note(&self.core, &self.metrics);
    }

    /// Notes when the holder of a member was heard, before another agent of the member is judged.
    fn note_holder(&mut self, cluster: &ClusterId) {
        let holder = self.core.holder(cluster);
        let heard = holder.and_then(|session| self.sessions.get(&session));
        if let Some(at) = heard.map(SessionSink::heard_at) {
            self.core.note_heard(cluster, at);
        }
    }

    /// Says whether the clusterset is served.
    pub fn service(&self) -> watch::Receiver<bool> {
        self.service.watch()
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    fn tick(&mut self, at: Moment) {
        let heard = self
            .sessions
            .values()
            .map(|sink| (sink.cluster.clone(), sink.heard_at()));
        self.core.tick(at.wall, at.now(), heard);
        self.service.note(&self.core, &self.metrics);
        self.metrics.held(self.core.held());
        self.metrics.leaving(self.core.state().leaving().count());
        let stats = self.log.stats();
        self.failure = stats.failure.clone();
        self.segment_full = segments::is_full(self.bounds(), &stats, self.durable, at.wall);
        self.metrics.observe_log(&stats);
        self.retain(&stats, at);
        self.look_at_the_disk(&stats);
        self.look_at_the_state();
    }

    /// Does one thing that is due, besides taking and completing; false when nothing is.
    pub fn step(&mut self, at: Moment, random: impl FnOnce() -> u64) -> Result<bool, WriterError> {
        if let Some(failure) = self.failure.take() {
            return Err(AppendError::Failed(failure).into());
        }
        if self.view_outdated {
            self.replace_view();
        } else if self.may_append() {
            self.append(at)?;
        } else if !self.in_flight.is_empty() {
            return Ok(false);
        } else if self.core.must_mint().is_some() {
            self.begin_epoch(at, random())?;
        } else if self.is_snapshot_due() && !self.stopping {
            self.write_snapshot(at);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// A batch goes out when the disk is idle, because waiting gains nothing then; while it is busy, the batch grows
    /// until it is full.
    fn may_append(&self) -> bool {
        match self.in_flight.len() {
            0 => !self.core.is_idle(),
            some => {
                some < self.bounds().batches_in_flight && self.is_batch_full() && !self.waits_for_a_confirm()
            }
        }
    }

    /// A batch without events is out, and nothing is appended behind it: an append's completion could come before its own.
    fn waits_for_a_confirm(&self) -> bool {
        let last = self.in_flight.back().and_then(|last| last.parts.back());
        last.is_some_and(|part| part.events == 0)
    }

    fn append(&mut self, at: Moment) -> Result<(), WriterError> {
        let mut batch = self.core.take_batch();
        let published = self.core.published();
        let mut events = std::mem::take(&mut batch.events).into_iter().peekable();
        let (bounds, limits) = (self.bounds(), self.log.limits());
        let batch_events = bounds.batch_events.min(limits.batch_events);
        let batch_bytes = bounds.batch_bytes.min(limits.batch_bytes);
        let mut follows = self.in_flight.back().map_or(self.durable, |last| last.batch.head);
        let mut parts = VecDeque::new();
        while events.peek().is_some() {
            let (mut part, mut bytes) = (Vec::new(), 0);
            while let Some(event) = events.next_if(|(_, next)| {
                part.is_empty() || (part.len() < batch_events && bytes + next.len() <= batch_bytes)
            }) {
                bytes += event.1.len();
                part.push(event);
            }
            parts.push_back(Part {
                events: part.len(),
                bytes,
                appended_at_micros: at.micros,
            });
            // The core chained these bytes, and the store chains them again before it writes them.
            let part = event_log::Batch::chained(follows, part).map_err(refused)?;
            follows = part.head_after();
            let completed = self.completed.clone();
            let done = move |outcome| {
                // A writer that is gone has ended its process.
                let _ = completed.send(Completed(outcome));
            };
            self.log.append(part, Box::new(done));
        }
        if follows != batch.head {
            // Never seen: the log and the core number and chain the same bytes.
            let what = format!("the log will stand at {follows}, the state at {}", batch.head);
            return Err(refused(what).into());
        }
        if parts.is_empty() && !self.log.is_shared() {
            self.release(batch, published, at);
            return Ok(());
        }
        if parts.is_empty() {
            // Nothing of it is in the log. Only an answer to a question asked from now on says that this hub still leads.
            let completed = self.completed.clone();
            self.log.confirm(Box::new(move |outcome| {
                let _ = completed.send(Completed(outcome));
            }));
            parts.push_back(Part {
                events: 0,
                bytes: 0,
                appended_at_micros: at.micros,
            });
        }
        self.in_flight.push_back(InFlight {
            batch,
            published,
            parts,
        });
        Ok(())
    }

    /// A part of the oldest batch in flight is durable, or never will be. The last part releases the batch.
    pub fn on_completed(&mut self, Completed(outcome): Completed, at: Moment) -> Result<(), WriterError> {
        self.durable = outcome?;
        let Some(oldest) = self.in_flight.front_mut() else {
            return Err(refused("it completed what was not appended").into());
        };
        if let Some(part) = oldest.parts.pop_front()
            && part.events > 0
        {
            let micros = at.micros.saturating_sub(part.appended_at_micros);
            self.metrics.observe_batch(part.events, part.bytes, micros);
        }
        if oldest.parts.is_empty()
            && let Some(InFlight { batch, published, .. }) = self.in_flight.pop_front()
        {
            self.release(batch, published, at);
        }
        Ok(())
    }

    /// Publishes a durable batch.
    fn release(&mut self, batch: Batch, published: Published, at: Moment) {
        let import_rules = import_rules_of(&published.state);
        // Before the view: a client that knows a revision never gets an older state.
        self.publisher.publish(published);
        self.measure(batch.sources.as_deref());
        for held in batch.contests {
            self.metrics.precedence_contested(held);
        }
        self.publish(batch.publications, batch.sources, import_rules, at);
        self.answer(batch.replies);
    }

    /// Updates the gauges; `sources` are all sources, if any of them changed.
    fn measure(&self, sources: Option<&[Source]>) {
        if let Some(sources) = sources {
            self.metrics.members(sources);
        }
        self.metrics.conflicts(|reason| self.core.open_conflicts(reason));
        self.metrics
            .exports_refused(|reason| self.core.refused_exports(reason));
        self.metrics.members_over_budget(self.core.over_budget_members());
    }

    fn publish(
        &self,
        publications: Vec<Publication>,
        sources: Option<Vec<Source>>,
        import_rules: Option<ImportRules>,
        at: Moment,
    ) {
        let unchanged =
            publications.is_empty() && sources.is_none() && self.view.read().head() == self.durable;
        if !unchanged {
            let tombstones_max = self.core.state().tombstones_max() as usize;
            self.view.publish(
                self.durable,
                at.now(),
                publications,
                sources,
                import_rules,
                tombstones_max,
            );
        }
    }

    fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            match reply {
                Reply::Admitted(token, admission) => self.answer_admitted(token, admission),
                Reply::NotAdmitted(token, why) => {
                    if let Some(Admitting { reply, .. }) = self.admissions.remove(&token) {
                        // A stream that went away does not want it.
                        let _ = reply.send(Err(why));
                    }
                }
                Reply::Acknowledged(session, dealt) => {
                    self.tell(session, SessionEvent::Acknowledged(dealt));
                }
                Reply::Refused(session, refused) => {
                    self.metrics.refused(refused.reason);
                    self.tell(session, SessionEvent::Refused(refused));
                }
                Reply::ReportAgain(session) => self.tell(session, SessionEvent::ReportAgain),
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
        let (cluster, heard_at) = (sink.cluster.clone(), sink.heard_at());
        self.sessions.insert(session, sink);
        if reply.send(Ok(admission)).is_err() {
            // The stream went away while it was being admitted.
            self.sessions.remove(&session);
            self.core.closed(session, &cluster, heard_at);
        }
    }

    fn tell(&self, session: SessionId, event: SessionEvent) {
        if let Some(sink) = self.sessions.get(&session) {
            // A session that just ended needs no word.
            let _ = sink.events.send(event);
        }
    }

    fn is_snapshot_due(&self) -> bool {
        self.segment_full || self.snapshot_wanted || self.has_enough_events_for_a_snapshot()
    }

    fn has_enough_events_for_a_snapshot(&self) -> bool {
        let events = self.core.head().revision.0.saturating_sub(self.snapshot_at);
        let bounds = self.bounds();
        // Facts are counted only when they can matter: this is asked for every request.
        events >= bounds.snapshot_events
            && is_snapshot_due(bounds, events, self.core.state().fact_count() as u64)
    }

    fn write_snapshot(&mut self, at: Moment) {
        self.snapshot_at = self.durable.revision.0;
        self.snapshot_wanted = false;
        let rows = snapshot::rows(self.core.state().clone());
        let done = |outcome: Result<(), LogError>| match outcome {
            Ok(()) => tracing::debug!("wrote a snapshot"),
            Err(error) => tracing::warn!(%error, "could not write a snapshot; starting takes longer"),
        };
        if std::mem::take(&mut self.segment_full) {
            self.core.segment_begun();
            self.log.seal(at.wall, Box::new(rows), Box::new(done))
        } else {
            self.log
                .write_snapshot(self.durable, Box::new(rows), Box::new(done))
        }
    }

    /// The last step: on an orderly stop the next start replays nothing. It blocks.
    pub fn finish(mut self) -> Result<(), WriterError> {
        if self.durable.revision.0 > self.snapshot_at {
            let rows = snapshot::rows(self.core.state().clone());
            match self.log.write_snapshot_and_wait(self.durable, Box::new(rows)) {
                // Such as while another is being written: everything is durable without it.
                Err(LogError::Refused(why)) => {
                    tracing::info!(%why, "stops without a snapshot; starting takes longer");
                }
                written => written?,
            }
        }
        self.log.resign(None);
        Ok(())
    }
}

fn refused(what: impl ToString) -> LogError {
    LogError::Refused(what.to_string())
}

/// Returns true if so many events behind the newest snapshot are worth another, of a state with so many facts.
fn is_snapshot_due(bounds: Bounds, events: u64, facts: u64) -> bool {
    events
        >= bounds
            .snapshot_events
            .max(bounds.snapshot_events_per_fact * facts)
}

mod disk;
mod epoch;
mod state_room;
#[cfg(test)]
mod tests;
mod views;
