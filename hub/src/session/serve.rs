//! The stream around a session machine: reads the member's messages, hands effects to the writer, sends what
//! the machine wants said. It owns no protocol state; whatever blocks here blocks this one member only.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proto::v1::{self, sync_server::Sync};
use shared::{
    identity::Role,
    model::{
        ClusterId, Clusterset, Cursor, SessionId, advice,
        sync::{AgentMessage, Hello, MESSAGE_BYTES_MAX},
    },
    tls::{self, PeerIdentity},
    wire,
};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument, debug, info, info_span, warn};

use super::{
    machine::{Admission, Effect, Session},
    metrics::SyncMetrics,
    unacknowledged::Unacknowledged,
};
use crate::{
    clock::Clock,
    log::{LogError, LogReader},
    view::SharedView,
    writer::{self, AdmitRequest, CursorCheck, NotAdmitted, SessionEvent, SessionSink, WriterHandle},
};

/// Messages to a member that may wait in its stream; the rest waits as keys.
const OUTGOING_MAX: usize = 4;
/// Effects of one member's messages that may wait for the writer before no more are read.
const EFFECTS_MAX: usize = 16;
/// How long a holder may take to answer a ping before another session takes over.
const HOLDER_ANSWER: Duration = Duration::from_secs(2);
/// Longest life of a session, which only bounds the arithmetic of timers.
const EXPIRY_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The gRPC service that agents connect to.
#[derive(Clone)]
pub struct SyncService {
    /// The clusterset that is served.
    pub clusterset: Clusterset,
    /// The way to the writer.
    pub writer: WriterHandle,
    /// What is published.
    pub view: SharedView,
    /// For checking cursors.
    pub reader: LogReader,
    /// The hub's clock.
    pub clock: Clock,
    /// Counts.
    pub metrics: SyncMetrics,
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
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let span = info_span!("session", cluster = %cluster, remote = ?peer.remote);
        let stream = SessionStream::new(self.clone(), peer, cluster, request.into_inner(), outgoing);
        self.tasks.spawn(stream.run().instrument(span));
        Ok(Response::new(Box::pin(ReceiverStream::new(messages))))
    }
}

