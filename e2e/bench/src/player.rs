//! Owns: one member's session with the hub as the load shapes want it: who it is, what it lists and remembers, what
//! of the hub's words is measured.
//! Never: talks to Kubernetes, measures time, or decides what to send.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use proto::v1::{self, observation::Observation};
use shared::{
    model::{
        ClusterId, ControlPlane, Cursor, EncodedFact, Fact, FactsDigest, Health, facts_digest,
        sync::{
            CHUNK_BYTES, FEATURE_DIFFERENCES, FEATURE_RENEWAL, Hello, HubMessage, Interest, Namespaces,
            PROTOCOL_VERSION, Renewed, Source, Welcome,
        },
    },
    tls::{HubAddress, HubConnector, LiveCredentials, TlsMetrics, explain},
    wire,
};

use super::{held::Held, traffic::Traffic};
use cluster::member::Member;

/// Facts of one message when many are sent.
const MESSAGE_FACTS: usize = 256;

/// The player of a member.
#[derive(Clone)]
pub(super) struct Player {
    /// The member.
    pub(super) cluster: ClusterId,
    /// Its certificate.
    pub(super) credentials: Arc<LiveCredentials>,
    /// Its interest.
    pub(super) interest: Namespaces,
    /// It holds what it hears, as agents do, so that it may be told differences.
    pub(super) takes_differences: bool,
}

/// A member's memory from one session to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// Everything up to it was received.
    pub(super) cursor: Option<Cursor>,
    /// Digest of its reports, if they are settled.
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
        verdict: None,
        nodes: None,
    };
    wire::encode_fact(&Fact::HealthReported(health.into()))
}

/// An admitted session.
pub(super) struct Session {
    cluster: ClusterId,
    /// The stream.
    pub(super) member: Member,
    welcome: Box<Welcome>,
    cursor: Option<Cursor>,
    held: Option<Held>,
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
        let channel = connecting.map_err(|error| {
            let why = explain(&error).unwrap_or(error.to_string());
            anyhow!("member {}: {why}", self.cluster)
        })?;
        let introduced = Member::introduce(channel, self.hello(memory)).await;
        let (member, welcome) = introduced.with_context(|| format!("member {}", self.cluster))?;
        Ok(Session {
            cluster: self.cluster.clone(),
            member,
            welcome,
            cursor: memory.cursor,
            held: self.takes_differences.then(Held::default),
            traffic,
        })
    }

    fn hello(&self, memory: &Memory) -> Hello {
        Hello {
            protocol_version: PROTOCOL_VERSION,
            features: if self.takes_differences {
                FEATURE_DIFFERENCES | FEATURE_RENEWAL
            } else {
                FEATURE_RENEWAL
            },
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

/// A message to a session.
#[derive(Debug)]
pub(super) enum Heard {
    /// Derived objects, encoded.
    Desired(Vec<Bytes>),
    /// Its snapshot is complete.
    SnapshotComplete,
    /// States of other members.
    Sources(Vec<Source>),
    /// A certificate that was asked for, or why there is none.
    Renewal(Result<Box<Renewed>, Box<str>>),
    /// Acknowledgements and signs of life.
    Other,
}

impl Session {
    /// Number of facts sent.
    pub(super) fn sent(&self) -> u64 {
        self.member.sequence
    }

    /// Number of facts that the hub has made durable.
    pub(super) fn acknowledged(&self) -> u64 {
        self.member.acknowledged
    }

    /// Everything up to it was received.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// True when a snapshot comes first, not only what changed.
    pub(super) fn starts_over(&self) -> bool {
        !self.welcome.resume
    }

    /// True when the hub does not hold what it reports, and has it listed.
    pub(super) fn asks_for_exports(&self) -> bool {
        self.welcome.list_exports
    }

    /// Number of facts that may be sent now.
    pub(super) fn room(&self) -> u64 {
        u64::from(self.welcome.unacknowledged_max).saturating_sub(self.sent() - self.acknowledged())
    }

    /// The next message of the hub. A refusal is an error: a player sends nothing that is refused.
    pub(super) async fn hear(&mut self) -> anyhow::Result<Heard> {
        let heard = self.member.hear().await;
        let heard = heard.with_context(|| format!("member {}", self.cluster))?;
        Ok(match heard {
            HubMessage::Desired { items, .. } => Heard::Desired(match &mut self.held {
                Some(held) => {
                    let whole = items.into_iter().map(|item| held.whole(item));
                    let whole: anyhow::Result<Vec<Bytes>> = whole.collect();
                    whole.with_context(|| format!("member {}", self.cluster))?
                }
                None => items,
            }),
            HubMessage::SnapshotComplete(up_to) => {
                self.cursor = Some(up_to.cursor);
                Heard::SnapshotComplete
            }
            HubMessage::SourcesChanged(sources) => Heard::Sources(sources),
            HubMessage::RenewalAnswered(answer) => Heard::Renewal(answer),
            HubMessage::UpTo(up_to) | HubMessage::Heartbeat(Some(up_to)) => {
                self.cursor = Some(up_to.cursor);
                Heard::Other
            }
            _ => Heard::Other,
        })
    }

    /// Sends facts in one message. The caller sees to it that there is room.
    pub(super) async fn report(&mut self, facts: Vec<Bytes>) -> anyhow::Result<()> {
        self.observe(facts.into_iter().map(Observation::Fact)).await
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
            rest.push(Observation::ListingCompleted(v1::ListingGroup::Exports.into()));
        }
        if self.welcome.list_properties {
            rest.push(Observation::Fact(health().bytes));
            rest.push(Observation::ListingCompleted(v1::ListingGroup::Properties.into()));
        }
        while self.room() < rest.len() as u64 {
            heard(self.hear().await?);
        }
        if !rest.is_empty() {
            self.observe(rest).await?;
        }
        while self.acknowledged() < self.sent() {
            heard(self.hear().await?);
        }
        Ok(())
    }

    async fn observe(&mut self, items: impl IntoIterator<Item = Observation>) -> anyhow::Result<()> {
        if self.member.observe_next(items).await.is_ok() {
            return Ok(());
        }
        // The stream is gone; the hub has said why.
        let why = self.member.refusal().await?;
        bail!("member {}: the session ended: {why}", self.cluster)
    }
}
