//! A hub that takes the lead from another: its records, its term, and the time that it gives.

use model::{Cursor, Epoch, Revision, SessionId};

use super::*;
use crate::{
    bounds::Bounds,
    writer::{connectivity::LOST_AFTER_MILLIS, core::Options, request::TERM},
};
use fold::{FOLD_VERSION, State};

const CLOCK: UnixMillis = UnixMillis(2_000);

fn core(state: State, term: u64) -> Core {
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
        bounds: Bounds::default(),
    };
    let at = Cursor {
        epoch: Epoch::default().next(UnixMillis(1), 7),
        revision: state.revision(),
        ..Cursor::default()
    };
    Core::new(state, at, CLOCK, options, 0).in_term(term)
}

fn takeover(replica: &str) -> Takeover {
    Takeover {
        replica: replica.into(),
        ended: BTreeSet::new(),
    }
}

/// The facts that a hub records first, and the state after them.
fn recorded(mut core: Core) -> (Vec<Fact>, State) {
    core.begin(CLOCK);
    let events = core.take_batch().events;
    let facts = (1..).zip(events).map(|(revision, (_, payload))| {
        let parsed = wire::parse_event(Revision(revision), payload.into()).expect("an event");
        let wire::StoredFact::Whole(fact) = parsed.fact() else {
            panic!("stored as a difference");
        };
        parsed.into_event(fact).expect("a fact").fact.fact
    });
    (facts.collect(), core.state().clone())
}

#[test]
fn the_first_event_of_a_term_says_who_leads() {
    let (facts, state) = recorded(core(State::new(), 4).taking_over(takeover("hub-1"), 0));
    let changed = |term, replica: &str| Fact::LeaderChanged {
        term,
        replica: replica.into(),
    };
    // Without its rules a new log says nothing.
    assert!(
        matches!(&facts[..], [Fact::FoldVersionChanged { .. }, .., last] if *last == changed(4, "hub-1"))
    );
    assert_eq!(state.term(), 4);
    let (facts, state) = recorded(core(state, 5).taking_over(takeover("hub-2"), 0));
    assert_eq!(facts, [changed(5, "hub-2")]);
    let (facts, state) = recorded(core(state, 5).taking_over(takeover("hub-2"), 0));
    assert_eq!(
        (facts.len(), state.term(), state.fold_version()),
        (0, 5, FOLD_VERSION)
    );
}

#[test]
fn a_hub_that_leads_alone_records_no_term() {
    let (facts, state) = recorded(core(State::new(), TERM));
    assert!(
        !facts
            .iter()
            .any(|fact| matches!(fact, Fact::LeaderChanged { .. }))
    );
    assert_eq!(state.term(), 0);
}

#[test]
fn members_have_ten_seconds_more_after_a_takeover() {
    let east = ClusterId::new("east").expect("a cluster id");
    let restarted = core(State::new(), 1);
    let took_over = core(State::new(), 2).taking_over(takeover("hub-1"), 0);
    let lost = LOST_AFTER_MILLIS;
    assert_eq!(restarted.heard.silence(&east, lost), lost);
    assert_eq!(took_over.heard.silence(&east, lost), 0);
    assert_eq!(took_over.heard.silence(&east, lost + 10_000), lost);
}

#[test]
fn an_end_that_was_seen_while_following_counts() {
    let east = ClusterId::new("east").expect("a cluster id");
    let ended = BTreeSet::from([east.clone()]);
    let seen = Takeover {
        ended,
        ..takeover("hub-1")
    };
    assert!(!core(State::new(), 2).vouches_for(&east));
    assert!(core(State::new(), 2).taking_over(seen, 0).vouches_for(&east));
}

#[test]
fn numbers_of_sessions_go_on_behind_those_in_the_log() {
    let mut state = State::new();
    let event = |revision, recorded_at, session| Event {
        revision: Revision(revision),
        recorded_at: UnixMillis(recorded_at),
        cluster: None,
        incarnation: Revision(0),
        session: SessionId(session),
        member_sequence: 0,
        fact: wire::encode_fact(&Fact::TombstonesBounded { max: 5 }),
        changed_by: None,
    };
    drop(fold::apply(&mut state, &event(1, 1_000, 1_007)));
    assert_eq!(state.last_session(), SessionId(1_007));
    drop(fold::apply(&mut state, &event(2, 1_003, 1_001)));
    assert_eq!(state.last_session(), SessionId(1_007));
    let rows = state.snapshot_rows().collect::<Vec<_>>();
    assert_eq!(
        State::restore(rows).expect("whole").last_session(),
        SessionId(1_007)
    );
    drop(fold::apply(&mut state, &event(3, 1_007, 0)));
    assert_eq!(state.last_session(), SessionId(0), "the recorded time is as high");
}
