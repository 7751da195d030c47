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

/// What stands before the 32 secret bytes of an Ed25519 key in PKCS#8.
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Issues for one simulated clusterset.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    clusterset: Clusterset,
}

impl Authority {
    pub(super) fn new(clusterset: &Clusterset) -> anyhow::Result<Self> {
        let key = key_of("authority")?;
        let mut params = parameters();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
            clusterset: clusterset.clone(),
        })
    }

    /// The credentials of a hub or a member.
    pub(super) fn issue(&self, role: Role) -> anyhow::Result<Arc<LiveCredentials>> {
        let usage = match role {
            Role::Hub(_) => ExtendedKeyUsagePurpose::ServerAuth,
            _ => ExtendedKeyUsagePurpose::ClientAuth,
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
            cert: params.signed_by(&key, &self.issuer)?.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            ca: self.certificate_pem.clone().into_bytes(),
        };
        let credentials = Credentials::from_pem(&pem).context("a simulated certificate cannot be used")?;
        Ok(LiveCredentials::new(credentials))
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
