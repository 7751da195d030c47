//! A member's way through the view, step by step.

mod differences;
mod members;
mod takes;

use std::sync::Arc;

use model::{
    ChainHash, Epoch, ExportStatus, Revision, ServiceKey, UnixMillis,
    sync::{DesiredChange, DesiredItem, DesiredKey},
};

use super::*;
use crate::view::{Entry, Item, Publication};

fn epoch() -> Epoch {
    Epoch {
        created_at: UnixMillis(1),
        random: 1,
    }
}

fn cursor(revision: u64) -> Cursor {
    Cursor {
        epoch: epoch(),
        revision: Revision(revision),
        hash: ChainHash([revision as u8; 16]),
    }
}

fn import(namespace: &str, name: &str) -> DerivedKey {
    DerivedKey::Import(ServiceKey::new(namespace, name).expect("valid"))
}

/// An object under the key of an import or a status. Push never looks into one, so a status does, which has the fewest fields.
fn content(key: &DerivedKey, uid: &str) -> DesiredChange {
    let (DerivedKey::Import(service) | DerivedKey::ExportStatus(_, service)) = key else {
        panic!("{key:?} is never published here")
    };
    DesiredChange::ExportStatus(Arc::new(ExportStatus {
        service: service.clone(),
        uid: uid.into(),
        generation: 1,
        conflicts: Vec::new(),
        exporters: 1,
        denial: None,
        left_out: "".into(),
    }))
}

fn entry(revision: u64, change: DesiredChange) -> Entry {
    let revision = Revision(revision);
    Entry {
        revision,
        removed: matches!(change, DesiredChange::Removed(_)),
        item: Item::new(DesiredItem { revision, change }),
    }
}

/// An item in short words.
fn text(item: Bytes) -> String {
    let DesiredItem { revision, change } = wire::decode_desired(item).expect("an item");
    match change {
        DesiredChange::ExportStatus(status) => format!("{}@{revision}", status.service),
        DesiredChange::Removed(DesiredKey::Import(service)) => format!("{service}@{revision} gone"),
        other => panic!("{other:?} was never published"),
    }
}

/// The items of a message.
fn texts(message: &HubMessage) -> String {
    let HubMessage::Desired { items, .. } = message else {
        panic!("{message:?} has no items")
    };
    let texts: Vec<_> = items.iter().cloned().map(text).collect();
    texts.join(", ")
}

/// Publishes an object or a tombstone.
fn publish(view: &mut View, revision: u64, key: DerivedKey, removed: bool) {
    let change = match &key {
        DerivedKey::Import(service) if removed => DesiredChange::Removed(DesiredKey::Import(service.clone())),
        _ => content(&key, "uid"),
    };
    let entry = entry(revision, change);
    view.publish(cursor(revision), vec![Publication { key, entry }], 1_000);
}

fn interest(generation: u64, namespaces: &[&str]) -> Interest {
    let names = namespaces.iter().map(|&name| name.into()).collect();
    Interest {
        generation,
        namespaces: Namespaces::Only(names),
    }
}

fn member() -> ClusterId {
    ClusterId::new("east").expect("valid")
}

/// All messages until there are no more, in short words.
fn drain(push: &mut Push, view: &View) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(message) = push.next(view) {
        said.push(match message {
            HubMessage::SnapshotBegin { .. } => "begin".into(),
            HubMessage::SnapshotComplete(up_to) => {
                format!(
                    "complete {} at {}",
                    up_to.interest_generation, up_to.cursor.revision
                )
            }
            HubMessage::NamespaceComplete {
                interest_generation,
                namespaces,
            } => format!("namespace {namespaces:?} under {interest_generation}"),
            HubMessage::UpTo(up_to) => format!("up to {}", up_to.cursor.revision),
            HubMessage::Desired { .. } => texts(&message),
            other => unreachable!("push never says {other:?}"),
        });
        assert!(said.len() < 1_000, "push never ends: {said:?}");
    }
    said
}

fn some_view() -> View {
    let mut view = View::new(cursor(0), Revision(0));
    publish(&mut view, 1, import("shop", "cart"), false);
    publish(&mut view, 2, import("bank", "till"), false);
    publish(&mut view, 3, import("shop", "old"), false);
    publish(&mut view, 4, import("shop", "old"), true);
    view
}

