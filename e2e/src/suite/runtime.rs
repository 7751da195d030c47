//! Owns: running one scenario on threads of its own, not for ever, and what is said of its panic.
//! Never: knows what kind of scenario it is.

use cluster::cost::{self, Counter};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the tasks that a scenario left running.
const RUNTIME_END_WAIT: Duration = Duration::from_secs(5);

/// Runs a scenario as a task of its own, but not for ever; its panic is an error with the panic's message.
pub(super) async fn bounded(
    limit: Duration,
    scenario: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> anyhow::Result<()> {
    let mut running = tokio::spawn(scenario);
    match tokio::time::timeout(limit, &mut running).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => Err(panicked(error)),
        Err(_) => {
            running.abort();
            anyhow::bail!("has not ended after {} s", limit.as_secs())
        }
    }
}

/// Runs to the end on a runtime of its own, which takes the tasks that are left with it. Its threads work for the counter.
pub(super) fn on_runtime<T>(
    counter: Option<&Arc<Counter>>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    if let Some(counter) = counter {
        let theirs = Arc::clone(counter);
        builder.on_thread_start(move || cost::enter(Arc::clone(&theirs)));
        builder.on_thread_stop(cost::leave);
    }
    let runtime = builder.build()?;
    if let Some(counter) = counter {
        cost::enter(Arc::clone(counter));
    }
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(RUNTIME_END_WAIT);
    cost::leave();
    result
}

fn panicked(error: tokio::task::JoinError) -> anyhow::Error {
    let Ok(payload) = error.try_into_panic() else {
        return anyhow::anyhow!("was cancelled");
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    anyhow::anyhow!("panicked: {}", text.unwrap_or("without a message"))
}
