//! Owns: looking at any server's handshake: the certificates shown, and whether it would be accepted as the hub.
//! Never: shows our own certificate, or sends anything over what it opened.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature},
    version::TLS13,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;

use super::{
    address::HubAddress,
    credentials::Credentials,
    dial::BoxedIo,
    provider::{ALPN_HTTP2, provider},
    roots,
    verify::{TheHub, signatures_of_tls13},
};

/// The certificates shown in a handshake.
#[derive(Debug, Clone)]
pub struct HandshakeSeen {
    /// Its certificate, and what it showed after it.
    pub chain: Vec<CertificateDer<'static>>,
    /// HTTP/2 was agreed on.
    pub http2: bool,
    /// The check that it is the hub of our clusterset.
    pub verified: Result<(), Error>,
}

/// Takes everybody, and remembers what the real check said.
struct Recording {
    hub: TheHub,
    algorithms: WebPkiSupportedAlgorithms,
    seen: Mutex<Option<Certified>>,
}

/// The certificates shown, and the verdict on them.
type Certified = (Vec<CertificateDer<'static>>, Result<(), Error>);

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({:?})", self.hub)
    }
}

impl ServerCertVerifier for Recording {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .hub
            .verify_server_cert(end_entity, intermediates, name, ocsp, now);
        let shown = std::iter::once(end_entity).chain(intermediates);
        let chain = shown.map(|one| one.clone().into_owned()).collect();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((chain, verified.map(drop)));
        Ok(ServerCertVerified::assertion())
    }

    signatures_of_tls13!();
}

impl Credentials {
    /// Looks at who answers over `socket`. It is only looked at: the connection ends here, and nothing is trusted.
    pub async fn look(&self, address: &HubAddress, socket: BoxedIo) -> io::Result<HandshakeSeen> {
        let provider = provider();
        let algorithms = provider.signature_verification_algorithms;
        let clusterset = self.facts().identity.clusterset.clone();
        let roots = roots::read_of(self.authorities().to_vec(), clusterset.trust_domain());
        let recording = Arc::new(Recording {
            hub: TheHub::new(roots.map_err(io::Error::other)?, algorithms, clusterset),
            algorithms,
            seen: Mutex::default(),
        });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(recording.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(address.host.to_string()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2);
        let seen = recording
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (chain, verified) = seen.ok_or_else(|| io::Error::other("no certificate was shown"))?;
        Ok(HandshakeSeen {
            chain,
            http2,
            verified,
        })
    }
}