#[test]
fn a_snapshot_holds_what_the_interest_covers_and_no_tombstones() {
    let view = some_view();
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    assert_eq!(push.settled(), None);
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@1", "complete 1 at 4"]
    );
    assert_eq!(push.settled(), Some(Revision(4)));
    assert_eq!(push.idle_up_to(&view), None, "the head was told");
}

#[test]
fn all_namespaces_are_covered_by_all() {
    let view = some_view();
    let all = Interest {
        generation: 1,
        namespaces: Namespaces::All,
    };
    let mut push = Push::snapshot(member(), all);
    let said = drain(&mut push, &view);
    assert_eq!(said, ["begin", "bank/till@2, shop/cart@1", "complete 1 at 4"]);
}

#[test]
fn a_resumed_member_gets_changes_and_tombstones_and_then_the_cursor() {
    let view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(2));
    assert_eq!(drain(&mut push, &view), ["shop/old@4 gone", "up to 4"]);
}

#[test]
fn changes_of_others_only_ride_along_with_a_heartbeat() {
    let mut view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    publish(&mut view, 5, import("bank", "till"), false);
    assert_eq!(drain(&mut push, &view), Vec::<String>::new());
    let up_to = push.idle_up_to(&view).expect("the head moved");
    assert_eq!(up_to.cursor, cursor(5));
}

#[test]
fn only_the_latest_of_several_changes_is_sent() {
    let mut view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    publish(&mut view, 5, import("shop", "cart"), false);
    publish(&mut view, 6, import("shop", "cart"), false);
    assert_eq!(drain(&mut push, &view), ["shop/cart@6", "up to 6"]);
}

#[test]
fn an_added_namespace_is_answered_by_its_own_snapshot() {
    let view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    push.change_interest(2, ["bank".into(), "empty".into()].into(), &BTreeSet::new());
    let expected = [
        "bank/till@2",
        "namespace {\"bank\"} under 2",
        "namespace {\"empty\"} under 2",
        "up to 4",
    ];
    assert_eq!(drain(&mut push, &view), expected);
}

/// The member would take the absence of what has not been sent yet for a deletion.
#[test]
fn a_namespace_added_during_a_snapshot_is_not_part_of_it() {
    let view = some_view();
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    assert!(matches!(push.next(&view), Some(HubMessage::SnapshotBegin { .. })));
    push.change_interest(2, ["bank".into()].into(), &BTreeSet::new());
    let expected = [
        "shop/cart@1",
        "complete 1 at 4",
        "bank/till@2",
        "namespace {\"bank\"} under 2",
        "up to 4",
    ];
    assert_eq!(drain(&mut push, &view), expected);
}

#[test]
fn a_removed_namespace_is_neither_listed_nor_followed() {
    let mut view = some_view();
    let mut push = Push::snapshot(member(), interest(1, &["shop", "bank"]));
    push.change_interest(2, BTreeSet::new(), &["bank".into()].into());
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@1", "complete 2 at 4"]
    );
    publish(&mut view, 5, import("bank", "till"), false);
    assert_eq!(drain(&mut push, &view), Vec::<String>::new());
}

#[test]
fn what_changes_during_a_snapshot_follows_it() {
    let mut view = some_view();
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    push.next(&view);
    publish(&mut view, 5, import("shop", "cart"), true);
    assert_eq!(
        drain(&mut push, &view),
        ["complete 1 at 4", "shop/cart@5 gone", "up to 5"]
    );
}

/// Half a message's worth of an object.
fn half_a_message(revision: u64, name: &str) -> Publication {
    let key = import("shop", name);
    let entry = entry(revision, content(&key, &"x".repeat(CHUNK_BYTES / 2)));
    Publication { key, entry }
}

/// Number of objects in each of the next messages.
fn sizes(push: &mut Push, view: &View) -> Vec<usize> {
    std::iter::from_fn(|| match push.next(view) {
        Some(HubMessage::Desired { items, .. }) => Some(items.len()),
        _ => None,
    })
    .collect()
}

