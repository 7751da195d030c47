//! Owns: which authorities of `--tls-ca` may certify whom. One that names a trust domain, as `tributary-hub certs ca`
//! makes them, certifies identities of that domain; one that names none, those of our own.
//! Never: checks a signature (webpki does); says what an identity may do.

use std::{collections::BTreeMap, sync::Arc};

use rustls::{CertificateError, Error, OtherError, RootCertStore};
use rustls_pki_types::CertificateDer;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::pem::{CredentialsError, certificates};
use crate::{identity::SCHEME, model::name};

/// Something for each group of authorities: their certificates, or what checks chains to them.
#[derive(Debug)]
pub(super) struct Bound<T> {
    /// By the trust domain that the authorities name.
    named: BTreeMap<String, T>,
    /// The rule for authorities that name none, if there are any.
    unnamed: Option<T>,
    /// The clusterset whose identities those may certify.
    own: String,
}

/// The required purpose of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A client.
    Client,
    /// A server.
    Server,
}

/// Nobody whom we trust certifies such identities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no authority in --tls-ca certifies identities of trust domain {0}: one certifies those of the domain that it names, \
     and one that names none those of our own"
)]
pub(super) struct NoAuthority(String);

/// The authorities of a PEM file, of somebody of trust domain `own`.
pub(super) fn read(pem: &[u8], own: &str) -> Result<Bound<Arc<RootCertStore>>, CredentialsError> {
    read_of(certificates("--tls-ca", pem)?, own)
}

/// The same of certificates that are at hand.
pub(super) fn read_of(
    roots: Vec<CertificateDer<'static>>,
    own: &str,
) -> Result<Bound<Arc<RootCertStore>>, CredentialsError> {
    let unusable = |problem: String| CredentialsError::Roots(problem);
    let mut named: BTreeMap<String, RootCertStore> = BTreeMap::new();
    let mut unnamed = RootCertStore::empty();
    for root in roots {
        let store = match domain_of(&root).map_err(unusable)? {
            Some(domain) => named.entry(domain).or_insert_with(RootCertStore::empty),
            None => &mut unnamed,
        };
        store.add(root).map_err(|error| unusable(error.to_string()))?;
    }
    Ok(Bound {
        named: named
            .into_iter()
            .map(|(domain, store)| (domain, Arc::new(store)))
            .collect(),
        unnamed: (!unnamed.is_empty()).then(|| Arc::new(unnamed)),
        own: own.to_owned(),
    })
}

impl<T> Bound<T> {
    /// Something else for each group.
    pub(super) fn try_map<U, E>(&self, mut make: impl FnMut(&T) -> Result<U, E>) -> Result<Bound<U>, E> {
        let mut named = BTreeMap::new();
        for (domain, group) in &self.named {
            named.insert(domain.clone(), make(group)?);
        }
        Ok(Bound {
            named,
            unnamed: self.unnamed.as_ref().map(make).transpose()?,
            own: self.own.clone(),
        })
    }

    /// Every group.
    pub(super) fn groups(&self) -> impl Iterator<Item = &T> {
        self.named.values().chain(&self.unnamed)
    }

    /// Checks a certificate with an identity of a trust domain against the authorities that may certify it. Authorities
    /// of ours write what a certificate is for, so one that does not say it is refused.
    pub(super) fn verify<V>(
        &self,
        end_entity: &CertificateDer<'_>,
        domain: &str,
        made_for: Use,
        verify: impl Fn(&T) -> Result<V, Error>,
    ) -> Result<V, Error> {
        let named = self.named.get(domain).map(|group| {
            let verified = verify(group)?;
            is_made_for(end_entity, made_for)
                .then_some(verified)
                .ok_or(Error::InvalidCertificate(CertificateError::InvalidPurpose))
        });
        let unnamed = self.unnamed.as_ref().filter(|_| domain == self.own);
        match (named, unnamed) {
            (Some(Ok(verified)), _) => Ok(verified),
            (Some(Err(error)), Some(_)) if error != unknown_issuer() => Err(error),
            (_, Some(group)) => verify(group),
            (Some(Err(error)), None) => Err(error),
            (None, None) => Err(no_authority(domain)),
        }
    }
}

fn unknown_issuer() -> Error {
    Error::InvalidCertificate(CertificateError::UnknownIssuer)
}

fn no_authority(domain: &str) -> Error {
    let reason = NoAuthority(domain.to_owned());
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(reason))))
}

/// The trust domain that an authority names; it must be one, then.
fn domain_of(root: &CertificateDer<'_>) -> Result<Option<String>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("one is no X.509 certificate: {error}");
    let (_, certificate) = X509Certificate::from_der(root).map_err(|error| unreadable(&error))?;
    let names = certificate.subject_alternative_name();
    let names = names.map_err(|error| unreadable(&error))?;
    let uris = names.iter().flat_map(|names| &names.value.general_names);
    let domain = uris
        .filter_map(|name| match name {
            GeneralName::URI(uri) => uri.strip_prefix(SCHEME),
            _ => None,
        })
        .next();
    let Some(domain) = domain else { return Ok(None) };
    let subject = certificate.subject();
    if !name::is_dns_subdomain(domain) {
        return Err(format!(
            "{subject} names {SCHEME}{domain}, which is no trust domain"
        ));
    }
    if !certificate.is_ca() {
        return Err(format!("{subject} is not the certificate of an authority"));
    }
    let usage = certificate.key_usage();
    let signs = usage.map_err(|error| unreadable(&error))?;
    if signs.is_some_and(|usage| !usage.value.key_cert_sign()) {
        return Err(format!(
            "{subject} is an authority that may not sign certificates"
        ));
    }
    Ok(Some(domain.to_owned()))
}

/// Returns true if a certificate is made for this purpose.
fn is_made_for(end_entity: &CertificateDer<'_>, made_for: Use) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(end_entity) else {
        return false;
    };
    let usage = certificate.extended_key_usage().ok().flatten();
    usage.is_some_and(|usage| match made_for {
        Use::Client => usage.value.client_auth,
        Use::Server => usage.value.server_auth,
    })
}
