//! Admission: epochs, cursors, and whose claims about them are believed.

use std::collections::BTreeSet;

use model::{ChainHash, KeyFingerprint, Revision, UnixMillis, sync::Interest};

use super::*;
use crate::writer::{
    Options,
    core::Batch,
    request::{Certification, CursorVerdict, Request},
};
use fold::{SnapshotHeader, SnapshotRow, State};

mod clocks;
mod service;

const OURS: u64 = 100;
const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

fn epoch(number: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(number),
        random: 0,
    }
}

fn id(name: &str) -> ClusterId {
    ClusterId::new(name).expect("a cluster id")
}

fn core() -> Core {
    let head = Cursor {
        epoch: epoch(OURS),
        ..Cursor::default()
    };
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    Core::new(State::new(), head, UnixMillis(1), options, 0)
}

/// A verdict of the log in this epoch.
fn judged_in(number: u64, check: CursorCheck) -> CursorVerdict {
    let under = Cursor {
        epoch: epoch(number),
        ..Cursor::default()
    };
    CursorVerdict { under, check }
}

/// A Hello of a cluster that knows this epoch.
fn hello(cluster: &str, known: Option<u64>, cursor: CursorCheck) -> AdmitRequest {
    AdmitRequest {
        cluster: id(cluster),
        key: KEY,
        hello: Hello {
            protocol_version: PROTOCOL_VERSION,
            features: 0,
            agent_version: "0".into(),
            highest_epoch: known.map(epoch),
            cluster_fingerprint: format!("uid-of-{cluster}").into(),
            instance: format!("instance-of-{cluster}").into(),
            lease_transitions: 1,
            cursor: None,
            exports_digest: None,
            properties_digest: None,
            sources_held: Default::default(),
            interest: Interest::default(),
        },
        cursor: judged_in(OURS, cursor),
        pinged: None,
        presented: Default::default(),
    }
}

fn handle(core: &mut Core, request: Request) -> Batch {
    core.handle(request, UnixMillis(2), 1);
    core.take_batch()
}

fn admit(core: &mut Core, request: AdmitRequest) -> Batch {
    handle(core, Request::Admit(1, Box::new(request)))
}

fn health() -> model::EncodedFact {
    let health = model::Health {
        kubernetes_version: "v1".into(),
        control_plane: model::ControlPlane::Ready,
        failed_checks: Vec::new(),
        verdict: None,
        nodes: None,
    };
    wire::encode_fact(&model::Fact::HealthReported(std::sync::Arc::new(health)))
}

/// A health is a fact: the log is not empty after it.
fn with_a_fact(core: &mut Core, cluster: &str) {
    let session = core.sessions[&id(cluster)].session;
    let observations = vec![model::sync::Observation::new(
        1,
        model::sync::ObservedItem::Fact(health()),
    )];
    let cluster = id(cluster);
    handle(
        core,
        Request::Observe {
            session,
            cluster,
            observations,
        },
    );
    assert!(!core.state.holds_no_facts());
}

fn refused(batch: &Batch, by: impl Fn(&NotAdmitted) -> bool) -> bool {
    let not = |reply: &Reply| matches!(reply, Reply::NotAdmitted(_, not) if by(not));
    batch.replies.iter().any(not)
}

fn not_served(not: &NotAdmitted) -> bool {
    matches!(not, NotAdmitted::NotServing(why) if why.contains("--adopt-epoch"))
}

/// A position of an epoch that began in this process was never told to anybody.
fn never_told(not: &NotAdmitted) -> bool {
    matches!(not, NotAdmitted::Doubted(why) if why.contains("never told anybody") && why.contains("member evict"))
}

fn doubted(not: &NotAdmitted) -> bool {
    matches!(not, NotAdmitted::Doubted(why) if why.contains("member evict"))
}

