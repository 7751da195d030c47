//! The task around a session's steps: reads the member's messages, waits for what the session waits for, sends what
//! it wants said. It owns no protocol state; whatever blocks here blocks this one member only.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use proto::v1::{self, sync_server::Sync};
use shared::{
    identity::{Identity, Role},
    model::{
        ChainHash, ClusterId, Clusterset,
        sync::{AgentMessage, MESSAGE_BYTES_MAX},
    },
    tls::{self, PeerIdentity},
    wire,
};
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument, debug, info, info_span, warn};

use super::{
    Answer, Awaited, Comings, Reports, SESSIONS_AT_ONCE, SessionActor, SessionEnd, SyncMetrics,
    status::session_status,
};
use crate::{
    bounds::Bounds,
    certs::RenewalIssuer,
    clock::Clock,
    doors::Introduction,
    fold::Presented,
    log::{History, LogError, LogReader},
    view::SharedView,
    writer::{HolderAnswer, SessionEvent, WriterHandle},
};

/// Messages to a member that may wait in its stream; the rest waits as keys.
const OUTGOING_MAX: usize = 4;
/// Time for a member to read the reason why its session ends.
const FAREWELL_WAIT: Duration = Duration::from_secs(2);
/// Longest life of a session, which only bounds the arithmetic of timers.
const EXPIRY_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The gRPC service that agents connect to.
#[derive(Clone)]
pub struct SyncService {
    /// The clusterset that is served.
    pub clusterset: Clusterset,
    /// The way to the writer.
    pub writer: WriterHandle,
    /// The published objects.
    pub view: SharedView,
    /// For checking cursors, and for nothing else.
    pub cursors: LogReader,
    /// The hub's clock.
    pub clock: Clock,
    /// The bounds that are settings.
    pub bounds: Bounds,
    /// Signs for members that ask for certificates, if anybody does.
    pub renewals: Option<RenewalIssuer>,
    /// Counts.
    pub metrics: SyncMetrics,
    /// Reports of members about themselves.
    pub reports: Reports,
    /// Numbers of recent connections.
    pub comings: Arc<Mutex<Comings>>,
    /// Ends every session.
    pub drain: CancellationToken,
    /// Knows the sessions that run.
    pub tasks: TaskTracker,
}

#[tonic::async_trait]
impl Sync for SyncService {
    type StreamStream = Pin<Box<dyn Stream<Item = Result<v1::HubMessage, Status>> + Send>>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::AgentMessage>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let peer = tls::peer(&request)?;
        let cluster = self.member(&peer)?;
        self.may_come(&cluster)?;
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let span =
            info_span!("session", cluster = %cluster, remote = peer.remote.map(tracing::field::display));
        let introduction = request.extensions().get::<Introduction>().cloned();
        let mut stream = SessionStream::new(self.clone(), peer, cluster, request.into_inner(), outgoing);
        stream.introduction = introduction.unwrap_or_default();
        self.tasks.spawn(stream.run().instrument(span));
        let messages = ReceiverStream::new(messages).map(|message| *message);
        Ok(Response::new(Box::pin(messages)))
    }
}

impl SyncService {
    fn member(&self, peer: &PeerIdentity) -> Result<ClusterId, Status> {
        if peer.identity.clusterset != self.clusterset {
            self.metrics.rejected("other_clusterset");
            return Err(Status::permission_denied(other_clusterset(&peer.identity)));
        }
        match &peer.identity.role {
            Role::Cluster(cluster) => Ok(cluster.clone()),
            role => {
                self.metrics.rejected("not_a_member");
                Err(Status::permission_denied(format!(
                    "only a member's certificate opens a session; this one is a {}'s",
                    role.word()
                )))
            }
        }
    }

    /// Refuses a member that begins one session after the other: each costs all others a look.
    fn may_come(&self, cluster: &ClusterId) -> Result<(), Status> {
        let now = self.clock.now();
        // It guards what is only counted: a panic elsewhere does no harm to it.
        let came = self
            .comings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .comes(cluster, now);
        came.map_err(|wait| {
            self.metrics.rejected("too_often");
            Status::resource_exhausted(format!(
                "{cluster} has begun {SESSIONS_AT_ONCE} sessions, and one a second may follow: connect again in {wait} ms. \
                 If its agent did not restart, see what ends its sessions, and whether another agent has its certificate"
            ))
        })
    }

