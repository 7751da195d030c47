//! An intermediate that signs members' certificates only: what it has signed counts for nothing else. And the pin by
//! which a hub is recognised without anything more.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData, SanType};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};

use super::pki::{Authority, EAST, HUB};
use crate::{
    model::KeyFingerprint,
    tls::{Credentials, Pem, pinned::prove, provider::provider},
};

const ONLY_MEMBERS: &str = "spiffe://example.org/clusterset/default/authority/members";

/// An intermediate of an authority, with this URI or none.
struct Intermediate {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

fn intermediate(root: &Authority, uri: Option<&str>) -> Intermediate {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "intermediate");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    if let Some(uri) = uri {
        params
            .subject_alt_names
            .push(SanType::URI(uri.try_into().expect("ASCII")));
    }
    let key = KeyPair::generate().expect("a key");
    let der = params
        .signed_by(&key, root.issuer())
        .expect("signed")
        .der()
        .clone();
    Intermediate {
        issuer: Issuer::new(params, key),
        der,
    }
}

/// A chain to an identity over an intermediate.
fn chain(over: &Intermediate, uri: &str) -> [CertificateDer<'static>; 2] {
    let mut params = CertificateParams::default();
    params.extended_key_usages = vec![
        rcgen::ExtendedKeyUsagePurpose::ClientAuth,
        rcgen::ExtendedKeyUsagePurpose::ServerAuth,
    ];
    params
        .subject_alt_names
        .push(SanType::URI(uri.try_into().expect("ASCII")));
    let key = KeyPair::generate().expect("a key");
    let leaf = params.signed_by(&key, &over.issuer).expect("signed");
    [leaf.der().clone(), over.der.clone()]
}

fn pin(certificate: &[u8]) -> KeyFingerprint {
    crate::tls::pinned::key_of(certificate).expect("a certificate")
}

#[test]
fn an_intermediate_for_members_signs_for_no_hub_operator_or_other_clusterset() {
    let root = Authority::of("example.org");
    let hub = Credentials::from_pem(&root.issue_for(HUB)).expect("usable");
    let (marked, free) = (intermediate(&root, Some(ONLY_MEMBERS)), intermediate(&root, None));
    hub.judge(&chain(&marked, EAST)).expect("a member");
    for role in [
        "spiffe://example.org/clusterset/default/operator/mallory",
        "spiffe://example.org/clusterset/default/reader/mallory",
        "spiffe://example.org/clusterset/default/hub/mallory",
        "spiffe://example.org/clusterset/other/cluster/east",
    ] {
        hub.judge(&chain(&free, role))
            .expect("one's own issuer may have an intermediate");
        let [leaf, over] = chain(&marked, role);
        let refused = hub.judge(&[leaf.clone(), over.clone()]).expect_err(role);
        assert!(refused.contains("no root of this hub"), "{refused}");
        // Whatever is sent along.
        hub.judge(&[leaf, free.der.clone(), over]).expect_err(role);
    }
}

#[test]
fn a_hub_is_known_by_the_pin_of_its_authority_and_nobody_else_is() {
    let (ours, theirs) = (Authority::of("example.org"), Authority::of("example.org"));
    let der = |pem: &[u8]| CertificateDer::from_pem_slice(pem).expect("a certificate");
    let (root, other) = (der(ours.ca().as_bytes()), der(theirs.ca().as_bytes()));
    let hub = der(&ours.issue_for(HUB).cert);
    let algorithms = &provider().signature_verification_algorithms;
    let proves = |pin, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]| {
        prove(pin, leaf, others, UnixTime::now(), algorithms).map_err(|error| format!("{error:?}"))
    };
    proves(pin(&root), &hub, &[other.clone(), root.clone()]).expect("the hub");
    // Another authority's hub, with our authority's certificate beside it: everybody has that.
    let stranger = der(&theirs.issue_for(HUB).cert);
    for (pinned, leaf, others) in [
        (pin(&root), &stranger, vec![root.clone(), other.clone()]),
        (pin(&root), &hub, vec![]),
        (pin(&hub), &hub, vec![root.clone()]),
        (pin(&root), &der(&ours.issue_for(EAST).cert), vec![root.clone()]),
    ] {
        proves(pinned, leaf, &others).expect_err("not the hub");
    }
    // A hub's certificate that the intermediate for members signed.
    let marked = intermediate(&ours, Some(ONLY_MEMBERS));
    let [leaf, over] = chain(&marked, HUB);
    proves(pin(&root), &leaf, &[over.clone(), root.clone()]).expect_err("no hub");
    proves(pin(&over), &leaf, &[over, root]).expect_err("no authority to be pinned");
    let spki = marked.issuer.key().subject_public_key_info();
    assert_eq!(KeyFingerprint::of(&spki), pin(&marked.der));
}

/// While an authority is replaced by one of the same name, both are there.
#[test]
fn a_hub_knows_its_own_authority_among_others_of_the_same_name() {
    let (old, new) = (Authority::of("example.org"), Authority::of("example.org"));
    for (own, other) in [(&old, &new), (&new, &old)] {
        for roots in [[own, other], [other, own]] {
            let bundle: String = roots.iter().map(|root| root.ca()).collect();
            let pem = Pem {
                ca: bundle.into(),
                ..own.issue_for(HUB)
            };
            let credentials = Credentials::from_pem(&pem).expect("usable");
            let wanted = CertificateDer::from_pem_slice(own.ca().as_bytes()).expect("a certificate");
            assert_eq!(credentials.pin(), Some(pin(&wanted)));
        }
    }
}