#[test]
fn a_later_epoch_that_two_know_ends_the_sessions_of_those_who_did_not_know_it() {
    let mut core = core();
    for cluster in ["west", "north", "east"] {
        admit(&mut core, hello(cluster, None, CursorCheck::Absent));
    }
    with_a_fact(&mut core, "east");
    let session = core.sessions[&id("east")].session;
    for _ in 0..2 {
        let batch = admit(&mut core, hello("west", Some(OURS + 1), CursorCheck::Absent));
        assert!(refused(&batch, not_served), "{:?}", batch.replies);
        assert!(core.not_serving().is_none() && core.sessions.contains_key(&id("east")));
    }
    let batch = admit(&mut core, hello("north", Some(OURS + 2), CursorCheck::Absent));
    assert!(refused(&batch, not_served), "{:?}", batch.replies);
    let closed = |reply: &Reply| matches!(reply, Reply::Close(of, why) if *of == session && why.contains("--adopt-epoch"));
    assert!(batch.replies.iter().any(closed), "{:?}", batch.replies);
    assert!(core.not_serving().is_some() && core.sessions.is_empty());
    // Nothing more is recorded: silent members were sent away.
    core.tick(UnixMillis(100_000), 100_000, []);
    assert!(core.take_batch().events.is_empty());
    let batch = admit(&mut core, hello("east", None, CursorCheck::Absent));
    assert!(refused(&batch, not_served), "{:?}", batch.replies);
    assert_eq!(core.know_later_epoch(), [id("north"), id("west")]);
}

#[test]
fn a_later_epoch_that_the_only_member_knows_is_enough() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    with_a_fact(&mut core, "east");
    let batch = admit(&mut core, hello("east", Some(OURS + 1), CursorCheck::Absent));
    assert!(refused(&batch, not_served), "{:?}", batch.replies);
    assert!(core.not_serving().is_some());
}

/// The epoch that was asked for begins.
fn begin_epoch(core: &mut Core) -> Vec<(SessionId, String)> {
    let known = core.must_mint().expect("an epoch is to begin");
    let head = Cursor {
        epoch: known.next(UnixMillis(0), 0),
        ..Cursor::default()
    };
    let mut state = core.state().clone();
    state.begin_epoch();
    let closed = core.epoch_begun(head, state);
    core.take_batch();
    closed
}

/// A verdict of the present log.
fn judged_now(core: &Core, check: CursorCheck) -> CursorVerdict {
    let under = core.head;
    CursorVerdict { under, check }
}

fn judged_before(not: &NotAdmitted) -> bool {
    *not == NotAdmitted::JudgedBefore
}

#[test]
fn one_rewind_begins_one_epoch_however_many_members_report_it() {
    let mut core = core();
    let ahead = |number: usize| hello(&format!("c{number}"), None, CursorCheck::Ahead);
    let batch = admit(&mut core, ahead(0));
    assert!(refused(&batch, |not| *not == NotAdmitted::NewEpoch));
    begin_epoch(&mut core);
    // These waited for the writer meanwhile, with what was true of them in the epoch before.
    for number in 1..50 {
        let mut request = ahead(number);
        if number % 2 == 0 {
            request.cursor.check = CursorCheck::Foreign;
        }
        let batch = admit(&mut core, request);
        assert!(refused(&batch, judged_before), "{:?}", batch.replies);
        assert!(core.must_mint().is_none(), "an epoch for member {number}");
    }
}

#[test]
fn a_position_of_the_epoch_before_is_judged_again_and_not_resumed() {
    let mut core = core();
    admit(&mut core, hello("west", None, CursorCheck::Ahead));
    begin_epoch(&mut core);
    for check in [
        CursorCheck::OnHistory,
        CursorCheck::Forgotten,
        CursorCheck::OtherEpoch,
    ] {
        let mut request = hello("east", None, check);
        request.hello.cursor = Some(Cursor {
            epoch: epoch(OURS),
            ..Cursor::default()
        });
        let batch = admit(&mut core, request.clone());
        assert!(refused(&batch, judged_before), "{:?}", batch.replies);
        assert!(!core.sessions.contains_key(&id("east")));
    }
    // Without a cursor there is nothing to judge.
    let batch = admit(&mut core, hello("east", None, CursorCheck::Absent));
    assert!(!admission(&batch).welcome.resume);
}

