//! The doctor's look at a real hub over real mutual TLS: no fault where there is none, its clock, and a member whose
//! certificate another authority issued.

mod support;

use hub::certs::{CertificateAuthority, Subject, Validity};
use shared::{
    doctor::{
        hub::{all_fine, hub},
        look,
    },
    model::ClusterId,
    tls::{Credentials, HubAddress, Pem},
};

fn member(authority: &CertificateAuthority) -> Pem {
    let subject = Subject::Member(ClusterId::new("east").expect("valid"));
    let issued = authority
        .issue(&subject, Validity::days_from_now(1))
        .expect("issued");
    authority.tls(&issued)
}

fn at(port: u16) -> HubAddress {
    format!("https://127.0.0.1:{port}").parse().expect("an address")
}

#[tokio::test]
async fn a_good_hub_has_nothing_wrong_and_says_its_time() {
    let authority = support::authority();
    let port = support::serve(&authority).await;
    let east = Credentials::from_pem(&member(&authority)).expect("usable");
    let seen = look::hub(&at(port), Some(&east)).await;
    let checks = hub(&seen);
    assert!(all_fine(&checks), "{checks:?}");
    assert!(seen.took_us());
    let clock = checks
        .iter()
        .find(|check| check.name == "hub-clock")
        .expect("looked at");
    assert_eq!(clock.verdict.word(), "ok", "{clock:?}");
}

#[tokio::test]
async fn a_member_whose_issuer_the_hub_does_not_know_is_told_so() {
    let (authority, other) = (support::authority(), support::authority());
    let port = support::serve(&authority).await;
    // It trusts the hub, and the hub does not trust it.
    let mut pem = member(&other);
    pem.ca = member(&authority).ca;
    let east = Credentials::from_pem(&pem).expect("usable");
    let seen = look::hub(&at(port), Some(&east)).await;
    assert!(!seen.took_us());
    let checks = hub(&seen);
    let faults: Vec<_> = checks.iter().filter(|check| check.is_fault()).collect();
    let [fault] = faults[..] else { panic!("{checks:?}") };
    assert_eq!(fault.name, "hub-answer");
}
