//! A hub over real mutual TLS on loopback, and certificates for those who come to it.

use std::sync::Arc;

use hub::{
    certs::{CertificateAuthority, Subject, Validity},
    clock::Clock,
    hub::{Hub, HubMetrics},
    log::{MemoryDisk, MemoryLog},
    writer::Options,
};
use prometheus_client::registry::Registry;
use shared::{
    model::{Clusterset, Epoch, UnixMillis},
    process::Shutdown,
    tls::{Credentials, LiveCredentials, TlsMetrics, accept, tcp_connections},
};
use tokio::net::TcpListener;

/// The clusterset that it serves.
pub(crate) fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").expect("valid")
}

/// An authority of that clusterset.
pub(crate) fn authority() -> CertificateAuthority {
    CertificateAuthority::generate(&clusterset(), Validity::days_from_now(2)).expect("made")
}

/// Credentials of a client or server.
pub(crate) fn credentials(authority: &CertificateAuthority, subject: &Subject) -> Arc<LiveCredentials> {
    let issued = authority
        .issue(subject, Validity::days_from_now(1))
        .expect("issued");
    LiveCredentials::new(Credentials::from_pem(&authority.tls(&issued)).expect("usable"))
}

/// Serves a hub with an empty log until the runtime ends; its port.
pub(crate) async fn serve(authority: &CertificateAuthority) -> u16 {
    let subject = Subject::Hub {
        name: "hub".to_owned(),
        dns_names: Vec::new(),
        ips: Vec::new(),
    };
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    let log = MemoryLog::open(&MemoryDisk::default(), &clusterset(), epoch).expect("opened");
    let options = Options {
        hub: "hub".into(),
        hub_version: "test".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let metrics = HubMetrics::register(&mut Registry::default());
    let hub = Hub::start(Box::new(log), options, Clock::start(), metrics).expect("started");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let credentials = credentials(authority, &subject);
    let incoming = accept(tcp_connections(listener), credentials, TlsMetrics::default());
    let server = tonic::transport::Server::builder().add_routes(hub.routes(Shutdown::default().drain()));
    tokio::spawn(async move {
        // It keeps the hub for as long as it serves.
        let _hub = hub;
        server.serve_with_incoming(incoming).await
    });
    port
}
