//! Runs the critical tasks of a process, or of a part of one: the end of one, for whatever reason, is the end of all.
//! It never restarts a task; that is what the one who runs the process does.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, anyhow, bail};
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{debug, error, info};

use super::{reason, shutdown::Shutdown};

/// Longest time for draining, below the thirty seconds that Kubernetes grants a pod.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Holds the critical tasks.
pub struct Supervisor {
    shutdown: Shutdown,
    /// The log line when the end of a task ends them all.
    ending: &'static str,
    tasks: JoinSet<anyhow::Result<()>>,
    names: BTreeMap<Id, &'static str>,
}

impl Supervisor {
    /// A supervisor that ends with this shutdown.
    pub fn new(shutdown: Shutdown) -> Self {
        Self::ending(shutdown, "ending the process")
    }

    /// One that says this when a task of its own ends early: for a part of a process, with a shutdown of its own.
    pub fn ending(shutdown: Shutdown, ending: &'static str) -> Self {
        Self {
            shutdown,
            ending,
            tasks: JoinSet::new(),
            names: BTreeMap::new(),
        }
    }

    /// The shutdown that tasks should watch.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Starts a critical task. It should end, with `Ok`, only once the drain has begun.
    pub fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Does `work` while the tasks that were started run. `None`: the drain began before it was done. The end of a
    /// task is an error, as in [`Supervisor::run`].
    pub async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        let (drain, abort) = (self.shutdown.drain().clone(), self.shutdown.abort().clone());
        tokio::select! {
            biased;
            () = abort.cancelled() => bail!("aborted by a signal"),
            () = drain.cancelled() => Ok(None),
            ended = self.next_end(), if !self.names.is_empty() => Self::early_end(ended),
            done = work => done.map(Some),
        }
    }

    /// Waits for the drain or the end of a task, then for the others to drain, [`DRAIN_TIMEOUT`] at most.
    /// An error says which task ended the process and why.
    pub async fn run(self) -> anyhow::Result<()> {
        self.run_within(DRAIN_TIMEOUT).await
    }

    /// [`Supervisor::run`] with another bound on the drain.
    async fn run_within(mut self, longest: Duration) -> anyhow::Result<()> {
        let (drain, abort) = (self.shutdown.drain().clone(), self.shutdown.abort().clone());
        let early = tokio::select! {
            biased;
            () = abort.cancelled() => bail!("aborted by a signal"),
            () = drain.cancelled() => Ok(()),
            ended = self.next_end() => Self::early_end(ended),
        };
        if let Err(error) = &early {
            error!(error = format!("{error:#}"), "{}", self.ending);
        }
        self.shutdown.begin();
        let drained = tokio::select! {
            biased;
            () = abort.cancelled() => Err(anyhow!("aborted by a signal")),
            drained = tokio::time::timeout(longest, self.drained()) => drained.unwrap_or_else(|_| {
                let left: Vec<_> = self.names.values().copied().collect();
                Err(anyhow!("not drained within {longest:?}: {}", left.join(", ")))
            }),
        };
        early.and(drained)
    }

    async fn next_end(&mut self) -> Option<(&'static str, anyhow::Result<()>)> {
        let ended = self.tasks.join_next_with_id().await?;
        let (id, result) = match ended {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(died(error))),
        };
        let name = self.names.remove(&id).unwrap_or("a task");
        Some((name, result))
    }

    fn early_end<T>(ended: Option<(&'static str, anyhow::Result<()>)>) -> anyhow::Result<T> {
        match ended {
            Some((name, Err(error))) => Err(error.context(format!("{name} failed"))),
            Some((name, Ok(()))) => Err(anyhow!("{name} ended, and nothing had asked it to")),
            None => Err(anyhow!("there is nothing to run")),
        }
    }

    /// Waits for all tasks; the first failure among them is the result.
    async fn drained(&mut self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        while let Some((name, result)) = self.next_end().await {
            debug!(task = name, "drained");
            let result = result.with_context(|| format!("{name} failed while draining"));
            outcome = outcome.and(result);
        }
        info!("drained");
        outcome
    }
}

