//! The messages about where exports arrived, and their times.

use model::{
    ChainHash, Cursor, ExportStatus, UnixMillis,
    sync::{DesiredItem, Source},
};

use super::*;
use crate::view::{Item, Publication};

fn id(name: &str) -> ClusterId {
    ClusterId::new(name).expect("valid")
}

fn service(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).expect("valid")
}

fn epoch() -> Epoch {
    Epoch {
        created_at: UnixMillis(1),
        random: 1,
    }
}

/// A view of three members in which east exports these services, each at its revision.
fn view(exports: &[(&str, u64)]) -> View {
    let last = exports.iter().map(|(_, revision)| *revision).max().unwrap_or(0);
    let head = Cursor {
        epoch: epoch(),
        revision: Revision(last),
        hash: ChainHash([0; 16]),
    };
    let mut view = View::new(head, Revision(0));
    let publication = |(name, revision): &(&str, u64)| {
        let revision = Revision(*revision);
        let status = ExportStatus {
            service: service(name),
            uid: "uid".into(),
            generation: 1,
            conflicts: Vec::new(),
            exporters: 1,
            denial: None,
            left_out: "".into(),
        };
        let change = DesiredChange::ExportStatus(Arc::new(status));
        Publication {
            key: DerivedKey::ExportStatus(id("east"), service(name)),
            entry: Entry {
                revision,
                item: Item::new(DesiredItem { revision, change }),
                removed: false,
            },
        }
    };
    view.publish(head, exports.iter().map(publication).collect(), 10);
    view.set_sources(["east", "north", "west"].map(|name| Source {
        cluster: id(name),
        state: SourceState::Live,
        listed: true,
        ended: false,
        on_loss: None,
    }));
    view
}

fn word(revision: u64) -> Word {
    Word {
        epoch: epoch(),
        revision: Revision(revision),
        namespaces: Arc::new(Namespaces::All),
        settled: Arc::new(Namespaces::All),
        parked: Arc::default(),
        parks_more: false,
    }
}

fn words(version: u64, said: &[(&str, Word)]) -> Words {
    Words {
        members: said.iter().map(|(name, word)| (id(name), word.clone())).collect(),
        version,
    }
}

fn all_at(version: u64, revision: u64) -> Words {
    words(
        version,
        &["east", "north", "west"].map(|name| (name, word(revision))),
    )
}

/// The messages at a time, in words.
fn told(arrivals: &mut Arrivals, view: &View, words: &Words, now: u64) -> Vec<String> {
    assert!(arrivals.is_due(now), "at {now}");
    arrivals.look(view, words, now);
    let mut told = Vec::new();
    while let Some(HubMessage::ExportsArrived(groups)) = arrivals.take() {
        told.extend(groups.iter().map(|group| {
            let services: Vec<&str> = group.services.iter().map(|service| &*service.name).collect();
            format!("{}: {}", services.join(" "), group.arrival.words())
        }));
    }
    told
}

#[test]
fn services_that_arrived_everywhere_are_told_together_and_once() {
    let view = view(&[("cart", 3), ("pay", 5)]);
    let mut arrivals = Arrivals::new(id("east"));
    let everywhere = told(&mut arrivals, &view, &all_at(1, 5), 0);
    assert_eq!(everywhere, ["cart pay: in 3 of 3 clusters"]);
    for (now, version) in [(1_000, 2), (60_000, 3)] {
        assert!(told(&mut arrivals, &view, &all_at(version, 9), now).is_empty());
    }
}

#[test]
fn a_member_that_lacks_it_is_named_with_the_reason() {
    let view = view(&[("cart", 3)]);
    let mut west = word(9);
    west.namespaces = Arc::new(Namespaces::Only(BTreeSet::from(["other".into()])));
    let mut north = word(9);
    north.parked = Arc::new(BTreeSet::from([service("cart")]));
    let said = words(1, &[("east", word(9)), ("north", north), ("west", west)]);
    let mut arrivals = Arrivals::new(id("east"));
    let at_once = told(&mut arrivals, &view, &said, 0);
    assert!(at_once.is_empty(), "the namespace may still come");
    assert_eq!(
        told(&mut arrivals, &view, &said, WAITS_TOLD_AFTER_MILLIS),
        ["cart: in 1 of 3 clusters; no such namespace in west; not written by the agent of north"]
    );
}

