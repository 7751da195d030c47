//! Makes the script of a broken world short: steps are left out as long as the same law breaks.

use super::{Failure, run::play_caught, script::Script};

/// Worlds that are played at most; a script of a few dozen steps needs fewer.
const TRIES_MAX: usize = 2_000;

/// The law that a failure names: what stands before the colon.
fn law(failure: &Failure) -> &str {
    failure.what.split(':').next().unwrap_or_default()
}

/// The shortest script found that breaks the same law, and how it breaks it.
pub fn shrink(script: &Script, failure: &Failure) -> (Script, Failure) {
    let (mut best, mut broke) = (script.clone(), failure.clone());
    best.steps.truncate(failure.step + 1);
    let mut tries = 0;
    let mut size = best.steps.len() / 2;
    while size > 0 && tries < TRIES_MAX {
        let mut at = 0;
        while at < best.steps.len() && tries < TRIES_MAX {
            tries += 1;
            let mut shorter = best.clone();
            let end = (at + size).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            match play_caught(&shorter) {
                Err(found) if law(&found) == law(failure) => {
                    shorter.steps.truncate(found.step + 1);
                    (best, broke) = (shorter, found);
                }
                _ => at += size,
            }
        }
        size /= 2;
    }
    (best, broke)
}
