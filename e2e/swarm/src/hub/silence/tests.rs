//! Withdrawals in their time and not while too many are lost, and others.

use model::{
    Event, Fact, KeyTerms, Revision, SessionId, UnixMillis,
    policy::{LOSS_DETECTED_MILLIS, SELF_PRESERVATION_LOST_MIN},
};

use super::*;

const STARTED: u64 = 1_000;
const LONG: u64 = 10_000_000;

/// A hub of so many members, of which events come.
struct Fleet {
    state: State,
    silence: Silence,
}

fn member(index: u8) -> ClusterId {
    ClusterId::new(&format!("c{index}")).expect("valid")
}

fn key(index: u8) -> KeyFingerprint {
    KeyFingerprint([index; 32])
}

impl Fleet {
    fn of(members: u8) -> Self {
        let mut fleet = Self {
            state: State::default(),
            silence: Silence::since(STARTED),
        };
        for index in 0..members {
            let joined = Fact::MemberJoined {
                key: key(index),
                cluster_fingerprint: format!("uid-{index}").into(),
                terms: KeyTerms::default(),
            };
            fleet.records(Some(index), &joined);
            fleet.silence.opened(index.into(), &member(index), key(index));
        }
        fleet
    }

    fn records(&mut self, index: Option<u8>, fact: &Fact) {
        let event = Event {
            revision: self.state.revision().next(),
            recorded_at: UnixMillis(1),
            cluster: index.map(member),
            incarnation: Revision(0),
            session: SessionId(0),
            member_sequence: 0,
            fact: wire::encode_fact(fact),
            changed_by: None,
        };
        fold::apply(&mut self.state, &event);
    }

    /// One work of the writer, by which this is recorded.
    fn takes(&mut self, facts: &[(Option<u8>, Fact)]) {
        let before = Losses::of(&self.state);
        facts.iter().for_each(|(of, fact)| self.records(*of, fact));
        self.silence.took(&before, &self.state);
    }

    /// The writer looks at the time, by which this is recorded; these have sessions.
    fn looks(&mut self, now: u64, facts: &[(Option<u8>, Fact)], present: &[u8]) -> Result<(), String> {
        let before = Losses::of(&self.state);
        facts.iter().for_each(|(of, fact)| self.records(*of, fact));
        let present = present.iter().map(|index| member(*index)).collect();
        self.silence.ticked(&before, &self.state, &present, now)
    }

    fn ticks(&mut self, now: u64, facts: &[(Option<u8>, Fact)]) -> Result<(), String> {
        self.looks(now, facts, &[])
    }
}

fn lost(index: u8) -> (Option<u8>, Fact) {
    (Some(index), Fact::MemberLost)
}

fn withdrawn(index: u8) -> (Option<u8>, Fact) {
    (Some(index), Fact::MemberWithdrawn)
}

fn entered() -> (Option<u8>, Fact) {
    (None, Fact::SelfPreservationEntered { lost: 2, members: 4 })
}

fn left() -> (Option<u8>, Fact) {
    (None, Fact::SelfPreservationLeft { operator: "".into() })
}

#[test]
fn who_was_heard_within_the_time_of_the_policy_is_not_withdrawn() {
    let after = Loss::default().after_millis;
    for (early, is_broken) in [(1, true), (0, false)] {
        let mut fleet = Fleet::of(4);
        fleet.silence.heard(0, &member(0), &fleet.state, 5_000);
        let outcome = fleet.ticks(5_000 + after - early, &[lost(0), withdrawn(0)]);
        assert_eq!(outcome.is_err(), is_broken, "{early} ms before its time");
    }
    let mut fleet = Fleet::of(4);
    let unheard = fleet.ticks(STARTED + after - 1, &[lost(1), withdrawn(1)]);
    assert!(unheard.is_err(), "a hub that starts gives everybody their time");
}

#[test]
fn only_the_last_stream_of_a_member_speaks_for_it() {
    let mut fleet = Fleet::of(2);
    fleet.silence.opened(7, &member(0), key(0));
    fleet.silence.heard(0, &member(0), &fleet.state, LONG);
    assert_eq!(fleet.ticks(LONG + 1, &[lost(0), withdrawn(0)]), Ok(()));
    let mut fleet = Fleet::of(2);
    fleet.silence.opened(7, &member(0), key(0));
    fleet.silence.heard(7, &member(0), &fleet.state, LONG);
    assert!(fleet.ticks(LONG + 1, &[lost(0), withdrawn(0)]).is_err());
}

