//! Others that are welcomed while the holder answers, and others.

use std::collections::BTreeSet;

use model::{
    Event, Fact, KeyTerms, Revision, SessionId, UnixMillis,
    sync::{Interest, Namespaces, PROTOCOL_VERSION},
};

use super::*;

const KEY: KeyFingerprint = KeyFingerprint([7; 32]);
const CAME: u64 = 10_000;

fn east() -> ClusterId {
    ClusterId::new("east").expect("valid")
}

fn record(state: &mut State, fact: &Fact) {
    let event = Event {
        revision: state.revision().next(),
        recorded_at: UnixMillis(1),
        cluster: Some(east()),
        incarnation: Revision(0),
        session: SessionId(0),
        member_sequence: 0,
        fact: wire::encode_fact(fact),
        changed_by: None,
    };
    fold::apply(state, &event);
}

fn hello(instance: &str, lease_transitions: i64) -> AgentMessage {
    AgentMessage::Hello(Box::new(Hello {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        agent_version: "swarm".into(),
        highest_epoch: None,
        cluster_fingerprint: "uid".into(),
        instance: instance.into(),
        lease_transitions,
        cursor: None,
        exports_digest: None,
        properties_digest: None,
        sources_held: BTreeSet::new(),
        interest: Interest {
            generation: 1,
            namespaces: Namespaces::All,
        },
    }))
}

fn welcome(random: u64) -> HubMessage {
    let epoch = Epoch::default().next(UnixMillis(1), random);
    HubMessage::Welcome(Box::new(Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "swarm".into(),
        hub: "hub".into(),
        epoch,
        resume: false,
        list_exports: true,
        list_properties: true,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 1_000,
        silence_max_millis: 9_000,
        unacknowledged_max: 8,
        term: 0,
        hubs: Vec::new(),
    }))
}

/// A clusterset whose only member has this key.
fn member() -> State {
    let mut state = State::new();
    let joined = Fact::MemberJoined {
        key: KEY,
        cluster_fingerprint: "uid".into(),
        terms: KeyTerms::default(),
    };
    record(&mut state, &joined);
    state
}

/// One holder and one who comes at [`CAME`]; the holder is asked and answers after so long, if it does.
fn comes(
    answers_after: Option<(u64, bool)>,
    (instance, elected): (&str, i64),
    between: impl FnOnce(&mut Holders, &mut State),
    random: u64,
) -> Result<(), String> {
    let (mut holders, mut state, mut guarded) = (Holders::default(), member(), Guarded::default());
    for stream in [1, 2] {
        holders.opened(stream, &east(), KEY);
    }
    holders.heard(1, &hello("holder", 3), 1_000);
    holders
        .said(1, &welcome(1), (&state, 1_000), &mut guarded)
        .expect("it is the first");
    holders.heard(1, &AgentMessage::Heartbeat(None), CAME - 1);
    holders.heard(2, &hello(instance, elected), CAME);
    let ping = HubMessage::Ping(9);
    holders
        .said(1, &ping, (&state, CAME + 1), &mut guarded)
        .expect("only a question");
    if let Some((after, leads)) = answers_after {
        let pong = Pong {
            nonce: 9,
            leads: Some(leads),
        };
        holders.heard(1, &AgentMessage::Pong(pong), CAME + after);
    }
    between(&mut holders, &mut state);
    let now = CAME + ANSWER_MILLIS + 1;
    holders.said(2, &welcome(random), (&state, now), &mut guarded)
}

#[test]
fn who_holds_it_has_its_time_to_answer() {
    let welcomed = |after: u64| {
        let mut held = held();
        held.heard(2, &hello("copy", 3), CAME);
        held.said(2, &welcome(1), (&member(), CAME + after), &mut Guarded::default())
    };
    let all = [ANSWER_MILLIS - 1, ANSWER_MILLIS].map(|after| welcomed(after).is_ok());
    assert_eq!(all, [false, true]);
}

/// Two streams of one id are open, and the first of them holds it.
fn held() -> Holders {
    let mut holders = Holders::default();
    for stream in [1, 2] {
        holders.opened(stream, &east(), KEY);
    }
    holders.heard(1, &hello("holder", 3), 1_000);
    let first = holders.said(1, &welcome(1), (&member(), 1_000), &mut Guarded::default());
    first.expect("nobody held it");
    holders
}

/// The writer's state says that it is suspect, or live, at this time.
fn looks(holders: &mut Holders, is_suspect: bool, at: u64) {
    let mut state = member();
    if is_suspect {
        record(&mut state, &Fact::MemberSuspect);
    }
    holders.looked(&state, at);
}

