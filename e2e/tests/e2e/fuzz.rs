//! Owns: that the decoders which are fuzzed are reached and hold on the seeds: each seed is taken, and neither it, nor what
//! becomes of it by small changes, nor what broke one once makes a decoder panic. A fuzzer (`e2e/fuzz`) looks for longer.
//! Never: has a decoder or a seed of its own.

// The files are of a library that publishes them.
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/decoders.rs"]
mod decoders;
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/seeds.rs"]
mod seeds;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tributary_e2e::suite::plain_test;

use decoders::{Decoder, TARGETS};

/// Changed inputs for each seed.
const CHANGED: u64 = 200;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test("fuzz::every_target_takes_its_seeds", seeds_are_taken),
        plain_test("fuzz::changed_seeds_panic_nowhere", changed),
        plain_test("fuzz::every_target_is_fuzzed_before_a_release", all_run),
    ]
}

/// A target whose seeds are refused would be fuzzed at its door only.
fn seeds_are_taken() -> anyhow::Result<()> {
    for (target, decode) in TARGETS {
        let seeds = seeds::seeds(target);
        ensure!(!seeds.is_empty(), "{target} has no seeds");
        for bytes in seeds {
            ensure!(decoded(target, decode, &bytes)?, "{target} refuses {bytes:?}");
        }
    }
    Ok(())
}

fn changed() -> anyhow::Result<()> {
    let mut kept = 0;
    for (target, decode) in TARGETS {
        for bytes in seeds::kept(target) {
            kept += 1;
            decoded(target, decode, &bytes)?;
        }
        for (number, seed) in seeds::seeds(target).iter().enumerate() {
            let mut random = StdRng::seed_from_u64(number as u64);
            for _ in 0..CHANGED {
                decoded(target, decode, &change(seed, &mut random))?;
            }
        }
    }
    ensure!(kept > 0, "no kept input was read");
    Ok(())
}

/// A panic is told with the bytes that belong into `kept.txt`.
fn decoded(target: &str, decode: Decoder, bytes: &[u8]) -> anyhow::Result<bool> {
    let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    catch_unwind(AssertUnwindSafe(|| decode(bytes)))
        .map_err(|_| anyhow::anyhow!("{target} panicked at: {target} {}", hex()))
}

/// One to four small changes: a byte is another one, bytes go, come twice, or are of everywhere.
fn change(seed: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let end = random.random_range(at..=bytes.len().min(at + 16));
        match random.random_range(0..5) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let value: u8 = random.random();
                bytes.insert(at, value);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
        }
    }
    bytes
}

/// A decoder is a target of the fuzzer, and the gate of a release runs each.
fn all_run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    for (target, _) in TARGETS {
        let file = root.join(format!("fuzz_targets/{target}.rs"));
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        ensure!(text.contains("fuzz_target!"), "{target}");
        ensure!(
            manifest.contains(&format!("name = \"{target}\"")),
            "{target} is not built"
        );
    }
    let targets = std::fs::read_dir(root.join("fuzz_targets"))?.count();
    ensure!(
        targets == TARGETS.len(),
        "{targets} files, {} targets",
        TARGETS.len()
    );
    let release = std::fs::read_to_string(root.join("../../.ci/release"))?;
    ensure!(
        release.contains("e2e/fuzz/fuzz_targets/*.rs"),
        ".ci/release does not fuzz every target"
    );
    Ok(())
}
