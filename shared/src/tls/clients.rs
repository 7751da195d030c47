//! The rules on clients' certificates beyond the roots: denied keys, revoked certificates, and issuers that may renew a
//! member's key. It judges certificates; it decides about no member.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use rustls::{
    RootCertStore, crypto::CryptoProvider, server::WebPkiClientVerifier, server::danger::ClientCertVerifier,
};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime, pem::PemObject};

use super::{
    files::read,
    pem::{CredentialsError, certificates},
};
use crate::model::KeyFingerprint;

/// Most keys that a file of denied keys may have.
pub const DENIED_KEYS_MAX: usize = 10_000;

/// Files about the certificates of clients. They are looked at again every ten seconds, as certificate and key are.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct ClientFiles {
    /// Approval of a member's new key: by an operator (pin), or automatic if its certificate is of a --renewal-issuer
    /// and no agent under another key answers (renew). Unless given: renew if issuers are declared, else pin
    #[arg(
        long,
        env = "TRIBUTARY_MEMBER_KEYS",
        value_name = "MODE",
        requires_if("renew", "renewal_issuer")
    )]
    pub member_keys: Option<MemberKeys>,
    /// Certificates of the authorities that may renew the keys of members (PEM). They must lead to a root of --tls-ca
    #[arg(long, env = "TRIBUTARY_RENEWAL_ISSUER", value_name = "FILE")]
    pub renewal_issuer: Option<PathBuf>,
    /// Certificate revocation lists (CRLs) of the authorities (PEM). Certificates of an authority without a list are not
    /// revoked
    #[arg(long, env = "TRIBUTARY_CLIENT_CRL", value_name = "FILE")]
    pub client_crl: Option<PathBuf>,
    /// File with keys to refuse, in any certificate: a line for each with the sha256 of the public key; '#' begins a
    /// comment
    #[arg(long, env = "TRIBUTARY_DENY_KEYS", value_name = "FILE")]
    pub deny_keys: Option<PathBuf>,
}

/// The way for a member to a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MemberKeys {
    /// An operator admits it
    Pin,
    /// Its issuer vouches for it
    Renew,
}

/// The bytes of these files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientPem {
    /// The issuers that may renew.
    pub renewal_issuer: Option<Vec<u8>>,
    /// The lists.
    pub client_crl: Option<Vec<u8>>,
    /// The denied keys.
    pub deny_keys: Option<Vec<u8>>,
}

impl ClientFiles {
    /// Reads the files that are named. Issuers that are not to be asked are not read.
    pub fn read(&self) -> Result<ClientPem, CredentialsError> {
        let bytes = |flag, path: &Option<PathBuf>| path.as_deref().map(|path| read(flag, path)).transpose();
        let renewing = self.member_keys != Some(MemberKeys::Pin);
        let issuer = self.renewal_issuer.clone().filter(|_| renewing);
        Ok(ClientPem {
            renewal_issuer: bytes("--renewal-issuer", &issuer)?,
            client_crl: bytes("--client-crl", &self.client_crl)?,
            deny_keys: bytes("--deny-keys", &self.deny_keys)?,
        })
    }
}

/// The loaded rules.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientRules {
    renewal: Option<Arc<dyn ClientCertVerifier>>,
    denied: BTreeSet<KeyFingerprint>,
}

/// A certificate whose key the hub denies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("key {0} is denied by the file of --deny-keys: issue a certificate with a new key")]
pub(super) struct DeniedKey(KeyFingerprint);

impl ClientRules {
    pub(super) fn from_pem(
        pem: &ClientPem,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, CredentialsError> {
        let renewal = pem.renewal_issuer.as_deref().map(|issuers| {
            let mut roots = RootCertStore::empty();
            for issuer in certificates("--renewal-issuer", issuers)? {
                roots
                    .add(issuer)
                    .map_err(|error| unusable("--renewal-issuer", "certificate", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
            verifier
                .build()
                .map_err(|error| unusable("--renewal-issuer", "certificate", &error))
        });
        Ok(Self {
            renewal: renewal.transpose()?,
            denied: denied_keys(pem.deny_keys.as_deref().unwrap_or_default())?,
        })
    }

    /// Refuses a key that is denied.
    pub(super) fn check(&self, key: KeyFingerprint) -> Result<(), DeniedKey> {
        if self.denied.contains(&key) {
            return Err(DeniedKey(key));
        }
        Ok(())
    }

    /// Returns true if a valid certificate is of an issuer that may renew members' keys.
    pub(super) fn renews(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        let verified = |verifier: &Arc<dyn ClientCertVerifier>| {
            verifier
                .verify_client_cert(certificate, intermediates, now)
                .is_ok()
        };
        self.renewal.as_ref().is_some_and(verified)
    }
}

/// The lists in a PEM file.
pub(super) fn revocation_lists(
    pem: Option<&[u8]>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, CredentialsError> {
    let Some(pem) = pem else { return Ok(Vec::new()) };
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
    let lists = lists.map_err(|error| unusable("--client-crl", "list", &error))?;
    if lists.is_empty() {
        return Err(unusable(
            "--client-crl",
            "list",
            &"there is no BEGIN X509 CRL in it",
        ));
    }
    Ok(lists)
}

fn denied_keys(text: &[u8]) -> Result<BTreeSet<KeyFingerprint>, CredentialsError> {
    let malformed = |problem: &dyn std::fmt::Display| unusable("--deny-keys", "list of keys", problem);
    let text = std::str::from_utf8(text).map_err(|error| malformed(&error))?;
    let lines = text.lines().enumerate();
    let keys = lines.filter_map(|(number, line)| {
        let word = line.split('#').next().unwrap_or_default().trim();
        let key = word.parse::<KeyFingerprint>();
        (!word.is_empty())
            .then(|| key.map_err(|error| malformed(&format!("line {}: it {error}", number + 1))))
    });
    let keys: BTreeSet<KeyFingerprint> = keys.collect::<Result<_, _>>()?;
    if keys.len() > DENIED_KEYS_MAX {
        return Err(malformed(&format!("it has more than {DENIED_KEYS_MAX} keys")));
    }
    Ok(keys)
}

fn unusable(file: &'static str, what: &'static str, problem: &dyn std::fmt::Display) -> CredentialsError {
    CredentialsError::Malformed {
        file,
        what,
        problem: problem.to_string(),
    }
}
