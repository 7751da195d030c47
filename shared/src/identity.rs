//! The identity in a certificate: the SPIFFE-shaped URI in its subject alternative names. It reads and prints
//! identities; it never decides what an identity may do, and it never takes one from anywhere but a certificate whose
//! chain TLS has already verified.

use std::fmt;

use sha2::{Digest, Sha256};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use crate::model::{
    ClusterId, Clusterset, InvalidName, KeyFingerprint, UnixMillis, fact::ISSUER_BYTES_MAX, name,
};

/// Longest identity URI that is read, in bytes. Longest possible: scheme, trust domain, three path words, two labels.
pub const IDENTITY_URI_BYTES_MAX: usize = 512;

/// Prefix of every identity, and of the name of an authority that is bound to a trust domain.
pub(crate) const SCHEME: &str = "spiffe://";

/// Suffix of the URI of an intermediate authority that signs members' certificates only.
const MEMBERS_ONLY: &str = "/authority/members";

/// A role within a clusterset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A member: the agent of this cluster. It may state facts about this cluster only.
    Cluster(ClusterId),
    /// The hub that serves the clusterset.
    Hub(Box<str>),
    /// A person or a tool that reads and decides.
    Operator(Box<str>),
    /// A person or a tool that reads and decides nothing.
    Reader(Box<str>),
}

/// An identity: a role in a clusterset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The clusterset that the certificate belongs to.
    pub clusterset: Clusterset,
    /// The role in it.
    pub role: Role,
}

/// The facts in a certificate: owner, key and validity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The owner's identity.
    pub identity: Identity,
    /// The fingerprint of its public key.
    pub key_fingerprint: KeyFingerprint,
    /// Its issuer, as it names it: at most [`ISSUER_BYTES_MAX`] bytes, else `sha256:` and the hash of the name.
    pub issuer: Box<str>,
    /// Valid from this time on.
    pub not_before: UnixMillis,
    /// Valid until this time.
    pub not_after: UnixMillis,
}

/// Why a certificate or a URI states no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The bytes are not an X.509 certificate.
    #[error("not an X.509 certificate: {0}")]
    NotACertificate(String),
    /// A certificate must name exactly one identity.
    #[error(
        "the certificate has {0} URI names (subject alternative names), and exactly one is needed: \
         spiffe://<trust-domain>/clusterset/<set>/cluster|hub|operator|reader/<name>; \
         `tributary-hub certs` issues such certificates"
    )]
    UriCount(usize),
    /// The URI is not of the one form that is accepted.
    #[error(
        "the identity {uri:?} is not of the form \
         spiffe://<trust-domain>/clusterset/<set>/cluster|hub|operator|reader/<name>: {problem}"
    )]
    Form {
        /// The URI, cut to 200 characters.
        uri: String,
        /// The problem.
        problem: String,
    },
}

/// The one clusterset whose members' certificates an intermediate authority may sign. Its own certificate states it in
/// a URI name, signed by the authority above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersOnly(pub Clusterset);

impl MembersOnly {
    /// Reads it from a certificate (DER), if the certificate has it.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten()?;
        names.value.general_names.iter().find_map(|name| match name {
            GeneralName::URI(uri) => Self::parse(uri),
            _ => None,
        })
    }

    /// Reads its URI.
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?.strip_suffix(MEMBERS_ONLY)?;
        let (domain, set) = rest.split_once("/clusterset/")?;
        Clusterset::new(domain, set).ok().map(Self)
    }

    /// Returns true if it may have signed such a certificate.
    pub fn covers(&self, identity: &Identity) -> bool {
        identity.clusterset == self.0 && matches!(identity.role, Role::Cluster(_))
    }
}

impl fmt::Display for MembersOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{SCHEME}{}/clusterset/{}{MEMBERS_ONLY}",
            self.0.trust_domain(),
            self.0.name()
        )
    }
}

