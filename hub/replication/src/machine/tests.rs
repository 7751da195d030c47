//! Two and three hubs under everything that a simulated engine does to them, and single rules one by one.

mod by_hand;
mod hubs;
mod leading;
mod tail;
mod watching;

use self::hubs::{Guarded, STEP, SimulatedHubs};
use crate::testing::{Faults, LinkFaults};

/// Worlds of each kind.
const WORLDS: u64 = 20;
const HUBS: [&[&str]; 3] = [&["a", "b"], &["a", "b", "c"], &["a", "b", "b"]];

fn any_faults(world: &mut SimulatedHubs) -> Faults {
    let dice = &mut world.dice;
    Faults {
        latency_millis: dice.between(1, 60),
        late: dice.between(0, 30),
        never: dice.between(0, 20),
        answer_lost: dice.between(0, 60),
        answer_late: dice.between(0, 30),
    }
}

/// Something goes wrong, about once in two seconds.
fn happen(world: &mut SimulatedHubs) {
    if !world.dice.in_thousand(5 * STEP / 10) {
        return;
    }
    let index = world.dice.between(0, world.hubs.len() as u64 - 1) as usize;
    let until = world.now + world.dice.between(200, 6_000);
    match world.dice.between(0, 9) {
        0..=2 => {
            world.guarded.note("pauses");
            world.hubs[index].paused_until = until;
        }
        3 | 4 => {
            world.guarded.note("cuts");
            world.hubs[index].link_until = until;
            let both = world.dice.between(1, 3);
            world.hubs[index].link = LinkFaults {
                requests: both & 1 != 0,
                answers: both & 2 != 0,
            };
        }
        5 => world.restart(index),
        6 => {
            let millis = world.dice.between(100, 4_000);
            world.guarded.note("standstills");
            world.engine.stand_still(millis);
        }
        7 => {
            let next = None;
            world.give(index, super::Input::Resign { next });
        }
        _ => {
            let faults = any_faults(world);
            world.engine.set_faults(faults);
        }
    }
}

fn played(seed: u64, names: &[&str]) -> Guarded {
    let mut world = SimulatedHubs::new(seed, names);
    let faults = any_faults(&mut world);
    world.engine.set_faults(faults);
    for _ in 0..40_000 / STEP {
        happen(&mut world);
        world.step();
    }
    world.settle();
    world.guarded
}

#[test]
fn whatever_goes_wrong_the_laws_hold() {
    let mut all = Guarded::default();
    for seed in 0..WORLDS {
        for names in HUBS {
            println!("seed {seed}, hubs {names:?}");
            for (what, count) in played(seed, names).0 {
                *all.0.entry(what).or_default() += count;
            }
        }
    }
    println!("guarded: {all:#?}");
    for (what, least) in [
        ("terms", 150),
        ("acknowledged", 25_000),
        ("confirmed", 12_000),
        ("confirmed and taken over since", 3),
        ("repeated commits", 700),
        ("unanswered requests", 2_500),
        ("failed comparisons", 300),
        ("fenced terms", 20),
        ("undecided terms", 50),
        ("resigned", 10),
        ("fenced appends", 200),
        ("undecided and written", 40),
        ("undecided and not written", 20),
        ("unconfirmed", 50),
        ("restarts", 60),
        ("copies", 40),
        ("epochs begun", 250),
        ("segments", 500),
        ("trims", 500),
        ("hubs left behind", 100),
        ("pauses", 150),
        ("cuts", 100),
        ("standstills", 50),
    ] {
        assert!(
            all.count(what) >= least,
            "only {} {what}, at least {least} were expected",
            all.count(what)
        );
    }
}

#[test]
fn an_engine_of_yesterday_loses_nothing_that_was_acknowledged() {
    let mut all = Guarded::default();
    for seed in 0..WORLDS {
        let mut world = SimulatedHubs::new(seed, HUBS[1]);
        world.engine.set_faults(Faults {
            latency_millis: 5,
            ..Faults::default()
        });
        world.run(12_000);
        let backup = world.engine.backup();
        let millis = world.dice.between(10, 8_000);
        world.run(millis);
        assert_eq!(world.leaders().len(), 1);
        world.was_restored = true;
        world.engine.restore(&backup);
        world.run(20_000);
        world.settle();
        for (what, count) in world.guarded.0 {
            *all.0.entry(what).or_default() += count;
        }
    }
    println!("guarded: {all:#?}");
    assert!(all.count("epochs begun") >= WORLDS && all.count("acknowledged") >= 5_000);
}
