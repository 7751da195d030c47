//! Owns: one member's session with the hub, spoken directly: Hello, listing, observations, heartbeats, what is
//! pushed. And the bytes that it costs on the wire, TLS and HTTP/2 included.
//! Never: talks to Kubernetes, measures time, or decides what to send.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as Poller, Poll},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use futures::future::BoxFuture;
use proto::v1::{self, agent_message, hub_message, observation, sync_client::SyncClient};
use shared::{
    model::{
        ClusterId, ControlPlane, Cursor, EncodedFact, Fact, FactsDigest, Health, facts_digest,
        sync::{
            AgentMessage, CHUNK_BYTES, Hello, HubMessage, Interest, MESSAGE_BYTES_MAX, Namespaces,
            PROTOCOL_VERSION, Source,
        },
    },
    tls::{BoxedIo, Dial, HubAddress, HubConnector, LiveCredentials, TcpDial, TlsMetrics, explain},
    wire,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::{Interval, MissedTickBehavior},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Messages that may wait in the stream to the hub.
const OUTGOING_MAX: usize = 4;
/// Facts of one message when many are sent.
const MESSAGE_FACTS: usize = 256;

/// Bytes of a session on the wire.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Traffic {
    /// Bytes received so far.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Dial for Traffic {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        let (dialling, traffic) = (TcpDial.dial(address), self.clone());
        Box::pin(async move {
            Ok(Box::new(Counted {
                io: dialling.await?,
                traffic,
            }) as BoxedIo)
        })
    }
}

struct Counted {
    io: BoxedIo,
    traffic: Traffic,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(poller, buffer);
        self.traffic
            .read
            .fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(poller, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.traffic.written.fetch_add(*count as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(poller)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(poller)
    }
}

/// Who plays.
#[derive(Clone)]
pub(super) struct Player {
    /// The member.
    pub(super) cluster: ClusterId,
    /// Its certificate.
    pub(super) credentials: Arc<LiveCredentials>,
    /// What it wants to hear about.
    pub(super) interest: Namespaces,
}

/// What a member keeps from one session to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// Everything up to it was received.
    pub(super) cursor: Option<Cursor>,
    /// What it reports, if that is settled.
    pub(super) exports: Option<FactsDigest>,
    /// The same of its health.
    pub(super) properties: Option<FactsDigest>,
}

impl Memory {
    /// Of a member that reports these facts, of the group exports, and a health.
    pub(super) fn of(facts: &[Bytes]) -> anyhow::Result<Self> {
        let exports = facts.iter().map(|fact| wire::decode_member_fact(fact.clone()));
        let exports = exports.collect::<Result<Vec<_>, _>>()?;
        let digest = |facts: &[EncodedFact]| {
            let facts = facts
                .iter()
                .filter_map(|fact| Some((fact.fact.key()?, fact.hash)));
            let sorted: BTreeMap<_, _> = facts.collect();
            facts_digest(sorted.iter().map(|(key, hash)| (key, *hash)))
        };
        Ok(Self {
            cursor: None,
            exports: Some(digest(&exports)),
            properties: Some(digest(&[health()])),
        })
    }
}

fn health() -> EncodedFact {
    let health = Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane: ControlPlane::Ready,
        failed_checks: Vec::new(),
    };
    wire::encode_fact(&Fact::HealthReported(health.into()))
}

/// An admitted session.
pub(super) struct Session {
    cluster: ClusterId,
    outgoing: mpsc::Sender<v1::AgentMessage>,
    incoming: Streaming<v1::HubMessage>,
    welcome: v1::Welcome,
    heartbeats: Interval,
    sequence: u64,
    acknowledged: u64,
    cursor: Option<Cursor>,
    /// Its bytes on the wire.
    pub(super) traffic: Traffic,
}

impl Player {
    /// Connects and introduces itself as one that knows nothing yet.
    pub(super) async fn connect(&self, hub: &HubAddress) -> anyhow::Result<Session> {
        self.connect_again(hub, &Memory::default()).await
    }

