//! Tests of the kept form of a sent object, and of its differences.

use std::sync::Arc;

use model::{
    Conflict, ConflictReason, ExportStatus, ServiceKey,
    sync::{DesiredKey, Told},
};

use super::*;

fn service() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("valid")
}

fn item(revision: u64, change: DesiredChange) -> Item {
    Item::new(DesiredItem {
        revision: Revision(revision),
        change,
    })
}

/// An object of some hundred bytes, most of which all versions share.
fn version(revision: u64) -> Item {
    let message =
        "the oldest export of the service, of cluster east, has another type than this one. ".repeat(4);
    let status = ExportStatus {
        service: service(),
        uid: format!("uid-{revision}").into(),
        generation: 1,
        conflicts: vec![Conflict {
            reason: ConflictReason::Type,
            message: message.into(),
        }],
        exporters: 2,
        denial: None,
        left_out: "".into(),
    };
    item(revision, DesiredChange::ExportStatus(Arc::new(status)))
}

fn removal(revision: u64) -> Item {
    item(
        revision,
        DesiredChange::Removed(DesiredKey::ExportStatus(service())),
    )
}

/// The versions in this order; those before a `true` were sent to somebody.
fn last_of(versions: impl IntoIterator<Item = (Item, bool)>) -> Item {
    let mut last: Option<Item> = None;
    for (mut item, is_sent) in versions {
        if let Some(old) = last.take() {
            item.replaces(old);
        }
        if is_sent {
            item.bytes();
        }
        last = Some(item);
    }
    last.expect("a version")
}

/// From which of the versions 0 to 9 there is a difference.
fn bases(item: &Item) -> Vec<u64> {
    (0..10).filter(|at| item.since(Revision(*at)).is_some()).collect()
}

#[test]
fn it_is_encoded_when_it_is_sent_and_nothing_of_it_is_kept() {
    let (item, content) = (removal(7), removal(7).0.content);
    assert!(matches!(*item.form(), Form::Unsent(None)));
    assert_eq!(item.bytes(), wire::encode_desired(&content));
    assert!(matches!(*item.form(), Form::Sent(None)));
    assert_eq!(item.clone().bytes(), item.bytes());
}

#[test]
fn a_difference_leads_from_the_version_that_was_sent_and_all_share_it() {
    let last = last_of([(version(3), true), (version(6), false)]);
    assert_eq!(
        bases(&last),
        [3, 4, 5],
        "version 3 stood until the revision before 6"
    );
    let (one, other) = (last.since(Revision(3)), last.since(Revision(5)));
    let (one, other) = (one.expect("one"), other.expect("the same"));
    assert_eq!(one.as_ptr(), other.as_ptr());
    let Ok(Told::Difference(difference)) = wire::decode_told(one) else {
        panic!("a difference")
    };
    assert_eq!(
        wire::restore(Some(&version(3).0.content), &difference),
        Ok(wire::Restored::Object(version(6).0.content))
    );
}

#[test]
fn what_nobody_was_sent_is_no_base_and_the_version_before_it_stays_one() {
    assert_eq!(
        bases(&last_of([(version(3), false), (version(6), false)])),
        [0; 0]
    );
    let last = last_of([(version(2), true), (version(4), false), (version(6), false)]);
    assert_eq!(
        bases(&last),
        [2, 3],
        "who was told everything up to 4 holds version 4"
    );
    let last = last_of([(version(2), true), (version(4), true), (version(6), false)]);
    assert_eq!(bases(&last), [4, 5]);
}

#[test]
fn a_removal_neither_has_a_difference_nor_is_a_base() {
    assert_eq!(bases(&last_of([(version(3), true), (removal(5), false)])), [0; 0]);
    assert_eq!(bases(&last_of([(removal(3), true), (version(5), false)])), [0; 0]);
    let over = last_of([(version(2), true), (removal(3), false), (version(5), false)]);
    assert_eq!(bases(&over), [0; 0], "nor is what stood before it");
}

#[test]
fn of_the_version_before_a_difference_is_kept_and_nothing_else() {
    let last = last_of([(version(3), true), (version(6), false)]);
    assert!(matches!(&*last.form(), Form::Unsent(Some(base)) if base.content == version(3).0.content));
    let whole = last.bytes();
    let form = last.form().clone();
    let Form::Sent(Some(difference)) = form else {
        panic!("it was sent")
    };
    assert!(difference.bytes.len() < whole.len() / 2);
}
