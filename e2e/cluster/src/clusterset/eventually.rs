//! Waiting for conditions, never for time. It knows nothing of what is waited for.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

/// Interval of checking a condition.
const POLL: Duration = Duration::from_millis(50);
/// Time for most conditions to come true, on a busy machine too.
pub const WAIT: Duration = Duration::from_secs(60);

/// Waits until `look` returns something. Its error is one of the moment: the last one is shown if the time is up.
pub async fn eventually<T, F, Look>(what: &str, mut look: F) -> anyhow::Result<T>
where
    F: FnMut() -> Look,
    Look: Future<Output = anyhow::Result<Option<T>>>,
{
    let began = Instant::now();
    loop {
        let last = match look().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if began.elapsed() >= WAIT {
            let late = format!("not after {} s: {what}", WAIT.as_secs());
            return match last {
                Some(error) => Err(error).context(late),
                None => bail!(late),
            };
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Looks at a condition again and again for `time`; the first error is the outcome.
pub async fn holds_for<F, Look>(time: Duration, mut look: F) -> anyhow::Result<()>
where
    F: FnMut() -> Look,
    Look: Future<Output = anyhow::Result<()>>,
{
    let began = Instant::now();
    while began.elapsed() < time {
        look().await?;
        tokio::time::sleep(POLL).await;
    }
    look().await
}