#[test]
fn a_new_epoch_ends_every_session_of_the_one_before() {
    let mut core = core();
    for cluster in ["east", "north"] {
        admit(&mut core, hello(cluster, None, CursorCheck::Absent));
    }
    let open: BTreeSet<SessionId> = core.sessions.values().map(|open| open.session).collect();
    admit(&mut core, hello("west", None, CursorCheck::Foreign));
    let closed = begin_epoch(&mut core);
    assert_eq!(
        closed
            .into_iter()
            .map(|(session, _)| session)
            .collect::<BTreeSet<_>>(),
        open
    );
    assert!(core.sessions.is_empty());
}

#[test]
fn a_member_that_goes_on_saying_that_the_log_was_rewound_is_believed_once() {
    let mut core = core();
    for cluster in ["east", "west"] {
        admit(&mut core, hello(cluster, None, CursorCheck::Absent));
    }
    let batch = admit(&mut core, hello("west", None, CursorCheck::Foreign));
    assert!(refused(&batch, |not| *not == NotAdmitted::NewEpoch));
    begin_epoch(&mut core);
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let again = |core: &Core, check| AdmitRequest {
        cursor: judged_now(core, check),
        ..hello("west", None, check)
    };
    let request = again(&core, CursorCheck::Foreign);
    let batch = admit(&mut core, request);
    assert!(refused(&batch, never_told), "{:?}", batch.replies);
    assert!(core.must_mint().is_none() && core.sessions.contains_key(&id("east")));
    // With a cursor of another epoch it is welcome at any time.
    let request = again(&core, CursorCheck::OtherEpoch);
    let batch = admit(&mut core, request);
    assert!(
        batch
            .replies
            .iter()
            .any(|reply| matches!(reply, Reply::Admitted(..)))
    );
    // Nobody is believed: the epoch began in this process, which told nobody of such a position.
    let later = 1 + crate::writer::MINT_INTERVAL_MILLIS;
    for cluster in ["west", "east", "south"] {
        let request = AdmitRequest {
            cursor: judged_now(&core, CursorCheck::Ahead),
            ..hello(cluster, None, CursorCheck::Ahead)
        };
        core.handle(Request::Admit(1, Box::new(request)), UnixMillis(2), later);
        let batch = core.take_batch();
        assert!(refused(&batch, never_told), "{:?}", batch.replies);
        assert!(core.must_mint().is_none());
    }
}

#[test]
fn an_empty_hub_rises_above_a_member_once_and_above_no_impossible_epoch() {
    let mut core = core();
    let batch = admit(&mut core, hello("west", Some(u64::MAX), CursorCheck::Absent));
    assert!(
        refused(&batch, doubted) && core.must_mint().is_none(),
        "{:?}",
        batch.replies
    );
    admit(&mut core, hello("west", Some(OURS + 7), CursorCheck::Absent));
    begin_epoch(&mut core);
    let batch = admit(&mut core, hello("west", Some(OURS + 70), CursorCheck::Absent));
    assert!(
        refused(&batch, doubted) && core.must_mint().is_none(),
        "{:?}",
        batch.replies
    );
    admit(&mut core, hello("east", Some(OURS + 70), CursorCheck::Absent));
    assert!(core.must_mint().is_some(), "another member is believed");
}

#[test]
fn who_is_not_admitted_neither_stops_nor_rewinds_the_hub() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    with_a_fact(&mut core, "east");
    admit(&mut core, hello("west", None, CursorCheck::Absent));
    let evict = Command::Evict {
        cluster: id("west"),
        operator: "alice".into(),
    };
    handle(
        &mut core,
        Request::Operate {
            token: 2,
            command: evict,
            confirm: true,
            describe: |_, _, _| Vec::new(),
        },
    );
    for request in [
        hello("west", Some(OURS + 1), CursorCheck::Absent),
        hello("west", None, CursorCheck::Foreign),
    ] {
        let batch = admit(&mut core, request);
        let epoch = core.head.epoch;
        let ended = |not: &NotAdmitted| matches!(not, NotAdmitted::Ended(_, under) if *under == epoch);
        assert!(refused(&batch, ended), "{:?}", batch.replies);
        assert!(core.not_serving().is_none() && core.must_mint().is_none());
    }
    assert!(core.sessions.contains_key(&id("east")));
}