impl SyncService {
    fn member(&self, peer: &PeerIdentity) -> Result<ClusterId, Status> {
        if peer.identity.clusterset != self.clusterset {
            self.metrics.rejected("other_clusterset");
            return Err(Status::permission_denied(format!(
                "the certificate is of clusterset {}, this hub serves {}",
                peer.identity.clusterset, self.clusterset
            )));
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

    async fn check_cursor(&self, cursor: Option<Cursor>) -> Result<CursorCheck, Status> {
        let known = CursorCheck::by_view(cursor, &self.view.read());
        match known {
            Ok(known) => Ok(known),
            Err(cursor) => {
                let question =
                    move |history: &dyn crate::log::History| history.hash_at(cursor.epoch, cursor.revision);
                let hash = self.reader.ask(question).await.map_err(log_status)?;
                Ok(CursorCheck::of_our_epoch(cursor, hash))
            }
        }
    }
}

fn log_status(error: LogError) -> Status {
    Status::unavailable(format!("the event log cannot be read now: {error}"))
}

/// One running session.
struct SessionStream {
    service: SyncService,
    peer: Arc<PeerIdentity>,
    cluster: ClusterId,
    machine: Session,
    admitted: Option<SessionId>,
    heard_at: Arc<AtomicU64>,
    incoming: Streaming<v1::AgentMessage>,
    outgoing: mpsc::Sender<Result<v1::HubMessage, Status>>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    sink: SessionSink,
    effects: VecDeque<Effect>,
    unacknowledged: Unacknowledged,
    pongs: Vec<(u64, oneshot::Sender<()>)>,
    next_nonce: u64,
}

impl SessionStream {
    fn new(
        service: SyncService,
        peer: Arc<PeerIdentity>,
        cluster: ClusterId,
        incoming: Streaming<v1::AgentMessage>,
        outgoing: mpsc::Sender<Result<v1::HubMessage, Status>>,
    ) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let now = service.clock.now();
        let heard_at = Arc::new(AtomicU64::new(now));
        let sink = SessionSink {
            cluster: cluster.clone(),
            events: sender,
            heard_at: heard_at.clone(),
        };
        let machine = Session::new(cluster.clone(), now);
        Self {
            service,
            peer,
            cluster,
            machine,
            admitted: None,
            heard_at,
            incoming,
            outgoing,
            events,
            sink,
            effects: VecDeque::new(),
            unacknowledged: Unacknowledged::default(),
            pongs: Vec::new(),
            next_nonce: 0,
        }
    }

    async fn run(mut self) {
        let end = self.drive().await;
        match end.code() {
            tonic::Code::Ok | tonic::Code::Cancelled => debug!("the agent closed the session"),
            tonic::Code::Unavailable => info!(why = end.message(), "ended the session"),
            _ => warn!(why = end.message(), "refused the session"),
        }
        if end.code() != tonic::Code::Ok {
            // An agent that is gone does not read it.
            let _ = tokio::time::timeout(HOLDER_ANSWER, self.outgoing.send(Err(end))).await;
        }
        if let Some(session) = self.admitted
            && let Ok(room) = self.service.writer.room().await
        {
            let heard_at = self.heard_at.load(Ordering::Relaxed);
            room.send(writer::Request::Closed {
                session,
                cluster: self.cluster.clone(),
                heard_at,
            });
        }
    }

    /// Runs until the session ends; the status says why.
    async fn drive(&mut self) -> Status {
        let mut listener = self.service.view.listen(&self.cluster);
        let (writer, outgoing) = (self.service.writer.clone(), self.outgoing.clone());
        let drain = self.service.drain.clone();
        let expiry = self.expiry();
        let mut more_to_say = true;
        loop {
            let deadline = self.machine.next_deadline(!more_to_say);
            let deadline = self.service.clock.instant(deadline);
            let step = tokio::select! {
                biased;
                () = drain.cancelled() => Err(Status::unavailable("the hub is shutting down: connect again")),
                Some(event) = self.events.recv() => self.on_event(event),
                room = writer.room(), if !self.effects.is_empty() => self.hand_over(room),
                slot = outgoing.reserve(), if more_to_say => match slot {
                    Err(_) => Err(Status::cancelled("the agent went away")),
                    Ok(slot) => match self.machine.poll(&self.service.view.read(), self.service.clock.now()) {
                        None => { more_to_say = false; continue }
                        Some(message) => {
                            self.service.metrics.sent(&message);
                            slot.send(Ok(wire::hub_message_to_proto(message)));
                            continue
                        }
                    },
                },
                message = self.incoming.message(), if self.may_read() => self.on_message(message).await,
                () = listener.woken() => Ok(()),
                () = tokio::time::sleep_until(expiry) => Err(Status::unauthenticated(
                    "the certificate that opened this session has expired: connect with a renewed one",
                )),
                () = tokio::time::sleep_until(deadline) => self.check_silence(),
            };
            if let Err(status) = step {
                return status;
            }
            if let Some(namespaces) = self.machine.interest() {
                listener.follow(namespaces);
            }
            more_to_say = true;
        }
    }

    /// Whether the writer is behind this member; as long as it is, nothing more is read from it.
    fn writer_is_behind(&self) -> bool {
        self.effects.len() >= EFFECTS_MAX || self.unacknowledged.is_full()
    }

    fn may_read(&self) -> bool {
        !self.writer_is_behind() && !self.machine.is_congested()
    }

    /// Whether the member is silent. It is not while the writer holds it up: it will let go, and from then on the
    /// member's silence counts.
    fn check_silence(&mut self) -> Result<(), Status> {
        let now = self.service.clock.now();
        let heard_at = self.machine.excuse_silence(self.writer_is_behind(), now);
        self.heard_at.fetch_max(heard_at, Ordering::Relaxed);
        let silence = self.machine.check_silence(now);
        silence.map_err(|why| Status::unavailable(why.to_string()))
    }

    /// A connection may outlive its certificate, a session may not.
    fn expiry(&self) -> tokio::time::Instant {
        let left = self.peer.not_after.0.saturating_sub(self.service.clock.wall().0);
        tokio::time::Instant::now() + Duration::from_millis(left).min(EXPIRY_MAX)
    }

    async fn on_message(&mut self, message: Result<Option<v1::AgentMessage>, Status>) -> Result<(), Status> {
        let message = match message {
            Ok(Some(message)) => message,
            Ok(None) => return Err(Status::ok("")),
            Err(status) if status.code() == tonic::Code::OutOfRange => {
                return Err(self.violation(format!(
                    "a message may have {MESSAGE_BYTES_MAX} bytes: send facts in several ({})",
                    status.message()
                )));
            }
            Err(status) => {
                debug!(%status, "the stream broke");
                return Err(Status::cancelled("the stream broke"));
            }
        };
        let now = self.service.clock.now();
        self.heard_at.store(now, Ordering::Relaxed);
        let message: AgentMessage =
            wire::agent_message_from_proto(message).map_err(|error| self.violation(error.to_string()))?;
        let effects = self
            .machine
            .on_message(message, now)
            .map_err(|violation| self.violation(violation.to_string()))?;
        for effect in effects {
            match effect {
                Effect::Admit(hello) => self.admit(*hello).await?,
                Effect::Goodbye => info!("the agent says that it shuts down"),
                Effect::Pong(nonce) => self.answer_holder_pings(nonce),
                Effect::Observe(observations) => {
                    self.unacknowledged.took(&observations);
                    self.effects.push_back(Effect::Observe(observations));
                }
                Effect::CompleteListing { .. } => self.effects.push_back(effect),
            }
        }
        Ok(())
    }

    fn violation(&self, what: String) -> Status {
        self.service.metrics.rejected("protocol");
        Status::invalid_argument(what)
    }

    fn on_event(&mut self, event: SessionEvent) -> Result<(), Status> {
        match event {
            SessionEvent::Acknowledged(sequence) => {
                self.unacknowledged.acknowledged(sequence);
                self.machine.on_acknowledged(sequence);
            }
            SessionEvent::Refused(refused) => {
                debug!(sequence = refused.sequence, why = %refused.message, "refused an item");
                self.machine.on_refused(refused);
            }
            SessionEvent::Close(why) => return Err(Status::unavailable(why)),
            SessionEvent::Ping(reply) => {
                self.next_nonce += 1;
                self.machine.ping(self.next_nonce);
                // Those who gave up waiting need no answer: only sessions that live wait here.
                self.pongs.retain(|(_, reply)| !reply.is_closed());
                self.pongs.push((self.next_nonce, reply));
            }
        }
        Ok(())
    }

    fn answer_holder_pings(&mut self, nonce: u64) {
        for (_, reply) in self.pongs.extract_if(.., |(asked, _)| *asked <= nonce) {
            // Whoever asked may have given up waiting.
            let _ = reply.send(());
        }
    }

    fn hand_over(&mut self, room: Result<writer::Room<'_>, writer::Gone>) -> Result<(), Status> {
        let room = room.map_err(|gone| Status::unavailable(gone.to_string()))?;
        let (Some(session), Some(effect)) = (self.admitted, self.effects.pop_front()) else {
            return Ok(());
        };
        let cluster = self.cluster.clone();
        match effect {
            Effect::Observe(observations) => {
                room.send(writer::Request::Observe {
                    session,
                    cluster,
                    observations,
                });
            }
            Effect::CompleteListing {
                sequence,
                group,
                seen,
            } => {
                room.send(writer::Request::CompleteListing {
                    session,
                    cluster,
                    sequence,
                    group,
                    seen,
                });
            }
            Effect::Admit(_) | Effect::Goodbye | Effect::Pong(_) => {}
        }
        Ok(())
    }

    /// Asks for admission; pings the holder of the member if there is one.
    async fn admit(&mut self, hello: Hello) -> Result<(), Status> {
        let cursor = self.service.check_cursor(hello.cursor).await?;
        let mut request = AdmitRequest {
            cluster: self.cluster.clone(),
            key: self.peer.key_fingerprint,
            hello,
            cursor,
            silent_holder: None,
        };
        loop {
            let answer = self
                .service
                .writer
                .admit(request.clone(), self.sink.clone())
                .await;
            match answer.map_err(|gone| Status::unavailable(gone.to_string()))? {
                Ok(admission) => {
                    self.on_admitted(*admission);
                    return Ok(());
                }
                Err(NotAdmitted::Held(holder)) if request.silent_holder != Some(holder.session) => {
                    if self.holder_answers(holder.session).await {
                        self.service.metrics.rejected("held");
                        return Err(Status::already_exists(format!(
                            "cluster {} is held by session {} of agent instance {}, which is alive: stop that \
                             agent, or see that two clusters do not share one certificate",
                            self.cluster, holder.session.0, holder.instance
                        )));
                    }
                    request.silent_holder = Some(holder.session);
                }
                Err(not) => return Err(self.not_admitted(not)),
            }
        }
    }

    fn not_admitted(&self, not: NotAdmitted) -> Status {
        self.service.metrics.rejected(match not {
            NotAdmitted::Held(_) => "held",
            NotAdmitted::NewEpoch => "new_epoch",
            NotAdmitted::Refused(_) => "membership",
            NotAdmitted::NotServing(_) => "not_serving",
            NotAdmitted::Doubted(_) => "doubted",
        });
        match not {
            NotAdmitted::Held(holder) => Status::unavailable(format!(
                "session {} still holds this cluster: try again",
                holder.session.0
            )),
            NotAdmitted::NewEpoch => Status::unavailable("a new epoch begins: connect again"),
            NotAdmitted::Refused(why) => Status::permission_denied(why),
            NotAdmitted::NotServing(why) | NotAdmitted::Doubted(why) => Status::failed_precondition(why),
        }
    }

    async fn holder_answers(&self, holder: SessionId) -> bool {
        match self.service.writer.ping_holder(holder).await {
            Ok(answer) => matches!(tokio::time::timeout(HOLDER_ANSWER, answer).await, Ok(Ok(()))),
            Err(_) => false,
        }
    }

    fn on_admitted(&mut self, admission: Admission) {
        let welcome = &admission.welcome;
        info!(
            session = welcome.session.0,
            resume = welcome.resume,
            list_exports = welcome.list_exports,
            list_properties = welcome.list_properties,
            "admitted"
        );
        if let Some(unknown) = admission.unknown_sources.first() {
            let names: Vec<&str> = admission.unknown_sources.iter().map(ClusterId::as_str).collect();
            warn!(
                clusters = names.join(","),
                "the cluster holds objects of clusters that are no members here; they stay until those clusters \
                 join, or an operator says that they are gone for good: `{}`",
                advice::member_forget(unknown)
            );
        }
        self.service.metrics.admitted(welcome.resume);
        self.admitted = Some(welcome.session);
        self.machine.on_admitted(admission);
    }
}
