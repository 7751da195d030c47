//! The view's bounds, and what a new epoch keeps of it.

use model::{
    ChainHash, Epoch, ServiceKey, UnixMillis,
    sync::{DesiredChange, DesiredItem, DesiredKey, SourceState},
};

use super::*;

fn cursor(revision: u64) -> Cursor {
    let epoch = Epoch {
        created_at: UnixMillis(1),
        random: 1,
    };
    Cursor {
        epoch,
        revision: Revision(revision),
        hash: ChainHash([revision as u8; 16]),
    }
}

fn source(name: &str, listed: bool) -> Source {
    Source {
        cluster: ClusterId::new(name).expect("valid"),
        state: SourceState::Live,
        listed,
        ended: false,
        on_loss: None,
    }
}

fn removal(revision: u64, name: &str) -> Publication {
    let service = ServiceKey::new("shop", name).expect("valid");
    let revision = Revision(revision);
    let change = DesiredChange::Removed(DesiredKey::Import(service.clone()));
    let entry = Entry {
        revision,
        item: Item::new(DesiredItem { revision, change }),
        removed: true,
    };
    Publication {
        key: DerivedKey::Import(service),
        entry,
    }
}

fn revisions_after(view: &View, revision: u64) -> Vec<u64> {
    let from = ChangePosition::Revision(Revision(revision));
    view.changed_after(&from)
        .map(|(revision, _)| revision.0)
        .collect()
}

#[test]
fn the_oldest_tombstones_go_and_the_floor_says_from_where_they_tell_all() {
    let mut view = View::new(cursor(0), Revision(0));
    for revision in 1..=3 {
        view.publish(
            cursor(revision),
            vec![removal(revision, &format!("cart-{revision}"))],
            3,
        );
    }
    assert_eq!(
        (view.tombstone_floor(), revisions_after(&view, 0)),
        (Revision(0), vec![1, 2, 3])
    );
    view.publish(cursor(5), vec![removal(4, "cart-4"), removal(5, "cart-5")], 3);
    assert_eq!(
        (view.tombstone_floor(), revisions_after(&view, 0)),
        (Revision(2), vec![3, 4, 5])
    );
    assert!(
        view.entry(&removal(2, "cart-2").key).is_none(),
        "nothing of it is kept"
    );
}

#[test]
fn the_hashes_of_recent_heads_are_known_and_no_others() {
    let mut view = View::new(cursor(1), Revision(0));
    let last = HEADS_MAX as u64;
    for revision in (3..=last).chain([last]) {
        view.publish(cursor(revision), Vec::new(), 1);
    }
    let known = |revision| view.recent_head(Revision(revision));
    assert_eq!(
        (known(1), known(2), known(3)),
        (Some(cursor(1)), None, Some(cursor(3)))
    );
    view.publish(cursor(last + 1), Vec::new(), 1);
    assert_eq!(
        view.recent_head(Revision(1)),
        Some(cursor(1)),
        "as many as there may be"
    );
    view.publish(cursor(last + 2), Vec::new(), 1);
    assert_eq!(view.recent_head(Revision(1)), None, "the oldest made room");
    assert_eq!(view.recent_head(Revision(last + 2)), Some(view.head()));
}

#[test]
fn a_new_epoch_keeps_what_is_known_of_sources_and_tells_it_again() {
    let mut view = View::new(cursor(7), Revision(0));
    view.set_sources([source("east", true), source("west", false)]);
    let told = view.sources_version();
    view.replace(View::new(cursor(0), Revision(0)));
    assert_eq!(view.head(), cursor(0));
    let (version, sources) = view.sources_after(told, Revision(0), 10);
    assert_eq!(sources, [source("east", true), source("west", false)]);
    assert_eq!(version, told + 2, "nobody who read before misses it");
}

#[test]
fn it_is_known_for_a_while_when_a_revision_became_durable() {
    let mut view = View::new(cursor(4), Revision(0));
    for (revision, at) in [(6, 100), (9, 200)] {
        view.publish(cursor(revision), Vec::new(), 1);
        view.stamp(at);
        view.stamp(at + 50);
    }
    let known = [4, 5, 6, 7, 9, 10].map(|revision| view.recorded_at(Revision(revision)));
    assert_eq!(known, [None, Some(100), Some(100), Some(200), Some(200), None]);
    for revision in 10..10 + STAMPS_MAX as u64 {
        view.publish(cursor(revision), Vec::new(), 1);
        view.stamp(revision);
    }
    assert_eq!(view.stamps.len(), STAMPS_MAX);
    assert_eq!(view.recorded_at(Revision(6)), None, "too long ago");
}
