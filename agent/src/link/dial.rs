//! Dials the hub, runs one session after the other, backs off in between. It owns the stream and the epoch that is
//! remembered; what messages mean is the machine's. Without a hub everything that was applied stays.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use proto::v1::{self, sync_client::SyncClient};
use shared::{
    model::{
        ClusterId, Epoch, FactKey, KeyFingerprint, UnixMillis, advice,
        sync::{
            AgentMessage, HubAddress, HubMessage, INTEREST_NAMESPACES_MAX, Interest, MESSAGE_BYTES_MAX,
            MembershipEnded, Namespaces, Told,
        },
    },
    process::{Readiness, ReadyHandle, random, reason},
    tls::{self, HubConnector},
    wire,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use tracing::{debug, info, warn};

use super::{
    certificates::CertificateWish,
    complaints::Complaints,
    machine::{Beginning, Introduction, Reaction, Session, Violation, touched_by},
    waits::Waits,
};
use crate::{
    apply::Handle,
    lease::{AgentLease, hold::May},
    membership::ended,
    outbox::Outbox,
    plan::Desired,
    watch::{Dirty, Kept, KeptNamespace, Watched},
};

/// Messages to the hub that may wait in the stream.
const OUTGOING_MAX: usize = 4;
/// The words on /readyz once the membership of the cluster has ended.
const AWAITED_MEMBERSHIP: &str = "a membership: this cluster's has ended. The log says how to clean up";
/// Time that a goodbye may take to reach the hub.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait for the kinds that come from other clusters before the first session.
const SOURCES_WAIT: Duration = Duration::from_secs(10);

/// Metrics of the link.
#[derive(Debug, Clone, Default)]
pub struct LinkMetrics {
    connected: Gauge,
    sessions: Counter,
    outbox_waiting: Gauge,
    outbox_unacknowledged: Gauge,
    differences_restored: Counter,
    items_wanted: Counter,
    items_turned_away: Counter,
    membership_ended: Gauge,
}

impl LinkMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "hub_connected",
            "1 while a session with the hub is open",
            metrics.connected.clone(),
        );
        registry.register(
            "hub_sessions",
            "Sessions that were opened",
            metrics.sessions.clone(),
        );
        registry.register(
            "outbox_waiting",
            "Facts that wait to be sent",
            metrics.outbox_waiting.clone(),
        );
        registry.register(
            "outbox_unacknowledged",
            "Facts that were sent and are not acknowledged",
            metrics.outbox_unacknowledged.clone(),
        );
        registry.register(
            "differences_restored",
            "Derived objects of which the hub sent the difference from what was held",
            metrics.differences_restored.clone(),
        );
        registry.register(
            "items_wanted",
            "Derived objects that the hub was asked for whole, because a difference did not lead from what was held",
            metrics.items_wanted.clone(),
        );
        registry.register(
            "items_turned_away",
            "Derived objects that this cluster did not take, or not whole, by rules of its own",
            metrics.items_turned_away.clone(),
        );
        registry.register(
            "membership_ended",
            "1 while this cluster is no member any more, as a hub said",
            metrics.membership_ended.clone(),
        );
        metrics
    }
}

/// The link and what it shares with the rooms beside it.
pub struct Link {
    /// The way to the hub.
    pub connector: HubConnector,
    /// The agent's introduction to the hub.
    pub introduction: Introduction,
    /// This cluster.
    pub cluster: ClusterId,
    /// Keeps the epoch, and the end of the membership.
    pub lease: AgentLease,
    /// Held back while the membership has ended.
    pub readiness: Readiness,
    /// Present while the membership has ended.
    pub unready: Option<ReadyHandle>,
    /// The highest epoch that is known.
    pub known_epoch: Option<Epoch>,
    /// The hubs that the last Welcome named, in memory only. Nothing follows from them while there is one.
    pub hubs: Vec<HubAddress>,
    /// The facts.
    pub outbox: Arc<Mutex<Outbox>>,
    /// Tells that the outbox has something to send.
    pub outbox_changed: watch::Receiver<u64>,
    /// The desired state, and who brings it about.
    pub apply: Handle,
    /// The namespaces of the cluster.
    pub namespaces: Watched<KeptNamespace>,
    /// Marked when a namespace came or went.
    pub namespaces_changed: Dirty<()>,
    /// True if everything is held, whatever namespaces exist.
    pub all_namespaces: bool,
    /// Certificates that are wanted.
    pub certificates: mpsc::Receiver<CertificateWish>,
    /// Warnings made so far.
    pub complaints: Complaints,
    /// Counts.
    pub metrics: LinkMetrics,
}

