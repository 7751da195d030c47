//! Owns: playing the swarm in the copy, and at which seed it broke.
//! Never: changes the copy.

use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::Command;

use super::{copy::Copy, judge::output};

/// Seeds that are played against each bug.
pub(super) const SEEDS: u64 = 2_000;
/// The longest that building and playing take.
const TIME_MAX: Duration = Duration::from_secs(40 * 60);

/// What the swarm saw of a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// This seed was the first to break a law.
    Broken {
        /// Which; seeds are counted from one.
        seed: u64,
        /// The law, and how.
        law: String,
    },
    /// Every law held in all [`SEEDS`].
    Nothing,
    /// It did not come to an end.
    Hung,
    /// It was not asked.
    NotAsked,
}

impl Sight {
    /// Whether the bug was seen.
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::Hung)
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Broken { seed, law } => format!("seed {seed}, {law}"),
            Self::Nothing => format!("nothing in {SEEDS} seeds"),
            Self::Hung => format!("did not end within {} s", TIME_MAX.as_secs()),
            Self::NotAsked => "not asked".to_owned(),
        }
    }
}

/// Builds the swarm of the copy as it is, and plays it.
pub(super) async fn play(copy: &Copy) -> anyhow::Result<Sight> {
    let mut cargo = Command::new("cargo");
    // As `cargo sim` does; the alias itself would be read twice here, for the copy lies below the working tree.
    cargo.args(["--config", "build.rustflags=['--cfg', 'tokio_unstable']"]);
    cargo.args([
        "run",
        "--quiet",
        "--profile",
        "sim",
        "--package",
        "tributary-e2e",
        "--bin",
        "sim",
        "--",
    ]);
    cargo.args(["swarm", "--seed", "1", "--count", &SEEDS.to_string()]);
    cargo.current_dir(copy.root());
    cargo.env("CARGO_TARGET_DIR", copy.target());
    let Some(played) = output(cargo, TIME_MAX).await? else {
        return Ok(Sight::Hung);
    };
    if played.status.success() {
        return Ok(Sight::Nothing);
    }
    let said = String::from_utf8_lossy(&played.stdout);
    match first_broken(&said) {
        Some(broken) => Ok(broken),
        None => bail!(
            "the swarm neither passed nor named a seed:\n{said}{}",
            String::from_utf8_lossy(&played.stderr)
        ),
    }
}

/// The seed and the law of a line such as `seed 7: BROKEN: convergence: not at rest`.
fn first_broken(said: &str) -> Option<Sight> {
    said.lines().find_map(|line| {
        let (seed, what) = line.strip_prefix("seed ")?.split_once(": BROKEN: ")?;
        let law = what.split(':').next().unwrap_or(what);
        let seed = seed.parse().context("a seed is a number").ok()?;
        Some(Sight::Broken {
            seed,
            law: law.to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_the_law_are_read_off_the_verdict() {
        let said =
            "   3  agent crashed\n12 seeds held every law\nseed 13: BROKEN: law of deletion: it went\n";
        let broken = Sight::Broken {
            seed: 13,
            law: "law of deletion".into(),
        };
        assert_eq!(first_broken(said), Some(broken.clone()));
        assert!(broken.is_caught() && !Sight::Nothing.is_caught());
        assert_eq!(first_broken("error: could not compile"), None);
    }
}
