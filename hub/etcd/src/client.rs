//! Sends transactions to etcd: one connection for each endpoint, one attempt for each request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use replication::engine::{ANNOUNCED_SECONDS, Answer, Answered, Engine, EngineError, HubRow, Keys, Request};
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{
    answers, requests,
    rpc::{
        CompactionRequest, LeaseGrantRequest, StatusRequest, TxnRequest, TxnResponse, kv_client::KvClient,
        lease_client::LeaseClient, maintenance_client::MaintenanceClient,
    },
};

/// Longest wait for an answer. The next request goes to the next endpoint.
const ATTEMPT_WAIT: Duration = Duration::from_millis(400);
/// Requests under way at a time; further ones are not sent.
const REQUESTS_MAX: usize = 64;
/// The largest answer: batches of one event of the largest size each.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The endpoints of etcd, and the credentials for them.
#[derive(Debug, Clone)]
pub struct EtcdSettings {
    /// URLs of its members: all of http, or all of https.
    pub endpoints: Vec<String>,
    /// Certificates, for https.
    pub tls: Option<Tls>,
    /// True if the history of removed batches is compacted; false where others use the same etcd.
    pub compacts: bool,
}

/// The files of TLS to etcd, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The authority of etcd's own certificates.
    pub authority: Vec<u8>,
    /// This client's certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Settings that no client can be made from.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    /// There is no endpoint.
    #[error("an engine needs at least one endpoint, such as https://etcd-0:2379")]
    NoEndpoint,
    /// An endpoint is no URL of http or https.
    #[error("{0} is no endpoint of etcd: write http://HOST:PORT, or https://HOST:PORT with certificates")]
    Endpoint(String),
    /// Certificates and URLs do not agree.
    #[error(
        "{0} and its certificates do not agree: https needs an authority, a certificate and a key, and http uses none"
    )]
    Scheme(String),
    /// The certificates cannot be used.
    #[error("the engine's certificates cannot be used: {0}")]
    Certificates(#[source] tonic::transport::Error),
}

/// A log's engine in etcd.
pub struct EtcdEngine {
    client: Arc<Client>,
    runtime: Handle,
    permits: Arc<Semaphore>,
}

struct Client {
    keys: Keys,
    channels: Vec<Channel>,
    /// Which endpoint the next request goes to.
    current: AtomicUsize,
    compacts: bool,
}

impl EtcdEngine {
    /// A client of these endpoints for the log with these keys. It connects when it is asked, on this runtime.
    pub fn new(settings: &EtcdSettings, keys: Keys, runtime: Handle) -> Result<Self, InvalidSettings> {
        if settings.endpoints.is_empty() {
            return Err(InvalidSettings::NoEndpoint);
        }
        let _context = runtime.enter();
        let channels = settings
            .endpoints
            .iter()
            .map(|url| channel(url, settings.tls.as_ref()));
        let client = Client {
            keys,
            channels: channels.collect::<Result<_, _>>()?,
            current: AtomicUsize::new(0),
            compacts: settings.compacts,
        };
        Ok(Self {
            client: Arc::new(client),
            runtime: runtime.clone(),
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
        })
    }
}

fn channel(url: &str, tls: Option<&Tls>) -> Result<Channel, InvalidSettings> {
    let is_tls = match url.split_once("://") {
        Some(("http", _)) => false,
        Some(("https", _)) => true,
        _ => return Err(InvalidSettings::Endpoint(url.to_owned())),
    };
    if is_tls != tls.is_some() {
        return Err(InvalidSettings::Scheme(url.to_owned()));
    }
    let endpoint =
        Endpoint::from_shared(url.to_owned()).map_err(|_| InvalidSettings::Endpoint(url.to_owned()))?;
    let mut endpoint = endpoint.tcp_nodelay(true).connect_timeout(ATTEMPT_WAIT);
    if let Some(tls) = tls {
        let config = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&tls.authority))
            .identity(Identity::from_pem(&tls.certificate, &tls.key));
        endpoint = endpoint
            .tls_config(config)
            .map_err(InvalidSettings::Certificates)?;
    }
    Ok(endpoint.connect_lazy())
}

impl Engine for EtcdEngine {
    fn ask(&self, request: Request, done: Answered) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            done(Err(EngineError::Unanswered(
                "too many requests are under way".into(),
            )));
            return;
        };
        let client = Arc::clone(&self.client);
        self.runtime.spawn(async move {
            let outcome = client.attempt(request).await;
            drop(permit);
            done(outcome);
        });
    }
}

impl Client {
    /// One attempt on one endpoint. An endpoint that does not answer is not asked the next time.
    async fn attempt(&self, request: Request) -> Result<Answer, EngineError> {
        let current = self.current.load(Ordering::Relaxed);
        let channel = self.channels[current].clone();
        let answer = timeout(ATTEMPT_WAIT, self.ask(channel.clone(), request));
        let late =
            || EngineError::Unanswered(format!("no answer within {} ms", ATTEMPT_WAIT.as_millis()).into());
        let outcome = answer.await.map_err(|_| late()).flatten();
        if let Err(EngineError::Unanswered(_)) = &outcome {
            let next = (current + 1) % self.channels.len();
            // Of several that failed there, one moves on.
            let _ = self
                .current
                .compare_exchange(current, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        outcome
    }

    async fn ask(&self, channel: Channel, request: Request) -> Result<Answer, EngineError> {
        let keys = &self.keys;
        match request {
            Request::Read { from } => {
                let answer = transact(channel, requests::read(keys, from)).await?;
                answers::seen(keys, answer)
            }
            Request::Commit(commit) => {
                let answer = transact(channel, requests::commit(keys, &commit)).await?;
                answers::compared(answer, Answer::Committed)
            }
            Request::Pulse { head, beat } => {
                let answer = transact(channel, requests::pulse(keys, &head, &beat)).await?;
                answers::compared(answer, Answer::Done)
            }
            Request::Trim { head, below } => {
                let answer = transact(channel.clone(), requests::trim(keys, &head, below)).await?;
                if let Some(header) = answer.header.filter(|_| answer.succeeded && self.compacts) {
                    compact(channel, header.revision);
                }
                answers::compared(answer, Answer::Done)
            }
            Request::Announce(row) => announce(keys, channel, &row).await,
            Request::Status => {
                let asked = MaintenanceClient::new(channel).status(StatusRequest {}).await;
                let answer = asked.map_err(|status| answers::failure(&status))?;
                Ok(answers::status(answer.into_inner()))
            }
        }
    }
}

async fn transact(channel: Channel, request: TxnRequest) -> Result<TxnResponse, EngineError> {
    let mut client = KvClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
    let answer = client.txn(request).await;
    answer
        .map(tonic::Response::into_inner)
        .map_err(|status| answers::failure(&status))
}

/// Lets etcd give the room of removed batches back. A failure is made up for by the next trim.
fn compact(channel: Channel, revision: i64) {
    tokio::spawn(async move {
        let request = CompactionRequest { revision };
        let _ = timeout(ATTEMPT_WAIT, KvClient::new(channel).compact(request)).await;
    });
}

async fn announce(keys: &Keys, channel: Channel, row: &HubRow) -> Result<Answer, EngineError> {
    let request = LeaseGrantRequest {
        ttl: ANNOUNCED_SECONDS.into(),
    };
    let lease = LeaseClient::new(channel.clone()).lease_grant(request).await;
    let lease = lease.map_err(|status| answers::failure(&status))?.into_inner().id;
    answers::hubs(transact(channel, requests::announce(keys, row, lease)).await?)
}