#[test]
fn a_suspect_that_is_silent_has_no_time_to_answer_and_one_that_was_heard_again_has() {
    let next = |looked: &[(bool, u64)], heard: u64| {
        let mut holders = held();
        for (is_suspect, at) in looked {
            looks(&mut holders, *is_suspect, *at);
        }
        holders.heard(2, &hello("next", 4), CAME);
        holders.heard(1, &AgentMessage::Heartbeat(None), heard);
        holders.said(2, &welcome(1), (&member(), CAME + 10), &mut Guarded::default())
    };
    let silent = CAME - SUSPECT_AFTER_MILLIS;
    assert!(next(&[], silent).is_err(), "it never was a suspect");
    assert_eq!(next(&[(true, 5_000)], silent), Ok(()));
    assert_eq!(next(&[(true, 5_000), (false, CAME)], silent), Ok(()));
    assert!(next(&[(true, 5_000), (false, CAME - 1)], silent).is_err());
    assert_eq!(
        next(&[(true, 5_000)], CAME),
        Ok(()),
        "the silence ended as the other one came"
    );
    assert!(
        next(&[(true, 5_000)], CAME - 1).is_err(),
        "it was heard before the other one came"
    );
}

/// Two come, one takes over from the holder and the other from that one, which is welcomed first.
#[test]
fn who_took_over_is_not_known_while_another_waits_for_its_welcome() {
    let welcomed = |other_has_come: bool| {
        let (mut holders, mut guarded) = (Holders::default(), Guarded::default());
        let state = member();
        for stream in [1, 2, 3] {
            holders.opened(stream, &east(), KEY);
        }
        holders.heard(1, &hello("holder", 3), 1_000);
        let first = holders.said(1, &welcome(1), (&state, 1_000), &mut guarded);
        first.expect("nobody held it");
        if other_has_come {
            holders.heard(2, &hello("second", 3), CAME - ANSWER_MILLIS);
        }
        holders.heard(3, &hello("third", 4), CAME);
        holders.closed(1, "session 2 of agent instance second took over");
        holders.said(3, &welcome(1), (&state, CAME + 10), &mut guarded)
    };
    assert_eq!(welcomed(true), Ok(()));
    assert!(welcomed(false).is_err());
}

#[test]
fn who_answers_in_time_keeps_what_it_holds() {
    let nothing = |_: &mut Holders, _: &mut State| {};
    let copy = ("copy", 3);
    let (follows, leads) = (Some((5, false)), Some((5, true)));
    assert!(comes(Some((ANSWER_MILLIS - 1, false)), copy, nothing, 1).is_err());
    assert_eq!(
        comes(Some((ANSWER_MILLIS, true)), copy, nothing, 1),
        Ok(()),
        "too late"
    );
    assert_eq!(comes(None, copy, nothing, 1), Ok(()), "it is silent");
    assert_eq!(comes(follows, ("next", 4), nothing, 1), Ok(()), "it was elected");
    assert!(
        comes(leads, ("next", 4), nothing, 1).is_err(),
        "in another cluster"
    );
    assert_eq!(comes(leads, ("holder", 3), nothing, 1), Ok(()), "it is the same");
    assert_eq!(comes(leads, copy, nothing, 2), Ok(()), "another epoch began");
    let gone = |holders: &mut Holders, _: &mut State| holders.closed(1, "the agent went away");
    assert_eq!(comes(leads, copy, gone, 1), Ok(()), "it left");
    let ended = |holders: &mut Holders, _: &mut State| {
        holders.closed(1, "session 2 of agent instance copy took over")
    };
    assert!(comes(leads, copy, ended, 1).is_err(), "it heard of it first");
    assert_eq!(comes(follows, ("next", 4), ended, 1), Ok(()), "it was elected");
    let both = |holders: &mut Holders, _: &mut State| {
        holders.closed(1, "session 2 of agent instance copy took over");
        holders.closed(2, "the agent went away");
        assert_eq!(holders.streams.len(), 0, "nobody holds it");
    };
    assert_eq!(comes(leads, copy, both, 1), Ok(()), "neither is there any more");
    let revoked = |_: &mut Holders, state: &mut State| {
        let operator = "alice".into();
        record(state, &Fact::MemberKeyRevoked { operator, key: KEY });
    };
    assert_eq!(comes(leads, copy, revoked, 1), Ok(()), "its key was revoked");
}
