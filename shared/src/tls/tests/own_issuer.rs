//! Issuers of one's own as cert-manager and SPIRE are: an intermediate below the root, and another key at every renewal.

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

use super::{
    ends::Hub,
    pki::{Authority, EAST, HUB, live},
};
use crate::tls::{ClientPem, Credentials, LiveCredentials, Pem};

/// An authority below a root, as either of them signs with.
struct Intermediate {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Intermediate {
    /// SPIRE's name their trust domain, as its roots do; cert-manager's do not.
    fn of(root: &Authority, trust_domain: Option<&str>) -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "an intermediate");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let uri = trust_domain.map(|uri| SanType::URI(uri.try_into().expect("ASCII")));
        params.subject_alt_names.extend(uri);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, root.issuer()).expect("signed");
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// The content of tls.crt, tls.key and ca.crt after a renewal: another key, and the chain up to the root.
    fn renewed(&self, root: &Authority, uri: &str) -> Pem {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![
            rcgen::ExtendedKeyUsagePurpose::ServerAuth,
            rcgen::ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let uri = SanType::URI(uri.try_into().expect("ASCII"));
        params.subject_alt_names.push(uri);
        let key = KeyPair::generate().expect("a key");
        let leaf = params.signed_by(&key, &self.issuer).expect("signed");
        Pem {
            cert: format!("{}{}", leaf.pem(), self.certificate.pem()).into(),
            key: key.serialize_pem().into(),
            ca: root.ca().into(),
        }
    }
}

/// Root and intermediate of both kinds.
fn issuers() -> [(Authority, Intermediate); 2] {
    let (cert_manager, spire) = (Authority::new("cert-manager"), Authority::of("example.org"));
    let below = Intermediate::of(&cert_manager, None);
    let below_spire = Intermediate::of(&spire, Some("spiffe://example.org"));
    [(cert_manager, below), (spire, below_spire)]
}

#[tokio::test]
async fn a_member_comes_with_a_chain_and_another_key_each_time_and_its_issuer_vouches_for_it() {
    for (root, intermediate) in issuers() {
        for declared in [root.ca(), intermediate.certificate.pem()] {
            let clients = ClientPem {
                renewal_issuer: Some(declared.into()),
                ..ClientPem::default()
            };
            let hub = Credentials::with_clients(&intermediate.renewed(&root, HUB), &clients).expect("usable");
            let mut hub = Hub::new(LiveCredentials::new(hub));
            let member = live(&intermediate.renewed(&root, EAST));
            let mut keys = Vec::new();
            for _ in 0..3 {
                let mut pair = hub.join(&member).await;
                pair.works().await;
                let peer = pair.server.peer();
                assert_eq!((peer.identity.to_string().as_str(), peer.renewable), (EAST, true));
                keys.push(peer.key_fingerprint);
                let renewed = Credentials::from_pem(&intermediate.renewed(&root, EAST)).expect("usable");
                member.replace(renewed).expect("the same member");
            }
            keys.dedup();
            assert_eq!(keys.len(), 3, "another key each time");
        }
    }
}

#[tokio::test]
async fn another_intermediate_of_the_root_is_heard_and_renews_nothing_unless_the_root_may() {
    let root = Authority::new("root");
    let (ours, theirs) = (Intermediate::of(&root, None), Intermediate::of(&root, None));
    let clients = ClientPem {
        renewal_issuer: Some(ours.certificate.pem().into()),
        ..ClientPem::default()
    };
    let hub = Credentials::with_clients(&ours.renewed(&root, HUB), &clients).expect("usable");
    let mut hub = Hub::new(LiveCredentials::new(hub));
    for (issuer, renews) in [(&ours, true), (&theirs, false)] {
        let pair = hub.join(&live(&issuer.renewed(&root, EAST))).await;
        assert_eq!(pair.server.peer().renewable, renews);
    }
}

/// The file of `--tls-cert` if only its first certificate was copied.
#[test]
fn a_certificate_without_what_it_leads_over_is_refused() {
    for (root, intermediate) in issuers() {
        let hub = Credentials::from_pem(&root.issue_for(HUB)).expect("usable");
        let renewed = intermediate.renewed(&root, EAST);
        let chain = crate::tls::pem::certificates("--tls-cert", &renewed.cert).expect("two");
        hub.judge(&chain).expect("the whole chain");
        let refused = hub.judge(&chain[..1]).expect_err("the leaf alone");
        assert!(
            refused.contains("--tls-ca") && !refused.contains('\n'),
            "{refused}"
        );
    }
}
