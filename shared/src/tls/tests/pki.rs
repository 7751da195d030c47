//! A certificate authority for tests, which also issues what no honest one would.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

use crate::tls::{Credentials, LiveCredentials, Pem};

pub(crate) const EAST: &str = "spiffe://example.org/clusterset/default/cluster/east";
pub(crate) const HUB: &str = "spiffe://example.org/clusterset/default/hub/hub";

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The content of a certificate; valid now and for one day unless changed.
pub(crate) struct Wanted<'a> {
    pub uris: &'a [&'a str],
    pub usages: &'a [ExtendedKeyUsagePurpose],
    pub expired: bool,
    /// For how long it is valid from now on.
    pub lasts: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self {
            uris: &[],
            usages: &[
                ExtendedKeyUsagePurpose::ClientAuth,
                ExtendedKeyUsagePurpose::ServerAuth,
            ],
            expired: false,
            lasts: DAY,
        }
    }
}

impl Authority {
    /// One that names no trust domain.
    pub(crate) fn new(name: &str) -> Self {
        Self::made(name, |_| {})
    }

    /// One that names its trust domain, as ours do.
    pub(crate) fn of(domain: &str) -> Self {
        Self::made(domain, |params| {
            let uri = format!("spiffe://{domain}");
            params
                .subject_alt_names
                .push(SanType::URI(uri.try_into().expect("ASCII")));
        })
    }

    pub(crate) fn made(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        let key = KeyPair::generate().expect("key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("self-signed");
        Self { issuer }
    }

    pub(crate) fn issuer(&self) -> &CertifiedIssuer<'static, KeyPair> {
        &self.issuer
    }

    pub(crate) fn ca(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn issue(&self, wanted: &Wanted<'_>) -> Pem {
        let key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::default();
        params.extended_key_usages = wanted.usages.to_vec();
        for uri in wanted.uris {
            let uri = SanType::URI((*uri).try_into().expect("ASCII"));
            params.subject_alt_names.push(uri);
        }
        let now = rcgen::date_time_ymd(1970, 1, 1) + std::time::UNIX_EPOCH.elapsed().expect("after 1970");
        params.not_before = now - 2 * DAY;
        params.not_after = if wanted.expired {
            now - DAY
        } else {
            now + wanted.lasts
        };
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        Pem {
            cert: certificate.pem().into(),
            key: key.serialize_pem().into(),
            ca: self.ca().into(),
        }
    }

    pub(crate) fn issue_for(&self, uri: &str) -> Pem {
        self.issue(&Wanted {
            uris: &[uri],
            ..Wanted::default()
        })
    }

    pub(crate) fn live(&self, uri: &str) -> std::sync::Arc<LiveCredentials> {
        live(&self.issue_for(uri))
    }
}

pub(crate) fn live(pem: &Pem) -> std::sync::Arc<LiveCredentials> {
    LiveCredentials::new(Credentials::from_pem(pem).expect("usable"))
}
