//! The way to a hub, as tonic wants it: dials the given addresses in turn and performs the handshake.
//! It keeps no connection, and tries again only if its caller says so.

use std::{
    error::Error,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::Service;

use super::{
    accept::outcome_of,
    address::HubAddress,
    dial::{BoxedIo, Dial},
    live::LiveCredentials,
    metrics::{Handshake, TlsMetrics},
    race::race,
};
use crate::model::KeyFingerprint;

/// Probe interval of an idle connection.
pub const HTTP2_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Time without an answer to a probe after which the connection counts as dead.
pub const HTTP2_KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of dials for one answer, and the pause before each further one.
const DIALS_MAX: u32 = 3;
const DIAL_PAUSE: Duration = Duration::from_millis(100);
/// Longest time for dialling one address and its handshake.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The authority in HTTP/2 requests. Addresses change under a channel, so it names none. The scheme is `http`
/// because TLS is this connector's work: tonic adds TLS of its own to `https`.
const ORIGIN: &str = "http://hub.tributary.internal";

/// A hub's possible alerts when it refuses a certificate.
const REFUSALS: [rustls::AlertDescription; 10] = [
    rustls::AlertDescription::AccessDenied,
    rustls::AlertDescription::BadCertificate,
    rustls::AlertDescription::CertificateExpired,
    rustls::AlertDescription::CertificateRequired,
    rustls::AlertDescription::CertificateRevoked,
    rustls::AlertDescription::CertificateUnknown,
    rustls::AlertDescription::DecryptError,
    rustls::AlertDescription::HandshakeFailure,
    rustls::AlertDescription::UnknownCA,
    rustls::AlertDescription::UnsupportedCertificate,
];

/// An encrypted stream to a hub whose certificate was checked.
pub type HubStream = TokioIo<TlsStream<BoxedIo>>;

/// Connects to the hub of our clusterset at one of several addresses.
#[derive(Clone)]
pub struct HubConnector {
    addresses: Arc<[HubAddress]>,
    /// The address to try first.
    first: Arc<AtomicUsize>,
    credentials: Arc<LiveCredentials>,
    dial: Arc<dyn Dial>,
    metrics: TlsMetrics,
}

/// No address led to the hub: what happened at each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubUnreachable {
    /// Address and reason, in the order they were tried.
    pub attempts: Vec<(HubAddress, String)>,
}

impl HubConnector {
    /// A connector for these addresses, which must not be empty.
    pub fn new(
        addresses: Vec<HubAddress>,
        credentials: Arc<LiveCredentials>,
        dial: Arc<dyn Dial>,
        metrics: TlsMetrics,
    ) -> Self {
        Self {
            addresses: addresses.into(),
            first: Arc::default(),
            credentials,
            dial,
            metrics,
        }
    }

    /// The fingerprint of the key with which the next connection is made.
    pub fn key(&self) -> KeyFingerprint {
        self.credentials.facts().key_fingerprint
    }

    /// The addresses, in the order they were given.
    pub fn addresses(&self) -> &[HubAddress] {
        &self.addresses
    }

