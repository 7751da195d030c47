//! Certificate, key and trust roots that belong together, checked before anything uses them.
//! Both TLS configurations are built here, so that all settings stand in one place. It reads no file.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::Resumption,
    crypto::CryptoProvider,
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
    version::TLS13,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject};

use super::{
    clients::{ClientPem, ClientRules, revocation_lists},
    pem::{CredentialsError, Pem, certificates},
    pinned,
    provider::{ALPN_HTTP2, provider},
    roots::{self, Bound},
    verify::{AnyIdentity, TheHub},
};
use crate::{
    identity::{CertificateFacts, MembersOnly},
    model::KeyFingerprint,
};

/// Checked credentials and the configurations made from them. They never change; a reload makes new ones.
#[derive(Clone)]
pub struct Credentials {
    facts: CertificateFacts,
    verifier: Arc<AnyIdentity>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    joining: Arc<Joining>,
    signed_for_members: bool,
}

/// The join port's certificate for clusters that are no members yet.
pub(super) struct Joining {
    server: Arc<ServerConfig>,
    /// The key of the authority that its own certificate leads to.
    pin: Option<KeyFingerprint>,
    authorities: Vec<CertificateDer<'static>>,
}

impl Credentials {
    /// Checks that certificate, key and roots can be used together and builds the TLS configurations.
    pub fn from_pem(pem: &Pem) -> Result<Self, CredentialsError> {
        Self::with_clients(pem, &ClientPem::default())
    }

    /// The same for a hub with more rules on its clients' certificates.
    pub fn with_clients(pem: &Pem, clients: &ClientPem) -> Result<Self, CredentialsError> {
        let chain = certificates("--tls-cert", &pem.cert)?;
        let facts = CertificateFacts::read(&chain[0])?;
        let roots = roots::read(&pem.ca, facts.identity.clusterset.trust_domain())?;
        let provider = provider();
        let authorities = certificates("--tls-ca", &pem.ca)?;
        let signed_for_members = chain[1..].iter().any(|one| MembersOnly::read(one).is_some());
        let (key, pair) = fitting_key(&provider, &chain, &pem.key)?;
        let joining = Arc::new(joining(&provider, &chain, &key, authorities)?);
        let pair = Arc::new(SingleCertAndKey::from(pair));
        let verifier = Arc::new(client_verifier(&provider, &roots, clients)?);
        Ok(Self {
            server: Arc::new(server_config(&provider, pair.clone(), verifier.clone())?),
            verifier,
            client: Arc::new(client_config(&provider, pair, roots, &facts)?),
            joining,
            signed_for_members,
            facts,
        })
    }

    /// Owner, key and validity of the certificate.
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts
    }

    /// Returns true if the certificate comes with an authority that signs for members only, which a hub has for joining
    /// clusters.
    pub fn is_signed_for_members(&self) -> bool {
        self.signed_for_members
    }

    /// Checks whether the certificates of an open connection would open it now.
    pub fn judge(&self, chain: &[CertificateDer<'_>]) -> Result<(), String> {
        let Some((certificate, intermediates)) = chain.split_first() else {
            return Ok(());
        };
        let verified = self
            .verifier
            .verify_client_cert(certificate, intermediates, UnixTime::now());
        verified.map(drop).map_err(|error| match error {
            rustls::Error::InvalidCertificate(rustls::CertificateError::Other(ours)) => ours.to_string(),
            rustls::Error::InvalidCertificate(rustls::CertificateError::Revoked) => {
                "its issuer took it back (--client-crl)".to_owned()
            }
            rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
                "its authority is no root of this hub any more (--tls-ca)".to_owned()
            }
            other => other.to_string(),
        })
    }

    /// Returns true if such a certificate is of an issuer that may renew members' keys.
    pub(super) fn renews(&self, chain: &[CertificateDer<'_>]) -> bool {
        let renews = |(certificate, intermediates): (&CertificateDer<'_>, &[CertificateDer<'_>])| {
            self.verifier
                .rules()
                .renews(certificate, intermediates, UnixTime::now())
        };
        chain.split_first().is_some_and(renews)
    }

    /// The configuration for accepting connections: any peer with a certificate of our roots and an identity.
    pub fn server(&self) -> &Arc<ServerConfig> {
        &self.server
    }

    /// The configuration for accepting clusters that are no members yet: nobody is asked for a certificate, and the
    /// authorities are shown with our own, so that a pin is enough to know us by.
    pub(super) fn joining(&self) -> &Arc<ServerConfig> {
        &self.joining.server
    }

    /// The key of the authority that our own certificate leads to, if we are a hub.
    pub fn pin(&self) -> Option<KeyFingerprint> {
        self.joining.pin
    }

    /// The authorities that are trusted (DER).
    pub fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.joining.authorities
    }

    /// The configuration for connecting to the hub of our own clusterset.
    pub fn client(&self) -> &Arc<ClientConfig> {
        &self.client
    }
}

