//! A certificate authority in memory: makes itself, issues certificates, can be read back from PEM.
//! Keys are ECDSA P-256. It touches no file.

use std::{net::IpAddr, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use shared::{
    identity::{Identity, IdentityError, MembersOnly, Role},
    model::{ClusterId, Clusterset, InvalidName, KeyFingerprint, UnixMillis, advice, name},
    tls::Pem,
};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::validity::Validity;

/// The authority's own URI name is this and its trust domain.
const SCHEME: &str = "spiffe://";
/// Longest organization in an X.509 subject.
const ORGANIZATION_CHARS_MAX: usize = 64;
/// Intermediates below an authority: the one that lets clusters join.
const INTERMEDIATES_MAX: u8 = 1;
/// Digits of its key in the name of an authority that signs for members.
const AUTHORITY_DIGITS: usize = 8;
/// Names and addresses of one hub.
const HUB_NAMES_MAX: usize = 64;

/// An authority that issues for one trust domain.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    validity: Validity,
    clusterset: Clusterset,
}

/// The subject of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A hub, with the names and addresses that people's tools will check. Agents check its identity instead.
    Hub {
        /// The hub's name.
        name: String,
        /// DNS names.
        dns_names: Vec<String>,
        /// IP addresses.
        ips: Vec<IpAddr>,
    },
    /// A member cluster's agent.
    Member(ClusterId),
    /// A person or a tool that reads and decides.
    Operator(String),
    /// A person or a tool that reads.
    Reader(String),
}

/// A certificate with its key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The subject's identity.
    pub identity: Identity,
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS#8).
    pub key_pem: String,
    /// Its validity.
    pub validity: Validity,
}

/// An intermediate authority for members, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct MembersOnlyPem {
    /// Its certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS#8).
    pub key_pem: String,
    /// Its validity.
    pub validity: Validity,
}

/// Why an authority cannot be read or cannot issue.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The identity would not be read back.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The library refuses.
    #[error("the certificate cannot be made: {0}")]
    Issue(#[from] rcgen::Error),
    /// The certificate cannot be read.
    #[error("ca.crt is not a certificate: {0}")]
    Unreadable(String),
    /// The certificate is not an authority's.
    #[error(
        "ca.crt is not the certificate of an authority; `{}` makes one",
        advice::certs_ca()
    )]
    NotAnAuthority,
    /// The key belongs to another certificate.
    #[error("ca.key is not the key of ca.crt: use the two files that were made together")]
    OtherKey,
    /// The authority does not say for which trust domain and clusterset it issues.
    #[error("ca.crt does not name its trust domain and clusterset: pass --trust-domain and --clusterset")]
    Nameless,
    /// The authority issues for another trust domain.
    #[error("ca.crt is the authority of trust domain {own}, not of {wanted}: one authority serves one")]
    OtherTrustDomain {
        /// The authority's own clusterset.
        own: String,
        /// The requested identity.
        wanted: String,
    },
    /// Too many names for one certificate.
    #[error("a hub certificate holds {HUB_NAMES_MAX} names and addresses at most, {0} were given")]
    TooManyNames(usize),
}

