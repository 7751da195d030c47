//! Snapshots beyond the laws: other versions of the rules, damage, epochs, and the bound on tombstones.

use model::{Fact, Revision};

use super::given::{Folded, export, exported, given_members, observe, service, slice, slice_key};
use crate::{Command, DerivedKey, FOLD_VERSION, RestoreError, SnapshotRow, State, TOMBSTONES_MAX};

fn some_folded() -> Folded {
    given_members(&["east", "west"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]))
        .and("east", slice("two", &["http"]))
        .and("west", exported(export(2)))
        .and("east", Fact::EndpointSliceRemoved(slice_key("two")))
}

fn rows_of_version(state: &State, fold_version: u32) -> Vec<SnapshotRow> {
    let mut rows: Vec<SnapshotRow> = state.snapshot_rows().collect();
    let Some(SnapshotRow::Header(header)) = rows.first_mut() else {
        panic!("no header")
    };
    header.fold_version = fold_version;
    rows
}

fn with_a_wrong_import_digest(mut rows: Vec<SnapshotRow>) -> Vec<SnapshotRow> {
    for row in &mut rows {
        match row {
            SnapshotRow::Derived(derived) if matches!(derived.key, DerivedKey::Import(_)) => {
                derived.digest.0[0] ^= 1;
            }
            _ => {}
        }
    }
    rows
}

/// The facts are there: content that does not follow from them is derived again, and members that received other
/// content receive it again.
#[test]
fn a_difference_under_the_same_rules_is_derived_anew_and_no_cursor_resumes_before_an_event() {
    let mut folded = some_folded();
    folded.carry_out(&Command::AdoptFoldVersion { from: 1 }).unwrap();
    let state = folded.state.clone();
    let import = DerivedKey::Import(service("shop/cart"));
    let gone = DerivedKey::slice(&service("shop/cart"), &super::given::cluster("east"), "gone");
    let mut rows = with_a_wrong_import_digest(rows_of_version(&state, FOLD_VERSION));
    // It has an object, too, that nothing gives.
    let of_slice = |row: &&mut SnapshotRow| match row {
        SnapshotRow::Derived(derived) => matches!(derived.key, DerivedKey::Slice(_)),
        _ => false,
    };
    let slice = rows.iter_mut().find(of_slice).expect("a slice");
    let SnapshotRow::Derived(slice) = slice else {
        unreachable!("found as one")
    };
    let one = std::mem::replace(&mut slice.key, gone.clone());
    let restored = State::restore_and_compare(rows).expect("the facts are whole");
    assert_eq!(restored.differing, [import.clone(), one.clone(), gone.clone()]);
    folded.state = restored.state;
    let revision_of = |key| folded.state.derived(key).map(|derived| derived.revision);
    assert_eq!(revision_of(&import), Some(state.revision()));
    assert_eq!(revision_of(&one), Some(state.revision()));
    assert_eq!(revision_of(&gone), None);
    assert!(!folded.state.can_resume_from(state.revision()));
    let adopt = Command::AdoptFoldVersion { from: FOLD_VERSION };
    folded.carry_out(&adopt).expect("it is recorded");
    let now = folded.state.revision();
    assert!(now > state.revision() && folded.state.can_resume_from(now));
    assert!(!folded.state.can_resume_from(state.revision()));
    folded.when(adopt).then_nothing();
    assert_eq!(
        State::restore(folded.state.snapshot_rows()).as_ref(),
        Ok(&folded.state)
    );
}

#[test]
fn a_difference_under_other_rules_is_a_change_and_every_cursor_needs_a_snapshot() {
    let state = some_folded().state;
    let other = FOLD_VERSION + 1;
    let rows = with_a_wrong_import_digest(rows_of_version(&state, other));
    let mut folded = Folded {
        state: State::restore(rows).unwrap(),
        events: some_folded().events,
    };
    let revision_of = |state: &State, key: &DerivedKey| state.derived(key).unwrap().revision;
    let import = DerivedKey::Import(service("shop/cart"));
    let one = DerivedKey::slice(&service("shop/cart"), &super::given::cluster("east"), "one");
    assert_eq!(revision_of(&folded.state, &import), state.revision());
    assert_eq!(revision_of(&folded.state, &one), revision_of(&state, &one));
    assert_eq!(folded.state.fold_version(), other);
    assert!(!folded.state.can_resume_from(state.revision()));

    let changes = folded
        .carry_out(&Command::AdoptFoldVersion { from: other })
        .unwrap();
    assert_eq!(changes, []);
    assert_eq!(folded.state.fold_version(), FOLD_VERSION);
    assert!(folded.state.can_resume_from(folded.state.revision()));
    assert!(!folded.state.can_resume_from(state.revision()));
    folded
        .when(Command::AdoptFoldVersion { from: FOLD_VERSION })
        .then_nothing();
}

