//! Facts stored as differences read back as they were recorded, through all changes of the log; others fail with a
//! reason.

mod damage;
mod hand;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use proptest::prelude::*;
use shared::model::{ClusterProperty, Fact, PropertyValue, Revision, UnixMillis};

use self::hand::{Hand, Place, slice, slice_key};
use hub::recall::DIFFERENCES_MAX;
use hub::{log::Budget, maintain};

/// A change of the log as its hub makes it, or as what happens to it.
#[derive(Debug, Clone)]
enum Step {
    Report(Vec<Fact>),
    Seal,
    Snapshot,
    Retain,
    Restart,
    Epoch,
}

fn fact() -> impl Strategy<Value = Fact> {
    let property = |(name, text): (u8, String)| {
        Fact::ClusterPropertyUpserted(std::sync::Arc::new(ClusterProperty {
            name: format!("property-{name}.example.org").into(),
            value: PropertyValue::Text(text.into()),
        }))
    };
    prop_oneof![
        8 => (0..3u8, 1..60u8, 0..60u8, any::<u8>())
            .prop_map(|(name, endpoints, changed, version)| slice(name, endpoints, changed, version)),
        4 => (0..3u8, any::<u8>()).prop_map(|(name, version)| slice(name, 40, 7, version)),
        1 => (0..3u8).prop_map(|name| Fact::EndpointSliceRemoved(slice_key(name))),
        1 => (0..2u8, "[a-c]{1,300}").prop_map(property),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(fact(), 1..5).prop_map(Step::Report),
        1 => Just(Step::Seal),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Retain),
        1 => Just(Step::Restart),
        1 => Just(Step::Epoch),
    ]
}

fn play(place: Place, steps: Vec<Step>, budget: Budget) {
    let mut hand = Hand::over(place);
    for step in steps {
        match step {
            Step::Report(facts) => drop(hand.report(facts)),
            Step::Seal => hand.seal(),
            Step::Snapshot => hand.snapshot(),
            Step::Retain => hand.retain(),
            Step::Restart => hand.restart(),
            Step::Epoch => hand.begin_epoch(),
        }
    }
    hand.check(budget);
}

