//! Identities that are accepted and refused, from URIs and from real certificates.

use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair, SanType};

use super::*;

const GOOD: [&str; 4] = [
    "spiffe://example.org/clusterset/default/cluster/east",
    "spiffe://tributary-00ff.local/clusterset/prod-1/hub/hub",
    "spiffe://a/clusterset/b/operator/alice",
    "spiffe://example.org/clusterset/default/cluster/6d3e4b1a-0c3e-4b8e-9c1e-0d6a6c0f2f11",
];

const BAD: [(&str, &str); 22] = [
    ("", "the scheme"),
    (
        "https://example.org/clusterset/default/cluster/east",
        "the scheme",
    ),
    (
        "SPIFFE://example.org/clusterset/default/cluster/east",
        "the scheme",
    ),
    (
        "spiffe:/example.org/clusterset/default/cluster/east",
        "the scheme",
    ),
    ("spiffe:///clusterset/default/cluster/east", "trust domain"),
    (
        "spiffe://Example.org/clusterset/default/cluster/east",
        "trust domain",
    ),
    (
        "spiffe://example.org:443/clusterset/default/cluster/east",
        "trust domain",
    ),
    (
        "spiffe://user@example.org/clusterset/default/cluster/east",
        "trust domain",
    ),
    (
        "spiffe://example.org/clusterset/default/cluster/east/",
        "other parts",
    ),
    (
        "spiffe://example.org/clusterset/default/cluster//east",
        "other parts",
    ),
    (
        "spiffe://example.org//clusterset/default/cluster/east",
        "other parts",
    ),
    ("spiffe://example.org/ns/default/sa/agent", "other parts"),
    ("spiffe://example.org/clusterset/default", "other parts"),
    (
        "spiffe://example.org/Clusterset/default/cluster/east",
        "other parts",
    ),
    ("spiffe://example.org/clusterset/default/cluster/", "cluster id"),
    (
        "spiffe://example.org/clusterset/default/cluster/East",
        "cluster id",
    ),
    (
        "spiffe://example.org/clusterset/default/cluster/east?x=1",
        "cluster id",
    ),
    (
        "spiffe://example.org/clusterset/default/cluster/east#x",
        "cluster id",
    ),
    (
        "spiffe://example.org/clusterset/default/cluster/e%61st",
        "cluster id",
    ),
    ("spiffe://example.org/clusterset/default/cluster/..", "cluster id"),
    ("spiffe://example.org/clusterset/de.fault/hub/hub", "clusterset"),
    (
        "spiffe://example.org/clusterset/default/admin/bob",
        "the role is none of",
    ),
];

#[test]
fn one_spelling_is_accepted_and_printed_back() {
    for uri in GOOD {
        assert_eq!(Identity::parse(uri).expect(uri).to_string(), uri);
    }
}

#[test]
fn every_other_spelling_is_refused_with_its_reason() {
    for (uri, reason) in BAD {
        let error = Identity::parse(uri).expect_err(uri).to_string();
        assert!(error.contains(reason), "{uri}: {error}");
    }
    let long = format!(
        "spiffe://example.org/clusterset/default/cluster/{}",
        "a".repeat(600)
    );
    let error = Identity::parse(&long).expect_err("long").to_string();
    assert!(error.contains("too long") && error.len() < 600, "{error}");
}

#[test]
fn a_reader_is_no_operator_of_the_same_name() {
    let reader = Identity::parse("spiffe://example.org/clusterset/default/reader/alice").expect("valid");
    assert_eq!(reader.role, Role::reader("alice").expect("valid"));
    assert_ne!(reader.role, Role::operator("alice").expect("valid"));
    assert!(Role::reader("Alice").is_err());
}

#[test]
fn the_longest_valid_identity_fits_the_bound() {
    let domain = format!("{}.{}", "a".repeat(200), "b".repeat(52));
    let label = "c".repeat(63);
    let uri = format!("spiffe://{domain}/clusterset/{label}/operator/{label}");
    assert_eq!(Identity::parse(&uri).expect("valid").to_string(), uri);
}

fn certificate(uris: &[&str], key: &KeyPair) -> Vec<u8> {
    let mut params = CertificateParams::new(vec!["hub.example.org".to_owned()]).expect("name");
    for uri in uris {
        let uri = SanType::URI((*uri).try_into().expect("ASCII"));
        params.subject_alt_names.push(uri);
    }
    params.self_signed(key).expect("signed").der().to_vec()
}

#[test]
fn a_certificate_states_exactly_one_identity() {
    let key = KeyPair::generate().expect("key");
    let facts = CertificateFacts::read(&certificate(&GOOD[..1], &key)).expect("one");
    assert_eq!(facts.identity.to_string(), GOOD[0]);
    assert!(facts.not_before < facts.not_after);
    for (uris, count) in [(&GOOD[..0], 0), (&GOOD[..2], 2)] {
        let error = Identity::from_certificate(&certificate(uris, &key));
        assert_eq!(error, Err(IdentityError::UriCount(count)));
    }
    let foreign = certificate(&["https://example.org/"], &key);
    assert!(matches!(
        Identity::from_certificate(&foreign),
        Err(IdentityError::Form { .. })
    ));
}

#[test]
fn the_fingerprint_belongs_to_the_key_and_not_to_the_certificate() {
    let key = KeyPair::generate().expect("key");
    let other = KeyPair::generate().expect("key");
    let read = |uri: &str, key: &KeyPair| CertificateFacts::read(&certificate(&[uri], key)).expect("read");
    let (first, renewed) = (read(GOOD[0], &key), read(GOOD[1], &key));
    assert_eq!(first.key_fingerprint, renewed.key_fingerprint);
    assert_ne!(first.key_fingerprint, read(GOOD[0], &other).key_fingerprint);
    // The same number that `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum` prints.
    let expected: [u8; 32] = Sha256::digest(rcgen::PublicKeyData::subject_public_key_info(&key)).into();
    assert_eq!(first.key_fingerprint, KeyFingerprint(expected));
}

#[test]
fn bytes_that_are_no_certificate_are_refused() {
    let key = KeyPair::generate().expect("key");
    let mut trailing = certificate(&GOOD[..1], &key);
    trailing.push(0);
    for bytes in [&b""[..], b"not a certificate", &trailing] {
        let error = Identity::from_certificate(bytes).expect_err("refused");
        assert!(matches!(error, IdentityError::NotACertificate(_)), "{error}");
    }
}

proptest! {
    #[test]
    fn whatever_is_accepted_prints_as_it_was(uri in "spiffe://[a-zA-Z0-9.:%-]{1,12}/clusterset/[a-z0-9./-]{0,8}/(cluster|hub|operator|reader|x)/[a-zA-Z0-9%?/-]{0,8}") {
        if let Ok(identity) = Identity::parse(&uri) {
            prop_assert_eq!(identity.to_string(), uri);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,80}") {
        let _ = CertificateFacts::read(&bytes);
        let _ = Identity::parse(&text);
    }
}
