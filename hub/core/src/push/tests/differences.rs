//! Tests of objects sent as differences, and of members that request them whole.

use model::sync::{ItemDifference, Told};

use super::*;

/// An object of some hundred bytes, most of which all its versions share.
fn large(view: &mut View, revision: u64, name: &str) {
    let key = import("shop", name);
    let uid = format!("{revision} {}", "as it ever was ".repeat(20));
    let entry = entry(revision, content(&key, &uid));
    view.publish(cursor(revision), vec![Publication { key, entry }], 1_000);
}

/// A member that received everything: all present objects were sent.
fn all_is_sent(view: &View) {
    drain_told(
        &mut Push::snapshot(member(), interest(1, &["shop", "bank"])),
        view,
    );
}

/// A member that holds everything up to `revision` and takes differences.
fn at(revision: u64) -> Push {
    Push::resume(member(), interest(1, &["shop"]), cursor(revision)).with_differences(true)
}

/// Like [`drain`], with a mark before what is a difference.
fn drain_told(push: &mut Push, view: &View) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(message) = push.next(view) {
        match message {
            HubMessage::Desired { items, .. } => said.extend(items.into_iter().map(told)),
            HubMessage::SnapshotBegin { .. } => said.push("begin".into()),
            HubMessage::SnapshotComplete(up_to) => {
                said.push(format!("complete at {}", up_to.cursor.revision));
            }
            HubMessage::NamespaceComplete { .. } => said.push("namespace".into()),
            HubMessage::UpTo(up_to) => said.push(format!("up to {}", up_to.cursor.revision)),
            other => unreachable!("push never says {other:?}"),
        }
        assert!(said.len() < 1_000, "push never ends: {said:?}");
    }
    said
}

fn told(item: Bytes) -> String {
    match wire::decode_told(item.clone()) {
        Ok(Told::Difference(ItemDifference { revision, key, .. })) => match key {
            DesiredKey::ExportStatus(service) => format!("~{service}@{revision}"),
            other => panic!("{other:?} was never published"),
        },
        _ => text(item),
    }
}

/// Requests existing objects whole, by import key.
fn wants(push: &mut Push, names: &[&str]) {
    let keys = names.iter().map(|name| DesiredKey::Import(service(name)));
    push.want(keys.collect());
}

#[test]
fn who_holds_what_stood_before_is_sent_the_difference() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    let mut push = at(1);
    large(&mut view, 2, "cart");
    assert_eq!(drain_told(&mut push, &view), ["~shop/cart@2", "up to 2"]);
    large(&mut view, 3, "cart");
    assert_eq!(drain_told(&mut push, &view), ["~shop/cart@3", "up to 3"]);
    assert_eq!(push.differences_sent(), 2);
    let mut late = at(2);
    assert_eq!(
        drain_told(&mut late, &view),
        ["~shop/cart@3", "up to 3"],
        "all share it"
    );
    let mut old = Push::resume(member(), interest(1, &["shop"]), cursor(2));
    assert_eq!(
        drain_told(&mut old, &view),
        ["shop/cart@3", "up to 3"],
        "it does not know them"
    );
}

#[test]
fn who_missed_what_it_leads_from_is_sent_the_whole() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    large(&mut view, 2, "cart");
    all_is_sent(&view);
    large(&mut view, 4, "cart");
    assert_eq!(drain_told(&mut at(1), &view), ["shop/cart@4", "up to 4"]);
    assert_eq!(drain_told(&mut at(2), &view), ["~shop/cart@4", "up to 4"]);
    assert_eq!(drain_told(&mut at(3), &view), ["~shop/cart@4", "up to 4"]);
}

#[test]
fn versions_that_nobody_was_sent_are_passed_over() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    (2..=4).for_each(|revision| large(&mut view, revision, "cart"));
    assert_eq!(drain_told(&mut at(1), &view), ["~shop/cart@4", "up to 4"]);
}

/// Its position passed the revision of what the difference leads from, and it was sent something else there.
#[test]
fn a_slow_reader_that_passed_a_revision_holds_not_what_stood_there_once() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    let mut push = at(1).in_chunks_of(1);
    for (revision, name) in [(2, "a"), (3, "cart"), (4, "z")] {
        large(&mut view, revision, name);
    }
    assert_eq!(
        push.next(&view).map(|message| texts(&message)),
        Some("shop/a@2".into())
    );
    all_is_sent(&view);
    for (revision, name) in [(5, "b"), (6, "cart")] {
        large(&mut view, revision, name);
    }
    let rest = ["shop/z@4", "shop/b@5", "shop/cart@6", "up to 6"];
    assert_eq!(drain_told(&mut push, &view), rest, "it holds cart@1");
    large(&mut view, 7, "cart");
    assert_eq!(
        drain_told(&mut push, &view),
        ["~shop/cart@7", "up to 7"],
        "it has caught up"
    );
}

