//! Tests of a member's applied position: its delay, and the refusal of a position that the member was not sent.

use fold::DerivedKey;
use model::sync::{DesiredChange, DesiredItem, DesiredKey};

use super::*;
use crate::view::{Entry, Item, Publication};

/// A session whose agent reports its position, over a view with the head `revision`; everything is sent.
fn follows(view: &View) -> Session {
    let AgentMessage::Hello(hello) = hello() else {
        unreachable!()
    };
    let hello = Hello {
        features: FEATURE_APPLIED,
        ..*hello
    };
    let mut session = Session::new(member(), 0);
    session
        .on_message(AgentMessage::Hello(Box::new(hello)), 0)
        .expect("in order");
    session.on_admitted(admission(false));
    say_all(&mut session, view, 0);
    session
}

fn stands(revision: u64) -> AgentMessage {
    let cursor = Cursor {
        revision: Revision(revision),
        ..Cursor::default()
    };
    AgentMessage::Heartbeat(Some(Applied {
        cursor: Some(cursor),
        ..Applied::default()
    }))
}

/// `name` was removed by the event at `revision`, which became durable at that time.
fn removed(view: &mut View, name: &str, revision: u64, at: u64) {
    let item = Item::new(DesiredItem {
        revision: Revision(revision),
        change: DesiredChange::Removed(DesiredKey::ExportStatus(key(name))),
    });
    let entry = Entry {
        revision: Revision(revision),
        item,
        removed: true,
    };
    let change = Publication {
        key: DerivedKey::ExportStatus(member(), key(name)),
        entry,
    };
    let head = Cursor {
        revision: Revision(revision),
        ..Cursor::default()
    };
    view.publish(head, vec![change], 100);
    view.stamp(at);
}

#[test]
fn a_change_is_followed_from_its_recording_until_the_member_says_that_it_stands() {
    let mut view = View::new(Cursor::default(), Revision(0));
    let mut session = follows(&view);
    removed(&mut view, "cart", 3, 1_000);
    say_all(&mut session, &view, 1_100);
    assert_eq!(
        session.standing().and_then(|known| known.waits_since),
        Some(1_000)
    );
    let taken = session.on_message(stands(3), 1_400);
    assert_eq!(taken, Ok(vec![Effect::Applied(vec![400])]));
    let known = session.standing().expect("its agent says");
    assert_eq!((known.revision, known.waits_since), (Some(Revision(3)), None));
}

#[test]
fn nobody_has_applied_what_it_was_not_told() {
    let mut view = View::new(Cursor::default(), Revision(0));
    let mut session = follows(&view);
    removed(&mut view, "cart", 3, 0);
    let untold = session.on_message(stands(3), 0);
    assert!(matches!(untold, Err(Violation::AppliedUntold(_))), "{untold:?}");
    say_all(&mut session, &view, 0);
    assert!(session.on_message(stands(3), 0).is_ok());
    let foreign = AgentMessage::Heartbeat(Some(Applied {
        cursor: Some(Cursor {
            epoch: Epoch {
                created_at: UnixMillis(1),
                random: 0,
            },
            ..Cursor::default()
        }),
        ..Applied::default()
    }));
    let foreign = session.on_message(foreign, 0);
    assert!(matches!(foreign, Err(Violation::AppliedUntold(_))), "{foreign:?}");
}

#[test]
fn of_an_agent_that_does_not_say_what_stands_nothing_is_waited_for() {
    let mut view = View::new(Cursor::default(), Revision(0));
    let mut session = open(false);
    say_all(&mut session, &view, 0);
    removed(&mut view, "cart", 3, 0);
    say_all(&mut session, &view, 0);
    assert_eq!(session.standing(), None);
    assert_eq!(session.on_message(stands(99), 0), Ok(vec![]), "it is passed over");
}
