//! Makes the script of a broken world short: steps are left out as long as the same law breaks.

use oracle::shorten::{Effort, kind_of, shorten};

use super::{Failure, run::play_caught, script::Script};

/// The shortest script found that breaks the same law, and how it breaks it.
pub fn shrink(script: &Script, failure: &Failure, effort: Effort) -> (Script, Failure) {
    let mut broke = failure.clone();
    let mut steps = script.steps.clone();
    steps.truncate(failure.step + 1);
    let of = |steps: &[_]| Script {
        steps: steps.to_vec(),
        ..*script
    };
    let short = shorten(steps, effort, |steps| {
        let found = play_caught(&of(steps)).err()?;
        let same = kind_of(&found.what) == kind_of(&failure.what);
        same.then(|| {
            broke = found;
            broke.step + 1
        })
    });
    (of(&short), broke)
}
