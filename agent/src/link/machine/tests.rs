//! The agent's side of a session: which Welcome it follows.

use shared::model::{Fact, FactHash, Revision, SessionId, UnixMillis};

use super::*;

fn epoch(created_at: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(created_at),
        random: 0,
    }
}

fn welcome(created_at: u64, resume: bool) -> HubMessage {
    HubMessage::Welcome(Box::new(Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "test".into(),
        hub: "hub".into(),
        epoch: epoch(created_at),
        resume,
        list_exports: true,
        list_properties: false,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 1_000,
        silence_max_millis: 3_000,
        unacknowledged_max: 100,
    }))
}

fn removal(_: &FactKey) -> shared::model::EncodedFact {
    shared::model::EncodedFact {
        fact: Fact::MemberLive,
        bytes: bytes::Bytes::new(),
        hash: FactHash::of(&[]),
    }
}

/// What a session of an agent that knows epoch 5 says to a Welcome, and its outbox after it.
fn welcomed(message: HubMessage) -> (Result<Reaction, Violation>, Session, Outbox) {
    let introduction = Introduction {
        agent_version: "0".into(),
        cluster_fingerprint: "uid".into(),
        instance: "instance".into(),
        lease_transitions: 1,
    };
    let (mut outbox, mut desired) = (Outbox::new(removal), Desired::default());
    outbox.complete(ListingGroup::Exports);
    let (mut session, hello) = Session::begin(
        &introduction,
        Some(epoch(5)),
        &Interest::default(),
        &mut outbox,
        &mut desired,
        BTreeSet::new(),
        0,
    );
    assert_eq!(hello.highest_epoch, Some(epoch(5)));
    let reaction = session.on_message(message, &mut outbox, &mut desired, |_| None, 1);
    (reaction, session, outbox)
}

#[test]
fn a_hub_of_an_older_epoch_is_refused_before_anything_is_told_to_it() {
    for resume in [false, true] {
        let (reaction, mut session, mut outbox) = welcomed(welcome(4, resume));
        let refused = Violation::OlderEpoch {
            offered: epoch(4),
            known: epoch(5),
        };
        assert_eq!(reaction.map(drop), Err(refused));
        assert!(!session.is_open());
        assert_eq!(session.poll(&mut outbox, 10_000), None);
    }
}

#[test]
fn a_hub_of_the_known_epoch_or_a_later_one_is_followed() {
    for created_at in [5, 6] {
        let (reaction, mut session, mut outbox) = welcomed(welcome(created_at, false));
        let welcomed = reaction.expect("it is followed").welcomed;
        assert_eq!(welcomed.map(|welcome| welcome.epoch), Some(epoch(created_at)));
        assert!(session.is_open());
        let said = session.poll(&mut outbox, 2);
        assert!(matches!(said, Some(AgentMessage::Observations(_))), "{said:?}");
    }
}
