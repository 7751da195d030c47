//! The laws of the fold over generated histories, and that the histories are worth something.

use std::{cell::Cell, collections::BTreeMap};

use ::model::{Export, ServiceImport, ServiceKey, SliceKey};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};

use super::{
    given::empty,
    legal,
    model::{self, Expected},
    operations::{Driver, Operation, decided_histories, histories, interleaved},
};
use crate::{Change, Command, Derived, DerivedContent, DerivedKey, FIRST_FOLD_VERSION, State, apply};

const CASES: u32 = 128;

/// Histories and two orders to interleave them in.
fn cases() -> impl Strategy<Value = (Vec<Vec<Operation>>, Vec<u8>, Vec<u8>)> {
    (histories(), vec(any::<u8>(), 1..64), vec(any::<u8>(), 1..64))
}

/// Histories with operators' decisions and an order to interleave them in.
fn decided_cases(epochs: bool) -> impl Strategy<Value = (Vec<Vec<Operation>>, Vec<u8>)> {
    (decided_histories(epochs), vec(any::<u8>(), 1..64))
}

fn config() -> Config {
    Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    }
}

fn content(state: &State) -> BTreeMap<DerivedKey, DerivedContent> {
    state
        .all_derived()
        .map(|(key, derived)| (key.clone(), derived.content.clone()))
        .collect()
}

fn assert_same_content(one: &State, other: &State) -> Result<(), TestCaseError> {
    let (one, other) = (content(one), content(other));
    prop_assert!(
        one.keys().eq(other.keys()),
        "{:?} and {:?}",
        one.keys(),
        other.keys()
    );
    for ((key, one), other) in one.iter().zip(other.values()) {
        prop_assert!(one.same_content(other), "{key:?}: {one:?} and {other:?}");
    }
    Ok(())
}

#[test]
fn derived_content_is_the_same_under_any_interleaving_and_histories_cover_what_matters() {
    let (conflicts, recreated, equal_timestamps, returned, few) = (
        Cell::new(0),
        Cell::new(0),
        Cell::new(0),
        Cell::new(0),
        Cell::new(0),
    );
    let count = |cell: &Cell<u32>, yes: bool| cell.set(cell.get() + u32::from(yes));
    let result = TestRunner::new(config()).run(&cases(), |(histories, one, other)| {
        let one = Driver::run(&interleaved(&histories, &one));
        let other = Driver::run(&interleaved(&histories, &other));
        count(&few, histories.len() < 3);
        count(&conflicts, one.books.conflicts > 0);
        count(&recreated, one.books.recreated > 0);
        count(&equal_timestamps, one.books.equal_timestamps > 0);
        count(&returned, one.books.lost_and_returned > 0);
        assert_same_content(&one.folded.state, &other.folded.state)
    });
    result.unwrap();
    assert_eq!(few.get(), 0, "every case has at least three clusters");
    // One case in so many at least: five standard deviations or more below what is measured.
    for (what, cell, one_in) in [
        ("a conflict", &conflicts, 2),
        ("equal timestamps", &equal_timestamps, 4),
        ("removal and re-creation with a new uid", &recreated, 4),
        ("loss and return", &returned, 4),
    ] {
        assert!(
            cell.get() * one_in >= CASES,
            "{what}: in {} of {CASES} cases",
            cell.get()
        );
    }
}

#[test]
fn a_replay_gives_the_same_state_and_changes_tell_all_of_it() {
    let result = TestRunner::new(config()).run(&decided_cases(false), |(histories, picks)| {
        let driver = Driver::run_by_newest_rules(&interleaved(&histories, &picks));
        let mut replayed = empty();
        let mut changes = Vec::new();
        for event in &driver.folded.events {
            changes.extend(apply(&mut replayed, event));
        }
        prop_assert_eq!(&replayed, &driver.folded.state);
        prop_assert_eq!(&changes, &driver.changes);
        let told = folded(BTreeMap::new(), changes);
        let derived: BTreeMap<DerivedKey, Derived> = replayed
            .all_derived()
            .map(|(key, derived)| (key.clone(), derived.clone()))
            .collect();
        prop_assert_eq!(told, derived);
        Ok(())
    });
    result.unwrap();
}