#[test]
fn nobody_is_withdrawn_while_too_many_are_lost() {
    let mut fleet = Fleet::of(4);
    assert!(fleet.ticks(LONG, &[lost(0), lost(1), withdrawn(0)]).is_err());
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.ticks(LONG, &[lost(0), lost(1), entered()]), Ok(()));
    assert!(fleet.ticks(LONG + 500, &[withdrawn(0)]).is_err());
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.ticks(LONG, &[lost(0), lost(1), entered()]), Ok(()));
    let fewer = [(Some(1), Fact::MemberLive), left()];
    assert_eq!(fleet.ticks(LONG + 500, &fewer), Ok(()));
    let after = Loss::default().after_millis;
    assert_eq!(
        fleet.ticks(LONG + 500 + after, &[withdrawn(0)]),
        Ok(()),
        "it had its time anew"
    );
}

#[test]
fn who_is_not_back_when_fewer_are_lost_is_not_withdrawn_in_that_moment() {
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.ticks(LONG, &[lost(0), lost(1), entered()]), Ok(()));
    let fewer = [(Some(1), Fact::MemberLive), left(), withdrawn(0)];
    assert!(fleet.ticks(LONG + 500, &fewer).is_err());
}

#[test]
fn an_operator_or_its_longest_time_ends_it_until_fewer_are_lost() {
    let longest = Loss::default().self_preservation_millis;
    for lets_go in [true, false] {
        let mut fleet = Fleet::of(4);
        assert_eq!(fleet.ticks(LONG, &[lost(0), lost(1), entered()]), Ok(()));
        let then = if lets_go {
            fleet.takes(&[left()]);
            LONG + 500
        } else {
            LONG + longest
        };
        assert_eq!(fleet.ticks(then, &[withdrawn(0), withdrawn(1)]), Ok(()));
        assert_eq!(
            fleet.ticks(then + 500, &[]),
            Ok(()),
            "none is lost that is not withdrawn"
        );
        let anew = fleet.ticks(then + LONG, &[lost(2), lost(3), withdrawn(2)]);
        assert!(anew.is_err());
    }
}

#[test]
fn too_many_are_two_at_least_and_the_policys_share() {
    let loss = Loss::default();
    assert_eq!(
        [1, 3, 6, 7, 10].map(|members| too_many(&loss, members)),
        [2, 2, 2, 3, 4]
    );
    assert_eq!(TOO_MANY_MIN, SELF_PRESERVATION_LOST_MIN);
    assert!(loss.after_millis >= LOSS_DETECTED_MILLIS);
}

#[test]
fn who_stays_alone_for_its_time_is_withdrawn_unless_too_many_are_lost() {
    let after = Loss::default().after_millis;
    let looks = |fleet: &mut Fleet, present: &[u8]| {
        let times = (1..).map(|tick| tick * TICK_MILLIS).take_while(|at| *at <= after);
        let mut looked = times.map(|at| fleet.looks(LONG + at, &[], present));
        looked.find_map(Result::err)
    };
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.looks(LONG, &[lost(0)], &[1, 2, 3]), Ok(()));
    assert!(looks(&mut fleet, &[1, 2, 3]).is_some());
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.looks(LONG, &[lost(0)], &[1, 2, 3]), Ok(()));
    assert_eq!(looks(&mut fleet, &[0, 1, 2, 3]), None, "it has a session again");
    let mut fleet = Fleet::of(4);
    assert_eq!(fleet.looks(LONG, &[lost(0), lost(1), entered()], &[2, 3]), Ok(()));
    assert_eq!(looks(&mut fleet, &[2, 3]), None);
    fleet.takes(&[left()]);
    let let_go = fleet.looks(LONG + after + TICK_MILLIS, &[], &[2, 3]);
    assert!(let_go.is_err(), "an operator let go");
    let mut late = Fleet::of(4);
    assert_eq!(late.looks(LONG, &[lost(0)], &[1, 2, 3]), Ok(()));
    assert_eq!(
        late.looks(LONG + after, &[], &[1, 2, 3]),
        Ok(()),
        "a look that is late is one"
    );
}
