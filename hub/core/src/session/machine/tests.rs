//! Tests of the messages that a session takes and refuses, and of the order of its own.

use model::{
    ChainHash, Cursor, Epoch, Revision, ServiceKey, SessionId, UnixMillis,
    sync::{CHUNK_BYTES, Interest, RefusalReason, Source, SourceState},
};
use wire::encode_fact;

use super::{
    told_sources::{SOURCES_GATHER_MILLIS, SOURCES_OF_A_MESSAGE},
    *,
};

mod applied;
mod differences;

pub(in crate::session) fn member() -> ClusterId {
    ClusterId::new("east").expect("valid")
}

pub(in crate::session) fn hello() -> AgentMessage {
    AgentMessage::Hello(Box::new(Hello {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        agent_version: "1".into(),
        highest_epoch: None,
        cluster_fingerprint: "uid".into(),
        instance: "one".into(),
        lease_transitions: 1,
        cursor: None,
        exports_digest: None,
        properties_digest: None,
        sources_held: BTreeSet::new(),
        interest: Interest::default(),
    }))
}

pub(in crate::session) fn admission(list_exports: bool) -> Admission {
    let welcome = Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "1".into(),
        hub: "hub".into(),
        epoch: Epoch::default(),
        resume: false,
        list_exports,
        list_properties: false,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 1_000,
        silence_max_millis: 10_000,
        unacknowledged_max: UNACKNOWLEDGED_MAX,
        term: 1,
        hubs: Vec::new(),
    };
    Admission {
        welcome,
        resume: None,
        unknown_sources: Vec::new(),
        chunk_bytes: CHUNK_BYTES,
    }
}

fn open(list_exports: bool) -> Session {
    let mut session = Session::new(member(), 0);
    session.on_message(hello(), 0).expect("in order");
    session.on_admitted(admission(list_exports));
    session
}

fn key(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).expect("valid")
}

pub(in crate::session) fn removal(sequence: u64, name: &str) -> Observation {
    Observation::new(
        sequence,
        ObservedItem::Fact(encode_fact(&Fact::ExportRemoved(key(name)))),
    )
}

fn listed(sequence: u64) -> Observation {
    Observation::new(sequence, ObservedItem::ListingCompleted(ListingGroup::Exports))
}

fn say_all(session: &mut Session, view: &View, now: u64) -> Vec<HubMessage> {
    std::iter::from_fn(|| session.poll(view, now)).collect()
}

#[test]
fn hello_comes_first_and_once() {
    let mut session = Session::new(member(), 0);
    let early = session.on_message(AgentMessage::Heartbeat(None), 0);
    assert_eq!(early, Err(Violation::HelloOutOfPlace));
    session.on_message(hello(), 0).expect("in order");
    let waiting = session.on_message(AgentMessage::Observations(vec![removal(1, "a")]), 0);
    assert_eq!(waiting, Err(Violation::BeforeWelcome));
    assert_eq!(session.on_message(hello(), 0), Err(Violation::HelloOutOfPlace));
}

#[test]
fn a_far_protocol_version_is_refused() {
    let AgentMessage::Hello(mut strange) = hello() else {
        unreachable!("made above")
    };
    strange.protocol_version = PROTOCOL_VERSION + 2;
    let mut session = Session::new(member(), 0);
    let theirs = strange.protocol_version;
    assert_eq!(
        session.on_message(AgentMessage::Hello(strange), 0),
        Err(Violation::Version { theirs })
    );
    let AgentMessage::Hello(mut neighbour) = hello() else {
        unreachable!("made above")
    };
    neighbour.protocol_version = PROTOCOL_VERSION + 1;
    let mut session = Session::new(member(), 0);
    assert!(session.on_message(AgentMessage::Hello(neighbour), 0).is_ok());
}

#[test]
fn sequence_numbers_grow_by_one() {
    let mut session = open(false);
    session
        .on_message(AgentMessage::Observations(vec![removal(1, "a")]), 0)
        .expect("in order");
    let gap = session.on_message(AgentMessage::Observations(vec![removal(3, "b")]), 0);
    assert_eq!(gap, Err(Violation::Sequence { last: 1, got: 3 }));
}

