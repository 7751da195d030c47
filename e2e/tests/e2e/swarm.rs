//! Owns: a few worlds of the swarm, so that every run of the tests plays some, and the frozen ones that broke once.
//! Never: says what a world does; `cargo sim swarm` plays thousands.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use libtest_mimic::Trial;
use swarm::{
    run::play_caught,
    script::{Script, Size, draw},
};
use tributary_e2e::suite::plain_test;

/// Seeds that every run of the tests plays.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Scripts of worlds that broke a law once, as `cargo sim shrink` printed them.
const FROZEN: &str = "fixtures/worlds";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = SEEDS
        .map(|seed| plain_test(&format!("swarm::seed_{seed}"), move || passes(seed)))
        .collect();
    trials.push(plain_test(
        "swarm::one_seed_twice_is_one_world",
        one_seed_twice_is_one_world,
    ));
    trials.push(plain_test(
        "swarm::worlds_that_broke_once_hold_every_law",
        worlds_that_broke_once_hold_every_law,
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

fn worlds_that_broke_once_hold_every_law() -> anyhow::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(FROZEN);
    let entries = std::fs::read_dir(&directory).with_context(|| format!("cannot read {FROZEN}"))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    ensure!(!files.is_empty(), "{FROZEN} holds no script");
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let script: Script = serde_json::from_str(&std::fs::read_to_string(&file)?)
            .with_context(|| format!("{name} is no script"))?;
        if let Err(failure) = play_caught(&script) {
            bail!(
                "step {}: {}\nagain: cargo sim replay e2e/{FROZEN}/{name}",
                failure.step,
                failure.what
            );
        }
    }
    Ok(())
}
