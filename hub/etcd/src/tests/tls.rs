//! TLS to an endpoint: this client shows its certificate, and speaks with nobody that its authority does not vouch for.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use replication::engine::{Engine, EngineError, Request};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};
use tokio::{net::TcpListener, sync::oneshot};
use tokio_rustls::TlsAcceptor;

use super::{keys, settings};
use crate::{EtcdEngine, Tls};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issued(authority: &Authority, usage: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages = vec![usage];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

/// A server that demands certificates of this authority.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let (certificate, key) = issued(authority, ExtendedKeyUsagePurpose::ServerAuth);
    let certificate: CertificateDer<'static> = certificate.der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap());
    let mut config = config.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// The result of a handshake, and the client's error for a server that then says nothing.
async fn handshake(server: &Authority, trusted: &Authority, own: &Authority) -> (bool, bool) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", socket.local_addr().unwrap());
    let (certificate, key) = issued(own, ExtendedKeyUsagePurpose::ClientAuth);
    let tls = Tls {
        authority: trusted.pem().into(),
        certificate: certificate.pem().into(),
        key: key.serialize_pem().into(),
    };
    let runtime = tokio::runtime::Handle::current();
    let engine = EtcdEngine::new(&settings(&[&url], Some(tls)), keys(), runtime).unwrap();
    let (sender, told) = oneshot::channel();
    engine.ask(
        Request::Status,
        Box::new(move |outcome| sender.send(outcome).unwrap()),
    );
    let (connection, _) = socket.accept().await.unwrap();
    // A refused certificate of the client is known to the server first, one of the server to the client.
    let accepted = acceptor(server).accept(connection).await;
    let shows_certificate =
        |(_, session): (_, &rustls::ServerConnection)| session.peer_certificates().is_some();
    let is_mutual = accepted
        .as_ref()
        .is_ok_and(|stream| shows_certificate(stream.get_ref()));
    let is_unanswered = matches!(told.await.unwrap(), Err(EngineError::Unanswered(_)));
    (is_mutual, is_unanswered)
}

#[test]
fn both_sides_need_a_certificate_of_the_engines_authority() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = (authority(), authority());
        assert_eq!(handshake(&ours, &ours, &ours).await, (true, true));
        assert_eq!(handshake(&ours, &theirs, &ours).await, (false, true));
        assert_eq!(handshake(&ours, &ours, &theirs).await, (false, true));
    });
}
