//! Owns: a member that is no agent: it speaks the sync protocol by itself, and so can say what an agent never would.
//! Every ring that wants a member without Kubernetes speaks through it.
//! Never: decides what to say: it sends what it is told to and keeps what was answered.
//!
//! * `dial.rs`: connections with any certificate of the clusterset, or none.

mod dial;

use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use proto::v1::{self, agent_message::Message, observation::Observation, sync_client::SyncClient};
use shared::{
    model::sync::{
        AgentMessage, Hello, HubMessage, Interest, MESSAGE_BYTES_MAX, Namespaces, PROTOCOL_VERSION, Refused,
        Welcome,
    },
    wire,
};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

pub use self::dial::{connect, try_handshake};
use crate::clusterset::LocalClusterset;

/// Time for the hub to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Messages that may wait in the stream.
const OUTGOING_MAX: usize = 16;

/// A Hello of the cluster with this fingerprint that wants to hear of everything.
pub fn hello(fingerprint: &str) -> Hello {
    Hello {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        agent_version: "member".into(),
        highest_epoch: None,
        cluster_fingerprint: fingerprint.into(),
        instance: format!("member-{}", rand::random::<u64>()).into(),
        lease_transitions: 1,
        cursor: None,
        exports_digest: None,
        properties_digest: None,
        sources_held: Default::default(),
        interest: Interest {
            generation: 1,
            namespaces: Namespaces::All,
        },
    }
}

/// An open stream to the hub.
pub struct Member {
    outgoing: mpsc::Sender<v1::AgentMessage>,
    incoming: Streaming<v1::HubMessage>,
    /// Refusals so far.
    pub refused: Vec<Refused>,
    /// Position acknowledged.
    pub acknowledged: u64,
    /// The sequence number of the last observation.
    pub sequence: u64,
    /// The session's number; 0 before the hub has given one.
    pub session: u64,
}

impl Member {
    /// Opens a stream with a certificate `NAME.crt` of the clusterset and sends Hello.
    ///
    /// # Errors
    /// The hub's refusal is the error's source: see [`status`].
    pub async fn open(clusterset: &LocalClusterset, certificate: &str, hello: Hello) -> anyhow::Result<Self> {
        let channel = connect(clusterset, certificate).await?;
        Ok(Self::introduce(channel, hello).await?.0)
    }

    /// As [`Member::open`], on a connection that stands; with what the hub answered.
    ///
    /// # Errors
    /// As there.
    pub async fn introduce(channel: Channel, hello: Hello) -> anyhow::Result<(Self, Box<Welcome>)> {
        let mut member = Self::on(channel).await?;
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        member.say(hello).await?;
        let welcome = member
            .until(|message| match message {
                HubMessage::Welcome(welcome) => Some(welcome.clone()),
                _ => None,
            })
            .await?;
        member.session = welcome.session.0;
        let rhythm = Duration::from_millis(welcome.heartbeat_interval_millis.max(1).into());
        tokio::spawn(live(member.outgoing.downgrade(), rhythm));
        Ok((member, welcome))
    }

    /// Opens a stream with a certificate of the clusterset and says nothing.
    ///
    /// # Errors
    /// No connection, or a refusal.
    pub async fn silent(clusterset: &LocalClusterset, certificate: &str) -> anyhow::Result<Self> {
        Self::on(connect(clusterset, certificate).await?).await
    }

    async fn on(channel: Channel) -> anyhow::Result<Self> {
        let mut client = SyncClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let incoming = client.stream(ReceiverStream::new(messages)).await?.into_inner();
        Ok(Self {
            outgoing,
            incoming,
            refused: Vec::new(),
            acknowledged: 0,
            sequence: 0,
            session: 0,
        })
    }

    /// Sends any message.
    pub async fn say(&self, message: v1::AgentMessage) -> anyhow::Result<()> {
        self.outgoing
            .send(message)
            .await
            .ok()
            .context("the stream is closed")
    }

    /// Sends observations with these sequence numbers, whatever they are.
    pub async fn observe(&self, observations: Vec<v1::Observation>) -> anyhow::Result<()> {
        self.say(v1::AgentMessage {
            message: Some(Message::Observations(v1::Observations { observations })),
        })
        .await
    }

    /// Reports encoded facts in one message.
    pub async fn report(&mut self, facts: impl IntoIterator<Item = impl Into<Bytes>>) -> anyhow::Result<()> {
        let facts = facts.into_iter().map(|fact| Observation::Fact(fact.into()));
        self.observe_next(facts).await
    }