/// Taken as complete, an empty listing would remove everything the member exports.
#[test]
fn a_listing_that_was_not_asked_for_is_refused() {
    let mut session = open(false);
    let unasked = session.on_message(AgentMessage::Observations(vec![listed(1)]), 0);
    assert_eq!(unasked, Err(Violation::ListingNotWanted));
    let mut session = open(true);
    session
        .on_message(AgentMessage::Observations(vec![listed(1)]), 0)
        .expect("wanted");
    let twice = session.on_message(AgentMessage::Observations(vec![listed(2)]), 0);
    assert_eq!(twice, Err(Violation::ListingNotWanted));
}

#[test]
fn a_listing_is_handed_over_between_the_facts_around_it() {
    let mut session = open(true);
    let facts = vec![removal(1, "a"), listed(2), removal(3, "b")];
    let effects = session
        .on_message(AgentMessage::Observations(facts), 0)
        .expect("in order");
    let kinds: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Observe(facts) => facts.len(),
            Effect::CompleteListing { seen, .. } => 100 + seen.len(),
            _ => 0,
        })
        .collect();
    assert_eq!(kinds, [1, 100, 1]);
}

/// Whatever a listing has not seen is removed when it ends.
#[test]
fn a_listing_has_seen_what_was_reported_and_not_removed_since() {
    let mut session = open(true);
    session.listings.properties = Some(BTreeSet::new());
    let reported = Fact::ClusterPropertyUpserted(Arc::new(model::ClusterProperty {
        name: "region".into(),
        value: model::PropertyValue::Text("north".into()),
    }));
    let observations = [
        ObservedItem::Fact(encode_fact(&reported)),
        ObservedItem::ListingCompleted(ListingGroup::Properties),
    ];
    let observations = (1..).zip(observations);
    let observations = observations.map(|(sequence, item)| Observation::new(sequence, item));
    let effects = session
        .on_message(AgentMessage::Observations(observations.collect()), 0)
        .expect("in order");
    let seen = effects.iter().find_map(|effect| match effect {
        Effect::CompleteListing { seen, .. } => Some((**seen).clone()),
        _ => None,
    });
    assert_eq!(seen, Some(BTreeSet::from([reported.key().expect("it has one")])));
}

#[test]
fn a_listing_holds_so_many_facts_and_no_more() {
    let mut session = open(true);
    let full = (1..MEMBER_FACTS_MAX).map(|number| FactKey::Export(key(&format!("s{number}"))));
    session.listings.exports = Some(full.collect());
    let mut note = |name: &str| {
        let removed = Fact::ExportRemoved(key(name)).key().expect("it has one");
        let seen = session.listings.exports.as_mut().expect("under way");
        seen.insert(removed);
        session.listings.note(&Fact::ExportRemoved(key("other")))
    };
    assert_eq!(note("last"), Ok(()));
    assert_eq!(note("one-more"), Err(Violation::ListingTooLarge));
}

#[test]
fn an_interest_has_a_bound_and_is_known_once_the_member_is_admitted() {
    let waiting = Session::new(member(), 0);
    assert_eq!(waiting.interest(), None);
    let mut session = open(false);
    let mut change = |generation, numbers: std::ops::Range<usize>| {
        let message = AgentMessage::InterestChanged {
            generation,
            added: numbers.map(|number| format!("n{number}").into()).collect(),
            removed: BTreeSet::new(),
        };
        session.on_message(message, 0)
    };
    let bound = model::sync::INTEREST_NAMESPACES_MAX;
    assert_eq!(change(1, 0..bound), Ok(vec![]));
    assert_eq!(change(2, bound..bound + 1), Err(Violation::InterestTooLarge));
    assert!(session.interest().is_some_and(|names| names.contains("n0")));
}

