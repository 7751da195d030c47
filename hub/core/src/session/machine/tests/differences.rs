//! Tests of requests for whole objects: who may send them, and the answers.

use bytes::Bytes;
use fold::DerivedKey;
use model::sync::{DesiredChange, DesiredItem, DesiredKey};

use super::*;
use crate::view::{Entry, Item, Publication};

/// A session whose agent has these features, and whose snapshot was sent.
fn session(features: u64, view: &View) -> Session {
    let AgentMessage::Hello(hello) = hello() else {
        unreachable!()
    };
    let hello = Hello { features, ..*hello };
    let mut session = Session::new(member(), 0);
    session
        .on_message(AgentMessage::Hello(Box::new(hello)), 0)
        .expect("in order");
    session.on_admitted(admission(false));
    say_all(&mut session, view, 0);
    session
}

/// The status of this export was removed.
fn removed(view: &mut View) -> Bytes {
    let item = Item::new(DesiredItem {
        revision: Revision(3),
        change: DesiredChange::Removed(DesiredKey::ExportStatus(key("cart"))),
    });
    let bytes = item.bytes();
    let entry = Entry {
        revision: Revision(3),
        item,
        removed: true,
    };
    let change = Publication {
        key: DerivedKey::ExportStatus(member(), key("cart")),
        entry,
    };
    let head = Cursor {
        revision: Revision(3),
        ..Cursor::default()
    };
    view.publish(head, vec![change], 100);
    bytes
}

fn wanted() -> AgentMessage {
    AgentMessage::ItemsWanted([DesiredKey::ExportStatus(key("cart"))].into())
}

#[test]
fn what_is_asked_for_is_said_whole_and_the_position_again() {
    let mut view = View::new(Cursor::default(), Revision(0));
    let mut session = session(FEATURE_DIFFERENCES, &view);
    let bytes = removed(&mut view);
    say_all(&mut session, &view, 0);
    assert_eq!(session.on_message(wanted(), 0), Ok(vec![Effect::Wanted(1)]));
    let said = say_all(&mut session, &view, 0);
    let [HubMessage::Desired { items, .. }, HubMessage::UpTo(up_to)] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((&items[..], up_to.cursor), (&[bytes][..], view.head()));
}

#[test]
fn an_agent_that_takes_no_differences_has_nothing_to_ask_for() {
    let view = View::new(Cursor::default(), Revision(0));
    let mut session = session(0, &view);
    let refused = session.on_message(wanted(), 0);
    assert_eq!(refused, Err(Violation::WantedWithoutDifferences));
    let words = Violation::WantedWithoutDifferences.to_string();
    assert!(words.contains("its Hello lacks the feature bit 4"), "{words}");
    let mut session = Session::new(member(), 0);
    assert_eq!(session.on_message(wanted(), 0), Err(Violation::HelloOutOfPlace));
}
