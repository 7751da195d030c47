//! Many worlds, on all cores: seeds are handed out one by one, results are gathered. Each world is alone on its
//! thread and knows nothing of the others.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use oracle::seeds::Seeds;

use super::{
    Failure, WorldResult,
    histogram::Histogram,
    play,
    script::{Script, Size, draw},
};

/// A seed whose world broke a law.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The seed.
    pub seed: u64,
    /// The failure.
    pub failure: Failure,
    /// The whole script.
    pub script: Script,
}

/// The result of a swarm.
#[derive(Debug, Default)]
pub struct Swarmed {
    /// Worlds that were played to the end.
    pub played: u64,
    /// Happenings in them.
    pub seen: Histogram,
    /// The broken worlds that were found, by seed.
    pub broken: Vec<Broken>,
}

/// Plays a world; a panic in it is a failure like any other.
pub fn play_caught(script: &Script) -> Result<WorldResult, Failure> {
    let played = std::panic::catch_unwind(|| play(script));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Failure {
            step: script.steps.len(),
            what: format!("panic: {}", text.unwrap_or_default()),
        })
    })
}

/// Plays these seeds until `broken_max` worlds are broken. `progress` hears how many are done.
pub fn swarm(size: Size, seeds: &Seeds, broken_max: u64, progress: impl Fn(u64) + Sync) -> Swarmed {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(0));
    let swarmed = Mutex::new(Swarmed::default());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut own = Swarmed::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(seed) = seeds.get(index) else { break };
                    if found.load(Ordering::Relaxed) >= broken_max {
                        break;
                    }
                    let script = draw(seed, size);
                    match play_caught(&script) {
                        Ok(outcome) => {
                            own.played += 1;
                            own.seen.add(&outcome.seen);
                        }
                        Err(failure) => {
                            found.fetch_add(1, Ordering::Relaxed);
                            own.broken.push(Broken {
                                seed: script.seed,
                                failure,
                                script,
                            });
                        }
                    }
                    progress(index + 1);
                }
                gather(&mut swarmed.lock().unwrap_or_else(PoisonError::into_inner), own);
            });
        }
    });
    swarmed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn gather(all: &mut Swarmed, own: Swarmed) {
    all.played += own.played;
    all.seen.add(&own.seen);
    all.broken.extend(own.broken);
    all.broken.sort_by_key(|broken| broken.seed);
}