#[test]
fn who_has_not_applied_it_is_waited_for_and_an_update_is_not_told_as_a_loss() {
    let (before, after) = (view(&[("cart", 3)]), view(&[("cart", 7)]));
    let mut arrivals = Arrivals::new(id("east"));
    let first = words(1, &[("east", word(3)), ("north", word(3)), ("west", word(2))]);
    assert!(
        told(&mut arrivals, &before, &first, 0).is_empty(),
        "it may still come"
    );
    let partly = told(&mut arrivals, &before, &first, WAITS_TOLD_AFTER_MILLIS);
    assert_eq!(partly, ["cart: in 2 of 3 clusters; not yet in west"]);
    let at = WAITS_TOLD_AFTER_MILLIS + 1_000;
    assert!(
        told(&mut arrivals, &before, &all_at(2, 3), at).is_empty(),
        "too soon"
    );
    let at = WAITS_TOLD_AFTER_MILLIS + TOLD_INTERVAL_MILLIS;
    let everywhere = told(&mut arrivals, &before, &all_at(2, 3), at);
    assert_eq!(everywhere, ["cart: in 3 of 3 clusters"]);
    assert!(told(&mut arrivals, &after, &all_at(3, 6), 60_000).is_empty());
    assert!(told(&mut arrivals, &after, &all_at(4, 7), 61_000).is_empty());
}

#[test]
fn a_namespace_that_has_just_come_is_waited_for() {
    let view = view(&[("cart", 3)]);
    let mut west = word(9);
    west.settled = Arc::new(Namespaces::Only(BTreeSet::from(["other".into()])));
    let said = words(1, &[("east", word(9)), ("north", word(9)), ("west", west)]);
    let mut arrivals = Arrivals::new(id("east"));
    assert!(told(&mut arrivals, &view, &said, 0).is_empty());
    let partly = told(&mut arrivals, &view, &said, WAITS_TOLD_AFTER_MILLIS);
    assert_eq!(partly, ["cart: in 2 of 3 clusters; not yet in west"]);
}

#[test]
fn a_hub_that_started_waits_for_those_who_have_not_reported() {
    let view = view(&[("cart", 3)]);
    let mut arrivals = Arrivals::new(id("east"));
    let some = words(1, &[("east", word(3)), ("north", word(3))]);
    for now in [0, UNKNOWN_TOLD_AFTER_MILLIS - 1] {
        assert!(told(&mut arrivals, &view, &some, now).is_empty());
    }
    let partly = told(&mut arrivals, &view, &some, UNKNOWN_TOLD_AFTER_MILLIS + 1_000);
    assert_eq!(partly, ["cart: in 2 of 3 clusters; not known of west"]);
}

#[test]
fn a_revision_of_another_epoch_says_nothing() {
    let view = view(&[("cart", 3)]);
    let mut west = word(9);
    west.epoch.random = 2;
    let said = words(1, &[("east", word(3)), ("north", word(3)), ("west", west)]);
    let mut arrivals = Arrivals::new(id("east"));
    assert!(told(&mut arrivals, &view, &said, 0).is_empty());
    let later = told(&mut arrivals, &view, &said, UNKNOWN_TOLD_AFTER_MILLIS);
    assert_eq!(later, ["cart: in 2 of 3 clusters; not known of west"]);
}

#[test]
fn one_word_holds_a_bounded_number_of_services() {
    let names: Vec<String> = (0..ARRIVED_SERVICES_MAX + 1)
        .map(|n| format!("s{n:04}"))
        .collect();
    let exports: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 1)).collect();
    let mut arrivals = Arrivals::new(id("east"));
    arrivals.look(&view(&exports), &all_at(1, 1), 0);
    let mut sizes = Vec::new();
    while let Some(HubMessage::ExportsArrived(groups)) = arrivals.take() {
        sizes.extend(groups.iter().map(|group| group.services.len()));
    }
    assert_eq!(sizes, [ARRIVED_SERVICES_MAX, 1]);
}