fn died(error: JoinError) -> anyhow::Error {
    match error.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            anyhow!(
                "panicked: {}",
                text.unwrap_or_else(|| "no reason given".to_owned())
            )
        }
        Err(error) => anyhow!(error),
    }
}

/// The result of `main`: success, or 1 with the error and its causes on standard error.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", reason(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor() -> (Supervisor, Shutdown) {
        let shutdown = Shutdown::default();
        (Supervisor::new(shutdown.clone()), shutdown)
    }

    async fn until_drained(shutdown: Shutdown) -> anyhow::Result<()> {
        shutdown.drain().cancelled().await;
        Ok(())
    }

    #[tokio::test]
    async fn a_drain_waits_for_every_task_and_is_success() {
        let (mut supervisor, shutdown) = supervisor();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        supervisor.spawn("a", until_drained(shutdown.clone()));
        supervisor.spawn("b", async move { receiver.await.context("not told") });
        let running = tokio::spawn(supervisor.run());
        shutdown.begin();
        tokio::task::yield_now().await;
        assert!(!running.is_finished());
        sender.send(()).expect("b waits");
        running.await.expect("no panic").expect("drained");
    }

    #[tokio::test]
    async fn the_end_of_one_task_drains_the_others_and_is_an_error() {
        for (kind, expected) in [
            ("fails", "b failed: the disk is full"),
            ("ends", "b ended, and nothing had asked it to"),
            ("panics", "b failed: panicked: boom"),
        ] {
            let (mut supervisor, shutdown) = supervisor();
            supervisor.spawn("a", until_drained(shutdown.clone()));
            supervisor.spawn("b", async move {
                match kind {
                    "fails" => bail!("the disk is full"),
                    "ends" => Ok(()),
                    _ => panic!("boom"),
                }
            });
            let error = supervisor.run().await.expect_err(kind);
            assert_eq!(format!("{error:#}"), expected);
            assert!(shutdown.drain().is_cancelled());
        }
    }

    #[tokio::test]
    async fn work_beside_the_tasks_ends_with_them() {
        let (mut running, shutdown) = supervisor();
        running.spawn("a", until_drained(shutdown.clone()));
        let done = running.meanwhile(async { Ok(7) }).await;
        assert_eq!(done.expect("done"), Some(7));
        let failed = running
            .meanwhile(async { bail!("no") as anyhow::Result<()> })
            .await;
        assert_eq!(failed.expect_err("failed").to_string(), "no");
        shutdown.begin();
        let never = std::future::pending::<anyhow::Result<()>>;
        assert_eq!(running.meanwhile(never()).await.expect("drained"), None);
        running.run().await.expect("drained");

        let (mut running, _shutdown) = supervisor();
        assert_eq!(
            running.meanwhile(async { Ok(1) }).await.expect("none runs"),
            Some(1)
        );
        running.spawn("b", async { bail!("the disk is full") });
        let error = running.meanwhile(never()).await.expect_err("b ended");
        assert_eq!(format!("{error:#}"), "b failed: the disk is full");
    }

    #[tokio::test]
    async fn a_task_that_does_not_drain_is_named() {
        let (mut supervisor, shutdown) = supervisor();
        supervisor.spawn("stuck", std::future::pending());
        shutdown.begin();
        let error = supervisor
            .run_within(Duration::from_millis(5))
            .await
            .expect_err("not drained");
        assert_eq!(error.to_string(), "not drained within 5ms: stuck");
    }

    #[tokio::test]
    async fn an_abort_waits_for_nobody() {
        let (mut supervisor, shutdown) = supervisor();
        supervisor.spawn("stuck", std::future::pending());
        let running = tokio::spawn(supervisor.run());
        shutdown.begin();
        shutdown.abort().cancel();
        let error = running.await.expect("no panic").expect_err("aborted");
        assert!(error.to_string().contains("aborted"), "{error}");
    }
}