#[test]
fn a_claim_of_another_session_is_answered_by_the_member_that_lives() {
    let (mut session, view) = (open(false), View::default());
    session.ping(7);
    assert_eq!(session.poll(&view, 0), Some(HubMessage::Ping(7)));
    let pong = Pong {
        nonce: 7,
        leads: Some(true),
    };
    let heard = session.on_message(AgentMessage::Pong(pong), 0);
    assert_eq!(heard, Ok(vec![Effect::Pong(pong)]));
}

#[test]
fn the_window_of_unacknowledged_observations_holds() {
    let mut session = open(false);
    let full: Vec<_> = (1..=u64::from(UNACKNOWLEDGED_MAX))
        .map(|n| removal(n, "a"))
        .collect();
    session
        .on_message(AgentMessage::Observations(full), 0)
        .expect("within the window");
    let next = u64::from(UNACKNOWLEDGED_MAX) + 1;
    let over = session.on_message(AgentMessage::Observations(vec![removal(next, "a")]), 0);
    assert_eq!(over, Err(Violation::TooManyUnacknowledged));
    let mut session = open(false);
    session
        .on_message(
            AgentMessage::Observations(vec![removal(1, "a"), removal(2, "a")]),
            0,
        )
        .expect("within the window");
    session.on_acknowledged(2);
    say_all(&mut session, &View::default(), 0);
    let full: Vec<_> = (3..next + 2).map(|n| removal(n, "a")).collect();
    let again = session.on_message(AgentMessage::Observations(full), 0);
    assert!(again.is_ok(), "what was acknowledged makes room");
}

/// The answers to a member that reads nothing wait here, and so they count.
#[test]
fn what_the_member_was_not_told_is_unacknowledged() {
    let mut session = open(false);
    let bound = u64::from(UNACKNOWLEDGED_MAX);
    let send = |session: &mut Session, sequences: std::ops::RangeInclusive<u64>| {
        let observations = sequences.map(|sequence| removal(sequence, "a")).collect();
        let sent = session.on_message(AgentMessage::Observations(observations), 0);
        session.on_acknowledged(bound);
        sent
    };
    assert!(send(&mut session, 1..=bound).is_ok());
    let unread = send(&mut session, bound + 1..=bound + 1);
    assert_eq!(unread, Err(Violation::TooManyUnacknowledged));
}

fn refused(sequence: u64, bytes: usize) -> Refused {
    Refused {
        sequence,
        reason: RefusalReason::Invalid,
        message: "x".repeat(bytes).into(),
    }
}

#[test]
fn a_member_that_does_not_take_its_refusals_is_read_from_again_when_it_has() {
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    session.on_refused(refused(1, WAITING_BYTES_MAX / 2));
    assert!(!session.is_congested());
    session.on_refused(refused(2, WAITING_BYTES_MAX / 2));
    assert!(session.is_congested());
    assert!(matches!(session.poll(&view, 0), Some(HubMessage::Refused(_))));
    assert!(!session.is_congested(), "one of them went");
    say_all(&mut session, &view, 0);
    for sequence in 3..=4 {
        session.on_refused(refused(sequence, WAITING_BYTES_MAX / 2));
    }
    assert!(session.is_congested(), "what went does not count any more");
}

#[test]
fn many_small_refusals_congest_as_well() {
    let mut session = open(false);
    let bound = WAITING_BYTES_MAX / size_of::<Refused>();
    let until = (1..).find(|&sequence| {
        session.on_refused(refused(sequence, 0));
        session.is_congested()
    });
    assert_eq!(until, Some(bound as u64));
}

/// It is not read from: what it takes is all that can be seen of it.
#[test]
fn a_congested_member_lives_as_long_as_it_takes_what_it_is_told() {
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    for sequence in 1..=3 {
        session.on_refused(refused(sequence, WAITING_BYTES_MAX));
    }
    assert!(session.poll(&view, 4_000).is_some() && session.is_congested());
    assert_eq!(session.excuse_silence(false, SILENCE_MAX_MILLIS), 4_000);
    assert_eq!(session.check_silence(SILENCE_MAX_MILLIS), Ok(()));
    let later = 4_000 + SILENCE_MAX_MILLIS;
    session.excuse_silence(false, later);
    assert_eq!(session.check_silence(later), Err(Violation::NotReading));
}

