//! Owns: a few worlds of the swarm, so that every run of the tests plays some.
//! Never: says what a world does; `cargo sim swarm` plays thousands.

use anyhow::bail;
use libtest_mimic::Trial;
use tributary_e2e::{
    suite::plain_test,
    verify::swarm::{
        run::play_caught,
        script::{Size, draw},
    },
};

/// Seeds that every run of the tests plays.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = SEEDS
        .map(|seed| plain_test(&format!("swarm::seed_{seed}"), move || passes(seed)))
        .collect();
    trials.push(plain_test(
        "swarm::one_seed_twice_is_one_world",
        one_seed_twice_is_one_world,
    ));
    trials
}

fn passes(seed: u64) -> anyhow::Result<()> {
    match play_caught(&draw(seed, Size::Small)) {
        Ok(_) => Ok(()),
        Err(failure) => bail!(
            "step {}: {}\nagain: cargo sim run --seed {seed}",
            failure.step,
            failure.what
        ),
    }
}

fn one_seed_twice_is_one_world() -> anyhow::Result<()> {
    let script = draw(*SEEDS.start(), Size::Small);
    anyhow::ensure!(
        play_caught(&script) == play_caught(&script),
        "two traces of seed {}",
        script.seed
    );
    Ok(())
}
