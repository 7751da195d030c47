//! Differences that lead nowhere, or elsewhere: each is damage with its place, to every reader, and never another fact.

use std::sync::Arc;

use bytes::Bytes;
use shared::{
    model::{ClusterProperty, Cursor, Event, Fact, PropertyValue, Revision, SessionId, UnixMillis, advice},
    wire,
};

use super::hand::{Place, east, read};
use hub::{
    log::{Batch, Budget, Log, LogError},
    maintain,
    recall::RecallError,
    replay::{ReplayError, replay_by_the_first_rules},
};

fn event(revision: u64, fact: &Fact) -> Event {
    Event {
        revision: Revision(revision),
        recorded_at: UnixMillis(2_000),
        cluster: Some(east()),
        incarnation: Revision(1),
        session: SessionId(1),
        member_sequence: revision,
        fact: wire::encode_fact(fact),
        changed_by: None,
    }
}

/// Text in which nothing repeats; each version has another part of it changed, so that a difference over another one
/// leads elsewhere.
fn version(version: u8) -> Fact {
    let part = |number: u8| {
        let number = if number == version { 100 + number } else { number };
        blake3::hash(&[number]).to_hex()[..24].to_owned()
    };
    Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
        name: "text.example.org".into(),
        value: PropertyValue::Text((0..42).map(part).collect::<String>().into()),
    }))
}

fn whole(revision: u64) -> Vec<u8> {
    wire::encode_event(&event(revision, &version(revision as u8)))
}

fn fact(number: u8) -> Bytes {
    wire::encode_fact(&version(number)).bytes
}

/// A difference that says to follow `base`, made over what `made_over` recorded.
fn over(revision: u64, base: u64, made_over: u64) -> Vec<u8> {
    let event = event(revision, &version(revision as u8));
    wire::encode_event_over(&event, Revision(base), &fact(made_over as u8)).expect("much is shared")
}

fn append(log: &mut dyn Log, payloads: Vec<Vec<u8>>) -> Cursor {
    let batch = Batch::new(log.head(), payloads).expect("within the bounds");
    log.append_and_wait(batch).expect("it is durable")
}

/// Every reader meets the damage at this revision: alone, in a page behind good events, at a start, in a verification.
fn is_damage(payloads: Vec<Vec<u8>>, at: u64, what: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut log = Place::sled(dir.path()).open();
    let Cursor { epoch, .. } = append(&mut *log, payloads);
    let place = format!("epoch {epoch}, revision {at}");
    for from in 1..=at {
        let page = read(&*log, epoch, Revision(from), Budget::default());
        match page {
            Ok(page) => assert_eq!(page.events.last().map(|(last, _)| last.revision.0), Some(at - 1)),
            Err(RecallError::Log(LogError::Corrupt(found))) => {
                assert_eq!((found.place.as_str(), from), (place.as_str(), at));
                assert!(found.what.contains(what), "{found}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    let error = replay_by_the_first_rules(&log.reader()).expect_err("it is damaged");
    assert!(
        matches!(&error, ReplayError::Log(LogError::Corrupt(found)) if found.place == place),
        "{error}"
    );
    assert!(error.to_string().contains(&advice::log_verify("DIR")), "{error}");
    drop(log);
    let report = maintain::verify(dir.path(), &mut |_| {}).expect("readable");
    let found = &report.logs[0].corruptions;
    assert!(
        found.len() == 1 && found[0].place == place && found[0].what.contains(what),
        "{found:?}"
    );
}

#[test]
fn a_difference_over_another_fact_is_damage_and_never_another_fact() {
    is_damage(
        vec![whole(1), whole(2), over(3, 2, 2), over(4, 3, 1)],
        4,
        "event 3",
    );
    // Between two of one size it always leads somewhere: only the hash tells.
    let (base, other, made) = (fact(1), fact(3), fact(4));
    let difference = shared::difference::difference(&base, &made).expect("much is shared");
    let elsewhere = shared::difference::restore(&other, &difference).expect("the same size");
    assert_ne!(elsewhere, made);
    is_damage(
        vec![whole(1), whole(2), whole(3), over(4, 3, 1)],
        4,
        "another fact than was recorded",
    );
}

#[test]
fn a_difference_to_what_has_no_fact_like_it_is_damage() {
    let lost = wire::encode_event(&event(1, &Fact::MemberLost));
    is_damage(vec![lost, whole(2), over(3, 1, 2)], 3, "event 1");
}

#[test]
fn a_difference_in_a_longer_row_than_is_written_is_damage_where_it_is_read_alone() {
    let mut log = Place::memory().open();
    let differences = (2..=40).map(|revision| over(revision, revision - 1, revision - 1));
    let payloads: Vec<_> = std::iter::once(whole(1)).chain(differences).collect();
    let Cursor { epoch, .. } = append(&mut *log, payloads);
    let alone = |revision| read(&*log, epoch, Revision(revision), Budget { events: 1, bytes: 0 });
    assert!(alone(32).is_ok(), "31 differences from the whole");
    let error = alone(40).expect_err("too far");
    assert!(error.to_string().contains("more than 31 differences"), "{error}");
}

#[test]
fn a_difference_to_an_earlier_segment_is_damage_to_a_verification() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut log = Place::sled(dir.path()).open();
    append(&mut *log, vec![whole(1)]);
    log.seal_and_wait(UnixMillis(2_000), Box::new(std::iter::once(b"state".to_vec())))
        .expect("it is sealed");
    append(&mut *log, vec![over(2, 1, 1)]);
    drop(log);
    let report = maintain::verify(dir.path(), &mut |_| {}).expect("readable");
    let found = &report.logs[0].corruptions;
    assert!(
        found.len() == 1 && found[0].what.contains("an earlier segment"),
        "{found:?}"
    );
}

#[test]
fn bytes_of_no_difference_are_refused() {
    for (revision, stored, why) in [
        (2, over(2, 2, 1), "no earlier one"),
        (1, over(1, 5, 2), "no earlier one"),
    ] {
        let error = wire::parse_event(Revision(revision), stored.into()).expect_err("no event");
        assert!(error.to_string().contains(why), "{error}");
    }
}