impl CertificateAuthority {
    /// Makes a new authority. It keeps the clusterset in mind as the one to issue for.
    pub fn generate(clusterset: &Clusterset, validity: Validity) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let params = authority_parameters(clusterset, validity)?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
            validity,
            clusterset: clusterset.clone(),
        })
    }

    /// Makes a new authority for this one's trust domain and clusterset, to take its place: this one vouches for it, by a
    /// certificate with the new one's name and key behind the new one's own.
    pub fn successor(&self, validity: Validity) -> Result<Self, AuthorityError> {
        let mut next = Self::generate(&self.clusterset, validity)?;
        let mut voucher = authority_parameters(&self.clusterset, validity.ending_with(self.validity))?;
        voucher.use_authority_key_identifier_extension = true;
        let voucher = voucher.signed_by(next.issuer.key(), &self.issuer)?;
        next.certificate_pem.push_str(&voucher.pem());
        Ok(next)
    }

    /// Reads an authority back. An authority that another tool made does not state trust domain and clusterset:
    /// then both must be given. A clusterset that is given is issued for instead of the authority's own.
    pub fn from_pem(
        certificate_pem: &str,
        key_pem: &str,
        trust_domain: Option<&str>,
        clusterset: Option<&str>,
    ) -> Result<Self, AuthorityError> {
        let unreadable = |error: &dyn std::fmt::Display| AuthorityError::Unreadable(error.to_string());
        let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|e| unreadable(&e))?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|e| unreadable(&e))?;
        if !certificate.is_ca() {
            return Err(AuthorityError::NotAnAuthority);
        }
        let key = KeyPair::from_pem(key_pem)?;
        if key.subject_public_key_info() != certificate.public_key().raw {
            return Err(AuthorityError::OtherKey);
        }
        let (own_domain, own_set) = stated(&certificate);
        if let (Some(own), Some(wanted)) = (&own_domain, trust_domain)
            && own != wanted
        {
            return Err(AuthorityError::OtherTrustDomain {
                own: own.clone(),
                wanted: wanted.to_owned(),
            });
        }
        let domain = trust_domain
            .or(own_domain.as_deref())
            .ok_or(AuthorityError::Nameless)?;
        let set = clusterset
            .or(own_set.as_deref())
            .ok_or(AuthorityError::Nameless)?;
        let millis = |seconds: i64| UnixMillis(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000));
        Ok(Self {
            clusterset: Clusterset::new(domain, set)?,
            validity: Validity {
                not_before: millis(certificate.validity().not_before.timestamp()),
                not_after: millis(certificate.validity().not_after.timestamp()),
            },
            issuer: Issuer::from_ca_cert_der(&der, key)?,
            certificate_pem: certificate_pem.to_owned(),
        })
    }

    /// Issues a certificate with a new key. It ends with the authority at the latest.
    pub fn issue(&self, subject: &Subject, validity: Validity) -> Result<Issued, AuthorityError> {
        self.issue_in(&self.clusterset, subject, validity)
    }

    /// Issues for another clusterset of the same trust domain.
    pub fn issue_in(
        &self,
        clusterset: &Clusterset,
        subject: &Subject,
        validity: Validity,
    ) -> Result<Issued, AuthorityError> {
        let identity = Identity {
            clusterset: clusterset.clone(),
            role: subject.role()?,
        };
        let validity = validity.ending_with(self.validity);
        let mut params = parameters(identity.role.name(), clusterset, validity);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![subject.usage()];
        params.subject_alt_names = subject.names()?;
        params
            .subject_alt_names
            .push(SanType::URI(identity.to_string().try_into()?));
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        Ok(Issued {
            certificate_pem: params.signed_by(&key, &self.issuer)?.pem(),
            key_pem: key.serialize_pem(),
            identity,
            validity,
        })
    }

    /// Makes an intermediate authority that signs members' certificates of its clusterset and no others: its own
    /// certificate says so, and hubs and agents take it for nothing else.
    pub fn members_only(&self, validity: Validity) -> Result<MembersOnlyPem, AuthorityError> {
        let validity = validity.ending_with(self.validity);
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        // Its name distinguishes it from the one before: it shows which members have certificates of which.
        let own: String = KeyFingerprint::of(&key.subject_public_key_info())
            .to_string()
            .chars()
            .take(AUTHORITY_DIGITS)
            .collect();
        let name = format!("Tributary joining {own}");
        let mut params = parameters(&name, &self.clusterset, validity);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let uri = MembersOnly(self.clusterset.clone()).to_string();
        params.subject_alt_names.push(SanType::URI(uri.try_into()?));
        Ok(MembersOnlyPem {
            certificate_pem: params.signed_by(&key, &self.issuer)?.pem(),
            key_pem: key.serialize_pem(),
            validity,
        })
    }

    /// The clusterset it issues for.
    pub fn clusterset(&self) -> &Clusterset {
        &self.clusterset
    }

    /// The authority's own validity.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The authority's certificate: what others trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's private key.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// An issued certificate together with this authority as the only trust root, ready for TLS.
    pub fn tls(&self, issued: &Issued) -> Pem {
        Pem {
            cert: issued.certificate_pem.clone().into_bytes(),
            key: issued.key_pem.clone().into_bytes(),
            ca: self.certificate_pem.clone().into_bytes(),
        }
    }
}

