//! The intermediate authority with which a hub lets clusters join: it signs for a member's key, and for nothing else.
//! It knows no token and decides nothing.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rcgen::{
    CertificateSigningRequestParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SanType,
};
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, pem::PemObject};
use shared::{
    identity::{Identity, MembersOnly, Role},
    model::{ClusterId, Clusterset, KeyFingerprint, UnixMillis, advice},
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    authority::{AuthorityError, parameters},
    validity::Validity,
};

pub use shared::model::sync::SIGNING_REQUEST_BYTES_MAX;

/// An authority that signs members' certificates. Its successor takes its place while the hub runs.
pub struct MemberIssuer {
    current: RwLock<Arc<Signing>>,
    lasts: Duration,
    clusterset: Clusterset,
}

/// The authority in force.
struct Signing {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    validity: Validity,
}

/// Why `--join-cert` and `--join-key` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// They are no authority, or not of one pair.
    #[error("--join-cert and --join-key: {0}")]
    Authority(#[from] AuthorityError),
    /// It could sign for hubs and operators.
    #[error(
        "--join-cert is no authority for members only: `{}` makes one, and its key cannot make hubs or operators, whoever \
         steals it",
        advice::certs_joining("DIR")
    )]
    NotForMembersOnly,
    /// It signs for another clusterset.
    #[error("--join-cert signs for clusterset {0}, and this hub serves {1}")]
    OtherClusterset(Clusterset, Clusterset),
}

/// A key that wants a certificate, and proved that it has its private half.
pub struct SigningRequest {
    request: CertificateSigningRequestParams,
    /// The fingerprint of the key.
    pub key: KeyFingerprint,
}

impl SigningRequest {
    /// Reads a request (DER) and checks its signature. Whatever else it asks for is not looked at.
    pub fn read(der: &[u8]) -> Result<Self, String> {
        if der.len() > SIGNING_REQUEST_BYTES_MAX {
            return Err(format!("it has more than {SIGNING_REQUEST_BYTES_MAX} bytes"));
        }
        let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der));
        let request = request.map_err(|error| error.to_string())?;
        let key = KeyFingerprint::of(&request.public_key.subject_public_key_info());
        Ok(Self { request, key })
    }
}

impl MemberIssuer {
    /// Reads the authority; it must be for members of this clusterset only.
    pub fn from_pem(certificate_pem: &str, key_pem: &str, served: &Clusterset) -> Result<Self, IssuerError> {
        Ok(Self {
            current: RwLock::new(Arc::new(Signing::from_pem(certificate_pem, key_pem, served)?)),
            lasts: Validity::LEAF,
            clusterset: served.clone(),
        })
    }

    /// Loads the present files; true: there is another authority, which signs from now on.
    ///
    /// # Errors
    ///
    /// It cannot be used; the old one stays in force.
    pub fn replace(&self, certificate_pem: &str, key_pem: &str) -> Result<bool, IssuerError> {
        if *certificate_pem == self.current().certificate_pem {
            return Ok(false);
        }
        let signing = Signing::from_pem(certificate_pem, key_pem, &self.clusterset)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(signing);
        Ok(true)
    }

    fn current(&self) -> Arc<Signing> {
        // The lock guards one pointer: a panic elsewhere cannot leave it half written.
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The same, for certificates of this lifetime unless the authority ends before.
    pub fn lasting(self, lasts: Duration) -> Self {
        Self { lasts, ..self }
    }

    /// From when until when a member's certificate is valid that is made at this time.
    pub fn member_validity(&self, at: UnixMillis) -> Validity {
        Validity::of_a_member(at, self.lasts)
    }

    /// Until when it can sign.
    pub fn validity(&self) -> Validity {
        self.current().validity
    }

    /// A member's certificate for that key, with the authority's own behind it, PEM.
    pub fn sign(
        &self,
        request: &SigningRequest,
        cluster: &ClusterId,
        validity: Validity,
    ) -> Result<String, AuthorityError> {
        let current = self.current();
        let identity = Identity {
            clusterset: self.clusterset.clone(),
            role: Role::Cluster(cluster.clone()),
        };
        let mut params = parameters(
            cluster.as_str(),
            &self.clusterset,
            validity.ending_with(current.validity),
        );
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.subject_alt_names = vec![SanType::URI(identity.to_string().try_into()?)];
        let certificate = params.signed_by(&request.request.public_key, &current.issuer)?;
        Ok(format!("{}{}", certificate.pem(), current.certificate_pem))
    }
}

impl Signing {
    /// Reads the authority; it must be for members of this clusterset only.
    fn from_pem(certificate_pem: &str, key_pem: &str, served: &Clusterset) -> Result<Self, IssuerError> {
        let unreadable = |error: &dyn std::fmt::Display| AuthorityError::Unreadable(error.to_string());
        let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|e| unreadable(&e))?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|e| unreadable(&e))?;
        if !certificate.is_ca() {
            return Err(AuthorityError::NotAnAuthority.into());
        }
        let MembersOnly(clusterset) = MembersOnly::read(&der).ok_or(IssuerError::NotForMembersOnly)?;
        if clusterset != *served {
            return Err(IssuerError::OtherClusterset(clusterset, served.clone()));
        }
        let key = KeyPair::from_pem(key_pem).map_err(AuthorityError::from)?;
        if key.subject_public_key_info() != certificate.public_key().raw {
            return Err(AuthorityError::OtherKey.into());
        }
        let millis = |seconds: i64| UnixMillis(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000));
        Ok(Signing {
            validity: Validity {
                not_before: millis(certificate.validity().not_before.timestamp()),
                not_after: millis(certificate.validity().not_after.timestamp()),
            },
            issuer: Issuer::from_ca_cert_der(&der, key).map_err(AuthorityError::from)?,
            certificate_pem: certificate_pem.to_owned(),
        })
    }
}