#[test]
fn many_changes_come_in_bounded_messages() {
    let mut view = View::new(cursor(0), Revision(0));
    for revision in 1..=5 {
        let change = half_a_message(revision, &format!("s{revision}"));
        view.publish(cursor(revision), vec![change], 1_000);
    }
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(0));
    assert_eq!(sizes(&mut push, &view), [2, 2, 1]);
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    assert!(matches!(push.next(&view), Some(HubMessage::SnapshotBegin { .. })));
    assert_eq!(sizes(&mut push, &view), [2, 2, 1], "a snapshot has every key");
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(0)).in_chunks_of(1);
    assert_eq!(sizes(&mut push, &view), [1; 5], "a message has one item at least");
}

#[test]
fn a_revision_is_settled_when_all_that_it_changed_was_sent() {
    let mut view = View::new(cursor(0), Revision(0));
    let changes = ["a", "b", "c"].map(|name| half_a_message(1, name)).to_vec();
    view.publish(cursor(1), changes, 1_000);
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(0));
    for settled in [0, 1] {
        assert!(matches!(push.next(&view), Some(HubMessage::Desired { .. })));
        assert_eq!(push.settled(), Some(Revision(settled)));
    }
}

#[test]
fn a_resumed_member_is_not_told_the_cursor_that_it_named() {
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    assert_eq!(push.idle_up_to(&some_view()), None);
}

#[test]
fn no_cursor_is_confirmed_while_an_added_namespace_waits() {
    let view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(3));
    push.position = ChangePosition::Revision(Revision(4));
    push.change_interest(2, ["bank".into()].into(), &BTreeSet::new());
    assert_eq!(push.idle_up_to(&view), None);
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    push.next(&view);
    assert_eq!(push.idle_up_to(&view), None, "nor during a snapshot");
}

#[test]
fn a_namespace_that_is_added_twice_is_sent_once_and_one_that_went_is_not() {
    let view = some_view();
    let mut push = Push::resume(member(), interest(1, &[]), cursor(4));
    let none = BTreeSet::new();
    push.change_interest(2, ["bank".into(), "shop".into()].into(), &none);
    push.change_interest(3, ["shop".into()].into(), &none);
    push.change_interest(4, none.clone(), &["bank".into()].into());
    assert_eq!(
        drain(&mut push, &view),
        ["shop/cart@1", "namespace {\"shop\"} under 4", "up to 4"]
    );
    assert_eq!(push.interest_size(), Some(1));
    assert!(push.namespaces().contains("shop") && !push.namespaces().contains("bank"));
}

#[test]
fn who_hears_everything_has_no_number_of_namespaces() {
    let all = Interest {
        generation: 1,
        namespaces: Namespaces::All,
    };
    assert_eq!(Push::snapshot(member(), all).interest_size(), None);
}

/// The rooms were listed when the snapshot began; what went since is not sent.
#[test]
fn a_namespace_removed_during_a_snapshot_is_left_out_of_the_rest() {
    let view = some_view();
    let mut push = Push::snapshot(member(), interest(1, &["bank", "shop"]));
    push.next(&view);
    push.change_interest(2, BTreeSet::new(), &["bank".into()].into());
    assert_eq!(drain(&mut push, &view), ["shop/cart@1", "complete 1 at 4"]);
}

#[test]
fn what_is_said_of_exports_is_said_to_their_member_only() {
    let mut view = some_view();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    let service = || ServiceKey::new("shop", "cart").expect("valid");
    let other = ClusterId::new("west").expect("valid");
    publish(&mut view, 5, DerivedKey::ExportStatus(other, service()), false);
    assert_eq!(drain(&mut push, &view), Vec::<String>::new());
    publish(&mut view, 6, DerivedKey::ExportStatus(member(), service()), false);
    assert_eq!(drain(&mut push, &view).len(), 2, "the status and the cursor");
}

/// One revision removes a, b and c, and the view remembers only one of these removals.
fn remove_more_than_is_kept(view: &mut View, revision: u64) {
    let gone = ["a", "b", "c"].map(|name| Publication {
        key: import("shop", name),
        entry: entry(
            revision,
            DesiredChange::Removed(DesiredKey::Import(service(name))),
        ),
    });
    view.publish(cursor(revision), gone.to_vec(), 1);
}