#[test]
fn missing_repeated_and_misplaced_rows_are_refused() {
    let rows: Vec<SnapshotRow> = some_folded().state.snapshot_rows().collect();
    assert_eq!(State::restore(rows[1..].to_vec()), Err(RestoreError::Header));
    assert_eq!(State::restore([]), Err(RestoreError::Header));
    let twice = [&rows[..1], &rows[..]].concat();
    assert_eq!(State::restore(twice), Err(RestoreError::Header));
    for missing in 1..rows.len() {
        let mut fewer = rows.clone();
        fewer.remove(missing);
        assert!(
            State::restore(fewer).is_err(),
            "row {missing}: {:?}",
            rows[missing]
        );
    }
    let mut misplaced = rows;
    misplaced.swap(1, 2);
    assert!(matches!(
        State::restore(misplaced),
        Err(RestoreError::Misplaced(_))
    ));
}

#[test]
fn a_new_epoch_keeps_everything_but_revisions() {
    let before = some_folded().state;
    let mut after = before.clone();
    after.begin_epoch();
    assert_eq!(after.revision(), Revision(0));
    assert_eq!(
        (after.tombstones().count(), after.tombstone_floor()),
        (0, Revision(0))
    );
    assert!(
        after
            .all_derived()
            .all(|(_, derived)| derived.revision == Revision(0))
    );
    for ((key, old), (same, new)) in before.all_derived().zip(after.all_derived()) {
        assert!(key == same && old.content.same_content(&new.content), "{key:?}");
    }
    assert_eq!(State::restore(after.snapshot_rows()).unwrap(), after);
    let mut folded = Folded {
        state: after,
        events: Vec::new(),
    };
    let changes = folded
        .carry_out(&observe("east", slice("one", &["http", "more"])))
        .unwrap();
    assert_eq!((changes.len(), folded.state.revision()), (0, Revision(1)));
}

#[test]
fn as_many_tombstones_are_kept_as_the_log_says_and_the_floor_says_from_where_they_tell_all() {
    let (max, mut folded) = (20, given_members(&["east"]).and("east", exported(export(1))));
    assert_eq!(folded.state.tombstones_max(), TOMBSTONES_MAX);
    folded.carry_out(&Command::BoundTombstones { max }).unwrap();
    folded.when(Command::BoundTombstones { max }).then_nothing();
    for number in 0..=max {
        let name = format!("slice-{number}");
        folded
            .carry_out(&observe("east", slice(&name, &["http"])))
            .unwrap();
        folded
            .carry_out(&observe("east", Fact::EndpointSliceRemoved(slice_key(&name))))
            .unwrap();
    }
    let kept = folded.state.tombstones().count() as u32;
    assert!(kept <= max && kept * 2 >= max - 2, "{kept}");
    let floor = folded.state.tombstone_floor();
    assert!(folded.state.tombstones().all(|(_, revision)| revision > floor));
    assert!(folded.state.can_resume_from(floor) && !folded.state.can_resume_from(Revision(floor.0 - 1)));
    assert_eq!(
        State::restore(folded.state.snapshot_rows()).unwrap(),
        folded.state
    );

    folded.carry_out(&Command::BoundTombstones { max: 1 }).unwrap();
    assert!(
        folded.state.tombstones().count() <= 1,
        "a lower bound holds at once"
    );
    let bounded = folded.state.clone();
    folded.state.begin_epoch();
    assert_eq!(folded.state.tombstones_max(), 1, "a new epoch keeps it");
    assert_ne!(folded.state, bounded);
}

/// Digests stand in snapshots on disks: when this fails, `FOLD_VERSION` must grow.
#[test]
fn digests_of_derived_content_are_frozen_within_a_version_of_the_rules() {
    let digests: Vec<String> = some_folded()
        .state
        .snapshot_rows()
        .filter_map(|row| match row {
            SnapshotRow::Derived(row) => Some(data_encoding::HEXLOWER.encode(&row.digest.0)),
            _ => None,
        })
        .collect();
    assert_eq!(FOLD_VERSION, 3);
    assert_eq!(digests, FROZEN_DIGESTS);
}

/// In the order of keys.
const FROZEN_DIGESTS: [&str; 6] = [
    "11d5dccf621f4b905ef1ad6986ee8d5c",
    "47e4d05f77915c7a42495d76077a49f6",
    "5f8c16c952caa2ec4cb4af4f9c973bd9",
    "8436ca839c25d853730a16514544f6f9",
    "097066a6af99ec9b82ee2deeeb505752",
    "38c891b91ece2f694174ced924fde7a5",
];