    /// Connects and introduces itself with what it remembers.
    pub(super) async fn connect_again(&self, hub: &HubAddress, memory: &Memory) -> anyhow::Result<Session> {
        let traffic = Traffic::default();
        let dial = Arc::new(traffic.clone());
        let connector = HubConnector::new(
            vec![hub.clone()],
            self.credentials.clone(),
            dial,
            TlsMetrics::default(),
        );
        let connecting = connector.connect().await;
        let channel =
            connecting.map_err(|error| self.failed(explain(&error).unwrap_or(error.to_string())))?;
        let mut client = SyncClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(self.hello(memory))));
        outgoing.send(hello).await.context("the channel is new")?;
        let answer = client.stream(ReceiverStream::new(messages)).await;
        let mut incoming = answer
            .map_err(|status| self.failed(status.to_string()))?
            .into_inner();
        let welcome = loop {
            match self.next(&mut incoming).await? {
                hub_message::Message::Welcome(welcome) => break welcome,
                hub_message::Message::Ping(_) => {}
                other => return Err(self.failed(format!("{other:?} came before Welcome"))),
            }
        };
        let mut heartbeats = tokio::time::interval(Duration::from_millis(
            welcome.heartbeat_interval_millis.max(1).into(),
        ));
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Session {
            cluster: self.cluster.clone(),
            outgoing,
            incoming,
            welcome,
            heartbeats,
            sequence: 0,
            acknowledged: 0,
            cursor: memory.cursor,
            traffic,
        })
    }

    async fn next(&self, incoming: &mut Streaming<v1::HubMessage>) -> anyhow::Result<hub_message::Message> {
        let message = incoming
            .message()
            .await
            .map_err(|status| self.failed(status.to_string()))?;
        message
            .and_then(|message| message.message)
            .ok_or_else(|| self.failed("the hub closed the stream".into()))
    }

    fn failed(&self, why: String) -> anyhow::Error {
        anyhow!("member {}: {why}", self.cluster)
    }

    fn hello(&self, memory: &Memory) -> Hello {
        Hello {
            protocol_version: PROTOCOL_VERSION,
            features: 0,
            agent_version: concat!("load-", env!("CARGO_PKG_VERSION")).into(),
            highest_epoch: memory.cursor.map(|cursor| cursor.epoch),
            cluster_fingerprint: format!("fingerprint-of-{}", self.cluster).into(),
            instance: format!("player-{}", std::process::id()).into(),
            lease_transitions: 1,
            cursor: memory.cursor,
            exports_digest: memory.exports,
            properties_digest: memory.properties,
            sources_held: BTreeSet::new(),
            interest: Interest {
                generation: 1,
                namespaces: self.interest.clone(),
            },
        }
    }
}

/// What a session heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// Derived objects, encoded.
    Desired(Vec<Bytes>),
    /// Its snapshot is complete.
    SnapshotComplete,
    /// What is known of other members.
    Sources(Vec<Source>),
    /// Acknowledgements and signs of life.
    Other,
}

impl Session {
    /// What has been sent.
    pub(super) fn sent(&self) -> u64 {
        self.sequence
    }

    /// What the hub has made durable.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Everything up to it was received.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// True when a snapshot comes first, not only what changed.
    pub(super) fn starts_over(&self) -> bool {
        !self.welcome.resume
    }

    /// How many facts may be sent now.
    pub(super) fn room(&self) -> u64 {
        u64::from(self.welcome.unacknowledged_max).saturating_sub(self.sequence - self.acknowledged)
    }

    /// The next message of the hub; heartbeats go out meanwhile.
    pub(super) async fn hear(&mut self) -> anyhow::Result<Heard> {
        loop {
            tokio::select! {
                message = self.incoming.message() => return self.on_message(message).await,
                _ = self.heartbeats.tick() => {
                    self.send(agent_message::Message::Heartbeat(v1::Heartbeat {})).await?;
                }
            }
        }
    }

