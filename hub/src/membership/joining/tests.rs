//! The door itself: what is given is on the disk before, the same is given again, and what is no request is refused.

use std::{sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use proto::v1::{self, joining_server::Joining};
use shared::{
    identity::CertificateFacts,
    model::{Epoch, JoinToken, KeyFingerprint, TokenSecret, UnixMillis, token::TOKEN_BYTES},
    tls::{new_key, signing_request},
};
use tonic::{Code, Request};

use super::JoiningService;
use crate::{
    certs::{CertificateAuthority, MemberIssuer, SigningRequest, Validity},
    clock::Clock,
    fold::Command,
    hub::{Hub, HubMetrics},
    inspect::tests::inspected_hub::clusterset,
    log::{MemoryDisk, MemoryLog},
    writer::Options,
};

/// The cluster's token.
fn secret() -> TokenSecret {
    TokenSecret::new([7; TOKEN_BYTES])
}

struct Door {
    log: MemoryLog,
    /// It ends when nobody holds it.
    _hub: Hub,
    service: JoiningService,
}

/// A hub with a token for two clusters p-…
async fn door() -> Door {
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    let log = MemoryLog::open(&MemoryDisk::default(), &clusterset(), epoch).expect("opened");
    let options = Options {
        hub: "hub".into(),
        hub_version: "test".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let counts = HubMetrics::register(&mut Registry::default());
    let hub = Hub::start(Box::new(log.clone()), options, Clock::start(), counts).expect("started");
    let authority = CertificateAuthority::generate(&clusterset(), Validity::days_from_now(9)).expect("made");
    let joining = authority.members_only(Validity::days_from_now(9)).expect("made");
    let issuer = MemberIssuer::from_pem(&joining.certificate_pem, &joining.key_pem, &clusterset());
    let service = hub.joining(
        Arc::new(issuer.expect("usable")),
        authority.certificate_pem().into(),
    );
    let at = hub.clock.wall();
    let create = Command::CreateToken {
        token: JoinToken {
            hash: secret().hash(),
            scope: "p-*".parse().expect("a pattern"),
            uses: 2,
            expires_at: UnixMillis(at.0 + 60_000),
        },
        operator: "alice".into(),
        at,
    };
    let operated = hub.writer.operate(create, true, |_, _, _| Vec::new()).await;
    operated.expect("the writer runs").expect("allowed");
    Door {
        log,
        _hub: hub,
        service,
    }
}

fn asked(id: &str, key: &str) -> Request<v1::JoinRequest> {
    Request::new(v1::JoinRequest {
        token: secret().bytes().to_vec(),
        cluster: id.into(),
        signing_request: signing_request(key).expect("a request"),
    })
}

#[tokio::test]
async fn a_certificate_goes_out_when_its_use_is_on_the_disk_and_not_before() {
    let door = door().await;
    door.log.hold_syncs(true);
    let service = door.service.clone();
    let key = new_key().expect("a key");
    let request = asked("p-1", &key);
    let mut joining = tokio::spawn(async move { service.join(request).await });
    let staged = async {
        while door.log.held() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        answer = &mut joining => panic!("answered before anything was written: {:?}", answer.map(|one| one.is_ok())),
        () = staged => {}
    }
    assert!(!joining.is_finished(), "answered before it is on the disk");
    door.log.hold_syncs(false);
    door.log.sync();
    let given = joining.await.expect("it ends").expect("given").into_inner();
    let again = door
        .service
        .join(asked("p-1", &key))
        .await
        .expect("given again")
        .into_inner();
    assert_eq!(given, again);
    let der = pem(&given.certificate);
    let facts = CertificateFacts::read(&der).expect("a certificate");
    assert_eq!(facts.key_fingerprint, fingerprint(&key));
    assert_eq!(
        facts.identity.to_string(),
        "spiffe://example.org/clusterset/default/cluster/p-1"
    );
}

fn fingerprint(key: &str) -> KeyFingerprint {
    let request = signing_request(key).expect("a request");
    SigningRequest::read(&request).expect("readable").key
}

fn pem(text: &str) -> Vec<u8> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    CertificateDer::from_pem_slice(text.as_bytes())
        .expect("a certificate")
        .to_vec()
}

#[tokio::test]
async fn what_is_no_request_or_not_signed_with_its_key_is_refused() {
    let door = door().await;
    let good = asked("p-1", &new_key().expect("a key")).into_inner();
    let mut unsigned = good.signing_request.clone();
    *unsigned.last_mut().expect("bytes") ^= 1;
    for (request, why) in [
        (
            v1::JoinRequest {
                token: vec![7; 31],
                ..good.clone()
            },
            "a token has 32 bytes",
        ),
        (
            v1::JoinRequest {
                cluster: "P-1".into(),
                ..good.clone()
            },
            "RFC 1123",
        ),
        (
            v1::JoinRequest {
                signing_request: unsigned,
                ..good.clone()
            },
            "cannot be read",
        ),
        (
            v1::JoinRequest {
                signing_request: vec![0; 5_000],
                ..good.clone()
            },
            "cannot be read",
        ),
    ] {
        let refused = door.service.join(Request::new(request)).await.expect_err(why);
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(why), "{refused}");
    }
}
