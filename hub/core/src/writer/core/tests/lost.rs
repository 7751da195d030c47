//! Members that are silent: withdrawn when they stay lost, and left alone after a goodbye.

use super::*;

/// Ticks until a moment, and the kinds of events that were recorded.
fn silence(core: &mut Core, from: u64, until: u64) -> Vec<&'static str> {
    silence_but_for(&[], core, from, until)
}

/// The same while these are heard.
fn silence_but_for(heard: &[&str], core: &mut Core, from: u64, until: u64) -> Vec<&'static str> {
    use crate::writer::TICK_MILLIS;
    for now in (from..=until).step_by(TICK_MILLIS as usize) {
        core.tick(UnixMillis(2), now, heard.iter().map(|cluster| (id(cluster), now)));
    }
    let events = core.take_batch().events.into_iter();
    let kind = |payload: Vec<u8>| {
        let event = wire::decode_event(Revision(0), payload.into()).expect("the core wrote it");
        event.fact.fact.kind()
    };
    events.map(|(_, payload)| kind(payload)).collect()
}

#[test]
fn who_stays_lost_is_withdrawn_and_counts_again_when_it_is_heard() {
    let mut core = core();
    admit(&mut core, hello("east", "one", 1));
    core.take_batch();
    let events = silence(&mut core, 500, 69_500);
    assert_eq!(events, ["member_suspect", "member_lost"]);
    assert_eq!(silence(&mut core, 70_000, 71_000), ["member_withdrawn"]);
    assert!(core.state().member(&id("east")).expect("known").is_withdrawn());
    core.tick(UnixMillis(2), 71_500, [(id("east"), 71_500)]);
    assert!(!core.state().member(&id("east")).expect("known").is_withdrawn());
}

#[test]
fn after_a_goodbye_nothing_is_recorded_for_ten_minutes() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let closed = Request::Closed {
        session,
        cluster: id("east"),
        heard_at: 1,
        goodbye: true,
    };
    handle(&mut core, closed);
    core.take_batch();
    assert_eq!(silence(&mut core, 500, 600_000), Vec::<&str>::new());
    assert_eq!(
        silence(&mut core, 600_500, 610_000),
        ["member_suspect", "member_lost"]
    );
}

#[test]
fn an_operator_ends_self_preservation_until_fewer_are_lost() {
    let mut core = core();
    for cluster in ["east", "west", "north"] {
        admit(&mut core, hello(cluster, "one", 1)).expect("admitted");
    }
    core.take_batch();
    let events = silence(&mut core, 500, 70_500);
    assert_eq!(events.last(), Some(&"self_preservation_entered"));
    let release = Command::ReleaseSelfPreservation {
        operator: "alice".into(),
    };
    let decided = operate(&mut core, release.clone(), true).events.len();
    assert_eq!(decided, 1);
    assert_eq!(silence(&mut core, 71_000, 71_500), ["member_withdrawn"; 3]);
    assert!(
        operate(&mut core, release, true).events.is_empty(),
        "there is none"
    );
    assert_eq!(core.state().self_preservation(), None);
}

/// After an outage of the hub's network members come back one after the other.
#[test]
fn the_last_to_come_back_have_their_time_when_fewer_are_lost_than_too_many() {
    let mut core = core();
    for cluster in ["east", "west", "north"] {
        admit(&mut core, hello(cluster, "one", 1)).expect("admitted");
    }
    core.take_batch();
    let events = silence(&mut core, 500, 80_000);
    assert_eq!(events.last(), Some(&"self_preservation_entered"));
    let back = silence_but_for(&["east", "west"], &mut core, 80_500, 150_000);
    assert_eq!(back, ["member_live", "member_live", "self_preservation_left"]);
    let later = silence_but_for(&["east", "west"], &mut core, 150_500, 151_000);
    assert_eq!(later, ["member_withdrawn"], "north never came");
}
