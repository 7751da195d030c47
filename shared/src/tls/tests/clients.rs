//! Tests of the rules on clients' certificates: denied keys, revocation lists, renewal issuers; and that open
//! connections end with a reason when the loaded files refuse them.

use std::sync::Arc;

use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use tokio::io::AsyncReadExt;
use tonic::Code;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    ends::{Hub, dialled},
    pki::{Authority, EAST, HUB, live},
};
use crate::tls::{ClientPem, Credentials, LiveCredentials, Pem};

/// A hub's files, with the roots of all these authorities.
fn hub_pem(ca: &Authority, roots: &[&Authority]) -> Pem {
    let bundle: String = roots.iter().map(|root| root.ca()).collect();
    Pem {
        ca: bundle.into(),
        ..ca.issue_for(HUB)
    }
}

fn told(pem: &Pem, clients: &ClientPem) -> Credentials {
    Credentials::with_clients(pem, clients).expect("usable")
}

/// A connection that is open under `member` when the hub loads other files.
async fn ends(hub_pem: &Pem, member: &Arc<LiveCredentials>, clients: &ClientPem, after: &Pem) -> String {
    let live = LiveCredentials::new(told(hub_pem, &ClientPem::default()));
    let mut hub = Hub::new(live.clone());
    let mut pair = hub.join(member).await;
    pair.works().await;
    live.replace(told(after, clients)).expect("the same hub");
    let status = pair.server.peer().lifetime.ended().await;
    assert_eq!(status.code(), Code::PermissionDenied);
    // It is cut soon after: its server reads its end.
    assert_eq!(pair.server.read(&mut [0]).await.expect("an end"), 0);
    drop(pair);
    let mut connector = hub.connector(member.clone(), &["https://hub:7443"]);
    let mut again = dialled(&mut connector).await.expect("dialled");
    assert!(again.read_u8().await.is_err(), "it comes in again");
    status.message().to_owned()
}

fn denying(key: impl std::fmt::Display) -> ClientPem {
    ClientPem {
        deny_keys: Some(format!("# stolen\n{key} # east\n\n").into()),
        ..ClientPem::default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_open_under_a_denied_key_ends_with_the_reason() {
    let ca = Authority::new("ca");
    let (pem, member) = (hub_pem(&ca, &[&ca]), ca.live(EAST));
    let clients = denying(member.facts().key_fingerprint);
    let why = ends(&pem, &member, &clients, &pem).await;
    assert!(why.contains("--deny-keys") && why.contains("new key"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_is_open_under_a_removed_root_ends_with_the_reason() {
    let (ca, old) = (Authority::new("ca"), Authority::new("old"));
    let member = live(&Pem {
        ca: ca.ca().into(),
        ..old.issue_for(EAST)
    });
    let (before, mut after) = (hub_pem(&ca, &[&ca, &old]), hub_pem(&ca, &[&ca]));
    after.cert.clone_from(&before.cert);
    after.key.clone_from(&before.key);
    let why = ends(&before, &member, &ClientPem::default(), &after).await;
    assert!(why.contains("--tls-ca"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_is_open_under_a_certificate_on_a_list_ends_with_the_reason() {
    let ca = Authority::new("ca");
    let (pem, issued) = (hub_pem(&ca, &[&ca]), ca.issue_for(EAST));
    let other = ca.live(EAST);
    let clients = ClientPem {
        client_crl: Some(ca.revocation_list(&issued).into()),
        ..ClientPem::default()
    };
    let why = ends(&pem, &live(&issued), &clients, &pem).await;
    assert!(why.contains("--client-crl"), "{why}");
    let mut hub = Hub::new(LiveCredentials::new(told(&pem, &clients)));
    hub.join(&other).await.works().await;
}

#[tokio::test]
async fn only_a_certificate_of_a_declared_issuer_renews() {
    let (ca, issuer) = (Authority::new("ca"), Authority::new("issuer"));
    let pem = hub_pem(&ca, &[&ca, &issuer]);
    let clients = ClientPem {
        renewal_issuer: Some(issuer.ca().into()),
        ..ClientPem::default()
    };
    let mut hub = Hub::new(LiveCredentials::new(told(&pem, &clients)));
    for (authority, renews) in [(&ca, false), (&issuer, true)] {
        let member = live(&Pem {
            ca: ca.ca().into(),
            ..authority.issue_for(EAST)
        });
        let pair = hub.join(&member).await;
        assert_eq!(pair.server.peer().renewable, renews);
        assert!(
            pair.server.peer().issuer.starts_with("CN="),
            "{}",
            pair.server.peer().issuer
        );
    }
}

#[test]
fn files_that_make_no_sense_are_named() {
    let ca = Authority::new("ca");
    let pem = hub_pem(&ca, &[&ca]);
    let with = |change: fn(&mut ClientPem)| {
        let mut clients = ClientPem::default();
        change(&mut clients);
        let refused = Credentials::with_clients(&pem, &clients).err().expect("refused");
        refused.to_string()
    };
    for (problem, told) in [
        (
            with(|clients| clients.deny_keys = Some(b"\nabc".to_vec())),
            "line 2",
        ),
        (
            with(|clients| clients.deny_keys = Some(vec![0xff])),
            "--deny-keys",
        ),
        (
            with(|clients| clients.client_crl = Some(Vec::new())),
            "--client-crl",
        ),
        (
            with(|clients| clients.renewal_issuer = Some(Vec::new())),
            "--renewal-issuer",
        ),
    ] {
        assert!(problem.contains(told), "{problem}");
    }
}

impl Authority {
    /// A list with this certificate.
    fn revocation_list(&self, issued: &Pem) -> String {
        let der = crate::tls::pem::certificates("--tls-cert", &issued.cert).expect("one");
        let (_, certificate) = X509Certificate::from_der(&der[0]).expect("a certificate");
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let now = rcgen::date_time_ymd(1970, 1, 1) + std::time::UNIX_EPOCH.elapsed().expect("after 1970");
        let params = CertificateRevocationListParams {
            this_update: now - day,
            next_update: now + day,
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from_slice(certificate.raw_serial()),
                revocation_time: now - day,
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(self.issuer()).expect("signed");
        list.pem().expect("text")
    }
}
