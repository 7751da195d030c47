//! A member's stream over real mutual TLS, as a member that misbehaves uses it.

mod support;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hub::certs::Subject;
use prost::Message as _;
use proto::v1::{self, hub_message::Message, membership_client::MembershipClient, sync_client::SyncClient};
use shared::{
    model::{
        ClusterId, Fact,
        sync::{
            AgentMessage, Applied, FEATURE_APPLIED, Hello, Interest, Observation, ObservedItem,
            PROTOCOL_VERSION,
        },
    },
    tls::{HubConnector, LiveCredentials, TcpDial, TlsMetrics, install_crypto_provider},
    wire,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Streaming, transport::Channel};

/// As many as a member may have unacknowledged.
const OBSERVATIONS: u64 = 8_192;
const OF_A_MESSAGE: u64 = 128;
/// Nothing moves for so long: the hub does not read.
const STALLED: Duration = Duration::from_secs(2);
/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

struct Member {
    outgoing: mpsc::Sender<v1::AgentMessage>,
    incoming: Streaming<v1::HubMessage>,
}

impl Member {
    /// Connects and is welcomed.
    async fn welcomed() -> Self {
        Self::welcomed_with(0).await.0
    }

    /// The same with these feature bits, and what people read with.
    async fn welcomed_with(features: u64) -> (Self, Channel) {
        // Another test of this process may have installed it.
        let _ = install_crypto_provider();
        let authority = support::authority();
        let port = support::serve(&authority).await;
        let channel = connect(port, support::credentials(&authority, &east())).await;
        (Self::begin(&channel, features).await, channel)
    }

    /// Opens a session over this channel and is welcomed.
    async fn begin(channel: &Channel, features: u64) -> Self {
        let (outgoing, messages) = mpsc::channel(1);
        outgoing.send(hello(features)).await.expect("there is room");
        let stream = SyncClient::new(channel.clone())
            .stream(ReceiverStream::new(messages))
            .await;
        let mut member = Self {
            outgoing,
            incoming: stream.expect("a stream").into_inner(),
        };
        let Message::Welcome(welcome) = member.read().await else {
            panic!("the first message is Welcome")
        };
        let hubs: Vec<&str> = welcome.hubs.iter().map(|hub| hub.name.as_str()).collect();
        assert_eq!((welcome.term, hubs), (1, vec!["hub"]));
        member
    }

    async fn read(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.incoming.message()).await;
        let message = next.expect("in time").expect("a session").expect("not its end");
        message.message.expect("a message")
    }
}

fn east() -> Subject {
    Subject::Member(ClusterId::new("east").expect("valid"))
}

async fn connect(port: u16, credentials: Arc<LiveCredentials>) -> Channel {
    let address = format!("https://127.0.0.1:{port}").parse().expect("an address");
    let connector = HubConnector::new(
        vec![address],
        credentials,
        Arc::new(TcpDial),
        TlsMetrics::default(),
    );
    connector.connect().await.expect("connected")
}

fn hello(features: u64) -> v1::AgentMessage {
    wire::agent_message_to_proto(AgentMessage::Hello(Box::new(Hello {
        protocol_version: PROTOCOL_VERSION,
        features,
        agent_version: "test".into(),
        highest_epoch: None,
        cluster_fingerprint: "uid".into(),
        instance: "one".into(),
        lease_transitions: 1,
        cursor: None,
        exports_digest: None,
        properties_digest: None,
        sources_held: BTreeSet::new(),
        interest: Interest::default(),
    })))
}

