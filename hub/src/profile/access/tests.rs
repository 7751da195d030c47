//! Files of access providers: what is taken, and what is refused with what to do.

use data_encoding::BASE64;
use serde_json::{Value, json};
use shared::model::Clusterset;

use super::*;
use crate::certs::{CertificateAuthority, Validity};

fn authority() -> CertificateAuthority {
    let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
    CertificateAuthority::generate(&clusterset, Validity::days_from_now(1)).expect("an authority")
}

fn parse(document: &Value) -> anyhow::Result<AccessProviders> {
    AccessProviders::parse(&document.to_string())
}

fn provider(name: &str, cluster: Value) -> Value {
    json!({"name": name, "cluster": cluster})
}

fn document(ids: Value, providers: Value) -> Value {
    json!({"clusters": [{"ids": ids, "accessProviders": providers}]})
}

fn with(cluster: Value) -> Value {
    document(json!(["east"]), json!([provider("plain", cluster)]))
}

fn of(providers: &AccessProviders, cluster: &str) -> Vec<String> {
    let cluster = ClusterId::new(cluster).expect("an id");
    let providers = providers.of(&cluster);
    providers.iter().map(|provider| provider.name.clone()).collect()
}

fn refused(document: &Value) -> String {
    format!("{:#}", parse(document).expect_err("a mistake"))
}

#[test]
fn the_first_group_that_names_a_member_is_its_own() {
    let text = "clusters:\n\
        - ids: [east]\n  accessProviders:\n  - {name: direct, cluster: {server: 'https://east.example.org:6443'}}\n\
        - ids: ['prod-*', e*]\n  accessProviders:\n  - {name: gateway, cluster: {server: 'https://gateway.example.org'}}\n";
    let providers = AccessProviders::parse(text).expect("a document");
    assert_eq!(of(&providers, "east"), ["direct"]);
    assert_eq!(of(&providers, "east-2"), ["gateway"]);
    assert_eq!(of(&providers, "prod-7"), ["gateway"]);
    assert!(of(&providers, "west").is_empty());
    assert!(of(&AccessProviders::default(), "east").is_empty());
}

#[test]
fn everything_that_may_be_shown_is_shown_as_it_was_given() {
    let data = BASE64.encode(authority().certificate_pem().as_bytes());
    let cluster = json!({
        "server": "https://[fd00::1]:6443/clusters/east", "tls-server-name": "kubernetes",
        "certificate-authority-data": data, "proxy-url": "socks5://proxy.example.org:1080",
        "disable-compression": true,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "east"}}],
    });
    let providers = parse(&with(cluster.clone())).expect("a document");
    let shown = providers.of(&ClusterId::new("east").expect("an id"));
    assert_eq!(json!(shown[0].cluster), cluster);
}

#[test]
fn what_has_no_place_in_a_profile_is_refused_with_what_to_do() {
    let (ok, long) = ("https://east.example.org", "x".repeat(NAME_TOO_LONG));
    let key = BASE64.encode(authority().key_pem().as_bytes());
    let no_pem = BASE64.encode(b"no certificate");
    let exec =
        |extension: Value| json!({"server": ok, "extensions": [{"name": "exec", "extension": extension}]});
    for (cluster, told) in [
        (json!({}), "server"),
        (json!({"server": "http://east.example.org"}), "https://HOST"),
        (json!({"server": "east.example.org:6443"}), "https://HOST"),
        (json!({"server": "https://"}), "https://HOST"),
        (
            json!({"server": format!("{ok}/{}", "x".repeat(2_048))}),
            "more than 2048",
        ),
        (
            json!({"server": "https://alice:secret@east.example.org"}),
            "names a user",
        ),
        (json!({"server": ok, "proxy-url": "ftp://proxy"}), "socks5"),
        (json!({"server": ok, "tls-server-name": long}), "tls-server-name"),
        (
            json!({"server": ok, "certificate-authority": "/etc/ca.crt"}),
            "use certificate-authority-data",
        ),
        (
            json!({"server": ok, "insecure-skip-tls-verify": true}),
            "use certificate-authority-data",
        ),
        (
            json!({"server": ok, "certificate-authority-data": key}),
            "holds a private key",
        ),
        (
            json!({"server": ok, "certificate-authority-data": no_pem}),
            "no certificate",
        ),
        (json!({"server": ok, "token": "x"}), "unknown field"),
        (exec(json!({"env": [{"clientKeyData": "x"}]})), "holds a secret"),
        (exec(json!({"deep": {"Access-Token": "x"}})), "holds a secret"),
        (
            exec(json!({"text": "-----BEGIN PRIVATE KEY-----"})),
            "the field text holds a secret",
        ),
    ] {
        let said = refused(&with(cluster.clone()));
        assert!(said.contains(told), "{cluster}: {said}");
        assert!(said.starts_with("clusters[0]"), "{said}");
        assert!(!said.contains('\n'), "one line: {said}");
    }
}

/// Longer than any name.
const NAME_TOO_LONG: usize = 254;

#[test]
fn names_and_counts_are_bounded() {
    let ok = json!({"server": "https://east.example.org"});
    let many = |count: usize| {
        let all: Vec<Value> = (0..count)
            .map(|number| provider(&format!("p{number}"), ok.clone()))
            .collect();
        document(json!(["*"]), json!(all))
    };
    assert_eq!(of(&parse(&many(64)).expect("64"), "east").len(), 64);
    assert!(refused(&many(65)).contains("more than 64"));
    let twice = document(
        json!(["east"]),
        json!([provider("a", ok.clone()), provider("a", ok.clone())]),
    );
    assert!(refused(&twice).contains("the name a is there before"));
    for name in [String::new(), "x".repeat(NAME_TOO_LONG)] {
        let bad = document(json!(["east"]), json!([provider(&name, ok.clone())]));
        assert!(refused(&bad).contains("1 to 253"));
    }
    assert!(refused(&document(json!([]), json!([]))).contains("ids is empty"));
    assert!(refused(&document(json!(["East"]), json!([]))).contains("no name or pattern"));
    assert!(refused(&json!({"clusters": [], "more": 1})).contains("unknown field"));
    assert!(AccessProviders::parse("clusters: [").is_err());
}