    /// Sends facts in one message. The caller sees to it that there is room.
    pub(super) async fn report(&mut self, facts: Vec<Bytes>) -> anyhow::Result<()> {
        let items = facts.into_iter().map(observation::Observation::Fact).collect();
        self.observe(items).await
    }

    /// Lists the given facts of the group exports, and a health, as far as the hub wants them; returns when the hub
    /// has acknowledged both. What is heard meanwhile goes to `heard`.
    pub(super) async fn list(
        &mut self,
        facts: Vec<Bytes>,
        mut heard: impl FnMut(Heard),
    ) -> anyhow::Result<()> {
        let wanted = if self.welcome.list_exports {
            facts
        } else {
            Vec::new()
        };
        let mut facts = wanted.into_iter().peekable();
        while facts.peek().is_some() {
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            while chunk.len() < MESSAGE_FACTS.min(self.room() as usize)
                && bytes < CHUNK_BYTES
                && let Some(fact) = facts.next()
            {
                bytes += fact.len();
                chunk.push(fact);
            }
            if chunk.is_empty() {
                heard(self.hear().await?);
            } else {
                self.report(chunk).await?;
            }
        }
        let mut rest = Vec::new();
        if self.welcome.list_exports {
            rest.push(observation::Observation::ListingCompleted(
                v1::ListingGroup::Exports.into(),
            ));
        }
        if self.welcome.list_properties {
            rest.push(observation::Observation::Fact(health().bytes));
            rest.push(observation::Observation::ListingCompleted(
                v1::ListingGroup::Properties.into(),
            ));
        }
        while self.room() < rest.len() as u64 {
            heard(self.hear().await?);
        }
        if !rest.is_empty() {
            self.observe(rest).await?;
        }
        while self.acknowledged < self.sequence {
            heard(self.hear().await?);
        }
        Ok(())
    }

    async fn observe(&mut self, items: Vec<observation::Observation>) -> anyhow::Result<()> {
        let first = self.sequence + 1;
        self.sequence += items.len() as u64;
        let observations = (first..)
            .zip(items)
            .map(|(sequence, item)| v1::Observation {
                sequence,
                observation: Some(item),
            })
            .collect();
        self.send(agent_message::Message::Observations(v1::Observations {
            observations,
        }))
        .await
    }

    async fn send(&mut self, message: agent_message::Message) -> anyhow::Result<()> {
        let message = v1::AgentMessage {
            message: Some(message),
        };
        if self.outgoing.send(message).await.is_ok() {
            return Ok(());
        }
        // The stream is gone; the hub has said why.
        let why = self.incoming.message().await;
        bail!("member {}: the session ended: {why:?}", self.cluster)
    }

    async fn on_message(
        &mut self,
        message: Result<Option<v1::HubMessage>, tonic::Status>,
    ) -> anyhow::Result<Heard> {
        let message = message.map_err(|status| anyhow!("member {}: {status}", self.cluster))?;
        let message =
            message.with_context(|| format!("member {}: the hub closed the stream", self.cluster))?;
        match wire::hub_message_from_proto(message)? {
            HubMessage::Acknowledged(sequence) => self.acknowledged = sequence,
            HubMessage::Refused(refused) => {
                bail!(
                    "member {}: the hub refused a fact: {}",
                    self.cluster,
                    refused.message
                )
            }
            HubMessage::Desired { items, .. } => return Ok(Heard::Desired(items)),
            HubMessage::SnapshotComplete(up_to) => {
                self.cursor = Some(up_to.cursor);
                return Ok(Heard::SnapshotComplete);
            }
            HubMessage::SourcesChanged(sources) => return Ok(Heard::Sources(sources)),
            HubMessage::UpTo(up_to) | HubMessage::Heartbeat(Some(up_to)) => self.cursor = Some(up_to.cursor),
            HubMessage::Ping(nonce) => {
                self.send(agent_message::Message::Pong(v1::Pong { nonce }))
                    .await?;
            }
            _ => {}
        }
        Ok(Heard::Other)
    }
}