#[test]
fn a_member_that_takes_what_it_is_told_and_says_nothing_is_silent_all_the_same() {
    let (mut session, view) = (open(false), View::default());
    assert!(!say_all(&mut session, &view, 4_000).is_empty());
    assert_eq!(session.excuse_silence(false, SILENCE_MAX_MILLIS), 0);
    let silent = session.check_silence(SILENCE_MAX_MILLIS);
    assert_eq!(silent, Err(Violation::Silent));
}

/// Else the hub would turn in a circle for a member that reads nothing.
#[test]
fn no_heartbeat_is_due_while_nothing_can_be_said() {
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    session.heard_at = 5_000;
    assert_eq!(session.next_deadline(true), SAY_UNASKED_MILLIS);
    assert_eq!(session.next_deadline(false), 5_000 + SILENCE_MAX_MILLIS);
}

#[test]
fn of_the_pings_that_could_not_be_said_the_last_is_kept() {
    let (mut session, view) = (open(false), View::default());
    (1..=1_000).for_each(|nonce| session.ping(nonce));
    assert_eq!(session.poll(&view, 0), Some(HubMessage::Ping(1_000)));
    assert!(!matches!(session.poll(&view, 0), Some(HubMessage::Ping(_))));
}

#[test]
fn a_refusal_is_said_before_the_acknowledgement_that_covers_it() {
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    session.on_acknowledged(2);
    session.on_refused(Refused {
        sequence: 1,
        reason: RefusalReason::Invalid,
        message: "bad".into(),
    });
    let said = say_all(&mut session, &view, 0);
    assert!(matches!(
        said[..],
        [HubMessage::Refused(_), HubMessage::Acknowledged(2)]
    ));
}

/// A source that counts as listed before its objects arrived would have them deleted.
#[test]
fn sources_are_told_only_after_what_was_recorded_with_them() {
    let head = |revision| Cursor {
        epoch: Epoch {
            created_at: UnixMillis(1),
            random: 0,
        },
        revision: Revision(revision),
        hash: ChainHash([revision as u8; 16]),
    };
    let mut view = View::new(head(5), Revision(0));
    let source = |listed| Source {
        cluster: ClusterId::new("west").expect("valid"),
        state: SourceState::Live,
        listed,
        ended: false,
        on_loss: None,
    };
    view.set_sources([source(false)]);
    let mut session = Session::new(member(), 0);
    session.on_message(hello(), 0).expect("in order");
    let mut admission = admission(false);
    admission.welcome.epoch = head(5).epoch;
    session.on_admitted(admission);
    let first: Vec<HubMessage> = std::iter::from_fn(|| session.poll(&view, 0)).take(3).collect();
    assert!(matches!(
        first[..],
        [
            HubMessage::Welcome(_),
            HubMessage::SnapshotBegin { .. },
            HubMessage::SnapshotComplete(_)
        ]
    ));
    assert_eq!(
        session.poll(&view, 0),
        Some(HubMessage::SourcesChanged(vec![source(false)]))
    );
    view.publish(head(6), Vec::new(), 10);
    view.set_sources([source(true)]);
    let said = say_all(&mut session, &view, 0);
    assert!(
        !said
            .iter()
            .any(|message| matches!(message, HubMessage::SourcesChanged(_)))
    );
    // News that follow the last ones closely are gathered.
    assert_eq!(session.next_deadline(true), SOURCES_GATHER_MILLIS);
    let said = say_all(&mut session, &view, SOURCES_GATHER_MILLIS);
    assert_eq!(said.last(), Some(&HubMessage::SourcesChanged(vec![source(true)])));
}