/// The end of a session.
enum End {
    /// We are asked to stop.
    Drain,
    /// The stream broke, or one side ended it.
    Broken(String),
    /// Trying again soon is no use.
    Refused(String),
    /// The same, with a hub's word that a membership has ended.
    Ended(String, MembershipEnded),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Runs until `drain`.
    pub async fn run(mut self, drain: CancellationToken) -> anyhow::Result<()> {
        let mut waits = Waits::default();
        let mut generation = 0;
        let mut told = None;
        let key = self.connector.key();
        if self.lease.ended() == Some(key) {
            self.end_membership(key).await;
        }
        if !self.namespaces_listed(&drain).await || !self.sources_known(&drain).await {
            return Ok(());
        }
        loop {
            let started = Instant::now();
            generation += 1;
            let end = self.session(&mut generation, &drain).await;
            self.metrics.connected.set(0);
            lock(&self.outbox).end_session();
            self.apply.note(Desired::session_ended);
            if waits.ended(started.elapsed()) {
                told = None;
            }
            let wait = match self.heed(end).await {
                End::Drain => return Ok(()),
                End::Broken(why) => {
                    if told.as_ref() == Some(&why) {
                        debug!(why, "still no session with the hub");
                    } else {
                        info!(why, "the session with the hub ended; connecting again");
                    }
                    told = Some(why);
                    waits.unreached(random())
                }
                End::Refused(why) | End::Ended(why, _) => {
                    if told.as_ref() == Some(&why) {
                        debug!(why, "the hub still refuses this cluster");
                    } else {
                        warn!(
                            why,
                            "the hub refuses this cluster; everything applied stays, trying again"
                        );
                    }
                    told = Some(why);
                    self.connector.try_next_address();
                    waits.refused(random())
                }
            };
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Acts on the word that this cluster's membership has ended, and on no other refusal.
    async fn heed(&mut self, end: End) -> End {
        if let End::Ended(_, word) = &end {
            let key = self.connector.key();
            if ended::is_about(word, &self.cluster, key, self.known_epoch) {
                self.end_membership(key).await;
            } else {
                debug!(
                    cluster = %word.cluster,
                    key = %word.key,
                    epoch = %word.epoch,
                    "ignored a hub's notice that a membership has ended: it is not about this one"
                );
            }
        }
        end
    }

    /// Other modules act on it: exports show it, Leases of sources are not renewed any more, and the property with the
    /// clusterset goes. Nothing else is deleted.
    async fn end_membership(&mut self, key: KeyFingerprint) {
        if self.unready.is_none() {
            warn!(
                "the membership of this cluster has ended: no other cluster imports from it, and its own imports go when the \
                 Leases of their sources expire. To clean up, stop the agent and run `{}`. To join again, issue a certificate \
                 with a new key",
                advice::agent_leave_without_hub()
            );
            self.unready = Some(self.readiness.handle(AWAITED_MEMBERSHIP));
            self.metrics.membership_ended.set(1);
            self.apply.feed(|desired| (desired.end_membership(), ()));
        }
        if let Err(error) = self.lease.remember_end(Some(key)).await {
            debug!(
                error = reason(&error),
                "the end of the membership is written with the next renewal of the Lease"
            );
        }
    }

    /// A hub admitted this cluster.
    async fn is_member(&mut self) {
        if self.unready.take().is_some() {
            info!("this cluster is a member again");
        }
        self.metrics.membership_ended.set(0);
        if let Err(error) = self.lease.remember_end(None).await {
            debug!(
                error = reason(&error),
                "the new membership is written with the next renewal of the Lease"
            );
        }
    }

    /// Before namespaces are known there is no interest to state. False: drained.
    async fn namespaces_listed(&self, drain: &CancellationToken) -> bool {
        let mut listed = self.namespaces.listed();
        let listed = drain.run_until_cancelled(listed.wait_for(|listed| *listed)).await;
        listed.is_some_and(|listed| listed.is_ok())
    }

    /// A Hello before these kinds are listed names too few sources. A kind that cannot be listed delays it. False: drained.
    async fn sources_known(&self, drain: &CancellationToken) -> bool {
        let known = tokio::time::timeout(SOURCES_WAIT, self.apply.sources_known());
        drain.run_until_cancelled(known).await.is_some()
    }

    async fn session(&mut self, generation: &mut u64, drain: &CancellationToken) -> End {
        let channel = tokio::select! {
            biased;
            () = drain.cancelled() => return End::Drain,
            channel = self.connector.connect() => match channel {
                Ok(channel) => channel,
                Err(error) => return End::Broken(tls::explain(&error).unwrap_or_else(|| error.to_string())),
            },
        };
        let mut client = SyncClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let clock = Instant::now();
        let interest = self.interest(*generation);
        let sources_held = self.apply.sources_held();
        let (session, hello) = self.apply.note(|desired| {
            Session::begin(Beginning {
                introduction: &self.introduction,
                known_epoch: self.known_epoch,
                interest,
                sources_held,
                outbox: &mut lock(&self.outbox),
                desired,
                now: 0,
                clock: wall(),
            })
        });
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        // The channel is new and has room.
        let _ = outgoing.try_send(hello);
        let incoming = tokio::select! {
            biased;
            () = drain.cancelled() => return End::Drain,
            stream = client.stream(ReceiverStream::new(messages)) => match stream {
                Ok(response) => response.into_inner(),
                Err(status) => return end_of(&status),
            },
        };
        let mut stream = Stream {
            link: self,
            session,
            outgoing,
            incoming,
            wish: None,
            clock,
            generation,
        };
        stream.drive(drain).await
    }

    fn interest(&mut self, generation: u64) -> Interest {
        let namespaces = if self.all_namespaces {
            Namespaces::All
        } else {
            Namespaces::Only(self.namespaces())
        };
        Interest {
            generation,
            namespaces,
        }
    }

    fn namespaces(&mut self) -> BTreeSet<Box<str>> {
        let all = self.namespaces.all();
        let names = all.iter().map(|namespace| namespace.head().name.clone());
        if self.complaints.of_namespaces(all.len() > INTEREST_NAMESPACES_MAX) {
            warn!(
                INTEREST_NAMESPACES_MAX,
                "too many namespaces: the last ones by name are not served"
            );
        }
        names.take(INTEREST_NAMESPACES_MAX).collect()
    }
}

/// One running session.
struct Stream<'a> {
    link: &'a mut Link,
    session: Session,
    outgoing: mpsc::Sender<v1::AgentMessage>,
    incoming: Streaming<v1::HubMessage>,
    /// The pending request for a certificate.
    wish: Option<CertificateWish>,
    clock: Instant,
    generation: &'a mut u64,
}

impl Stream<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn drive(&mut self, drain: &CancellationToken) -> End {
        let mut outbox_changed = self.link.outbox_changed.clone();
        let namespaces_changed = self.link.namespaces_changed.clone();
        let apply = self.link.apply.clone();
        self.follow_namespaces();
        let outgoing = self.outgoing.clone();
        let mut more_to_say = true;
        loop {
            let deadline = self.clock + Duration::from_millis(self.session.next_deadline());
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                message = self.incoming.message() => match message {
                    Ok(Some(message)) => if let Err(end) = self.on_message(message).await {
                        return end;
                    },
                    Ok(None) => return End::Broken("the hub closed the stream".into()),
                    Err(status) => return end_of(&status),
                },
                slot = outgoing.reserve(), if more_to_say => {
                    let Ok(slot) = slot else { return self.why_closed().await };
                    match self.next_message() {
                        Some(message) => slot.send(wire::agent_message_to_proto(message)),
                        None => more_to_say = false,
                    }
                    continue;
                }
                Ok(()) = outbox_changed.changed() => {}
                _ = namespaces_changed.taken() => self.follow_namespaces(),
                Some(wish) = self.link.certificates.recv(), if self.session.is_open() && self.wish.is_none() => {
                    self.ask_for_certificate(wish);
                }
                () = apply.progressed() => {}
                () = tokio::time::sleep_until(deadline) => {
                    if let Err(violation) = self.session.check_silence(self.now()) {
                        return End::Broken(violation.to_string());
                    }
                }
            }
            more_to_say = true;
        }
        drop(outgoing);
        self.say_goodbye().await;
        End::Drain
    }

    /// A requester that stopped waiting is passed over.
    fn ask_for_certificate(&mut self, wish: CertificateWish) {
        if !wish.answer.is_closed() && self.session.ask_for_certificate(wish.request.clone()) {
            self.wish = Some(wish);
        }
    }

    fn next_message(&mut self) -> Option<AgentMessage> {
        let (now, reach) = (self.now(), self.link.apply.reach());
        let mut outbox = lock(&self.link.outbox);
        let leads = self.link.lease.may() == May::Write;
        let message = self.session.poll(&mut outbox, (reach, leads), now);
        let (waiting, unacknowledged) = outbox.depth();
        self.link.metrics.outbox_waiting.set(waiting as i64);
        self.link.metrics.outbox_unacknowledged.set(unacknowledged as i64);
        message
    }

    async fn on_message(&mut self, message: v1::HubMessage) -> Result<(), End> {
        let message: HubMessage =
            wire::hub_message_from_proto(message).map_err(|error| End::Broken(error.to_string()))?;
        let now = self.now();
        let (session, outbox) = (&mut self.session, &self.link.outbox);
        let reaction = self.link.apply.feed(|desired| {
            let reaction = session.on_message(message, &mut lock(outbox), desired, decode, now);
            touched_by(reaction)
        });
        let reaction = reaction.map_err(|violation| match violation {
            Violation::OlderEpoch { .. } | Violation::EpochAhead { .. } | Violation::Version { .. } => {
                End::Refused(violation.to_string())
            }
            _ => End::Broken(violation.to_string()),
        })?;
        self.react(reaction).await
    }

    async fn react(&mut self, reaction: Reaction) -> Result<(), End> {
        if let Some(welcome) = &reaction.welcomed {
            self.remember(welcome.epoch).await?;
            self.link.is_member().await;
            info!(
                // A hub must not write control characters to a terminal that shows the log.
                hub = %welcome.hub.escape_debug(),
                hub_version = %welcome.hub_version.escape_debug(),
                epoch = %welcome.epoch,
                session = welcome.session.0,
                resume = welcome.resume,
                "the hub admitted this cluster"
            );
            self.link.hubs.clone_from(&welcome.hubs);
            self.link.metrics.connected.set(1);
            self.link.metrics.sessions.inc();
        }
        if let (Some(answer), Some(wish)) = (reaction.renewed, self.wish.take()) {
            // A requester that gave up asks again.
            let _ = wish.answer.send(answer);
        }
        if reaction.room_again {
            self.link.apply.room_again();
        }
        let metrics = &self.link.metrics;
        metrics.differences_restored.inc_by(reaction.restored);
        metrics.items_wanted.inc_by(reaction.wanted);
        metrics.items_turned_away.inc_by(reaction.turned_away);
        for complaint in &reaction.complaints {
            warn!("{complaint}");
        }
        self.link.apply.facts_taken(&reaction.taken);
        for key in &reaction.refused {
            self.on_refused(key);
        }
        Ok(())
    }

    /// An epoch is remembered before anything of it is applied: a restored hub must be recognised for ever.
    async fn remember(&mut self, epoch: Epoch) -> Result<(), End> {
        if self.link.known_epoch.is_none_or(|known| known < epoch) {
            let remembered = self.link.lease.remember(epoch).await;
            remembered
                .map_err(|error| End::Broken(format!("the hub's epoch cannot be remembered: {error:#}")))?;
            self.link.known_epoch = Some(epoch);
        }
        Ok(())
    }

    fn on_refused(&mut self, key: &FactKey) {
        let outbox = lock(&self.link.outbox);
        let Some(refusal) = outbox.refusal(key) else {
            return;
        };
        if self.link.complaints.of_refusal(key, refusal) {
            warn!(%key, why = %refusal.message, "the hub does not take this fact");
        } else {
            debug!(%key, why = %refusal.message, "the hub does not take this fact, or not now");
        }
        self.link.apply.fact_refused(key, refusal);
    }

    /// Namespaces that came or went since the interest was last stated.
    fn follow_namespaces(&mut self) {
        let present = self.link.namespaces();
        let (session, generation) = (&mut self.session, &mut *self.generation);
        self.link
            .apply
            .note(|desired| session.follow_namespaces(present, generation, desired));
    }

    /// Says goodbye, closes our half of the stream and waits for the hub's: a dropped stream loses what has not left yet.
    async fn say_goodbye(&mut self) {
        let goodbye = wire::agent_message_to_proto(AgentMessage::Goodbye);
        let (nobody, _) = mpsc::channel(1);
        let outgoing = std::mem::replace(&mut self.outgoing, nobody);
        let said = async {
            let _ = outgoing.send(goodbye).await;
            drop(outgoing);
            while let Ok(Some(_)) = self.incoming.message().await {}
        };
        // A hub that does not take it in time will notice the silence.
        let _ = tokio::time::timeout(GOODBYE_WAIT, said).await;
    }

    /// Our half of the stream was closed: the hub's half says why.
    async fn why_closed(&mut self) -> End {
        match tokio::time::timeout(GOODBYE_WAIT, self.incoming.message()).await {
            Ok(Err(status)) => end_of(&status),
            _ => End::Broken("the stream was closed".into()),
        }
    }
}

fn wall() -> UnixMillis {
    UnixMillis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0))
}

fn decode(item: bytes::Bytes) -> Option<Told> {
    match wire::decode_told(item) {
        Ok(told) => {
            if let Told::Unreadable { why, .. } = &told {
                debug!(%why, "passed over an item of the hub");
            }
            Some(told)
        }
        Err(error) => {
            // A newer hub may send kinds that this agent does not know.
            debug!(%error, "passed over an item of the hub");
            None
        }
    }
}

fn end_of(status: &Status) -> End {
    let why = tls::explain(status).unwrap_or_else(|| status.message().to_owned());
    let trailer = status.metadata().get_bin(wire::MEMBERSHIP_ENDED_TRAILER);
    let bytes = trailer.and_then(|trailer| trailer.to_bytes().ok());
    if let Some(word) = bytes.and_then(|bytes| wire::decode_membership_ended(&bytes)) {
        return End::Ended(why, word);
    }
    match status.code() {
        Code::PermissionDenied | Code::FailedPrecondition | Code::AlreadyExists | Code::InvalidArgument => {
            End::Refused(why)
        }
        _ => End::Broken(if why.is_empty() { status.to_string() } else { why }),
    }
}