    /// Waits for what a session waits for.
    async fn answer(self, cluster: ClusterId, awaited: Awaited) -> Result<Answer, Status> {
        Ok(match awaited {
            Awaited::Hash(cursor) => {
                let question = move |history: &dyn History| history.hash_at(cursor.epoch, cursor.revision);
                Answer::Hash(on_record(self.cursors.ask(question).await)?)
            }
            Awaited::Admission(answer) => Answer::Admission(answer.await.ok()),
            Awaited::Signature(request) => Answer::Signature(match &self.renewals {
                Some(renewals) => renewals.sign(&request, &cluster, self.clock.wall()),
                None => Err("this hub signs for no members".into()),
            }),
            Awaited::Certified(answer) => Answer::Certified(answer.await.ok()),
            Awaited::Holder(answer, until) => {
                let answered = tokio::time::timeout_at(self.clock.instant(until), answer).await;
                Answer::Holder(answered.ok().and_then(Result::ok).unwrap_or(HolderAnswer::Silent))
            }
        })
    }
}

/// The refusal to a member of another clusterset: it repeats only the peer's own words.
fn other_clusterset(identity: &Identity) -> String {
    format!(
        "this certificate is {identity}, and this hub does not serve clusterset {}: connect to the hub that does (--hub)",
        identity.clusterset
    )
}

/// Looks a position up in the log. One that cannot be looked up counts as one that is not kept any more: its member gets a
/// snapshot, and not the end of its session for what happened to history.
fn on_record(found: Result<Option<ChainHash>, LogError>) -> Result<Option<ChainHash>, Status> {
    match found {
        Ok(on_record) => Ok(on_record),
        Err(error @ LogError::Closed) => Err(log_status(error)),
        Err(error) => {
            warn!(%error, "the position of a member cannot be looked up, so it gets a snapshot");
            Ok(None)
        }
    }
}

fn log_status(error: LogError) -> Status {
    Status::unavailable(format!("the event log cannot be read now: {error}"))
}

/// A message to a member. A channel has room for 32 of these from the beginning, whatever its bound is.
type Outgoing = Box<Result<v1::HubMessage, Status>>;

/// A session's pending answer, besides its member, its events and the view.
type Waiting = Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send>>;

/// One running session.
struct SessionStream {
    service: SyncService,
    peer: Arc<PeerIdentity>,
    cluster: ClusterId,
    actor: SessionActor,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    incoming: Streaming<v1::AgentMessage>,
    outgoing: mpsc::Sender<Outgoing>,
    waiting: Option<Waiting>,
    /// Tells the doors how far it has come.
    introduction: Introduction,
}

impl SessionStream {
    fn new(
        service: SyncService,
        peer: Arc<PeerIdentity>,
        cluster: ClusterId,
        incoming: Streaming<v1::AgentMessage>,
        outgoing: mpsc::Sender<Outgoing>,
    ) -> Self {
        let (actor, events) = SessionActor::new(
            cluster.clone(),
            peer.key_fingerprint,
            service.bounds,
            service.metrics.clone(),
            service.clock.now(),
        );
        let presented = Presented {
            issuer: Some(peer.issuer.clone()),
            not_after: Some(peer.not_after),
            renewable: peer.renewable,
            ..Presented::default()
        };
        let actor = actor
            .reporting_to(service.reports.clone())
            .presenting(presented)
            .certifying(service.renewals.is_some());
        Self {
            service,
            peer,
            cluster,
            actor,
            events,
            incoming,
            outgoing,
            waiting: None,
            introduction: Introduction::default(),
        }
    }

    async fn run(mut self) {
        let end = self.drive().await;
        match end.code() {
            tonic::Code::Ok | tonic::Code::Cancelled => debug!("the agent closed the session"),
            tonic::Code::ResourceExhausted => debug!(why = end.message(), "ended a stream at the door"),
            tonic::Code::Unavailable => info!(why = end.message(), "ended the session"),
            _ => warn!(why = end.message(), "refused the session"),
        }
        if end.code() != tonic::Code::Ok {
            // An agent that is gone does not read it.
            let _ = tokio::time::timeout(FAREWELL_WAIT, self.outgoing.send(Box::new(Err(end)))).await;
        }
        // The writer may be admitting it just now, and must hear that it is over then, too.
        if let Some(waiting) = self.waiting.take()
            && let Ok(answer) = waiting.await
        {
            let _ = self.actor.on_answer(answer);
        }
        if let Some(farewell) = self.actor.farewell()
            && let Ok(permit) = self.service.writer.permit().await
        {
            permit.send(farewell);
        }
    }

