//! Tests of the identities that an authority may certify, and of the names that ours must have.

use rcgen::{ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::{
    ends::{Hub, dialled},
    pki::{Authority, EAST, HUB, Wanted, live},
};
use crate::tls::{Credentials, Pem};

const ELSEWHERE: &str = "spiffe://example.net/clusterset/default/cluster/east";

/// A hub of example.org that trusts these.
fn hub(trusted: &[&Authority]) -> Credentials {
    let mut pem = trusted[0].issue_for(HUB);
    pem.ca = trusted.iter().map(|ca| ca.ca()).collect::<String>().into();
    Credentials::from_pem(&pem).expect("usable")
}

fn judged(hub: &Credentials, pem: &Pem) -> Result<(), String> {
    hub.judge(&[CertificateDer::from_pem_slice(&pem.cert).expect("a certificate")])
}

#[test]
fn an_authority_certifies_identities_of_the_domain_that_it_names_and_of_no_other() {
    let (ours, theirs) = (Authority::of("example.org"), Authority::of("example.net"));
    let hub = hub(&[&ours, &theirs]);
    judged(&hub, &ours.issue_for(EAST)).expect("ours");
    judged(&hub, &theirs.issue_for(ELSEWHERE)).expect("theirs");
    for (authority, identity) in [(&ours, ELSEWHERE), (&theirs, EAST)] {
        let refused = judged(&hub, &authority.issue_for(identity)).expect_err("of another domain");
        assert!(refused.contains("no root of this hub"), "{refused}");
    }
}

#[test]
fn an_authority_that_names_no_domain_certifies_our_own() {
    let unnamed = Authority::new("an issuer of one's own");
    let alone = hub(&[&unnamed]);
    judged(&alone, &unnamed.issue_for(EAST)).expect("our own");
    let refused = judged(&alone, &unnamed.issue_for(ELSEWHERE)).expect_err("of another domain");
    assert!(
        refused.contains("no authority in --tls-ca certifies identities of trust domain example.net"),
        "{refused}"
    );

    // While one is replaced by the other.
    let both = hub(&[
        &unnamed,
        &Authority::of("example.org"),
        &Authority::of("example.net"),
    ]);
    judged(&both, &unnamed.issue_for(EAST)).expect("our own");
    judged(&both, &unnamed.issue_for(ELSEWHERE)).expect_err("of another domain");
}

#[test]
fn a_new_authority_beside_the_old_one_of_the_same_domain_is_trusted_like_it() {
    let (old, new) = (Authority::of("example.org"), Authority::of("example.org"));
    let hub = hub(&[&old, &new]);
    for authority in [&old, &new] {
        judged(&hub, &authority.issue_for(EAST)).expect("trusted");
    }
}

#[tokio::test]
async fn a_certificate_of_ours_says_what_it_is_for() {
    let (ours, unnamed) = (
        Authority::of("example.org"),
        Authority::new("an issuer of one's own"),
    );
    let without = |uris, usages| Wanted {
        uris,
        usages,
        ..Wanted::default()
    };
    let member = without(&[EAST], &[]);
    let refused = judged(&hub(&[&ours]), &ours.issue(&member)).expect_err("it says nothing");
    assert!(
        refused.contains("purpose") || refused.contains("Purpose"),
        "{refused}"
    );
    judged(&hub(&[&unnamed]), &unnamed.issue(&member)).expect("an issuer of one's own may leave it out");
    let client = [ExtendedKeyUsagePurpose::ClientAuth];
    judged(&hub(&[&ours]), &ours.issue(&without(&[EAST], &client))).expect("for clients");

    for (usages, works) in [
        (&[][..], false),
        (&client, false),
        (&[ExtendedKeyUsagePurpose::ServerAuth], true),
    ] {
        let server = Hub::new(live(&ours.issue(&without(&[HUB], usages))));
        let mut connector = server.connector(ours.live(EAST), &["https://hub:7443"]);
        let connected = dialled(&mut connector).await;
        assert_eq!(connected.is_ok(), works, "{usages:?}: {:?}", connected.err());
    }
}

#[test]
fn what_names_a_domain_must_be_an_authority() {
    let named = |change: fn(&mut rcgen::CertificateParams)| {
        Authority::made("named", |params| {
            let uri = SanType::URI("spiffe://example.org".try_into().expect("ASCII"));
            params.subject_alt_names.push(uri);
            change(params);
        })
    };
    let no_authority = named(|params| params.is_ca = IsCa::ExplicitNoCa);
    let signs_nothing = named(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
    let no_domain = Authority::of("example.org/workload");
    let mut pem = Authority::of("example.org").issue_for(HUB);
    for (wrong, told) in [
        (
            no_domain,
            "spiffe://example.org/workload, which is no trust domain",
        ),
        (no_authority, "is not the certificate of an authority"),
        (signs_nothing, "may not sign certificates"),
    ] {
        pem.ca = wrong.ca().into();
        let refused = Credentials::from_pem(&pem).err().expect("refused").to_string();
        assert!(
            refused.contains("--tls-ca") && refused.contains(told),
            "{refused}"
        );
    }
}
