//! Owns: recognising a hub by nothing but the pin of its authority's key: the hub shows the certificate of that
//! authority, and its own leads to it.
//! Never: names the clusterset; the maker of the pin has chosen it.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature},
    server::ParsedCertificate,
    version::TLS13,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    pem::CredentialsError,
    provider::{ALPN_HTTP2, provider},
    roots::{self, Use},
    verify::{may_have_signed, refused, signatures_of_tls13},
};
use crate::{
    identity::{Identity, Role},
    model::KeyFingerprint,
};

/// The answering process is not the hub of the join string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPinned {
    /// Nothing that it shows has the pinned key.
    #[error(
        "what answers is not the hub that this join string is of (pin {0}): another hub answers at its address, somebody \
         stands between, or the hub has a new CA since; have another join string made"
    )]
    OtherKey(KeyFingerprint),
    /// It is of that authority, and no hub.
    #[error("what answers is {0}, and not a hub: check the address in the join string")]
    NotAHub(String),
}

/// A check of a hub by the pin alone.
#[derive(Debug)]
struct PinnedHub {
    pin: KeyFingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The fingerprint of the key in a certificate (DER).
pub(super) fn key_of(certificate: &[u8]) -> Option<KeyFingerprint> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(KeyFingerprint::of(certificate.public_key().raw))
}

/// Checks that a certificate is a hub's and leads to an authority with the pinned key, which is among `others`.
pub(super) fn prove(
    pin: KeyFingerprint,
    end_entity: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let identity = Identity::from_certificate(end_entity).map_err(refused)?;
    let authority = others.iter().find(|one| key_of(one) == Some(pin));
    let authority = authority.ok_or_else(|| refused(NotPinned::OtherKey(pin)))?;
    if !matches!(identity.role, Role::Hub(_)) {
        return Err(refused(NotPinned::NotAHub(identity.to_string())));
    }
    let domain = identity.clusterset.trust_domain();
    let anchor = roots::read_of(vec![authority.clone().into_owned()], domain);
    let anchor = anchor.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let parsed = ParsedCertificate::try_from(end_entity)?;
    let intermediates = may_have_signed(&identity, others);
    anchor.verify(end_entity, domain, Use::Server, |roots| {
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, &intermediates, now, algorithms.all)
    })
}

impl ServerCertVerifier for PinnedHub {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        prove(self.pin, end_entity, others, now, &self.algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    signatures_of_tls13!();
}

/// The client's TLS settings with a pin and no certificate.
pub(super) fn pinned_config(pin: KeyFingerprint) -> Result<ClientConfig, CredentialsError> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(CredentialsError::Pair)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedHub { pin, algorithms }))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