/// The objects of a reader that got all changes.
fn folded(
    mut held: BTreeMap<DerivedKey, Derived>,
    changes: impl IntoIterator<Item = Change>,
) -> BTreeMap<DerivedKey, Derived> {
    for Change {
        key,
        revision,
        content,
    } in changes
    {
        match content {
            Some(content) => held.insert(key, Derived { revision, content }),
            None => held.remove(&key),
        };
    }
    held
}

/// A reader of the log may stop after any event, also between those of one command or batch: the state is legal, and
/// its derived content follows from its facts alone, whatever was decided before, in any epoch.
#[test]
fn each_event_leaves_a_legal_state_that_its_snapshot_restores() {
    let (held, left_out) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config()).run(&decided_cases(true), |(histories, picks)| {
        let driver = Driver::run_by_newest_rules(&interleaved(&histories, &picks));
        held.set(held.get() + u32::from(driver.held > 0));
        left_out.set(left_out.get() + u32::from(driver.left_out > 0));
        let mut epochs = driver.epochs.iter().peekable();
        let mut state = empty();
        for (before, event) in driver.folded.events.iter().enumerate() {
            while epochs.next_if(|epoch| **epoch <= before).is_some() {
                state.begin_epoch();
                restored_alike(&state)?;
            }
            apply(&mut state, event);
            legal::check(&state, event)?;
            restored_alike(&state)?;
        }
        Ok(())
    });
    result.unwrap();
    // Out of 128 cases 61 and 43 have one on average: each bound is five standard deviations below.
    for (what, cell, one_in) in [
        ("a hold", &held, 4),
        ("endpoints that are left out", &left_out, 8),
    ] {
        assert!(
            cell.get() * one_in >= CASES,
            "{what}: in {} of {CASES} cases",
            cell.get()
        );
    }
}

fn restored_alike(state: &State) -> Result<(), TestCaseError> {
    let rows = state.snapshot_rows();
    let restored = State::restore_and_compare(rows).unwrap();
    prop_assert_eq!(&restored.differing, &[]);
    prop_assert_eq!(&restored.state, state);
    Ok(())
}

