//! gRPC over our acceptor, connector and certificates, through real sockets: a request's knowledge of its peer, and the
//! refusal of a client's certificate.

use std::sync::{Arc, Mutex};

use hub::certs::{CertificateAuthority, Subject, Validity};
use shared::{
    model::{ClusterId, Clusterset},
    tls::{
        Credentials, Handshake, HubAddress, HubConnector, LiveCredentials, PeerIdentity, TcpDial, TlsMetrics,
        accept, explain, peer, tcp_connections,
    },
};
use tokio::{net::TcpListener, task::JoinSet};
use tonic::{Request, Status, transport::Server};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    health_server::HealthServer,
};

const SET: &str = "default";

fn authority() -> CertificateAuthority {
    let clusterset = Clusterset::new("example.org", SET).expect("valid");
    CertificateAuthority::generate(&clusterset, Validity::days_from_now(2)).expect("made")
}

fn live(authority: &CertificateAuthority, subject: &Subject) -> Arc<LiveCredentials> {
    let issued = authority
        .issue(subject, Validity::days_from_now(1))
        .expect("issued");
    LiveCredentials::new(Credentials::from_pem(&authority.tls(&issued)).expect("usable"))
}

fn hub_subject() -> Subject {
    Subject::Hub {
        name: "hub".to_owned(),
        dns_names: Vec::new(),
        ips: Vec::new(),
    }
}

fn member(id: &str) -> Subject {
    Subject::Member(ClusterId::new(id).expect("valid"))
}

/// A hub that answers health checks and remembers who asked.
struct Hub {
    address: HubAddress,
    metrics: TlsMetrics,
    asked: Arc<Mutex<Vec<Arc<PeerIdentity>>>>,
    _serving: JoinSet<()>,
}

impl Hub {
    async fn start(authority: &CertificateAuthority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = listener.local_addr().expect("address").port();
        let metrics = TlsMetrics::default();
        let incoming = accept(
            tcp_connections(listener),
            live(authority, &hub_subject()),
            metrics.clone(),
        );
        let asked: Arc<Mutex<Vec<_>>> = Arc::default();
        let remember = {
            let asked = asked.clone();
            move |request: Request<()>| -> Result<Request<()>, Status> {
                asked.lock().expect("not poisoned").push(peer(&request)?);
                Ok(request)
            }
        };
        let health = tonic_health::server::HealthService::from_health_reporter(
            tonic_health::server::HealthReporter::new(),
        );
        let service = HealthServer::with_interceptor(health, remember);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let server = Server::builder().add_service(service);
            server.serve_with_incoming(incoming).await.expect("served");
        });
        Self {
            address: format!("https://127.0.0.1:{port}").parse().expect("address"),
            metrics,
            asked,
            _serving: serving,
        }
    }

    /// Connects and asks for health.
    async fn ask(&self, credentials: Arc<LiveCredentials>) -> Result<i32, String> {
        let addresses = vec![self.address.clone()];
        let connector = HubConnector::new(addresses, credentials, Arc::new(TcpDial), TlsMetrics::default());
        let reason = |error: &(dyn std::error::Error + 'static)| {
            explain(error).unwrap_or_else(|| panic!("no reason in {error:?}"))
        };
        let channel = connector.connect().await.map_err(|error| reason(&error))?;
        let answer = HealthClient::new(channel)
            .check(HealthCheckRequest::default())
            .await;
        answer
            .map(|answer| answer.into_inner().status)
            .map_err(|status| reason(&status))
    }
}

#[tokio::test]
async fn a_request_knows_its_peer_from_the_certificate() {
    let authority = authority();
    let hub = Hub::start(&authority).await;
    let (east, alice) = (
        live(&authority, &member("east")),
        live(&authority, &Subject::Operator("alice".to_owned())),
    );
    for credentials in [&east, &alice] {
        let status = hub.ask(credentials.clone()).await.expect("answered");
        assert_eq!(status, ServingStatus::Serving as i32);
    }
    let asked = hub.asked.lock().expect("not poisoned");
    let identities: Vec<_> = asked.iter().map(|peer| peer.identity.to_string()).collect();
    let of = |rest: &str| format!("spiffe://example.org/clusterset/{SET}/{rest}");
    assert_eq!(identities, [of("cluster/east"), of("operator/alice")]);
    assert_eq!(asked[0].key_fingerprint, east.facts().key_fingerprint);
    assert!(asked[0].remote.is_some_and(|remote| remote.ip().is_loopback()));
}

#[tokio::test]
async fn a_member_never_talks_to_the_hub_of_another_clusterset() {
    let authority = authority();
    let hub = Hub::start(&authority).await;
    let other = Clusterset::new("example.org", "other").expect("valid");
    let issued = authority
        .issue_in(&other, &member("east"), Validity::days_from_now(1))
        .expect("issued");
    let credentials = Credentials::from_pem(&authority.tls(&issued)).expect("usable");
    let error = hub
        .ask(LiveCredentials::new(credentials))
        .await
        .expect_err("not its hub");
    assert!(
        error.contains("expected the hub of clusterset example.org/other"),
        "{error}"
    );
    assert!(hub.asked.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn a_refused_certificate_is_explained_to_its_holder() {
    let (ours, theirs) = (authority(), authority());
    let hub = Hub::start(&ours).await;
    // Its own certificate is foreign, and it trusts the hub nevertheless.
    let issued = theirs
        .issue(&member("east"), Validity::days_from_now(1))
        .expect("issued");
    let mut pem = theirs.tls(&issued);
    pem.ca = ours.certificate_pem().into();
    let credentials = LiveCredentials::new(Credentials::from_pem(&pem).expect("usable"));
    let error = hub.ask(credentials).await.expect_err("refused");
    assert!(error.contains("issue it with the hub's CA"), "{error}");
    assert_eq!(hub.metrics.handshakes(Handshake::Refused), 1);
    assert!(hub.asked.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn an_unreachable_hub_is_named() {
    let authority = authority();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let hub = Hub {
        address: format!(
            "https://127.0.0.1:{}",
            listener.local_addr().expect("address").port()
        )
        .parse()
        .expect("address"),
        metrics: TlsMetrics::default(),
        asked: Arc::default(),
        _serving: JoinSet::new(),
    };
    drop(listener);
    let error = hub
        .ask(live(&authority, &member("east")))
        .await
        .expect_err("nobody listens");
    assert!(
        error.contains(&hub.address.to_string()) && error.contains("refused"),
        "{error}"
    );
}
