//! Steps, which are decided before anything is written, and waiting for what a cluster does by itself.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::progress::Progress;

/// Interval of looks at a cluster during a wait.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A step and what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned<S> {
    /// The step.
    pub(super) step: S,
    /// The work; `None`: it is done already.
    pub(super) todo: Option<String>,
}

impl<S> Planned<S> {
    /// Something is to do if `missing`.
    pub(super) fn if_missing(step: S, missing: bool) -> Self {
        Self {
            step,
            todo: missing.then(String::new),
        }
    }

    /// Something has to be done, for this reason.
    pub(super) fn because(step: S, reason: Option<String>) -> Self {
        Self { step, todo: reason }
    }
}

/// The outcome of a look during a wait.
pub(super) enum Look<T> {
    /// It is there.
    Ready(T),
    /// It is not fulfilled, for this reason.
    Waiting(String),
}

/// Looks until it is there, and prints a line whenever the reason changes.
///
/// # Errors
///
/// The result of a look, or after `timeout` the last reason.
pub(super) async fn until<T>(
    progress: &Progress,
    timeout: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<Look<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + timeout;
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = String::new();
    loop {
        ticks.tick().await;
        match look().await? {
            Look::Ready(found) => return Ok(found),
            Look::Waiting(reason) => {
                if Instant::now() >= deadline {
                    bail!(
                        "gave up after {} s: {reason}. Run the same command again to continue; --timeout waits longer",
                        timeout.as_secs()
                    );
                }
                if reason != told {
                    progress.note(&reason);
                    told = reason;
                }
            }
        }
    }
}