fn service(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).expect("valid")
}

/// A view of a, b, c and what stays.
fn crowded() -> View {
    let mut view = View::new(cursor(0), Revision(0));
    for (revision, name) in (1..).zip(["a", "b", "c", "stays"]) {
        publish(&mut view, revision, import("shop", name), false);
    }
    view
}

/// Nobody remembers an older removal: without a snapshot the member would keep the object for ever.
#[test]
fn a_member_behind_the_oldest_removal_on_record_starts_again_with_a_snapshot() {
    let mut view = crowded();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    assert_eq!(drain(&mut push, &view), Vec::<String>::new());
    remove_more_than_is_kept(&mut view, 5);
    assert_eq!(push.idle_up_to(&view), None);
    let again = ["begin", "shop/stays@4", "complete 1 at 5"];
    assert_eq!(drain(&mut push, &view), again);
    assert_eq!(
        drain(&mut push, &view),
        Vec::<String>::new(),
        "and once is enough"
    );
}

#[test]
fn a_snapshot_that_was_overtaken_by_forgotten_removals_begins_again() {
    let mut view = crowded();
    let mut push = Push::snapshot(member(), interest(1, &["shop"])).in_chunks_of(1);
    assert!(matches!(push.next(&view), Some(HubMessage::SnapshotBegin { .. })));
    assert_eq!(
        push.next(&view).map(|message| texts(&message)),
        Some("shop/a@1".into())
    );
    remove_more_than_is_kept(&mut view, 5);
    let again = ["begin", "shop/stays@4", "complete 1 at 5"];
    assert_eq!(drain(&mut push, &view), again);
}

#[test]
fn a_member_in_the_middle_of_a_revision_whose_removals_are_forgotten_starts_again() {
    let mut view = View::new(cursor(0), Revision(0));
    let changes = ["a", "b", "c"].map(|name| half_a_message(1, name)).to_vec();
    view.publish(cursor(1), changes, 1_000);
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(0)).in_chunks_of(1);
    assert!(matches!(push.next(&view), Some(HubMessage::Desired { .. })));
    assert_eq!(push.settled(), Some(Revision(0)));
    remove_more_than_is_kept(&mut view, 2);
    assert_eq!(drain(&mut push, &view), ["begin", "complete 1 at 2"]);
}

#[test]
fn a_member_that_has_seen_all_removals_but_the_remembered_goes_on() {
    let mut view = crowded();
    let mut push = Push::resume(member(), interest(1, &["shop"]), cursor(4));
    let remove = |view: &mut View, revision, name| {
        let change = DesiredChange::Removed(DesiredKey::Import(service(name)));
        let (key, entry) = (import("shop", name), entry(revision, change));
        view.publish(cursor(revision), vec![Publication { key, entry }], 1);
    };
    remove(&mut view, 5, "a");
    assert_eq!(drain(&mut push, &view), ["shop/a@5 gone", "up to 5"]);
    remove(&mut view, 6, "b");
    assert_eq!(view.tombstone_floor(), Revision(5));
    assert_eq!(drain(&mut push, &view), ["shop/b@6 gone", "up to 6"]);
}

/// A member could let the hub remember namespaces without end.
#[test]
fn who_hears_everything_adds_nothing_that_waits() {
    let all = Interest {
        generation: 1,
        namespaces: Namespaces::All,
    };
    let view = some_view();
    let mut push = Push::resume(member(), all, cursor(4));
    push.change_interest(2, ["bank".into(), "more".into()].into(), &BTreeSet::new());
    assert!(push.added.is_empty());
    assert_eq!(drain(&mut push, &view), Vec::<String>::new());
}

/// As after a restart under rules of another version, before their first event is durable.
#[test]
fn a_floor_above_the_head_lets_a_snapshot_end() {
    let mut view = View::new(cursor(4), Revision(5));
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    assert_eq!(drain(&mut push, &view), ["begin", "complete 1 at 4"]);
    publish(&mut view, 5, import("shop", "cart"), false);
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@5", "complete 1 at 5"]
    );
}