/// Certificates that were stolen, or issued in excess: no number of them stops what members are served.
#[test]
fn who_never_joined_stops_nobody_and_all_of_them_rewind_once() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    with_a_fact(&mut core, "east");
    for number in 0..5 {
        let stranger = hello(&format!("c{number}"), Some(OURS + 1), CursorCheck::Absent);
        let batch = admit(&mut core, stranger);
        assert!(refused(&batch, not_served), "{:?}", batch.replies);
        assert!(core.not_serving().is_none() && core.sessions.contains_key(&id("east")));
    }
    // It may be a member of a log that was lost: one is believed.
    let batch = admit(&mut core, hello("c0", None, CursorCheck::Ahead));
    assert!(refused(&batch, |not| *not == NotAdmitted::NewEpoch));
    begin_epoch(&mut core);
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    for number in 1..5 {
        let stranger = AdmitRequest {
            cursor: judged_now(&core, CursorCheck::Foreign),
            ..hello(&format!("c{number}"), None, CursorCheck::Foreign)
        };
        let batch = admit(&mut core, stranger);
        assert!(refused(&batch, never_told), "{:?}", batch.replies);
        assert!(core.must_mint().is_none() && core.sessions.contains_key(&id("east")));
    }
}

#[test]
fn ahead_of_the_head_foreign_and_forgotten_are_different_answers() {
    let at = |number, revision, hash| Cursor {
        epoch: epoch(number),
        revision: Revision(revision),
        hash: ChainHash([hash; 16]),
    };
    let head = at(OURS, 7, 7);
    let by_head = |cursor| CursorVerdict::by_head(cursor, head).map(|verdict| verdict.check);
    assert_eq!(by_head(None), Ok(CursorCheck::Absent));
    assert_eq!(by_head(Some(at(OURS - 1, 3, 1))), Ok(CursorCheck::OtherEpoch));
    assert_eq!(by_head(Some(at(OURS, 8, 1))), Ok(CursorCheck::Ahead));
    // Even at the head only the hash can tell.
    for cursor in [head, at(OURS, 3, 1)] {
        assert_eq!(by_head(Some(cursor)), Err(cursor));
    }
    for (on_record, check) in [
        (Some(ChainHash([1; 16])), CursorCheck::OnHistory),
        (Some(ChainHash([2; 16])), CursorCheck::Foreign),
        (None, CursorCheck::Forgotten),
    ] {
        let verdict = CursorVerdict::by_hash(at(OURS, 3, 1), on_record, head);
        assert_eq!(verdict, CursorVerdict { under: head, check });
    }
}

fn admission(batch: &Batch) -> &Admission {
    let admitted = |reply: &'_ Reply| matches!(reply, Reply::Admitted(..));
    match batch.replies.iter().find(|reply| admitted(reply)) {
        Some(Reply::Admitted(_, admission)) => admission,
        _ => panic!("not admitted: {:?}", batch.replies),
    }
}

/// A state that has forgotten removals up to this revision, as a hub may have done while a Hello waited for it.
fn forgetful(floor: u64) -> State {
    let rows = State::new().into_snapshot_rows().map(|row| match row {
        SnapshotRow::Header(header) => SnapshotRow::Header(SnapshotHeader {
            fold_version: fold::FOLD_VERSION,
            tombstone_floor: Revision(floor),
            ..header
        }),
        other => other,
    });
    State::restore(rows).expect("a snapshot")
}

#[test]
fn a_cursor_is_resumed_unless_it_may_have_missed_a_removal() {
    for (floor, resumed) in [(6, true), (7, true), (8, false)] {
        let core = &mut core();
        core.state = forgetful(floor);
        let mut request = hello("east", None, CursorCheck::OnHistory);
        request.hello.cursor = Some(Cursor {
            epoch: core.head.epoch,
            revision: Revision(7),
            ..Cursor::default()
        });
        let batch = admit(core, request);
        let admission = admission(&batch);
        assert_eq!(
            (admission.resume.is_some(), admission.welcome.resume),
            (resumed, resumed)
        );
    }
}

