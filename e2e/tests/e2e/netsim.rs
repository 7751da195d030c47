//! Owns: a few seeds of the shell under a simulated network, so that every run of the tests plays some.
//! Never: says what a simulation does; `cargo netsim --count N` plays many.

use anyhow::bail;
use libtest_mimic::Trial;
use netsim::simulate;
use tributary_e2e::suite::plain_test;

/// Seeds that every run of the tests plays.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

pub(crate) fn trials() -> Vec<Trial> {
    SEEDS
        .map(|seed| plain_test(&format!("netsim::seed_{seed}"), move || passes(seed)))
        .collect()
}

fn passes(seed: u64) -> anyhow::Result<()> {
    match simulate(seed, false).failure {
        None => Ok(()),
        Some(why) => bail!("{why}\nagain: cargo netsim --seed {seed} --trace"),
    }
}
