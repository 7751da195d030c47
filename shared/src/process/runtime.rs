//! The asynchronous runtime of a process.
//! One per process, made in its `main`; it decides nothing about tasks.

use anyhow::Context;

/// Runs a process's main future on all cores. When it ends, the process can end: blocking calls that still hang
/// (a dead network volume, for example) are not waited for.
pub fn block_on(main: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime's threads")?;
    let result = runtime.block_on(main);
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_blocking_call_that_hangs_does_not_hold_the_process_up() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let result = super::block_on(async move {
            // Waits for a sender that outlives the runtime.
            tokio::task::spawn_blocking(move || receiver.recv());
            anyhow::bail!("the end")
        });
        assert_eq!(result.expect_err("passed on").to_string(), "the end");
        drop(sender);
    }
}
