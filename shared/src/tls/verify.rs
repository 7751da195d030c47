//! The two certificate checks: of clients by a hub, of a hub by its clients. Both leave the chain to webpki and add the
//! identity. A hub's DNS names are not checked: its identity is in its URI name, and addresses change.

use std::{fmt, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature},
    server::{
        ParsedCertificate,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{
    clients::ClientRules,
    roots::{Bound, Use},
};
use crate::{
    identity::{CertificateFacts, Identity, MembersOnly, Role},
    model::Clusterset,
};

/// The peer's certificate is genuine, but it is not the hub of our clusterset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("connected to {found}, expected the hub of clusterset {expected}: check the address given as --hub")]
pub struct NotTheHub {
    /// The identity found.
    pub found: String,
    /// The clusterset of our own certificate.
    pub expected: String,
}

/// The signature checks that the two traits have in common: TLS 1.3 only.
macro_rules! signatures_of_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

pub(super) use signatures_of_tls13;

/// A hub's check: the chain leads to our roots and the certificate states one identity, of any clusterset. The rights
/// of clusterset and role are checked per request, so that the answer can give the reason.
#[derive(Debug)]
pub(super) struct AnyIdentity {
    chains: Bound<Arc<dyn ClientCertVerifier>>,
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
    rules: ClientRules,
}

impl AnyIdentity {
    pub(super) fn new(
        chains: Bound<Arc<dyn ClientCertVerifier>>,
        algorithms: WebPkiSupportedAlgorithms,
        rules: ClientRules,
    ) -> Self {
        let hints = chains.groups().flat_map(|chain| chain.root_hint_subjects());
        Self {
            hints: hints.cloned().collect(),
            chains,
            algorithms,
            rules,
        }
    }

    pub(super) fn rules(&self) -> &ClientRules {
        &self.rules
    }
}

impl ClientCertVerifier for AnyIdentity {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // Its statement decides which authorities may have certified it, and is believed when one of them has.
        let facts = CertificateFacts::read(end_entity).map_err(refused)?;
        let domain = facts.identity.clusterset.trust_domain();
        let intermediates = may_have_signed(&facts.identity, intermediates);
        let verified = self.chains.verify(end_entity, domain, Use::Client, |chain| {
            chain.verify_client_cert(end_entity, &intermediates, now)
        })?;
        self.rules.check(facts.key_fingerprint).map_err(refused)?;
        Ok(verified)
    }

    signatures_of_tls13!();
}

/// A client's check: the chain leads to our roots and the certificate is the hub's of our clusterset.
pub(super) struct TheHub {
    roots: Bound<Arc<RootCertStore>>,
    algorithms: WebPkiSupportedAlgorithms,
    clusterset: Clusterset,
}

impl TheHub {
    pub(super) fn new(
        roots: Bound<Arc<RootCertStore>>,
        algorithms: WebPkiSupportedAlgorithms,
        clusterset: Clusterset,
    ) -> Self {
        Self {
            roots,
            algorithms,
            clusterset,
        }
    }
}

impl fmt::Debug for TheHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TheHub({})", self.clusterset)
    }
}

impl ServerCertVerifier for TheHub {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let identity = Identity::from_certificate(end_entity).map_err(refused)?;
        let domain = self.clusterset.trust_domain();
        let intermediates = may_have_signed(&identity, intermediates);
        self.roots.verify(end_entity, domain, Use::Server, |roots| {
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, &intermediates, now, algorithms)
        })?;
        if identity.clusterset == self.clusterset && matches!(identity.role, Role::Hub(_)) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(refused(NotTheHub {
            found: identity.to_string(),
            expected: self.clusterset.to_string(),
        }))
    }

    signatures_of_tls13!();
}

/// The intermediates over which a chain to such an identity may lead. One that signs members' certificates only is no
/// part of any other chain, whatever its key has signed.
pub(super) fn may_have_signed<'a>(
    identity: &Identity,
    intermediates: &[CertificateDer<'a>],
) -> Vec<CertificateDer<'a>> {
    let may = |one: &&CertificateDer<'a>| MembersOnly::read(one).is_none_or(|only| only.covers(identity));
    intermediates.iter().filter(may).cloned().collect()
}

pub(super) fn refused(reason: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(reason))))
}