    /// Says that a listing is complete.
    pub async fn complete(&mut self, group: v1::ListingGroup) -> anyhow::Result<()> {
        self.observe_next([Observation::ListingCompleted(group.into())])
            .await
    }

    /// Sends observations in one message, numbered in their order.
    pub async fn observe_next(&mut self, items: impl IntoIterator<Item = Observation>) -> anyhow::Result<()> {
        let numbered = self.numbered(items);
        self.say(numbered).await
    }

    /// Reads until a message is the wanted one. The end of the stream is an error; a [`Status`] is its source.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&HubMessage) -> Option<T>) -> anyhow::Result<T> {
        let reading = async {
            loop {
                let message = self.next().await?;
                if let Some(found) = wanted(&message) {
                    return Ok(found);
                }
            }
        };
        timeout(ANSWER_WAIT, reading)
            .await
            .context("the hub did not say what was waited for")?
    }

    /// Sends a message as soon as there is room for it, and hears what comes meanwhile. The end of the stream is an error.
    pub async fn say_hearing(&mut self, message: v1::AgentMessage) -> anyhow::Result<()> {
        let outgoing = self.outgoing.clone();
        loop {
            tokio::select! {
                room = outgoing.reserve() => {
                    room.context("the stream is closed")?.send(message);
                    return Ok(());
                }
                heard = self.next() => drop(heard?),
            }
        }
    }

    /// The next observations as a message, numbered in their order; it is for the caller to send it.
    pub fn numbered(&mut self, items: impl IntoIterator<Item = Observation>) -> v1::AgentMessage {
        let numbered = items.into_iter().map(|item| {
            self.sequence += 1;
            v1::Observation {
                sequence: self.sequence,
                observation: Some(item),
                changed_by: None,
            }
        });
        let observations = numbered.collect();
        v1::AgentMessage {
            message: Some(Message::Observations(v1::Observations { observations })),
        }
    }

    /// Reads one message, however long it takes to come. A refusal is an error.
    pub async fn hear(&mut self) -> anyhow::Result<HubMessage> {
        let message = self.next().await?;
        let refused = self.refused.first();
        let why = refused.map_or("", |refused| &*refused.message);
        ensure!(refused.is_none(), "the hub refused a fact: {why}");
        Ok(message)
    }

    /// Takes note of the next message, and answers what has to be answered.
    async fn next(&mut self) -> anyhow::Result<HubMessage> {
        let message = self.incoming.message().await?;
        let message = message.context("the hub closed the stream")?;
        let message = wire::hub_message_from_proto(message)?;
        match &message {
            HubMessage::Refused(refused) => self.refused.push(refused.clone()),
            HubMessage::Acknowledged(sequence) => self.acknowledged = *sequence,
            HubMessage::Ping(nonce) => {
                let pong = Message::Pong(v1::Pong {
                    nonce: *nonce,
                    leads: None,
                });
                // A stream that is closed says so when it is read.
                let _ = self.outgoing.try_send(v1::AgentMessage { message: Some(pong) });
            }
            _ => {}
        }
        Ok(message)
    }

    /// Reads until everything that was sent is acknowledged.
    pub async fn settled(&mut self) -> anyhow::Result<()> {
        let wanted = self.sequence;
        if self.acknowledged >= wanted {
            return Ok(());
        }
        self.until(|message| match message {
            HubMessage::Acknowledged(sequence) if *sequence >= wanted => Some(()),
            _ => None,
        })
        .await
    }

    /// Reads until the hub ends the session, and returns why.
    pub async fn refusal(&mut self) -> anyhow::Result<Status> {
        match self.until(|_| None::<()>).await {
            Ok(()) => anyhow::bail!("the session goes on"),
            Err(error) => status(error),
        }
    }
}

/// The hub's answer in an error of this file.
pub fn status(error: anyhow::Error) -> anyhow::Result<Status> {
    error.downcast::<Status>()
}

/// Shows that a member lives, until its stream ends.
async fn live(outgoing: mpsc::WeakSender<v1::AgentMessage>, rhythm: Duration) {
    let mut rhythm = interval(rhythm);
    rhythm.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rhythm.tick().await;
        let Some(outgoing) = outgoing.upgrade() else {
            return;
        };
        let heartbeat = v1::AgentMessage {
            message: Some(Message::Heartbeat(v1::Heartbeat::default())),
        };
        if outgoing.send(heartbeat).await.is_err() {
            return;
        }
    }
}