    /// Makes the next dial begin with the next address: for a hub that was reached but cannot serve us.
    pub fn try_next_address(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// The endpoint with our HTTP/2 settings; a caller may change them before it connects.
    pub fn endpoint() -> Endpoint {
        Endpoint::from_static(ORIGIN)
            .http2_keep_alive_interval(HTTP2_KEEPALIVE_INTERVAL)
            .keep_alive_timeout(HTTP2_KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
    }

    /// Connects now. In TLS 1.3 a hub that refuses our certificate says so only after the handshake: then the
    /// first request fails, and [`explain`] finds the reason in its error.
    pub async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        Self::endpoint().connect_with_connector(self.clone()).await
    }

    /// The same for one answer without a loop around it: a hub that is short of places may close a socket that has sent
    /// nothing yet, and accepts the next one a moment later.
    pub async fn connect_once(&self) -> Result<Channel, tonic::transport::Error> {
        let mut dialled = self.connect().await;
        for _ in 1..DIALS_MAX {
            if dialled.is_ok() {
                break;
            }
            tokio::time::sleep(DIAL_PAUSE).await;
            dialled = self.connect().await;
        }
        dialled
    }

    /// Addresses race, so that a hub whose machine is gone delays nobody for long.
    async fn reach(self) -> Result<HubStream, HubUnreachable> {
        let first = self.first.load(Ordering::Relaxed);
        let count = self.addresses.len();
        let positions = (0..count).map(|turn| first.wrapping_add(turn) % count);
        let reached = race(positions, |position| self.reach_at(position));
        let (position, stream) = reached.await.map_err(|attempts| HubUnreachable { attempts })?;
        self.first.store(position, Ordering::Relaxed);
        Ok(TokioIo::new(stream))
    }

    async fn reach_at(&self, position: usize) -> Result<(usize, TlsStream<BoxedIo>), (HubAddress, String)> {
        let address = &self.addresses[position];
        match timeout(ATTEMPT_TIMEOUT, self.attempt(address)).await {
            Ok(Ok(stream)) => Ok((position, stream)),
            Ok(Err(error)) => Err((address.clone(), reason(&error))),
            Err(_) => {
                self.metrics.handshake(Handshake::TimedOut);
                let seconds = ATTEMPT_TIMEOUT.as_secs();
                Err((address.clone(), format!("no TLS answer within {seconds} s")))
            }
        }
    }

    async fn attempt(&self, address: &HubAddress) -> io::Result<TlsStream<BoxedIo>> {
        let socket = self.dial.dial(address.clone()).await?;
        let name = ServerName::try_from(address.host.to_string()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.credentials.current().client().clone());
        let stream = connector.connect(name, socket).await;
        self.metrics.handshake(match &stream {
            Ok(_) => Handshake::Completed,
            Err(error) => outcome_of(error),
        });
        stream
    }
}

impl Service<Uri> for HubConnector {
    type Response = HubStream;
    type Error = HubUnreachable;
    type Future = BoxFuture<'static, Result<HubStream, HubUnreachable>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HubUnreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().reach())
    }
}

impl Error for HubUnreachable {}

impl fmt::Display for HubUnreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no hub can be reached")?;
        for (index, (address, reason)) in self.attempts.iter().enumerate() {
            let separator = if index == 0 { ": " } else { "; " };
            write!(f, "{separator}{address}: {reason}")?;
        }
        Ok(())
    }
}

/// The cause of a channel's or a request's error, if it is one of TLS or of reaching the hub: with the next step.
pub fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(unreachable) = error.downcast_ref::<HubUnreachable>() {
            return Some(unreachable.to_string());
        }
        // An I/O error hides the error inside it from `source`.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(reason) = inner
            .and_then(|inner| tls_error(inner))
            .or_else(|| tls_error(error))
        {
            return Some(reason);
        }
        next = error.source();
    }
    None
}

/// The reason in an error that is one of TLS, or that HTTP/2 has made a mere text.
fn tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(tls_reason(error));
    }
    let text = error.to_string();
    let alerts = REFUSALS.into_iter().map(rustls::Error::AlertReceived);
    let alert = alerts.into_iter().find(|alert| alert.to_string() == text)?;
    Some(tls_reason(&alert))
}

fn reason(error: &io::Error) -> String {
    explain(error).unwrap_or_else(|| error.to_string())
}

fn tls_reason(error: &rustls::Error) -> String {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error as Tls};
    let advice = match error {
        Tls::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "the hub's certificate is not of an authority in --tls-ca"
        }
        Tls::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the hub's certificate has expired, or this machine's clock is ahead"
        }
        Tls::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the hub's certificate is not valid yet, or this machine's clock is behind"
        }
        Tls::InvalidCertificate(Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. }) => {
            "what answers is not a hub: its certificate is not made for servers"
        }
        // Ours: the text is advice already, and rustls would print it as a Rust value.
        Tls::InvalidCertificate(Bad::Other(other)) => return other.to_string(),
        Tls::InvalidMessage(_) => {
            "what answers does not speak TLS: is it the admin port? The hub's gRPC port is 8443 by default"
        }
        Tls::AlertReceived(Alert::CertificateExpired) => {
            "the hub says that our certificate has expired: renew it"
        }
        Tls::AlertReceived(Alert::UnknownCA | Alert::DecryptError) => {
            "the hub does not know the authority of our certificate: issue it with the hub's CA"
        }
        Tls::AlertReceived(Alert::CertificateRequired) => "the hub wants a certificate and got none",
        Tls::AlertReceived(_) => "the hub refused our certificate: its debug log says why",
        _ => return error.to_string(),
    };
    format!("{advice} ({error})")
}