/// A copy keeps its state, whatever is folded into the other one, and whichever of the two continues.
#[test]
fn a_copy_stays_as_it_was_and_the_state_goes_on_as_if_there_were_none() {
    let bytes = |state: &State| state.snapshot_rows().collect::<Vec<_>>();
    let config = Config {
        cases: CASES / 4,
        ..config()
    };
    let result = TestRunner::new(config).run(&decided_cases(false), |(histories, picks)| {
        let driver = Driver::run_by_newest_rules(&interleaved(&histories, &picks));
        let (mut state, mut copies) = (empty(), Vec::new());
        for event in &driver.folded.events {
            copies.push((state.clone(), bytes(&state)));
            apply(&mut state, event);
        }
        prop_assert_eq!(&state, &driver.folded.state);
        let mut begun = state.clone();
        begun.begin_epoch();
        prop_assert_eq!(&state, &driver.folded.state, "an epoch began in a copy");
        for (copy, at_the_time) in copies {
            prop_assert_eq!(bytes(&copy), at_the_time);
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_snapshot_and_its_tail_give_what_a_replay_gives_and_a_resume_what_a_snapshot_gives() {
    let cases = (decided_cases(false), any::<prop::sample::Index>());
    let result = TestRunner::new(config()).run(&cases, |((histories, picks), cut)| {
        let driver = Driver::run_by_newest_rules(&interleaved(&histories, &picks));
        let (events, want) = (&driver.folded.events, &driver.folded.state);
        // From the event on by which these rules took the log over: before it nobody resumes.
        let cut = 1 + cut.index(events.len());
        let mut at_cut = empty();
        events[..cut]
            .iter()
            .for_each(|event| drop(apply(&mut at_cut, event)));

        let rows = at_cut.snapshot_rows();
        let mut restored = State::restore(rows).unwrap();
        prop_assert_eq!(&restored, &at_cut);
        events[cut..]
            .iter()
            .for_each(|event| drop(apply(&mut restored, event)));
        prop_assert_eq!(&restored, want);

        prop_assert!(want.can_resume_from(at_cut.revision()));
        let held = at_cut
            .all_derived()
            .map(|(key, derived)| (key.clone(), derived.clone()));
        let resumed = folded(held.collect(), want.changed_since(at_cut.revision()));
        let snapshot: BTreeMap<DerivedKey, Derived> = want
            .all_derived()
            .map(|(key, derived)| (key.clone(), derived.clone()))
            .collect();
        prop_assert_eq!(resumed, snapshot);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn the_oldest_export_wins_as_an_independent_reading_of_the_specification_has_it() {
    let result = TestRunner::new(config()).run(&cases(), |(histories, picks, _)| {
        let driver = run_by_present_rules(&interleaved(&histories, &picks));
        let expected = model::expected(&driver.books);
        let derived = as_expected(&driver.folded.state, &driver);
        prop_assert_eq!(derived, expected);
        Ok(())
    });
    result.unwrap();
}

/// The reference is written from the specification as the present rules read it.
fn run_by_present_rules(order: &[(usize, Operation)]) -> Driver {
    let mut driver = Driver::default();
    let adopt = Command::AdoptFoldVersion {
        from: FIRST_FOLD_VERSION,
    };
    driver.folded.carry_out(&adopt).unwrap();
    for (index, operation) in order {
        driver.step(*index, operation);
    }
    driver
}

/// The fold's imports, in the terms of the reference.
fn as_expected(state: &State, driver: &Driver) -> BTreeMap<ServiceKey, Expected> {
    let mut all: BTreeMap<ServiceKey, Expected> = BTreeMap::new();
    for (_, derived) in state.all_derived() {
        match &derived.content {
            DerivedContent::Import(import) => {
                let eligible = import.clusters.keys().map(|cluster| {
                    let ports = import.eligible_ports(cluster).cloned();
                    (cluster.clone(), ports.collect())
                });
                let oldest = oldest_of(state, driver, import);
                all.insert(
                    import.service.clone(),
                    Expected {
                        oldest,
                        ports: import.ports.clone(),
                        eligible: eligible.collect(),
                        reasons: Default::default(),
                        slices: BTreeMap::new(),
                    },
                );
            }
            DerivedContent::Slice(slice) => {
                let key = SliceKey {
                    service: slice.key.service.clone(),
                    name: slice.key.source_slice.clone(),
                };
                let of_service = all.get_mut(&slice.key.service).expect("a slice has its import");
                of_service
                    .slices
                    .insert((slice.key.source_cluster.clone(), key), slice.ports.clone());
            }
            DerivedContent::ExportStatus(status) => {
                let of_service = all.get_mut(&status.service).expect("a status has its import");
                of_service.reasons = status.conflicts.iter().map(|conflict| conflict.reason).collect();
                assert_eq!(status.exporters as usize, of_service.eligible.len());
            }
            DerivedContent::Profile(_) => {}
        }
    }
    all
}

/// The export that the import was taken from, which must have every property of it.
fn oldest_of(state: &State, driver: &Driver, import: &ServiceImport) -> Export {
    let oldest = &state.explain(&import.service).candidates[0];
    let export = &driver.books.exports[&(import.service.clone(), oldest.cluster.clone())];
    assert_eq!(export.service_type, import.service_type);
    assert_eq!(export.policies, import.policies);
    assert_eq!(export.ip_families, import.ip_families);
    assert_eq!(export.labels, import.labels);
    assert_eq!(export.annotations, import.annotations);
    export.clone()
}
