//! A member that is no agent: it speaks the sync protocol by itself, and so can say what an agent never would.
//! It sends what it is told to and keeps what was answered.
//!
//! Its TLS checks the hub's name and chain only, so that a certificate of another clusterset gets as far as the
//! hub's own refusal.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use proto::v1::{self, agent_message::Message, hub_message, observation, sync_client::SyncClient};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use shared::{
    model::sync::{AgentMessage, Hello, Interest, MESSAGE_BYTES_MAX, Namespaces, PROTOCOL_VERSION},
    tls, wire,
};
use tokio::{io::AsyncReadExt, net::TcpStream, sync::mpsc};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

use crate::clusterset::LocalClusterset;

/// How long the hub may take to say something.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// How often a member shows that it lives.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Messages that may wait in the stream.
const OUTGOING_MAX: usize = 16;

/// A TLS connector that trusts the world's authority, with a certificate `NAME.crt` of the world or without one.
fn tls_connector(world: &LocalClusterset, certificate: Option<&str>) -> anyhow::Result<TlsConnector> {
    let read = |file: &str| std::fs::read(world.certificate(file)).with_context(|| file.to_owned());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read("ca.crt")?)?)?;
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => builder.with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(&read(&format!("{name}.crt"))?)?],
            PrivateKeyDer::from_pem_slice(&read(&format!("{name}.key"))?)?,
        )?,
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn handshake(connector: TlsConnector, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::IpAddress(address.ip().into());
    connector.connect(name, socket).await
}

/// What TLS says to a certificate of the world, or to none: in TLS 1.3 a refusal comes with the first byte read.
pub async fn try_handshake(
    world: &LocalClusterset,
    certificate: Option<&str>,
) -> anyhow::Result<io::Result<()>> {
    let connector = tls_connector(world, certificate)?;
    let trying = async {
        let mut stream = handshake(connector, world.hub_address).await?;
        // A hub that accepted begins with its HTTP/2 settings.
        stream.read_u8().await.map(drop)
    };
    Ok(tokio::time::timeout(ANSWER_WAIT, trying).await?)
}

/// A connection to the hub with a certificate `NAME.crt` of the world.
pub async fn connect(world: &LocalClusterset, certificate: &str) -> anyhow::Result<Channel> {
    let (connector, address) = (tls_connector(world, Some(certificate))?, world.hub_address);
    let dial = tower::service_fn(move |_: http::Uri| {
        let connecting = handshake(connector.clone(), address);
        async move { connecting.await.map(TokioIo::new) }
    });
    Ok(tls::HubConnector::endpoint().connect_with_connector(dial).await?)
}

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
    /// What was refused so far.
    pub refused: Vec<v1::Refused>,
    /// What has been acknowledged.
    pub acknowledged: u64,
    /// The sequence number of the last observation.
    pub sequence: u64,
    /// The session's number.
    pub session: u64,
}

impl Member {
    /// Opens a stream and sends Hello; the hub's refusal is the error's source.
    pub async fn open(world: &LocalClusterset, certificate: &str, hello: Hello) -> anyhow::Result<Self> {
        let mut member = Self::silent(world, certificate).await?;
        member
            .say(wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello))))
            .await?;
        member.session = member
            .until(|message| match message {
                hub_message::Message::Welcome(welcome) => Some(welcome.session),
                _ => None,
            })
            .await?;
        let beating = member.outgoing.downgrade();
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(HEARTBEAT_INTERVAL);
            loop {
                interval.tick().await;
                let Some(outgoing) = beating.upgrade() else { return };
                let heartbeat = v1::AgentMessage {
                    message: Some(Message::Heartbeat(v1::Heartbeat {})),
                };
                if outgoing.send(heartbeat).await.is_err() {
                    return;
                }
            }
        });
        Ok(member)
    }

    /// Opens a stream and says nothing.
    pub async fn silent(world: &LocalClusterset, certificate: &str) -> anyhow::Result<Self> {
        let channel = connect(world, certificate).await?;
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
        let observations = facts.into_iter().map(|fact| {
            self.sequence += 1;
            v1::Observation {
                sequence: self.sequence,
                observation: Some(observation::Observation::Fact(fact.into())),
            }
        });
        let observations = observations.collect();
        self.observe(observations).await
    }

    /// Says that a listing is complete.
    pub async fn complete(&mut self, group: v1::ListingGroup) -> anyhow::Result<()> {
        self.sequence += 1;
        self.observe(vec![v1::Observation {
            sequence: self.sequence,
            observation: Some(observation::Observation::ListingCompleted(group.into())),
        }])
        .await
    }

    /// Reads until a message is the wanted one. The end of the stream is an error; a [`Status`] is its source.
    pub async fn until<T>(
        &mut self,
        mut wanted: impl FnMut(&hub_message::Message) -> Option<T>,
    ) -> anyhow::Result<T> {
        let reading = async {
            loop {
                let message = self.next().await?;
                if let Some(found) = wanted(&message) {
                    return Ok(found);
                }
            }
        };
        tokio::time::timeout(ANSWER_WAIT, reading)
            .await
            .context("the hub did not say what was waited for")?
    }

    /// Reads one message, however long it takes to come. A refusal is an error.
    pub async fn hear(&mut self) -> anyhow::Result<()> {
        self.next().await?;
        let refused = self.refused.first();
        let why = refused.map_or("", |refused| refused.message.as_str());
        ensure!(refused.is_none(), "the hub refused a fact: {why}");
        Ok(())
    }

    /// Takes note of the next message, and answers what has to be answered.
    async fn next(&mut self) -> anyhow::Result<hub_message::Message> {
        let message = self.incoming.message().await?;
        let message = message.context("the hub closed the stream")?;
        let message = message.message.context("an empty message of the hub")?;
        match &message {
            hub_message::Message::Refused(refused) => self.refused.push(refused.clone()),
            hub_message::Message::Acknowledged(acknowledged) => {
                self.acknowledged = acknowledged.sequence;
            }
            hub_message::Message::Ping(ping) => {
                let pong = Message::Pong(v1::Pong { nonce: ping.nonce });
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
            hub_message::Message::Acknowledged(acknowledged) if acknowledged.sequence >= wanted => Some(()),
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
