//! Looks at real listeners: each planted fault is seen as what it is.

use std::net::SocketAddr;

use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, version::TLS13};
use rustls_pki_types::PrivateKeyDer;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{
    doctor::{
        hub::{all_fine, hub as judged},
        own::{Wanted, own as judged_own},
        report::Check,
    },
    tls::{
        accept, install_crypto_provider, tcp_connections,
        tests::pki::{Authority, EAST, HUB, Wanted as Issue},
    },
};

fn credentials(pem: &crate::tls::Pem) -> Credentials {
    Credentials::from_pem(pem).expect("usable")
}

async fn listener() -> (TcpListener, HubAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = at(listener.local_addr().expect("an address"));
    (listener, address)
}

fn at(address: SocketAddr) -> HubAddress {
    format!("https://{address}").parse().expect("an address")
}

/// The checks of a doctor with `east`'s certificate on a hub that shows these files.
async fn said_of(server: &crate::tls::Pem, east: &Credentials) -> Vec<Check> {
    let (listener, address) = listener().await;
    let live = LiveCredentials::new(credentials(server));
    let mut incoming = accept(tcp_connections(listener), live, TlsMetrics::default());
    tokio::spawn(async move {
        use futures::StreamExt;
        while incoming.next().await.is_some() {}
    });
    judged(&hub(&address, Some(east)).await)
}

/// The one fault.
fn only(checks: &[Check]) -> (&'static str, String) {
    let faults: Vec<&Check> = checks.iter().filter(|check| check.is_fault()).collect();
    let [fault] = faults[..] else { panic!("{checks:?}") };
    (fault.name, fault.verdict.words().0)
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_seen() {
    let address = "https://hub.invalid:8443".parse().expect("an address");
    assert_eq!(only(&judged(&hub(&address, None).await)).0, "hub-name");
}

#[tokio::test]
async fn a_closed_port_is_seen() {
    let (listener, address) = listener().await;
    drop(listener);
    let (name, what) = only(&judged(&hub(&address, None).await));
    assert_eq!(name, "hub-port");
    assert!(what.contains("nothing listens"), "{what}");
}

#[tokio::test]
async fn a_port_alone_is_looked_at_without_credentials() {
    let (_listener, address) = listener().await;
    let seen = hub(&address, None).await;
    assert!(all_fine(&judged(&seen)), "{seen:?}");
    assert_eq!(seen.shown, None);
}

#[tokio::test]
async fn something_that_speaks_no_tls_is_seen() {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("dialled");
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // It stays open until the test is over.
        std::future::pending::<()>().await;
    });
    let east = credentials(&Authority::new("ca").issue_for(EAST));
    let (name, what) = only(&judged(&hub(&address, Some(&east)).await));
    assert_eq!(name, "hub-tls");
    assert!(what.contains("does not speak TLS"), "{what}");
}

/// A proxy that ends TLS with a certificate of its own, with or without HTTP/2.
async fn proxied(alpn: &[&[u8]]) -> Vec<Check> {
    let (listener, address) = listener().await;
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["hub.example.org".to_owned()]).expect("names");
    let certificate = params.self_signed(&key).expect("signed");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    // Another test of this process may have installed it.
    let _ = install_crypto_provider();
    let mut config = ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("fits");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = acceptor.accept(socket).await;
        }
    });
    let east = credentials(&Authority::new("ca").issue_for(EAST));
    judged(&hub(&address, Some(&east)).await)
}

#[tokio::test]
async fn a_proxy_that_ends_tls_is_seen() {
    for alpn in [&[][..], &[&b"h2"[..]][..], &[&b"http/1.1"[..]][..]] {
        let (name, what) = only(&proxied(alpn).await);
        assert_eq!(name, "hub-tls");
        assert!(what.contains("ends TLS"), "{alpn:?} {what}");
    }
}

#[tokio::test]
async fn a_hub_of_another_authority_is_seen() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let east = credentials(&ours.issue_for(EAST));
    let (name, what) = only(&said_of(&theirs.issue_for(HUB), &east).await);
    assert_eq!(name, "hub-certificate");
    assert!(what.contains("not in --tls-ca"), "{what}");
}

#[tokio::test]
async fn a_hub_whose_certificate_has_expired_is_seen() {
    let authority = Authority::new("ours");
    let east = credentials(&authority.issue_for(EAST));
    let expired = authority.issue(&Issue {
        uris: &[HUB],
        expired: true,
        ..Issue::default()
    });
    let (name, what) = only(&said_of(&expired, &east).await);
    assert_eq!(name, "hub-certificate");
    assert!(what.contains("has expired"), "{what}");
}

#[tokio::test]
async fn somebody_else_than_our_hub_is_seen() {
    let authority = Authority::new("ours");
    let east = credentials(&authority.issue_for(EAST));
    let other = "spiffe://example.org/clusterset/other/hub/hub";
    for uri in [EAST, other] {
        let (name, what) = only(&said_of(&authority.issue_for(uri), &east).await);
        assert_eq!(name, "hub-certificate");
        assert!(what.contains(uri), "{what}");
    }
}

/// The checks of the files in a directory.
fn said_of_files(cert: &[u8], key: &[u8], ca: &[u8]) -> Vec<Check> {
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let files = TlsFiles {
        cert: write("tls.crt", cert),
        key: write("tls.key", key),
        ca: write("ca.crt", ca),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&files.key, private).expect("changed");
    }
    let wanted = Wanted {
        role: "cluster",
        name: Some("east".into()),
        issue: "ISSUE".into(),
    };
    judged_own(&own(&files).0, &wanted, now(), false)
}

#[test]
fn faults_of_our_own_files_are_seen() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (good, west) = (
        ours.issue_for(EAST),
        ours.issue_for("spiffe://example.org/clusterset/default/cluster/west"),
    );
    let expired = ours.issue(&Issue {
        uris: &[EAST],
        expired: true,
        ..Issue::default()
    });
    let nobody = ours.issue(&Issue::default());
    let foreign = theirs.issue_for(EAST);
    let fine = said_of_files(&good.cert, &good.key, &good.ca);
    assert!(all_fine(&fine), "{fine:?}");
    for (checks, name) in [
        (said_of_files(&good.cert, &west.key, &good.ca), "certificate-key"),
        (
            said_of_files(&west.cert, &west.key, &west.ca),
            "certificate-identity",
        ),
        (
            said_of_files(&nobody.cert, &nobody.key, &nobody.ca),
            "certificate-identity",
        ),
        (
            said_of_files(&expired.cert, &expired.key, &expired.ca),
            "certificate-time",
        ),
        (
            said_of_files(&foreign.cert, &foreign.key, &good.ca),
            "certificate-issuer",
        ),
        (
            said_of_files(b"nothing", &good.key, &good.ca),
            "certificate-files",
        ),
        (
            said_of_files(&good.cert, &good.key, b"nothing"),
            "certificate-authority",
        ),
    ] {
        assert_eq!(only(&checks).0, name, "{checks:?}");
    }
}

#[test]
fn a_time_in_a_header_is_read() {
    let time = clock("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(time, Some(UnixMillis(784_111_777_000)));
    assert_eq!(clock("yesterday"), None);
    let said = time_header(UnixMillis(784_111_777_999)).expect("a time");
    assert_eq!(clock(&said), time);
}
