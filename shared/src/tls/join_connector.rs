//! Owns: the way of a cluster that is no member yet to the hub that lets it join: it knows the hub by a pin, and shows no
//! certificate.
//! Never: tries again; the joining agent does.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::{Channel, Uri};
use tower::Service;

use super::{
    address::HubAddress,
    connector::{HubConnector, HubUnreachable, explain},
    dial::{BoxedIo, Dial},
    pem::CredentialsError,
    pinned::{NotPinned, pinned_config},
};
use crate::model::KeyFingerprint;

/// Longest time for dialling one address and its handshake.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a hub by the pin of its authority's key.
#[derive(Clone)]
pub struct JoinConnector {
    addresses: Arc<[HubAddress]>,
    config: Arc<ClientConfig>,
    dial: Arc<dyn Dial>,
    /// Something answered that the pin is not of.
    another: Arc<AtomicBool>,
}

impl JoinConnector {
    /// A connector for these addresses, which are tried in turn.
    pub fn new(
        addresses: Vec<HubAddress>,
        pin: KeyFingerprint,
        dial: Arc<dyn Dial>,
    ) -> Result<Self, CredentialsError> {
        Ok(Self {
            addresses: addresses.into(),
            config: Arc::new(pinned_config(pin)?),
            dial,
            another: Arc::default(),
        })
    }

    /// Returns true if the answering process is not the hub of the pin: trying again does not help.
    pub fn met_another(&self) -> bool {
        self.another.load(Ordering::Relaxed)
    }

    /// Connects now.
    pub async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        HubConnector::endpoint()
            .connect_with_connector(self.clone())
            .await
    }

    async fn reach(self) -> Result<TokioIo<TlsStream<BoxedIo>>, HubUnreachable> {
        let mut attempts = Vec::with_capacity(self.addresses.len());
        for address in self.addresses.iter() {
            match timeout(ATTEMPT_TIMEOUT, self.attempt(address)).await {
                Ok(Ok(stream)) => return Ok(TokioIo::new(stream)),
                Ok(Err(error)) => {
                    self.another.fetch_or(is_another(&error), Ordering::Relaxed);
                    let reason = explain(&error).unwrap_or_else(|| error.to_string());
                    attempts.push((address.clone(), reason));
                }
                Err(_) => {
                    let seconds = ATTEMPT_TIMEOUT.as_secs();
                    attempts.push((address.clone(), format!("no TLS answer within {seconds} s")));
                }
            }
        }
        Err(HubUnreachable { attempts })
    }

    async fn attempt(&self, address: &HubAddress) -> io::Result<TlsStream<BoxedIo>> {
        let socket = self.dial.dial(address.clone()).await?;
        let name = ServerName::try_from(address.host.to_string()).map_err(io::Error::other)?;
        TlsConnector::from(self.config.clone())
            .connect(name, socket)
            .await
    }
}

/// Returns true if the check of the pin failed.
fn is_another(error: &io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(ours))) => {
            ours.0.is::<NotPinned>()
        }
        _ => false,
    }
}

impl Service<Uri> for JoinConnector {
    type Response = TokioIo<TlsStream<BoxedIo>>;
    type Error = HubUnreachable;
    type Future = BoxFuture<'static, Result<Self::Response, HubUnreachable>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HubUnreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().reach())
    }
}
