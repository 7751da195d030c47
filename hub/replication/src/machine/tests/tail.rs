//! Batches go, but those that a hub does not have yet.

use model::{ChainHash, Revision};

use super::{
    super::tail::{Tail, Trim},
    by_hand::{replica, start},
};
use crate::engine::{EngineBatch, HubRow, Position, Role, Term};

const KEEP: u64 = 10_000;
const KEEP_MAX: u64 = 40_000;

/// The position of a disk. Only epochs and revisions count.
fn at(revision: u64) -> model::Cursor {
    model::Cursor {
        revision: Revision(revision),
        hash: ChainHash([7; 16]),
        ..start()
    }
}

fn below(revision: u64) -> Position {
    Position {
        epoch: start().epoch,
        revision: Revision(revision),
    }
}

fn row(name: &str, role: Role, synced: Option<u64>) -> HubRow {
    HubRow {
        replica: replica(name),
        address: "hub:1".to_owned(),
        version: "1".to_owned(),
        rules: 1,
        role,
        term: Term(1),
        synced: synced.map(at),
    }
}

/// A tail of batches of one event and about 1,000 bytes each.
fn tail(batches: u64) -> Tail {
    let mut tail = Tail::new(KEEP, KEEP_MAX, 0);
    for revision in 0..batches {
        let batch = EngineBatch::new(at(revision), Term(1), false, [&[0; 946][..]]).unwrap();
        assert_eq!(batch.encoded().len(), 996);
        tail.push(&batch);
    }
    tail
}

fn look(tail: &mut Tail, hubs: &[HubRow], mine: u64, now: u64) -> Option<Trim> {
    tail.look(hubs, &replica("me"), at(mine), now)
}

fn trim(revision: u64, leaves_behind: bool) -> Option<Trim> {
    let below = below(revision);
    Some(Trim { below, leaves_behind })
}

#[test]
fn what_every_disk_has_goes_but_the_newest_bytes() {
    let level = [row("me", Role::Leads, Some(0)), row("b", Role::Follows, Some(30))];
    assert_eq!(look(&mut tail(30), &level, 30, 0), trim(20, false));
    assert_eq!(
        look(&mut tail(30), &level, 12, 0),
        trim(13, false),
        "what this disk lacks stays"
    );
    let behind = [row("b", Role::Follows, Some(5))];
    assert_eq!(
        look(&mut tail(30), &behind, 30, 0),
        trim(6, false),
        "what another disk lacks stays"
    );
    let empty = [row("b", Role::Follows, Some(0))];
    assert_eq!(look(&mut tail(30), &empty, 30, 0), None);
    assert_eq!(look(&mut tail(10), &level, 10, 0), None, "all of it is kept");
}

#[test]
fn above_the_bound_the_oldest_go_and_that_is_said() {
    let behind = [row("b", Role::Follows, Some(5))];
    assert_eq!(look(&mut tail(50), &behind, 50, 0), trim(10, true));
    assert_eq!(
        look(&mut tail(50), &behind, 3, 0),
        trim(4, false),
        "never what this disk lacks"
    );
}

#[test]
fn who_copies_the_log_keeps_it_for_ten_minutes() {
    let copies = [row("b", Role::Copies, None)];
    let mut held = tail(30);
    for now in [0, 100_000, 599_999] {
        assert_eq!(look(&mut held, &copies, 30, now), None);
    }
    assert_eq!(look(&mut held, &copies, 30, 650_000), trim(20, false));
    let mut again = tail(30);
    assert_eq!(look(&mut again, &copies, 30, 0), None);
    assert_eq!(look(&mut again, &[], 30, 300_000), trim(20, false));
    assert_eq!(look(&mut again, &copies, 30, 650_000), None, "it counts anew");
    assert_eq!(
        look(&mut tail(50), &copies, 50, 0),
        trim(10, true),
        "not above the bound"
    );
}

#[test]
fn it_looks_twice_a_minute_or_after_much_was_committed() {
    let mut tail = tail(30);
    assert_eq!(look(&mut tail, &[], 30, 0), trim(20, false));
    tail.trimmed(below(20));
    assert_eq!(look(&mut tail, &[], 30, 29_999), None);
    for revision in 30..35 {
        tail.push(&EngineBatch::new(at(revision), Term(1), false, [&[0; 946][..]]).unwrap());
    }
    assert_eq!(look(&mut tail, &[], 35, 29_999), None, "not enough for a look");
    assert_eq!(look(&mut tail, &[], 35, 30_000), trim(25, false));
    tail.trimmed(below(25));
    for revision in 35..41 {
        tail.push(&EngineBatch::new(at(revision), Term(1), false, [&[0; 946][..]]).unwrap());
    }
    assert_eq!(look(&mut tail, &[], 41, 30_001), trim(31, false));
}