#[test]
fn only_the_digest_of_the_facts_on_record_makes_a_member_listed() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let on_record = |core: &Core, group| core.state.facts_digest(&id("east"), group);
    let exports = on_record(&core, ListingGroup::Exports);
    let properties = on_record(&core, ListingGroup::Properties);
    let other = Some(FactsDigest([9; 16]));
    for (digest, of_properties, listed) in [
        (None, None, false),
        (other, other, false),
        (exports, properties, true),
    ] {
        let mut request = hello("east", None, CursorCheck::Absent);
        request.hello.exports_digest = digest;
        request.hello.properties_digest = of_properties;
        let batch = admit(&mut core, request);
        let welcome = &admission(&batch).welcome;
        assert_eq!(welcome.list_exports, !listed, "{digest:?}");
        assert_eq!(welcome.list_properties, !listed, "{of_properties:?}");
        assert_eq!(core.listed.contains(&id("east")), listed, "{digest:?}");
    }
}

#[test]
fn an_agent_that_knows_our_epoch_and_no_higher_one_is_admitted_under_it() {
    let mut core = core();
    let ours = core.head.epoch;
    let mut request = hello("east", None, CursorCheck::Absent);
    request.hello.highest_epoch = Some(ours);
    let batch = admit(&mut core, request);
    assert_eq!(admission(&batch).welcome.epoch, ours);
    assert!(core.must_mint.is_none());
}

#[test]
fn what_a_replaced_session_still_says_is_neither_taken_nor_acknowledged() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let stale = core.sessions[&id("east")].session;
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let present = core.sessions[&id("east")].session;
    assert_ne!(stale, present);
    let observations = vec![model::sync::Observation::new(
        1,
        model::sync::ObservedItem::Fact(health()),
    )];
    let cluster = id("east");
    let batch = handle(
        &mut core,
        Request::Observe {
            session: stale,
            cluster,
            observations,
        },
    );
    assert!(batch.events.is_empty() && batch.replies.is_empty(), "{batch:?}");
    let closed = Request::Closed {
        session: stale,
        cluster: id("east"),
        heard_at: 1,
        goodbye: false,
    };
    handle(&mut core, closed);
    assert_eq!(core.sessions[&id("east")].session, present);
}

fn certification(session: SessionId, key: KeyFingerprint) -> Request {
    let certification = Certification {
        session,
        cluster: id("east"),
        key,
        by: KEY,
        issuer: "CN=joining".into(),
        not_after: UnixMillis(9_000),
    };
    Request::Certify(7, certification)
}

/// The writer's answer to a request with another key, and the number of its events.
fn answered(batch: &Batch) -> (Result<(), String>, usize) {
    let outcome = batch.replies.iter().find_map(|reply| match reply {
        Reply::Operated(7, outcome) => Some(outcome.as_ref().map(drop).map_err(ToString::to_string)),
        _ => None,
    });
    (outcome.expect("it is answered"), batch.events.len())
}

#[test]
fn a_certified_key_takes_over_from_its_own_agent_at_once_and_from_no_other() {
    const NEXT: KeyFingerprint = KeyFingerprint([2; 32]);
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let session = core.sessions[&id("east")].session;
    let batch = handle(&mut core, certification(session, NEXT));
    assert_eq!(
        answered(&batch),
        (Ok(()), 1),
        "answered with the event, in its batch"
    );
    let renewed = || AdmitRequest {
        key: NEXT,
        ..hello("east", None, CursorCheck::Absent)
    };
    let mut stranger = renewed();
    stranger.hello.instance = "another".into();
    let batch = admit(&mut core, stranger);
    let held = |not: &NotAdmitted| matches!(not, NotAdmitted::Held(holder) if !holder.is_copied);
    assert!(refused(&batch, held), "{:?}", batch.replies);
    let batch = admit(&mut core, renewed());
    admission(&batch);
    let closed = |reply: &Reply| matches!(reply, Reply::Close(closed, _) if *closed == session);
    assert!(batch.replies.iter().any(closed), "{:?}", batch.replies);
    assert_eq!(core.sessions[&id("east")].key, NEXT);
}

#[test]
fn a_session_that_was_replaced_renews_nothing() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let replaced = core.sessions[&id("east")].session;
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let batch = handle(&mut core, certification(replaced, KeyFingerprint([2; 32])));
    let (outcome, events) = answered(&batch);
    assert!(outcome.is_err() && events == 0, "{outcome:?}");
}