fn budget() -> impl Strategy<Value = Budget> {
    let small = (1..9usize, 0..5_000usize).prop_map(|(events, bytes)| Budget { events, bytes });
    prop_oneof![small, Just(Budget::default())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_is_recorded_reads_back(steps in prop::collection::vec(step(), 1..60), budget in budget()) {
        play(Place::memory(), steps, budget);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn whatever_is_recorded_on_disk_reads_back_and_is_good(
        steps in prop::collection::vec(step(), 1..40), budget in budget(),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        play(Place::sled(dir.path()), steps, budget);
        let report = maintain::verify(dir.path(), &mut |_| {}).expect("readable");
        prop_assert!(report.is_good(), "{report:?}");
    }
}

/// So many changes of one slice, from a version on; the revisions that are differences are `true`.
fn changes(hand: &mut Hand, from: u8, count: u8) -> Vec<bool> {
    let versions = (from..).take(usize::from(count));
    let revisions: Vec<Revision> = versions
        .map(|version| hand.report([slice(1, 40, 7, version)]))
        .collect();
    revisions
        .into_iter()
        .map(|revision| hand.is_difference(revision))
        .collect()
}

#[test]
fn every_32nd_fact_of_a_key_is_whole() {
    let mut hand = Hand::over(Place::memory());
    let stored = changes(&mut hand, 0, 100);
    let expected: Vec<bool> = (0..100).map(|number| number % 32 != 0).collect();
    assert_eq!(stored, expected);
    assert_eq!(DIFFERENCES_MAX, 31);
    hand.check(Budget { events: 1, bytes: 0 });
}

#[test]
fn the_first_fact_of_a_key_is_whole_in_each_segment_process_epoch_and_after_its_removal() {
    let mut hand = Hand::over(Place::memory());
    assert_eq!(changes(&mut hand, 0, 3), [false, true, true]);
    hand.snapshot();
    assert_eq!(
        changes(&mut hand, 3, 2),
        [true, true],
        "a snapshot begins no segment"
    );
    hand.seal();
    assert_eq!(changes(&mut hand, 5, 2), [false, true]);
    hand.restart();
    assert_eq!(changes(&mut hand, 7, 2), [false, true]);
    hand.begin_epoch();
    assert_eq!(changes(&mut hand, 9, 2), [false, true]);
    hand.report([Fact::EndpointSliceRemoved(slice_key(1))]);
    assert_eq!(changes(&mut hand, 11, 2), [false, true]);
    hand.check(Budget::default());
}

#[test]
fn retention_takes_no_base_away_from_what_is_built_on_it() {
    let mut hand = Hand::over(Place::memory());
    changes(&mut hand, 0, 20);
    hand.seal();
    changes(&mut hand, 20, 10);
    hand.retain();
    let oldest = hand.log().stats().oldest_revision;
    assert!(oldest > Revision(20), "the first segment is gone");
    assert!(!hand.is_difference(oldest));
    hand.check(Budget { events: 1, bytes: 0 });
    hand.restart();
    changes(&mut hand, 40, 3);
    hand.check(Budget::default());
}

/// 80 bytes are the key of a row and its header, for an event that is alone in its batch.
const ROW_BYTES: usize = 80;

#[test]
fn one_changed_endpoint_of_a_hundred_costs_less_than_400_bytes_of_log() {
    let mut hand = Hand::over(Place::memory());
    let whole = hand.report([slice(1, 100, 50, 1)]);
    let changed = hand.report([slice(1, 100, 50, 2)]);
    let bytes = |hand: &mut Hand, revision| hand.payload(revision).len() + ROW_BYTES;
    let (whole, changed) = (bytes(&mut hand, whole), bytes(&mut hand, changed));
    assert!(whole > 3_000, "{whole}");
    assert!(changed < 400, "{changed} bytes instead of {whole}");
}

#[test]
fn a_page_is_bounded_by_what_differences_lead_to() {
    let mut hand = Hand::over(Place::memory());
    changes(&mut hand, 0, 30);
    let budget = Budget {
        events: 1_000,
        bytes: 10_000,
    };
    let epoch = hand.head().epoch;
    let page = hand::read(hand.log(), epoch, Revision(1), budget).expect("it can be read");
    let whole: usize = page.events.iter().map(|(event, _)| event.fact.bytes.len()).sum();
    assert!((10_000..13_000).contains(&whole), "{whole} bytes");
}

/// The files below a directory: each with its bytes and its modification time.
fn files(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let (path, metadata) = (entry.path(), entry.metadata().expect("metadata"));
        if metadata.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path, (bytes, metadata.modified().expect("a time")));
        }
    }
    found
}

#[test]
fn a_restored_backup_and_an_old_copy_go_on_with_whole_facts() {
    let (from, to) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let mut hand = Hand::over(Place::sled(from.path()));
    changes(&mut hand, 0, 10);
    hand.seal();
    changes(&mut hand, 10, 10);
    drop(hand);
    let data = to.path().join("data");
    let before = files(from.path());
    maintain::restore(from.path(), &data, None, UnixMillis(3_000), 7).expect("it is whole");
    assert!(
        files(from.path()) == before,
        "a backup may be on a medium that takes no writes"
    );
    let report = maintain::verify(&data, &mut |_| {}).expect("readable");
    let differences: u64 = report.logs[0].epochs.iter().map(|epoch| epoch.differences).sum();
    assert!(report.is_good() && differences == 18, "{report:?}");
    let mut restored = Hand::over(Place::sled(&data));
    assert_eq!(changes(&mut restored, 30, 2), [false, true]);
    restored.check(Budget::default());

    let Place::Memory(disk) = Place::memory() else {
        unreachable!()
    };
    let mut hand = Hand::over(Place::Memory(disk.clone()));
    changes(&mut hand, 0, 5);
    let old = disk.copy();
    changes(&mut hand, 5, 5);
    let mut rewound = Hand::over(Place::Memory(old));
    assert_eq!(changes(&mut rewound, 40, 2), [false, true]);
    rewound.check(Budget::default());
}
