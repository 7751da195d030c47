//! Tests of the clients and servers that accept each other.

use std::sync::Arc;

use rcgen::ExtendedKeyUsagePurpose;
use rustls::{ClientConfig, RootCertStore, version::TLS12};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tonic::transport::server::Connected;

use super::{
    ends::{Hub, dialled, loopback, refusal},
    pki::{Authority, EAST, HUB, Wanted, live},
};
use crate::tls::{Handshake, HubConnector, TcpDial, TlsMetrics, accept, provider::provider, tcp_connections};

#[tokio::test]
async fn a_member_and_its_hub_know_each_other() {
    let ca = Authority::new("ca");
    let (member, mut hub) = (ca.live(EAST), Hub::new(ca.live(HUB)));
    let mut pair = hub.join(&member).await;
    pair.works().await;
    let peer = pair.server.connect_info();
    assert_eq!(peer.identity.to_string(), EAST);
    assert_eq!(peer.key_fingerprint, member.facts().key_fingerprint);
    assert_eq!(peer.not_after, member.facts().not_after);
    assert_eq!(pair.client.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(hub.metrics.handshakes(Handshake::Refused), 0);
}

#[tokio::test]
async fn it_works_over_tcp_and_knows_the_address() {
    let ca = Authority::new("ca");
    let (listener, address) = loopback().await;
    let metrics = TlsMetrics::default();
    let mut incoming = accept(tcp_connections(listener), ca.live(HUB), metrics.clone());
    let mut connector = HubConnector::new(vec![address], ca.live(EAST), Arc::new(TcpDial), metrics);
    let mut client = dialled(&mut connector).await.expect("connected");
    let mut server = futures::StreamExt::next(&mut incoming)
        .await
        .expect("open")
        .expect("accepted");
    assert!(
        server
            .peer()
            .remote
            .is_some_and(|remote| remote.ip().is_loopback())
    );
    client.write_all(b"x").await.expect("sent");
    assert_eq!(server.read_u8().await.expect("received"), b'x');
}

#[tokio::test]
async fn the_hub_passes_another_clusterset_on_so_that_requests_can_be_denied_with_words() {
    let ca = Authority::new("ca");
    let mut hub = Hub::new(ca.live(HUB));
    let stranger = "spiffe://example.org/clusterset/other/operator/bob";
    let mut config = bare_client(&ca, Some(&ca.issue_for(stranger)));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let _client = handshake(&hub, config).await.expect("connected");
    assert_eq!(hub.next().await.peer().identity.to_string(), stranger);
}

#[tokio::test]
async fn the_hub_refuses_clients_without_a_certificate_it_can_trust() {
    let (ca, foreign) = (Authority::new("ca"), Authority::new("foreign"));
    let wanted = |uris, expired| Wanted {
        uris,
        expired,
        ..Wanted::default()
    };
    let server_only = Wanted {
        uris: &[EAST],
        usages: &[ExtendedKeyUsagePurpose::ServerAuth],
        ..Wanted::default()
    };
    let two = ["spiffe://example.org/clusterset/default/operator/bob", EAST];
    let cases = [
        ("no certificate", None, "wants a certificate"),
        (
            "a foreign CA",
            Some(foreign.issue_for(EAST)),
            "authority of our certificate",
        ),
        (
            "an expired one",
            Some(ca.issue(&wanted(&[EAST], true))),
            "has expired",
        ),
        (
            "no identity",
            Some(ca.issue(&wanted(&[], false))),
            "refused our certificate",
        ),
        (
            "two identities",
            Some(ca.issue(&wanted(&two, false))),
            "refused our certificate",
        ),
        (
            "one for servers",
            Some(ca.issue(&server_only)),
            "refused our certificate",
        ),
    ];
    for (case, pem, told) in cases {
        let hub = Hub::new(ca.live(HUB));
        let mut client = handshake(&hub, bare_client(&ca, pem.as_ref())).await.expect(case);
        let reason = refusal(&mut client).await;
        assert!(reason.contains(told), "{case}: {reason}");
        assert_eq!(hub.metrics.handshakes(Handshake::Refused), 1, "{case}");
        assert_eq!(hub.metrics.handshakes(Handshake::Completed), 0, "{case}");
    }
}

#[tokio::test]
async fn the_client_refuses_whoever_is_not_its_hub() {
    let (ca, foreign) = (Authority::new("ca"), Authority::new("foreign"));
    let expired = Wanted {
        uris: &[HUB],
        expired: true,
        ..Wanted::default()
    };
    let client_only = Wanted {
        uris: &[HUB],
        usages: &[ExtendedKeyUsagePurpose::ClientAuth],
        ..Wanted::default()
    };
    let other_set = "spiffe://example.org/clusterset/other/hub/hub";
    let other_domain = "spiffe://example.net/clusterset/default/hub/hub";
    let cases = [
        (
            "a member",
            ca.issue_for(EAST),
            "expected the hub of clusterset example.org/default",
        ),
        (
            "another set's hub",
            ca.issue_for(other_set),
            "clusterset/other/hub/hub, expected the hub",
        ),
        (
            "another domain's hub",
            ca.issue_for(other_domain),
            "example.net/clusterset",
        ),
        (
            "a foreign CA",
            foreign.issue_for(HUB),
            "not of an authority in --tls-ca",
        ),
        ("an expired one", ca.issue(&expired), "has expired"),
        ("one for clients", ca.issue(&client_only), "not made for servers"),
    ];
    for (case, pem, told) in cases {
        let hub = Hub::new(live(&pem));
        let mut connector = hub.connector(ca.live(EAST), &["https://hub:7443"]);
        let error = dialled(&mut connector).await.err().expect(case).to_string();
        assert!(
            error.contains(told) && error.contains("https://hub:7443"),
            "{case}: {error}"
        );
    }
}

#[tokio::test]
async fn addresses_are_tried_in_turn_and_the_good_one_is_remembered() {
    let ca = Authority::new("ca");
    let mut hub = Hub::new(ca.live(HUB));
    let mut connector = hub.connector(
        ca.live(EAST),
        &["https://gone:1", "https://hub:7443", "https://lost:1"],
    );
    dialled(&mut connector).await.expect("connected");
    hub.next().await;
    connector.try_next_address();
    dialled(&mut connector).await.expect("connected");
    hub.next().await;
    let mut nowhere = hub.connector(ca.live(EAST), &["https://gone:1", "https://lost:1"]);
    let error = dialled(&mut nowhere).await.err().expect("unreachable");
    assert_eq!(
        error.to_string(),
        "no hub can be reached: https://gone:1: nobody listens; https://lost:1: nobody listens"
    );
}

#[tokio::test]
async fn an_older_protocol_and_plaintext_are_refused() {
    let ca = Authority::new("ca");
    let hub = Hub::new(ca.live(HUB));
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca.ca().as_bytes()).expect("PEM"))
        .expect("root");
    let old = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS12])
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let error = handshake(&hub, old).await.err().expect("TLS 1.2");
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    let mut plain = crate::tls::Dial::dial(&hub.pipes, "https://hub:1".parse().expect("address"))
        .await
        .expect("pipe");
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).await.expect("closed");
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(hub.metrics.handshakes(Handshake::Refused), 2);
}