/// The private key that belongs to the certificate. There are two while a certificate is renewed, so that putting the new
/// certificate in the place of the old one is the whole change.
fn fitting_key(
    provider: &Arc<CryptoProvider>,
    chain: &[CertificateDer<'static>],
    pem: &[u8],
) -> Result<(PrivateKeyDer<'static>, CertifiedKey), CredentialsError> {
    let malformed = |error: rustls_pki_types::pem::Error| CredentialsError::Malformed {
        file: "--tls-key",
        what: "private key",
        problem: error.to_string(),
    };
    let first = PrivateKeyDer::from_pem_slice(pem).map_err(malformed)?;
    let mut refused = None;
    for key in PrivateKeyDer::pem_slice_iter(pem) {
        let key = key.map_err(malformed)?;
        match CertifiedKey::from_der(chain.to_vec(), key.clone_key(), provider) {
            Ok(pair) => return Ok((key, pair)),
            // The message is about the first.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let pair = match refused {
        Some(error) => Err(error),
        None => CertifiedKey::from_der(chain.to_vec(), first.clone_key(), provider),
    };
    Ok((first, pair.map_err(CredentialsError::Pair)?))
}

/// No session is ever resumed: a resumed one skips the certificate checks, so a root that was taken away would
/// live on in tickets. A full handshake costs a millisecond, connections live for days.
fn server_config(
    provider: &Arc<CryptoProvider>,
    pair: Arc<SingleCertAndKey>,
    verifier: Arc<AnyIdentity>,
) -> Result<ServerConfig, CredentialsError> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(CredentialsError::Pair)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(pair);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn joining(
    provider: &Arc<CryptoProvider>,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    authorities: Vec<CertificateDer<'static>>,
) -> Result<Joining, CredentialsError> {
    let shown = [chain, &authorities[..]].concat();
    let leads_to = |pin: &KeyFingerprint| {
        let algorithms = &provider.signature_verification_algorithms;
        pinned::prove(*pin, &shown[0], &shown[1..], UnixTime::now(), algorithms).is_ok()
    };
    let pin = authorities
        .iter()
        .filter_map(|one| pinned::key_of(one))
        .find(leads_to);
    let pair =
        CertifiedKey::from_der(shown.clone(), key.clone_key(), provider).map_err(CredentialsError::Pair)?;
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(CredentialsError::Pair)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Joining {
        server: Arc::new(config),
        pin,
        authorities,
    })
}

/// The hub's verifier of clients' certificates. An issuer without a revocation list counts as having revoked nothing,
/// and so do intermediates: the lists are about clients.
fn client_verifier(
    provider: &Arc<CryptoProvider>,
    roots: &Bound<Arc<RootCertStore>>,
    clients: &ClientPem,
) -> Result<AnyIdentity, CredentialsError> {
    let rules = ClientRules::from_pem(clients, provider)?;
    let lists = revocation_lists(clients.client_crl.as_deref())?;
    let chains = roots.try_map(|roots| {
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        if !lists.is_empty() {
            builder = builder
                .with_crls(lists.iter().cloned())
                .only_check_end_entity_revocation()
                .allow_unknown_revocation_status();
        }
        let built = builder.build();
        built.map_err(|error| CredentialsError::Roots(error.to_string()))
    })?;
    Ok(AnyIdentity::new(
        chains,
        provider.signature_verification_algorithms,
        rules,
    ))
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    pair: Arc<SingleCertAndKey>,
    roots: Bound<Arc<RootCertStore>>,
    facts: &CertificateFacts,
) -> Result<ClientConfig, CredentialsError> {
    let algorithms = provider.signature_verification_algorithms;
    let verifier = TheHub::new(roots, algorithms, facts.identity.clusterset.clone());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(CredentialsError::Pair)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(pair);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