#[test]
fn many_sources_come_in_bounded_messages() {
    let mut view = View::new(Cursor::default(), Revision(0));
    let source = |number: usize| Source {
        cluster: ClusterId::new(&format!("member-{number}")).expect("valid"),
        state: SourceState::Live,
        listed: true,
        ended: false,
        on_loss: None,
    };
    view.set_sources((0..SOURCES_OF_A_MESSAGE + 1).map(source));
    let mut session = open(false);
    let told = say_all(&mut session, &view, 0)
        .into_iter()
        .filter_map(|message| match message {
            HubMessage::SourcesChanged(sources) => Some(sources.len()),
            _ => None,
        });
    assert_eq!(told.collect::<Vec<_>>(), [SOURCES_OF_A_MESSAGE, 1]);
}

#[test]
fn a_heartbeat_of_the_agent_is_answered_after_a_silence() {
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    let mut answer = |now| {
        session
            .on_message(AgentMessage::Heartbeat(None), now)
            .expect("in order");
        say_all(&mut session, &view, now)
    };
    assert!(answer(ANSWER_AFTER_MILLIS - 1).is_empty());
    assert!(matches!(
        answer(ANSWER_AFTER_MILLIS)[..],
        [HubMessage::Heartbeat(_)]
    ));
    assert!(answer(ANSWER_AFTER_MILLIS + 1).is_empty());
}

#[test]
fn heartbeats_fill_the_silence_and_silence_ends_the_session() {
    let waiting = Session::new(member(), 50);
    assert_eq!(waiting.next_deadline(true), 50 + HELLO_WAIT_MILLIS);
    let (mut session, view) = (open(false), View::default());
    say_all(&mut session, &view, 0);
    assert_eq!(session.next_deadline(true), SAY_UNASKED_MILLIS);
    let said = say_all(&mut session, &view, SAY_UNASKED_MILLIS);
    assert!(matches!(said[..], [HubMessage::Heartbeat(_)]));
    // However busy the hub is in speaking, it gives up an agent that says nothing.
    session.said_at = SILENCE_MAX_MILLIS;
    assert_eq!(session.next_deadline(true), SILENCE_MAX_MILLIS);
    assert_eq!(session.check_silence(SILENCE_MAX_MILLIS - 1), Ok(()));
    assert_eq!(session.check_silence(SILENCE_MAX_MILLIS), Err(Violation::Silent));
}

#[test]
fn silence_while_nothing_was_read_is_excused_and_counts_from_then_on() {
    let mut session = open(false);
    session.excuse_silence(true, SILENCE_MAX_MILLIS - 1);
    assert_eq!(session.check_silence(SILENCE_MAX_MILLIS), Ok(()));
    let silent = session.check_silence(2 * SILENCE_MAX_MILLIS - 1);
    assert_eq!(silent, Err(Violation::Silent));
}

#[test]
fn a_session_is_told_nothing_of_an_epoch_in_which_it_was_not_opened() {
    let at = |number: u64| Cursor {
        epoch: Epoch {
            created_at: UnixMillis(number),
            random: 0,
        },
        revision: Revision(7),
        hash: ChainHash([1; 16]),
    };
    let mut resumed = admission(false);
    resumed.welcome.epoch = at(1).epoch;
    resumed.resume = Some(at(1));
    let mut anew = resumed.clone();
    anew.resume = None;
    for admission in [resumed, anew] {
        let mut session = Session::new(member(), 0);
        session.on_message(hello(), 0).expect("in order");
        session.on_admitted(admission);
        session.on_acknowledged(1);
        let other = View::new(at(2), Revision(0));
        let mut now = 0;
        let mut said = |session: &mut Session, view: &View| {
            now += 2 * SAY_UNASKED_MILLIS;
            session.poll(view, now)
        };
        assert!(matches!(said(&mut session, &other), Some(HubMessage::Welcome(_))));
        assert_eq!(said(&mut session, &other), Some(HubMessage::Acknowledged(1)));
        assert_eq!(
            said(&mut session, &other),
            None,
            "neither a cursor nor a heartbeat"
        );
        let own = View::new(at(1), Revision(0));
        assert!(said(&mut session, &own).is_some());
    }
}
