//! Owns: a member that reports facts as fast as the hub takes them, and knows what was acknowledged.
//! Never: talks to Kubernetes, or judges.

use super::{LocalClusterset, player};
use anyhow::{Context, bail};
use bytes::Bytes;
use proto::v1::{self, agent_message, hub_message, observation, sync_client::SyncClient};
use shared::{
    model::{
        Endpoint, EndpointPort, EndpointSlice, Export, Fact, IpFamily, Metadata, Protocol, ServiceKey,
        ServicePolicies, ServicePort, ServiceType, SessionAffinity, SliceKey, UnixMillis,
        sync::{AgentMessage, Hello, MESSAGE_BYTES_MAX},
    },
    tls::{Credentials, HubConnector, LiveCredentials, TcpDial, TlsFiles, TlsMetrics},
    wire,
};
use std::{net::Ipv4Addr, sync::Arc};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Messages that may wait in the stream to the hub.
const OUTGOING_MAX: usize = 16;
/// Different slices that a member reports; each is changed again and again.
const SLICES: u32 = 50;
/// Endpoints of a slice that is to take room.
const BULKY_ENDPOINTS: u32 = 900;

/// An admitted session of a member.
pub struct Session {
    outgoing: mpsc::Sender<v1::AgentMessage>,
    incoming: Streaming<v1::HubMessage>,
    /// The number that the log gives to what this session reports.
    pub number: u64,
    sequence: u64,
    acknowledged: u64,
}

impl Session {
    /// Opens a session as cluster `name`; `transitions` is higher at each start, as with a restarted agent.
    pub async fn open(world: &LocalClusterset, name: &str, transitions: i64) -> anyhow::Result<Self> {
        let files = TlsFiles {
            cert: world.certificate(&format!("{name}.crt")),
            key: world.certificate(&format!("{name}.key")),
            ca: world.certificate("ca.crt"),
        };
        let credentials = LiveCredentials::new(Credentials::from_pem(&files.read()?)?);
        let address = format!("https://{}", world.hub_address).parse()?;
        let metrics = TlsMetrics::default();
        let connector = HubConnector::new(vec![address], credentials, Arc::new(TcpDial), metrics);
        let mut client =
            SyncClient::new(connector.connect().await?).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let hello = AgentMessage::Hello(Box::new(hello(name, transitions)));
        outgoing.send(wire::agent_message_to_proto(hello)).await?;
        let mut incoming = client.stream(ReceiverStream::new(messages)).await?.into_inner();
        loop {
            match next(&mut incoming).await? {
                hub_message::Message::Welcome(welcome) => {
                    let number = welcome.session;
                    return Ok(Self {
                        outgoing,
                        incoming,
                        number,
                        sequence: 0,
                        acknowledged: 0,
                    });
                }
                hub_message::Message::Ping(_) => {}
                other => bail!("{other:?} came before Welcome"),
            }
        }
    }

    /// What has been sent.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// What the hub said is durable.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Sends one fact.
    pub async fn report(&mut self, fact: Bytes) -> anyhow::Result<()> {
        self.sequence += 1;
        let observation = v1::Observation {
            sequence: self.sequence,
            observation: Some(observation::Observation::Fact(fact)),
        };
        let observations = v1::Observations {
            observations: vec![observation],
        };
        self.say(agent_message::Message::Observations(observations)).await
    }

    /// Takes one message of the hub.
    pub async fn hear(&mut self) -> anyhow::Result<()> {
        match next(&mut self.incoming).await? {
            hub_message::Message::Acknowledged(acknowledged) => self.acknowledged = acknowledged.sequence,
            hub_message::Message::Refused(refused) => bail!("the hub refused a fact: {}", refused.message),
            hub_message::Message::Ping(ping) => {
                let pong = v1::Pong { nonce: ping.nonce };
                self.say(agent_message::Message::Pong(pong)).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn say(&mut self, message: agent_message::Message) -> anyhow::Result<()> {
        let message = v1::AgentMessage {
            message: Some(message),
        };
        self.outgoing.send(message).await.context("the session has ended")
    }
}

async fn next(incoming: &mut Streaming<v1::HubMessage>) -> anyhow::Result<hub_message::Message> {
    let message = incoming.message().await?.and_then(|message| message.message);
    message.context("the hub closed the stream")
}

fn hello(name: &str, transitions: i64) -> Hello {
    Hello {
        lease_transitions: transitions,
        ..player::hello(&format!("kube-system-of-{name}"))
    }
}

/// The export that the slices belong to.
pub fn export() -> anyhow::Result<Bytes> {
    let export = Export {
        service: ServiceKey::new("shop", "cart")?,
        created_at: UnixMillis(1_700_000_000_000),
        uid: "00000000-0000-4000-8000-000000000001".into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    };
    Ok(wire::encode_fact(&Fact::ExportUpserted(export.into())).bytes)
}

/// The `number`th change of the slices: no two are equal, so each becomes an event.
pub fn change(number: u32) -> anyhow::Result<Bytes> {
    slice(number, 1)
}

/// The same with a slice that is nearly as large as slices may be.
pub fn bulky_change(number: u32) -> anyhow::Result<Bytes> {
    slice(number, BULKY_ENDPOINTS)
}

fn slice(number: u32, endpoints: u32) -> anyhow::Result<Bytes> {
    let endpoint = |index: u32| {
        let [_, a, b, c] = number.wrapping_mul(endpoints).wrapping_add(index).to_be_bytes();
        Endpoint {
            addresses: vec![Ipv4Addr::new(10, a, b, c).into()],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: None,
            zone: None,
        }
    };
    let slice = EndpointSlice {
        key: SliceKey {
            service: ServiceKey::new("shop", "cart")?,
            name: format!("cart-{}", number % SLICES).into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: (0..endpoints).map(endpoint).collect(),
    };
    Ok(wire::encode_fact(&Fact::EndpointSliceUpserted(slice.into())).bytes)
}
