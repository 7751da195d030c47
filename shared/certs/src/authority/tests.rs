//! Authorities and what they issue, judged by the TLS code that will use it.

use shared::{identity::CertificateFacts, tls::Credentials};

use super::*;

fn set(name: &str) -> Clusterset {
    Clusterset::new("example.org", name).expect("valid")
}

fn authority() -> CertificateAuthority {
    CertificateAuthority::generate(&set("default"), Validity::days_from_now(10)).expect("made")
}

fn hub() -> Subject {
    Subject::Hub {
        name: "hub".to_owned(),
        dns_names: vec!["hub.example.org".to_owned(), "*.hub.example.org".to_owned()],
        ips: vec![
            "192.0.2.1".parse().expect("address"),
            "fd00::1".parse().expect("address"),
        ],
    }
}

fn member() -> Subject {
    Subject::Member(ClusterId::new("east").expect("valid"))
}

#[test]
fn what_is_issued_is_usable_and_says_whom_it_is_for() {
    let authority = authority();
    let cases = [
        (hub(), "spiffe://example.org/clusterset/default/hub/hub"),
        (member(), "spiffe://example.org/clusterset/default/cluster/east"),
        (
            Subject::Operator("alice".to_owned()),
            "spiffe://example.org/clusterset/default/operator/alice",
        ),
    ];
    for (subject, uri) in cases {
        let issued = authority.issue(&subject, Validity::days_from_now(5)).expect(uri);
        let credentials = Credentials::from_pem(&authority.tls(&issued)).expect(uri);
        assert_eq!(credentials.facts().identity.to_string(), uri);
        assert_eq!(credentials.facts().identity, issued.identity);
        let end = credentials.facts().not_after.0;
        assert_eq!(end / 1_000, issued.validity.not_after.0 / 1_000);
    }
}

/// Agents require this of a root that takes the place of the one that they trust.
#[test]
fn a_successor_is_vouched_for_by_the_one_before_and_issues_for_the_same() {
    let old = authority();
    let new = old.successor(Validity::days_from_now(20)).expect("made");
    assert_eq!(new.clusterset(), old.clusterset());
    let list = |pem: &str| {
        let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        all.expect("PEM")
    };
    let (trusted, named) = (list(old.certificate_pem()), list(new.certificate_pem()));
    assert_eq!(named.len(), 2);
    let now = Validity::days_from_now(1).not_after;
    let taken = shared::tls::vouched(&trusted, &named, now).expect("vouched");
    assert_eq!(taken.authorities, named[..1]);
    let stranger = list(authority().certificate_pem());
    assert!(shared::tls::vouched(&trusted, &stranger, now).is_err());
    // It is read back, and what it issues is accepted by who trusts its file.
    let read =
        CertificateAuthority::from_pem(new.certificate_pem(), &new.key_pem(), None, None).expect("read");
    let issued = read.issue(&member(), Validity::days_from_now(5)).expect("issued");
    let credentials = Credentials::from_pem(&read.tls(&issued)).expect("usable");
    assert_eq!(credentials.judge(&list(&issued.certificate_pem)), Ok(()));
}

#[test]
fn a_hub_certificate_carries_the_names_that_tools_check() {
    let issued = authority()
        .issue(&hub(), Validity::days_from_now(5))
        .expect("issued");
    let der = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).expect("PEM");
    let (_, certificate) = X509Certificate::from_der(&der).expect("certificate");
    let names = certificate
        .subject_alternative_name()
        .expect("readable")
        .expect("present");
    let names: Vec<_> = names
        .value
        .general_names
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(
        names.iter().any(|name| name.contains("hub.example.org")),
        "{names:?}"
    );
    let usage = certificate
        .extended_key_usage()
        .expect("readable")
        .expect("present")
        .value;
    assert!(usage.server_auth && !usage.client_auth);
}

#[test]
fn an_authority_is_read_back_with_what_it_issues_for() {
    let made = authority();
    let read =
        |domain, set| CertificateAuthority::from_pem(made.certificate_pem(), &made.key_pem(), domain, set);
    let back = read(None, None).expect("read");
    assert_eq!(back.clusterset(), made.clusterset());
    assert_eq!(
        back.validity().not_after.0 / 1_000,
        made.validity().not_after.0 / 1_000
    );
    let issued = back.issue(&member(), Validity::days_from_now(5)).expect("issued");
    assert!(Credentials::from_pem(&made.tls(&issued)).is_ok());
    assert_eq!(
        read(None, Some("other")).expect("read").clusterset(),
        &set("other")
    );
    let error = read(Some("example.net"), None)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("example.org, not of example.net"), "{error}");
}

#[test]
fn an_authority_of_another_tool_needs_to_be_told_its_names() {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::OrganizationalUnitName, "IT");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("key");
    let pem = params.self_signed(&key).expect("signed").pem();
    let read = |domain, set| CertificateAuthority::from_pem(&pem, &key.serialize_pem(), domain, set);
    for (domain, set) in [(None, None), (Some("example.org"), None), (None, Some("default"))] {
        assert!(matches!(read(domain, set), Err(AuthorityError::Nameless)));
    }
    let authority = read(Some("example.org"), Some("default")).expect("named");
    let issued = authority
        .issue(&member(), Validity::days_from_now(1))
        .expect("issued");
    assert_eq!(
        issued.identity.to_string(),
        "spiffe://example.org/clusterset/default/cluster/east"
    );
}

#[test]
fn no_certificate_outlives_its_authority() {
    let authority = authority();
    let issued = authority
        .issue(&member(), Validity::days_from_now(999))
        .expect("issued");
    let der = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes()).expect("PEM");
    let facts = CertificateFacts::read(&der).expect("identity");
    assert_eq!(
        facts.not_after.0 / 1_000,
        authority.validity().not_after.0 / 1_000
    );
}

#[test]
fn bad_names_keys_and_authorities_are_refused() {
    let authority = authority();
    let validity = Validity::days_from_now(1);
    let bad_hub = |name: &str, dns: &str| Subject::Hub {
        name: name.to_owned(),
        dns_names: vec![dns.to_owned()],
        ips: Vec::new(),
    };
    let subjects = [
        bad_hub("Hub", "hub.example.org"),
        bad_hub("hub", "Hub Example"),
        Subject::Operator("alice@example.org".to_owned()),
    ];
    for subject in subjects {
        let outcome = authority.issue(&subject, validity);
        assert!(matches!(outcome, Err(AuthorityError::Name(_))), "{subject:?}");
    }
    let leaf = authority.issue(&member(), validity).expect("issued");
    let outcome = CertificateAuthority::from_pem(&leaf.certificate_pem, &leaf.key_pem, None, None);
    assert!(matches!(outcome, Err(AuthorityError::NotAnAuthority)));
    let outcome = CertificateAuthority::from_pem(authority.certificate_pem(), &leaf.key_pem, None, None);
    assert!(matches!(outcome, Err(AuthorityError::OtherKey)));
    let outcome = CertificateAuthority::from_pem("nothing", &leaf.key_pem, None, None);
    assert!(matches!(outcome, Err(AuthorityError::Unreadable(_))));
}