/// Observations that are refused, each with about a kilobyte of words.
fn nonsense(first: u64) -> v1::AgentMessage {
    let fact = wire::encode_fact(&Fact::ClusterPropertyRemoved("\u{10ffff}".repeat(200).into()));
    let observations = (first..first + OF_A_MESSAGE)
        .map(|sequence| Observation::new(sequence, ObservedItem::Fact(fact.clone())));
    wire::agent_message_to_proto(AgentMessage::Observations(observations.collect()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_reads_nothing_is_not_read_from_until_it_does() {
    let Member { outgoing, incoming } = Member::welcomed().await;
    let mut first = 1;
    while first <= OBSERVATIONS {
        let sent = tokio::time::timeout(STALLED, outgoing.send(nonsense(first))).await;
        let Ok(sent) = sent else { break };
        sent.expect("the session goes on");
        first += OF_A_MESSAGE;
    }
    assert!(
        first <= OBSERVATIONS,
        "the hub holds refusals of {OBSERVATIONS} observations"
    );
    let mut member = Member {
        outgoing: outgoing.clone(),
        incoming,
    };
    // Once it reads, everything that waits is sent, and the rest is read.
    let rest = tokio::spawn(async move {
        for first in (first..=OBSERVATIONS).step_by(OF_A_MESSAGE as usize) {
            outgoing.send(nonsense(first)).await.expect("the session goes on");
        }
    });
    let (mut refused, mut acknowledged) = (0, 0);
    while acknowledged < OBSERVATIONS {
        match member.read().await {
            Message::Refused(message) => {
                refused += 1;
                assert_eq!(message.sequence, refused, "none is left out");
            }
            Message::Acknowledged(message) => acknowledged = message.sequence,
            _ => {}
        }
    }
    assert_eq!(refused, OBSERVATIONS);
    rest.await.expect("all was sent");
}

/// The only member's state, once `is_shown` holds.
async fn shown(channel: &Channel, is_shown: impl Fn(&v1::MemberState) -> bool) -> v1::MemberState {
    let listed = async {
        loop {
            let answer = MembershipClient::new(channel.clone())
                .list(v1::ListMembersRequest::default())
                .await;
            let mut members = answer.expect("listed").into_inner().members;
            if let Some(member) = members.pop().filter(&is_shown) {
                return member;
            }
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("in time")
}

fn heartbeat(applied: Option<Applied>) -> v1::AgentMessage {
    wire::agent_message_to_proto(AgentMessage::Heartbeat(applied))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_member_has_applied_and_the_version_of_its_agent_are_shown() {
    let (mut member, channel) = Member::welcomed_with(FEATURE_APPLIED).await;
    let told = loop {
        if let Message::SnapshotComplete(complete) = member.read().await {
            break complete.cursor.expect("a position");
        }
    };
    let before = shown(&channel, |_| true).await;
    assert_eq!(before.agent_version, "test");
    assert_eq!(before.applied.and_then(|applied| applied.revision), None);
    let revision = told.revision;
    let applied = v1::Applied {
        cursor: Some(told),
        parked: 2,
        oldest_parked_age_millis: 60_000,
        parked_services: Vec::new(),
    };
    let applied = v1::AgentMessage {
        message: Some(v1::agent_message::Message::Heartbeat(v1::Heartbeat {
            applied: Some(applied),
        })),
    };
    member.outgoing.send(applied).await.expect("the session goes on");
    let after = shown(&channel, |member| {
        let applied = member.applied.as_ref();
        applied.is_some_and(|applied| applied.revision.is_some())
    });
    let applied = after.await.applied.expect("it says");
    assert_eq!((applied.revision, applied.parked), (Some(revision), 2));
    assert!(applied.oldest_parked_millis.is_some());
}

/// An agent of a release before this one says nothing of what it applied, and its heartbeats have no content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_says_nothing_of_what_it_applied_is_served_as_ever() {
    let (member, channel) = Member::welcomed_with(0).await;
    member
        .outgoing
        .send(heartbeat(None))
        .await
        .expect("the session goes on");
    let unasked = Applied::default();
    member
        .outgoing
        .send(heartbeat(Some(unasked)))
        .await
        .expect("the session goes on");
    let state = shown(&channel, |member| member.connected).await;
    assert_eq!((state.agent_version.as_str(), state.applied), ("test", None));
}

/// A policy that takes minutes to be read as YAML, as the fact that only the hub decides.
fn endless_policy() -> v1::AgentMessage {
    let applied = v1::PolicyApplied {
        operator: "nobody".into(),
        document: "{a: ".repeat(250_000),
    };
    let fact = v1::Fact {
        fact: Some(v1::fact::Fact::PolicyApplied(applied)),
    };
    v1::AgentMessage {
        message: Some(v1::agent_message::Message::Observations(v1::Observations {
            observations: vec![v1::Observation {
                sequence: 1,
                observation: Some(v1::observation::Observation::Fact(fact.encode_to_vec().into())),
                changed_by: None,
            }],
        })),
    }
}

/// One message must not cost more than its bytes, from any sender: the key may be revoked, and the session not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_of_a_revoked_key_or_of_a_member_is_refused_unread() {
    let _ = install_crypto_provider();
    let authority = support::authority();
    let port = support::serve(&authority).await;
    let mine = support::credentials(&authority, &east());
    let key = mine.facts().key_fingerprint;
    let alice = Subject::Operator("alice".into());
    let operator = connect(port, support::credentials(&authority, &alice)).await;
    let channel = connect(port, mine).await;

    // From a member in session: refused as an item, and the session continues.
    let mut member = Member::begin(&channel, 0).await;
    member
        .outgoing
        .send(endless_policy())
        .await
        .expect("the session goes on");
    let refused = loop {
        match member.read().await {
            Message::Refused(refused) => break refused,
            _ => continue,
        }
    };
    assert!(
        refused.message.contains("only the hub decides"),
        "{}",
        refused.message
    );

    let revoke = v1::RevokeMemberKeyRequest {
        cluster: "east".into(),
        key_fingerprint: key.to_string(),
        confirm: true,
        ..Default::default()
    };
    let mut membership = MembershipClient::new(operator);
    membership.revoke_key(revoke).await.expect("revoked");
    // As the first message of a stream of that key, again and again.
    for _ in 0..4 {
        let (outgoing, messages) = mpsc::channel(1);
        outgoing.send(endless_policy()).await.expect("there is room");
        let mut client = SyncClient::new(channel.clone());
        let stream = client.stream(ReceiverStream::new(messages));
        let ended = tokio::time::timeout(PATIENCE, async {
            let mut incoming = stream.await?.into_inner();
            while incoming.message().await?.is_some() {}
            Ok::<(), tonic::Status>(())
        });
        let refused = ended.await.expect("in time").expect_err("it is not served");
        assert!(
            refused.message().contains("Hello") || refused.message().contains("revoked"),
            "{refused}"
        );
    }
    let listed = membership.list(v1::ListMembersRequest::default());
    let listed = tokio::time::timeout(PATIENCE, listed).await.expect("in time");
    assert_eq!(
        listed.expect("operators are served").into_inner().members.len(),
        1
    );
}

/// Two bytes of a message can become a hundred in memory: one with millions of parts is refused before it is decoded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_millions_of_parts_ends_its_session_and_nothing_else() {
    let (mut member, channel) = Member::welcomed_with(0).await;
    let parts = v1::AgentMessage {
        message: Some(v1::agent_message::Message::Observations(v1::Observations {
            observations: vec![v1::Observation::default(); 2_000_000],
        })),
    };
    member.outgoing.send(parts).await.expect("the session goes on");
    let ended = tokio::time::timeout(PATIENCE, async {
        while member.incoming.message().await?.is_some() {}
        Ok::<(), tonic::Status>(())
    });
    let refused = ended.await.expect("in time").expect_err("it is not served");
    assert!(refused.message().contains("more than 65536 parts"), "{refused}");
    Member::begin(&channel, 0).await;
}
