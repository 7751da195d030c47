//! The hub's access to the writer: a bounded inbox, and the ways back. It carries requests and answers without
//! interpreting them. Queries never come here: see `present.rs`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use model::{ClusterId, SessionId, sync::Refused};
use tokio::sync::{mpsc, oneshot};

use super::{
    heard::TICK_MILLIS,
    request::{
        Admission, AdmitRequest, Certification, Dealt, Describe, HolderAnswer, NotAdmitted, Operated, Request,
    },
};
use fold::{Command, Rejection};

/// The writer's thread has ended; the process is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event log is closed: the hub is shutting down")]
pub struct Gone;

/// Events from the writer to a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// So much has been dealt with, durably.
    Acknowledged(Dealt),
    /// One item was not taken.
    Refused(Refused),
    /// There is room again for what was refused for want of it.
    ReportAgain,
    /// The session is over.
    Close(String),
    /// Somebody else claims the member: ask the agent whether it lives.
    Ping(oneshot::Sender<HolderAnswer>),
}

/// The writer's end of a session. The member's unacknowledged limit bounds what waits in it.
#[derive(Debug, Clone)]
pub struct SessionSink {
    /// The cluster.
    pub cluster: ClusterId,
    /// Channel of its events.
    pub events: mpsc::UnboundedSender<SessionEvent>,
    /// Time at which the member was last heard, in monotonic milliseconds.
    pub heard_at: Arc<AtomicU64>,
}

impl SessionSink {
    pub(super) fn heard_at(&self) -> u64 {
        self.heard_at.load(Ordering::Relaxed)
    }
}

/// The answer to a Hello, when its batch is durable.
pub type AdmissionAnswer = oneshot::Receiver<Result<Box<Admission>, NotAdmitted>>;

/// An entry of the writer's inbox.
pub enum Work {
    /// A request without an answer, or with one among the session's events.
    Request(Request),
    /// A Hello.
    Admit {
        /// The Hello and what is known of it.
        request: Box<AdmitRequest>,
        /// The session's end for events, from its admission on.
        sink: SessionSink,
        /// Channel of the answer.
        reply: oneshot::Sender<Result<Box<Admission>, NotAdmitted>>,
    },
    /// A session asks that the holder of its member be pinged.
    PingHolder {
        /// The holder.
        session: SessionId,
        /// Channel of its answer; dropped if it is gone.
        reply: oneshot::Sender<HolderAnswer>,
    },
    /// A member asks over its session that another key of it is admitted.
    Certify {
        /// The certification to record.
        certification: Certification,
        /// Channel of the outcome, sent when it is durable.
        reply: oneshot::Sender<Result<Operated, Rejection>>,
    },
    /// An operator's decision.
    Operate {
        /// The decision.
        command: Command,
        /// False: a dry run.
        confirm: bool,
        /// The explanation to return.
        describe: Describe,
        /// Channel of the outcome.
        reply: oneshot::Sender<Result<Operated, Rejection>>,
    },
    /// Look at every member's silence.
    Tick,
    /// Finish what waits, and end.
    Stop,
}

/// The writer's end of the inbox.
pub struct Inbox(mpsc::Receiver<Work>);

impl Inbox {
    /// The oldest entry; `None` when nobody can ask any more.
    pub async fn next(&mut self) -> Option<Work> {
        self.0.recv().await
    }

    /// The oldest entry, if there is one.
    pub fn try_next(&mut self) -> Option<Work> {
        self.0.try_recv().ok()
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reaches the writer.
#[derive(Clone)]
pub struct WriterHandle {
    inbox: mpsc::Sender<Work>,
}

impl WriterHandle {
    /// A way to a writer, and the writer's end of it, in which at most `room` requests wait.
    pub fn new(room: usize) -> (Self, Inbox) {
        let (sender, inbox) = mpsc::channel(room);
        (Self { inbox: sender }, Inbox(inbox))
    }

    /// Waits until there is room for one request.
    pub async fn permit(&self) -> Result<Permit<'_>, Gone> {
        self.inbox.reserve().await.map(Permit).map_err(|_| Gone)
    }

    /// Leave to hand over one request, if there is room now.
    pub fn try_permit(&self) -> Option<Permit<'_>> {
        self.inbox.try_reserve().map(Permit).ok()
    }

    /// Carries out an operator's decision, or tries it, and has it described.
    pub async fn operate(
        &self,
        command: Command,
        confirm: bool,
        describe: Describe,
    ) -> Result<Result<Operated, Rejection>, Gone> {
        let (reply, answer) = oneshot::channel();
        self.send(Work::Operate {
            command,
            confirm,
            describe,
            reply,
        })
        .await?;
        answer.await.map_err(|_| Gone)
    }

    /// Lets the writer check every member's silence, for ever. If the writer is behind, ticks are left out: it gives
    /// the members the time that it lost itself.
    pub async fn tick(&self) -> Gone {
        let mut interval = tokio::time::interval(Duration::from_millis(TICK_MILLIS));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if self.send(Work::Tick).await.is_err() {
                return Gone;
            }
        }
    }

    /// Tells the writer to finish what waits and to end.
    pub async fn stop(&self) {
        // It may have ended by itself.
        let _ = self.send(Work::Stop).await;
    }

    async fn send(&self, work: Work) -> Result<(), Gone> {
        self.inbox.send(work).await.map_err(|_| Gone)
    }
}

/// Leave to hand over one request: there is room for it.
pub struct Permit<'a>(mpsc::Permit<'a, Work>);

impl Permit<'_> {
    /// Hands the request over.
    pub fn send(self, request: Request) {
        self.work(Work::Request(request));
    }

    /// Hands over anything that waits for the writer.
    pub fn work(self, work: Work) {
        self.0.send(work);
    }

    /// Asks for admission.
    pub fn admit(self, request: AdmitRequest, sink: SessionSink) -> AdmissionAnswer {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(request);
        self.work(Work::Admit { request, sink, reply });
        answer
    }

    /// Has another key of a session's member recorded; the answer comes when that is durable.
    pub fn certify(self, certification: Certification) -> oneshot::Receiver<Result<Operated, Rejection>> {
        let (reply, answer) = oneshot::channel();
        self.work(Work::Certify { certification, reply });
        answer
    }

    /// Has a holder pinged; what it says comes when it answered, or fails when it is gone.
    pub fn ping_holder(self, session: SessionId) -> oneshot::Receiver<HolderAnswer> {
        let (reply, answer) = oneshot::channel();
        self.work(Work::PingHolder { session, reply });
        answer
    }
}
