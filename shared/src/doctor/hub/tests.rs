//! Each fault of a hub, planted as a value: it is named once, with what to do.

use super::*;

const NOW: UnixMillis = UnixMillis(1_000_000_000);

fn seen() -> HubSeen {
    HubSeen {
        address: "https://hub.example.org:8443".into(),
        host: "hub.example.org".into(),
        name: Ok(vec!["192.0.2.1".into()]),
        port: Some(Ok(())),
        shown: Some(Ok(Shown {
            http2: true,
            identity: Ok("spiffe://example.org/clusterset/default/hub/hub".into()),
            names: vec!["hub.example.org".into()],
            verified: Ok(()),
        })),
        answer: Some(Ok(Answer {
            version: "1.2.3".into(),
            clock: Some(NOW),
            asked: NOW,
            answered: UnixMillis(NOW.0 + 20),
        })),
    }
}

/// The one fault, and what is to be done about it.
fn fault(seen: &HubSeen) -> (&'static str, String, String) {
    let checks = hub(seen);
    let faults: Vec<&Check> = checks.iter().filter(|check| check.is_fault()).collect();
    let [fault] = faults[..] else { panic!("{checks:?}") };
    let (what, fix) = fault.verdict.words();
    (fault.name, what, fix.expect("a fix"))
}

/// The findings with a different handshake.
fn showing(change: impl FnOnce(&mut Shown)) -> HubSeen {
    let mut seen = seen();
    if let Some(Ok(shown)) = &mut seen.shown {
        change(shown);
    }
    seen.answer = None;
    seen
}

#[test]
fn a_good_hub_has_no_fault() {
    let checks = hub(&seen());
    assert!(all_fine(&checks), "{checks:?}");
    assert_eq!(checks.len(), 5, "{checks:?}");
}

#[test]
fn a_name_that_does_not_resolve() {
    let missing = HubSeen {
        name: Err("no such host".into()),
        port: None,
        shown: None,
        answer: None,
        ..seen()
    };
    assert_eq!(fault(&missing).0, "hub-name");
    let empty = HubSeen {
        name: Ok(vec![]),
        ..missing
    };
    assert!(fault(&empty).1.contains("has no addresses"));
}

#[test]
fn a_port_that_is_closed_or_filtered() {
    for (problem, said, done) in [
        (PortProblem::Refused, "nothing listens", "start the hub"),
        (PortProblem::Silent, "does not answer", "firewall"),
        (PortProblem::Other("no route".into()), "no route", "network"),
    ] {
        let closed = HubSeen {
            port: Some(Err(problem)),
            shown: None,
            answer: None,
            ..seen()
        };
        let (name, what, fix) = fault(&closed);
        assert_eq!(name, "hub-port");
        assert!(what.contains(said) && fix.contains(done), "{what} {fix}");
    }
}

#[test]
fn a_proxy_that_ends_tls() {
    let no_identity = |shown: &mut Shown| {
        shown.identity = Err("the certificate has 0 URI names".into());
        shown.verified = Err(NotVerified::UnknownIssuer);
    };
    let broken = |problem| HubSeen {
        shown: Some(Err(problem)),
        answer: None,
        ..seen()
    };
    for proxied in [
        showing(|shown| shown.http2 = false),
        showing(no_identity),
        broken(NoHandshake::NotTls("HTTP".into())),
        broken(NoHandshake::NotOurTls("TLS 1.2".into())),
    ] {
        let (name, what, fix) = fault(&proxied);
        assert_eq!(name, "hub-tls");
        assert!(
            what.contains("ends TLS") && fix.contains("passthrough"),
            "{what} {fix}"
        );
    }
    for (problem, done) in [
        (NoHandshake::Silent, "/livez"),
        (NoHandshake::Other("eof".into()), "debug log"),
    ] {
        let (name, what, fix) = fault(&broken(problem));
        assert_eq!(name, "hub-tls");
        assert!(!what.contains("ends TLS") && fix.contains(done), "{what} {fix}");
    }
}

#[test]
fn a_certificate_that_is_not_our_hubs() {
    for (problem, done) in [
        (NotVerified::UnknownIssuer, "--tls-ca"),
        (NotVerified::Expired, "certs hub"),
        (NotVerified::NotYet, "NTP"),
        (NotVerified::Somebody("connected to west".into()), "--hub"),
        (NotVerified::Other("purpose".into()), "certs hub"),
    ] {
        let (name, what, fix) = fault(&showing(|shown| shown.verified = Err(problem)));
        assert_eq!(name, "hub-certificate");
        assert!(fix.contains(done), "{what} {fix}");
    }
}

#[test]
fn a_name_that_the_certificate_does_not_bear_is_a_note() {
    let checks = hub(&showing(|shown| shown.names.clear()));
    assert!(all_fine(&checks), "{checks:?}");
    let note = checks.iter().find(|check| check.name == "hub-certificate-name");
    assert_eq!(note.expect("a note").verdict.word(), "note");
}

#[test]
fn a_hub_that_refuses_us() {
    let refused = HubSeen {
        answer: Some(Err("the key is refused for ever".into())),
        ..seen()
    };
    let (name, what, _) = fault(&refused);
    assert_eq!(name, "hub-answer");
    assert!(what.contains("refused for ever"), "{what}");
    assert!(!refused.took_us() && seen().took_us());
}

fn clock_at(clock: u64) -> HubSeen {
    let mut seen = seen();
    if let Some(Ok(answer)) = &mut seen.answer {
        answer.clock = Some(UnixMillis(clock));
    }
    seen
}

#[test]
fn clocks_that_are_apart() {
    let fine = |clock| all_fine(&hub(&clock_at(clock)));
    assert!(fine(NOW.0 + 20 + CLOCK_DIFFERENCE_MAX));
    assert!(fine(NOW.0 - CLOCK_STEP - CLOCK_DIFFERENCE_MAX));
    let (name, what, _) = fault(&clock_at(NOW.0 + 21 + CLOCK_DIFFERENCE_MAX));
    assert_eq!(name, "hub-clock");
    assert!(what.contains("10 s behind the hub's"), "{what}");
    let (_, what, fix) = fault(&clock_at(NOW.0 - 3_601_000 - CLOCK_STEP));
    assert!(what.contains("60 min ahead of the hub's"), "{what}");
    assert!(fix.contains("NTP"), "{fix}");
}

#[test]
fn a_hub_that_does_not_say_its_time_is_no_fault() {
    let mut seen = seen();
    if let Some(Ok(answer)) = &mut seen.answer {
        answer.clock = None;
    }
    assert!(all_fine(&hub(&seen)));
}