    /// Runs until the session ends; the status says why.
    async fn drive(&mut self) -> Status {
        let mut listener = self.service.view.listen(&self.cluster);
        let (writer, outgoing) = (self.service.writer.clone(), self.outgoing.clone());
        let (clock, drain) = (self.service.clock, self.service.drain.clone());
        let (expiry, lifetime) = (self.expiry(), self.peer.lifetime.clone());
        let mut more_to_say = true;
        loop {
            self.judge();
            let now = clock.now();
            let deadline = clock.instant(self.actor.next_deadline(!more_to_say, now));
            let step = tokio::select! {
                biased;
                () = drain.cancelled() => Err(Status::unavailable("the hub is shutting down: connect again")),
                ended = lifetime.ended() => Err(ended),
                Some(event) = self.events.recv() => self.actor.on_event(event, now).map_err(session_status),
                answer = async { self.waiting.as_mut().expect("checked").await }, if self.waiting.is_some() => {
                    self.waiting = None;
                    answer.and_then(|answer| self.actor.on_answer(answer).map_err(session_status))
                }
                permit = writer.permit(), if self.actor.wants_permit() => match permit {
                    Err(gone) => Err(Status::unavailable(gone.to_string())),
                    Ok(permit) => {
                        let awaited = self.actor.hand_over(permit, clock.now());
                        self.wait_for(awaited);
                        Ok(())
                    }
                },
                slot = outgoing.reserve(), if more_to_say => match slot {
                    Err(_) => Err(Status::cancelled("the agent went away")),
                    Ok(slot) => match self.actor.poll(&self.service.view.read(), clock.now()) {
                        None => { more_to_say = false; continue }
                        Some(message) => {
                            // The first is Welcome.
                            self.introduction.answered();
                            slot.send(Box::new(Ok(wire::hub_message_to_proto(message))));
                            continue
                        }
                    },
                },
                message = self.incoming.message(), if self.actor.may_read(now) => self.on_message(message),
                () = listener.woken() => Ok(()),
                () = tokio::time::sleep_until(expiry) => Err(Status::unauthenticated(
                    "the certificate that opened this session has expired: connect with a renewed one",
                )),
                () = tokio::time::sleep_until(deadline) => self.actor.check_silence(clock.now()).map_err(session_status),
            };
            if let Err(status) = step {
                return status;
            }
            if let Some(namespaces) = self.actor.interest() {
                listener.follow(namespaces);
            }
            more_to_say = true;
        }
    }

    fn judge(&mut self) {
        if self.actor.wants_judgement() {
            let awaited = self.actor.judge(&self.service.view.read());
            self.wait_for(awaited);
        }
        let awaited = self.actor.sign();
        self.wait_for(awaited);
    }

    fn wait_for(&mut self, awaited: Option<Awaited>) {
        if let Some(awaited) = awaited {
            self.waiting = Some(Box::pin(
                self.service.clone().answer(self.cluster.clone(), awaited),
            ));
        }
    }

    /// A connection may outlive its certificate, a session may not.
    fn expiry(&self) -> tokio::time::Instant {
        let left = self.peer.not_after.0.saturating_sub(self.service.clock.wall().0);
        tokio::time::Instant::now() + Duration::from_millis(left).min(EXPIRY_MAX)
    }

    fn on_message(&mut self, message: Result<Option<v1::AgentMessage>, Status>) -> Result<(), Status> {
        let message = match message {
            Ok(Some(message)) => {
                // The first is Hello, or the last.
                self.introduction.said();
                message
            }
            Ok(None) => return Err(Status::ok("")),
            Err(status) if status.code() == tonic::Code::OutOfRange => {
                let why = format!(
                    "a message may have {MESSAGE_BYTES_MAX} bytes: send facts in several ({})",
                    status.message()
                );
                return Err(session_status(self.actor.violation(why)));
            }
            // The doors': more came before a Hello than is taken.
            Err(status) if status.code() == tonic::Code::ResourceExhausted => return Err(status),
            Err(status) => {
                debug!(%status, "the stream broke");
                return Err(Status::cancelled("the stream broke"));
            }
        };
        self.take(message).map_err(session_status)
    }

    fn take(&mut self, message: v1::AgentMessage) -> Result<(), SessionEnd> {
        self.actor.check_order(wire::agent_message_kind(&message))?;
        let message: AgentMessage = wire::agent_message_from_proto(message)
            .map_err(|error| self.actor.violation(error.to_string()))?;
        self.actor.on_message(message, self.service.clock.now())
    }
}