impl Subject {
    fn role(&self) -> Result<Role, InvalidName> {
        match self {
            Self::Hub { name, .. } => Role::hub(name),
            Self::Member(id) => Ok(Role::Cluster(id.clone())),
            Self::Operator(name) => Role::operator(name),
            Self::Reader(name) => Role::reader(name),
        }
    }

    fn usage(&self) -> ExtendedKeyUsagePurpose {
        match self {
            Self::Hub { .. } => ExtendedKeyUsagePurpose::ServerAuth,
            Self::Member(_) | Self::Operator(_) | Self::Reader(_) => ExtendedKeyUsagePurpose::ClientAuth,
        }
    }

    fn names(&self) -> Result<Vec<SanType>, AuthorityError> {
        let Self::Hub { dns_names, ips, .. } = self else {
            return Ok(Vec::new());
        };
        let count = dns_names.len() + ips.len();
        if count > HUB_NAMES_MAX {
            return Err(AuthorityError::TooManyNames(count));
        }
        let mut names = Vec::with_capacity(count + 1);
        for dns_name in dns_names {
            if !name::is_dns_subdomain(dns_name.strip_prefix("*.").unwrap_or(dns_name)) {
                return Err(AuthorityError::Name(InvalidName {
                    what: "DNS name",
                    value: dns_name.chars().take(80).collect(),
                    rule: "a DNS name in lower case",
                }));
            }
            names.push(SanType::DnsName(dns_name.as_str().try_into()?));
        }
        names.extend(ips.iter().map(|&ip| SanType::IpAddress(ip)));
        Ok(names)
    }
}

fn authority_parameters(
    clusterset: &Clusterset,
    validity: Validity,
) -> Result<CertificateParams, AuthorityError> {
    let mut params = parameters("Tributary CA", clusterset, validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(INTERMEDIATES_MAX));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let uri = format!("{SCHEME}{}", clusterset.trust_domain());
    params.subject_alt_names.push(SanType::URI(uri.try_into()?));
    Ok(params)
}

pub(super) fn parameters(
    common_name: &str,
    clusterset: &Clusterset,
    validity: Validity,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    let organization: String = clusterset
        .trust_domain()
        .chars()
        .take(ORGANIZATION_CHARS_MAX)
        .collect();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    params
        .distinguished_name
        .push(DnType::OrganizationalUnitName, clusterset.name());
    params.distinguished_name.push(DnType::CommonName, common_name);
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_millis(validity.not_before.0);
    params.not_after = epoch + Duration::from_millis(validity.not_after.0);
    params
}

/// Trust domain and clusterset as [`CertificateAuthority::generate`] writes them: URI name, organizational unit.
fn stated(certificate: &X509Certificate<'_>) -> (Option<String>, Option<String>) {
    let names = certificate.subject_alternative_name().ok().flatten();
    let uri = names
        .iter()
        .flat_map(|names| &names.value.general_names)
        .find_map(|name| match name {
            GeneralName::URI(uri) => uri.strip_prefix(SCHEME),
            _ => None,
        });
    let unit = certificate.subject().iter_organizational_unit().next();
    let unit = unit.and_then(|unit| unit.as_str().ok());
    // Only an authority of ours means a clusterset by its organizational unit.
    let clusterset = uri.and(unit);
    (uri.map(str::to_owned), clusterset.map(str::to_owned))
}

#[cfg(test)]
mod tests;