#[tokio::test]
async fn a_client_that_goes_away_is_counted_apart() {
    let ca = Authority::new("ca");
    let mut hub = Hub::new(ca.live(HUB));
    let address = "https://hub:7443".parse().expect("address");
    drop(crate::tls::Dial::dial(&hub.pipes, address).await.expect("pipe"));
    hub.join(&ca.live(EAST)).await.works().await;
    assert_eq!(hub.metrics.handshakes(Handshake::Disconnected), 1);
}

/// A client that checks nothing about the hub but its chain, with any certificate or none.
pub(super) fn bare_client(ca: &Authority, pem: Option<&crate::tls::Pem>) -> ClientConfig {
    let verifier = crate::tls::Credentials::from_pem(&ca.issue_for(EAST)).expect("usable");
    let mut config = ClientConfig::clone(verifier.client());
    let resolver: Arc<dyn rustls::client::ResolvesClientCert> = match pem {
        Some(pem) => {
            let chain = vec![CertificateDer::from_pem_slice(&pem.cert).expect("certificate")];
            let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(&pem.key).expect("key");
            let pair = rustls::sign::CertifiedKey::from_der(chain, key, &provider()).expect("pair");
            Arc::new(rustls::sign::SingleCertAndKey::from(pair))
        }
        None => Arc::new(Nothing),
    };
    config.client_auth_cert_resolver = resolver;
    config
}

/// Has no certificate to show.
#[derive(Debug)]
struct Nothing;

impl rustls::client::ResolvesClientCert for Nothing {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

async fn handshake(
    hub: &Hub,
    config: ClientConfig,
) -> std::io::Result<tokio_rustls::client::TlsStream<crate::tls::BoxedIo>> {
    let socket = crate::tls::Dial::dial(&hub.pipes, "https://hub:7443".parse().expect("address")).await?;
    let name = ServerName::try_from("hub").expect("name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}