impl Identity {
    /// Reads an identity URI. One spelling only: no percent-encoding, user, port, query, fragment, upper case
    /// or empty path part, because two spellings of one name are how checks are walked around.
    pub fn parse(uri: &str) -> Result<Self, IdentityError> {
        let fail = |problem: &str| IdentityError::Form {
            uri: uri.chars().take(200).collect(),
            problem: problem.to_owned(),
        };
        let invalid = |error: InvalidName| fail(&error.to_string());
        if uri.len() > IDENTITY_URI_BYTES_MAX {
            return Err(fail("it is too long"));
        }
        let rest = uri
            .strip_prefix(SCHEME)
            .ok_or_else(|| fail("the scheme is not spiffe"))?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [trust_domain, "clusterset", set, kind, holder] = parts[..] else {
            return Err(fail("the path has other parts"));
        };
        let clusterset = Clusterset::new(trust_domain, set).map_err(invalid)?;
        let role = match kind {
            "cluster" => Role::Cluster(ClusterId::new(holder).map_err(invalid)?),
            "hub" => Role::hub(holder).map_err(invalid)?,
            "operator" => Role::operator(holder).map_err(invalid)?,
            "reader" => Role::reader(holder).map_err(invalid)?,
            _ => return Err(fail("the role is none of cluster, hub, operator, reader")),
        };
        Ok(Self { clusterset, role })
    }

    /// The identity that a certificate (DER) states.
    pub fn from_certificate(der: &[u8]) -> Result<Self, IdentityError> {
        CertificateFacts::read(der).map(|facts| facts.identity)
    }
}

impl Role {
    /// A hub's role; its name is a DNS label.
    pub fn hub(value: &str) -> Result<Self, InvalidName> {
        label("hub name", value).map(Self::Hub)
    }

    /// An operator's role; the name is a DNS label.
    pub fn operator(value: &str) -> Result<Self, InvalidName> {
        label("operator name", value).map(Self::Operator)
    }

    /// A reader's role; the name is a DNS label.
    pub fn reader(value: &str) -> Result<Self, InvalidName> {
        label("reader name", value).map(Self::Reader)
    }

    /// The word for the role in an identity URI.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "cluster",
            Self::Hub(_) => "hub",
            Self::Operator(_) => "operator",
            Self::Reader(_) => "reader",
        }
    }

    /// The cluster id or the name.
    pub fn name(&self) -> &str {
        match self {
            Self::Cluster(id) => id.as_str(),
            Self::Hub(name) | Self::Operator(name) | Self::Reader(name) => name,
        }
    }
}

impl CertificateFacts {
    /// Reads a certificate (DER). It checks no signature and no validity: that is the TLS verifier's work.
    pub fn read(der: &[u8]) -> Result<Self, IdentityError> {
        let not_a_certificate = |error: &dyn fmt::Display| IdentityError::NotACertificate(error.to_string());
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|e| not_a_certificate(&e))?;
        if !rest.is_empty() {
            return Err(not_a_certificate(&"bytes follow its end"));
        }
        let names = certificate
            .subject_alternative_name()
            .map_err(|e| not_a_certificate(&e))?;
        let uris: Vec<&str> = names
            .iter()
            .flat_map(|extension| &extension.value.general_names)
            .filter_map(|name| match name {
                GeneralName::URI(uri) => Some(*uri),
                _ => None,
            })
            .collect();
        let [uri] = uris[..] else {
            return Err(IdentityError::UriCount(uris.len()));
        };
        let millis = |seconds: i64| UnixMillis(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000));
        Ok(Self {
            identity: Identity::parse(uri)?,
            key_fingerprint: KeyFingerprint::of(certificate.public_key().raw),
            issuer: issuer(&certificate),
            not_before: millis(certificate.validity().not_before.timestamp()),
            not_after: millis(certificate.validity().not_after.timestamp()),
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = &self.clusterset;
        let (word, name) = (self.role.word(), self.role.name());
        write!(
            f,
            "{SCHEME}{}/clusterset/{}/{word}/{name}",
            set.trust_domain(),
            set.name()
        )
    }
}

fn issuer(certificate: &X509Certificate<'_>) -> Box<str> {
    let name = certificate.issuer();
    let text = name.to_string();
    let printable = |c: char| !c.is_control();
    if text.len() <= ISSUER_BYTES_MAX && text.chars().all(printable) {
        return text.into();
    }
    let digest = Sha256::digest(name.as_raw());
    format!("sha256:{}", KeyFingerprint(digest.into())).into()
}

fn label(what: &'static str, value: &str) -> Result<Box<str>, InvalidName> {
    if name::is_dns_label(value) {
        return Ok(value.into());
    }
    Err(InvalidName {
        what,
        value: value.chars().take(80).collect(),
        rule: "an RFC 1123 DNS label (1 to 63 of a-z, 0-9 and '-', alphanumeric at both ends)",
    })
}

#[cfg(test)]
mod tests;
