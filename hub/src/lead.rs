//! Owns: a hub whose log another process writes: it no longer leads, and its process stays.
//! Never: decides who leads; the log does, by fencing an append.

use std::future::Future;

use shared::process::Readiness;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::writer::WriterError;

/// Separates tasks that end with leading from those that end with the process.
#[derive(Clone)]
pub struct Leading {
    /// Cancelled when this hub no longer leads: everything that acts for the clusterset ends.
    pub leading: CancellationToken,
    /// Cancelled when the process is to end.
    pub drain: CancellationToken,
    /// Held back while this hub does not lead.
    pub readiness: Readiness,
}

impl Leading {
    /// The state of a hub that leads until it is fenced, or drained.
    pub fn until(drain: &CancellationToken, readiness: &Readiness) -> Self {
        Self {
            leading: drain.child_token(),
            drain: drain.clone(),
            readiness: readiness.clone(),
        }
    }

    /// Runs the writer. If another holder writes the log, nobody saw anything of the batch: sessions and calls end, the
    /// hub is not ready any more, and the process waits to be stopped, so that its admin port can say why. Any other
    /// end is the process's.
    pub async fn run(self, writer: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        match writer.await {
            Err(reason) if ends_term(&reason) => {
                error!(
                    %reason,
                    "another process writes this event log: this hub leads no more, serves nobody and acknowledges \
                     nothing; stop one of the two"
                );
                let _not_ready = self
                    .readiness
                    .handle("leading: another process writes the event log");
                self.leading.cancel();
                self.drain.cancelled().await;
                Ok(())
            }
            ended => ended,
        }
    }

    /// Runs what ends with leading; its own end is the process's, unless that is why it came.
    pub async fn keep(self, work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        let ended = work.await;
        if ended.is_ok() && self.leading.is_cancelled() {
            self.drain.cancelled().await;
        }
        ended
    }
}

fn ends_term(reason: &anyhow::Error) -> bool {
    let reason = reason.downcast_ref::<WriterError>();
    reason.is_some_and(WriterError::ends_term)
}
