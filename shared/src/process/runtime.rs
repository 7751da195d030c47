//! The asynchronous runtime of a process.
//! One per process, made in its `main`; it decides nothing about tasks.

use anyhow::Context;

/// Number of threads for a process's tasks, besides those of blocking calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One: little work at a time, which would cost more in waking another thread than is gained by it.
    One,
    /// One for each core.
    Cores,
}

/// Runs a process's main future and what it spawns. When it ends, the process can end: blocking calls that still hang
/// (a dead network volume, for example) are not waited for.
pub fn block_on(threads: Threads, main: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::Cores => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build();
    let runtime = runtime.context("cannot start the runtime's threads")?;
    let result = runtime.block_on(main);
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocking_call_that_hangs_does_not_hold_the_process_up() {
        for threads in [Threads::One, Threads::Cores] {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            let result = block_on(threads, async move {
                // Waits for a sender that outlives the runtime.
                tokio::task::spawn_blocking(move || receiver.recv());
                anyhow::bail!("the end")
            });
            assert_eq!(result.expect_err("passed on").to_string(), "the end");
            drop(sender);
        }
    }

    #[test]
    fn on_one_thread_what_is_spawned_runs_where_it_is_awaited() {
        let caller = std::thread::current().id();
        for (threads, same) in [(Threads::One, true), (Threads::Cores, false)] {
            let result = block_on(threads, async move {
                let spawned = tokio::spawn(async { std::thread::current().id() }).await?;
                anyhow::ensure!((spawned == caller) == same, "{threads:?}");
                Ok(())
            });
            assert!(result.is_ok(), "{result:?}");
        }
    }
}
