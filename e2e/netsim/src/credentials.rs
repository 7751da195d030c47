//! The certificates of a simulated clusterset: the same bytes at every run, for what is logged must repeat.
//! Keys are Ed25519, made from names; they protect nothing.

use std::sync::Arc;

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ED25519, SanType, date_time_ymd,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use shared::{
    identity::{Identity, Role},
    model::Clusterset,
    tls::{Credentials, LiveCredentials, Pem},
};

/// Bytes before the 32 secret ones of an Ed25519 key in PKCS#8.
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A machine's progress in the change of its clusterset's authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A certificate of the old authority, which alone is trusted.
    Before,
    /// Both are trusted.
    Beside,
    /// A certificate of the new one.
    Certified,
    /// The new one alone is trusted.
    After,
}

/// The two authorities of one simulated clusterset, the second of which takes the place of the first.
pub(super) struct Authorities {
    old: Authority,
    new: Authority,
    clusterset: Clusterset,
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl Authority {
    fn new(name: &str) -> anyhow::Result<Self> {
        let key = key_of(name)?;
        let mut params = parameters();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
        })
    }
}

impl Authorities {
    pub(super) fn new(clusterset: &Clusterset) -> anyhow::Result<Self> {
        Ok(Self {
            old: Authority::new("authority")?,
            new: Authority::new("next authority")?,
            clusterset: clusterset.clone(),
        })
    }

    /// The first credentials of a hub or a member.
    pub(super) fn issue(&self, role: Role) -> anyhow::Result<Arc<LiveCredentials>> {
        Ok(LiveCredentials::new(self.credentials(role, Change::Before)?))
    }

    /// Gives a machine the files of a step of the change; its key stays.
    pub(super) fn change(&self, live: &LiveCredentials, to: Change) -> anyhow::Result<()> {
        let credentials = self.credentials(live.identity().role, to)?;
        live.replace(credentials).context("for the same identity")
    }

    fn credentials(&self, role: Role, at: Change) -> anyhow::Result<Credentials> {
        let usage = match role {
            Role::Hub(_) => ExtendedKeyUsagePurpose::ServerAuth,
            _ => ExtendedKeyUsagePurpose::ClientAuth,
        };
        let (old, new) = (&self.old, &self.new);
        let issuer = match at {
            Change::Before | Change::Beside => &old.issuer,
            Change::Certified | Change::After => &new.issuer,
        };
        let roots = match at {
            Change::Before => old.certificate_pem.clone(),
            Change::Beside | Change::Certified => format!("{}{}", old.certificate_pem, new.certificate_pem),
            Change::After => new.certificate_pem.clone(),
        };
        let identity = Identity {
            clusterset: self.clusterset.clone(),
            role,
        };
        let mut params = parameters();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.subject_alt_names = vec![SanType::URI(identity.to_string().try_into()?)];
        let key = key_of(&identity.to_string())?;
        let pem = Pem {
            cert: params.signed_by(&key, issuer)?.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            ca: roots.into_bytes(),
        };
        Credentials::from_pem(&pem).context("a simulated certificate cannot be used")
    }
}

fn parameters() -> CertificateParams {
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2999, 1, 1));
    params
}

fn key_of(name: &str) -> anyhow::Result<KeyPair> {
    let secret = blake3::hash(name.as_bytes());
    let pkcs8 = [&PKCS8_ED25519[..], secret.as_bytes()].concat();
    let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8);
    Ok(KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)?)
}