#[test]
fn a_snapshot_and_what_follows_it_at_once_is_whole() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    let mut push = Push::snapshot(member(), interest(1, &["shop"])).with_differences(true);
    assert!(matches!(push.next(&view), Some(HubMessage::SnapshotBegin { .. })));
    assert!(matches!(push.next(&view), Some(HubMessage::Desired { .. })));
    large(&mut view, 2, "cart");
    let rest = ["complete at 1", "shop/cart@2", "up to 2"];
    assert_eq!(drain_told(&mut push, &view), rest);
    large(&mut view, 3, "cart");
    assert_eq!(drain_told(&mut push, &view), ["~shop/cart@3", "up to 3"]);
}

#[test]
fn what_follows_an_added_namespace_at_once_is_whole() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    let mut push = at(1);
    push.change_interest(2, ["bank".into()].into(), &BTreeSet::new());
    large(&mut view, 2, "cart");
    let said = ["namespace", "shop/cart@2", "up to 2"];
    assert_eq!(drain_told(&mut push, &view), said);
    push.change_interest(3, BTreeSet::new(), &["bank".into()].into());
    large(&mut view, 3, "cart");
    assert_eq!(drain_told(&mut push, &view), ["~shop/cart@3", "up to 3"]);
}

/// The position that the member received with the difference it did not take: it is sent again behind the whole.
#[test]
fn what_is_wanted_is_sent_whole_as_it_stands_and_the_position_once_more() {
    let mut view = View::new(cursor(0), Revision(0));
    for (revision, name) in [(1, "cart"), (2, "till"), (3, "gone")] {
        large(&mut view, revision, name);
    }
    all_is_sent(&view);
    let mut push = at(3);
    large(&mut view, 4, "cart");
    assert_eq!(drain_told(&mut push, &view), ["~shop/cart@4", "up to 4"]);
    wants(&mut push, &["cart"]);
    wants(&mut push, &["cart"]);
    assert_eq!((push.settled(), push.idle_up_to(&view)), (None, None));
    assert_eq!(drain_told(&mut push, &view), ["shop/cart@4", "up to 4"]);
    assert_eq!(push.settled(), Some(Revision(4)));
    publish(&mut view, 5, import("shop", "gone"), true);
    large(&mut view, 6, "cart");
    wants(&mut push, &["cart", "gone"]);
    let said = [
        "shop/cart@6",
        "shop/gone@5 gone",
        "shop/gone@5 gone",
        "~shop/cart@6",
        "up to 6",
    ];
    assert_eq!(drain_told(&mut push, &view), said, "what comes twice is the same");
}

#[test]
fn nothing_is_sent_of_what_is_unknown_outside_the_interest_or_of_another_member() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    publish(&mut view, 2, import("bank", "till"), false);
    let other = ClusterId::new("west").expect("valid");
    publish(
        &mut view,
        3,
        DerivedKey::ExportStatus(other, service("cart")),
        false,
    );
    let mut push = at(3);
    let bank = ServiceKey::new("bank", "till").expect("valid");
    let foreign = [
        DesiredKey::Import(bank),
        DesiredKey::Import(service("nothing")),
        DesiredKey::ExportStatus(service("cart")),
    ];
    push.want(foreign.into());
    assert_eq!(drain_told(&mut push, &view), [""; 0]);
    wants(&mut push, &["cart"]);
    push.change_interest(2, BTreeSet::new(), &["shop".into()].into());
    assert_eq!(
        drain_told(&mut push, &view),
        [""; 0],
        "it went before it was sent"
    );
}

#[test]
fn a_snapshot_answers_what_was_wanted_before_and_meanwhile() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    let mut push = Push::snapshot(member(), interest(1, &["shop"])).with_differences(true);
    wants(&mut push, &["cart"]);
    assert!(matches!(push.next(&view), Some(HubMessage::SnapshotBegin { .. })));
    wants(&mut push, &["cart"]);
    assert_eq!(drain_told(&mut push, &view), ["shop/cart@1", "complete at 1"]);
}

#[test]
fn a_snapshot_is_the_answer_to_more_than_may_wait() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    let mut push = at(1);
    let names: Vec<String> = (0..=ITEMS_WANTED_MAX)
        .map(|number| format!("s{number}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    wants(&mut push, &names[1..]);
    assert_eq!(push.wanted.len(), ITEMS_WANTED_MAX);
    wants(&mut push, &names[..1]);
    assert_eq!(
        drain_told(&mut push, &view),
        ["begin", "shop/cart@1", "complete at 1"]
    );
}

#[test]
fn who_asks_again_and_again_gets_everything_whole() {
    let mut view = View::new(cursor(0), Revision(0));
    large(&mut view, 1, "cart");
    all_is_sent(&view);
    let mut push = at(1);
    for _ in 0..WANTED_PATIENCE {
        wants(&mut push, &["cart"]);
    }
    large(&mut view, 2, "till");
    large(&mut view, 3, "cart");
    let said = drain_told(&mut push, &view);
    assert!(said.contains(&"~shop/cart@3".to_owned()), "{said:?}");
    wants(&mut push, &["cart"]);
    large(&mut view, 4, "cart");
    let said = drain_told(&mut push, &view);
    assert_eq!(said.last(), Some(&"up to 4".to_owned()));
    assert!(!said.iter().any(|item| item.starts_with('~')), "{said:?}");
}
