//! Owns: connections to the hub of a clusterset with any certificate of it, or none.
//! Never: speaks a protocol on them.
//!
//! Its TLS checks the hub's name and chain only, so that a certificate of another clusterset gets as far as the
//! hub's own refusal.

use std::{io, net::SocketAddr, sync::Arc};

use anyhow::Context;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use shared::tls;
use tokio::{io::AsyncReadExt, net::TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::Channel;

use super::ANSWER_WAIT;
use crate::clusterset::LocalClusterset;

/// A TLS connector that trusts the clusterset's authority, with a certificate `NAME.crt` of the clusterset or without one.
fn tls_connector(clusterset: &LocalClusterset, certificate: Option<&str>) -> anyhow::Result<TlsConnector> {
    let read = |file: &str| std::fs::read(clusterset.certificate(file)).with_context(|| file.to_owned());
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

/// TLS's answer to a certificate of the clusterset, or to none: in TLS 1.3 a refusal comes with the first byte read.
pub async fn try_handshake(
    clusterset: &LocalClusterset,
    certificate: Option<&str>,
) -> anyhow::Result<io::Result<()>> {
    let connector = tls_connector(clusterset, certificate)?;
    let trying = async {
        let mut stream = handshake(connector, clusterset.hub_address).await?;
        // A hub that accepted begins with its HTTP/2 settings.
        stream.read_u8().await.map(drop)
    };
    Ok(tokio::time::timeout(ANSWER_WAIT, trying).await?)
}

/// A connection to the hub with a certificate `NAME.crt` of the clusterset.
pub async fn connect(clusterset: &LocalClusterset, certificate: &str) -> anyhow::Result<Channel> {
    let (connector, address) = (
        tls_connector(clusterset, Some(certificate))?,
        clusterset.hub_address,
    );
    let dial = tower::service_fn(move |_: http::Uri| {
        let connecting = handshake(connector.clone(), address);
        async move { connecting.await.map(TokioIo::new) }
    });
    Ok(tls::HubConnector::endpoint().connect_with_connector(dial).await?)
}
