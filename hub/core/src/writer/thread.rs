//! Owns: what steps a writer in production: a thread of its own, or a task of a simulated network.
//! Never: decides what is taken, appended or answered, nor in which order.

use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::{
    actor::{Completed, Writer, WriterError},
    handle::{Inbox, Work, WriterHandle},
};
use crate::clock::Clock;

/// The end of a writer.
pub(super) type Ended = oneshot::Receiver<Result<(), WriterError>>;

impl Writer {
    /// Starts the thread. The receiver tells how it ended.
    pub fn spawn(
        self,
        completed: mpsc::UnboundedReceiver<Completed>,
        clock: Clock,
        random: fn() -> u64,
    ) -> std::io::Result<(WriterHandle, Ended)> {
        let (handle, inbox) = WriterHandle::new(self.bounds().inbox);
        let (ended, end) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        // Log lines there belong to the clusterset that starts it.
        let span = tracing::Span::current();
        thread::Builder::new().name("writer".into()).spawn(move || {
            let outcome = span.in_scope(|| runtime.block_on(run(self, completed, inbox, clock, random)));
            // Its supervisor may be gone already.
            let _ = ended.send(outcome);
        })?;
        Ok((handle, end))
    }

    /// Starts it as a task instead, for simulations over a log in memory, which never blocks. Needs a runtime.
    #[cfg(any(test, feature = "simulated"))]
    pub fn spawn_task(
        self,
        completed: mpsc::UnboundedReceiver<Completed>,
        clock: Clock,
        random: fn() -> u64,
    ) -> (WriterHandle, Ended) {
        let (handle, inbox) = WriterHandle::new(self.bounds().inbox);
        let (ended, end) = oneshot::channel();
        tokio::spawn(async move {
            // Its supervisor may be gone already.
            let _ = ended.send(run(self, completed, inbox, clock, random).await);
        });
        (handle, end)
    }
}

async fn run(
    mut writer: Writer,
    mut completed: mpsc::UnboundedReceiver<Completed>,
    mut inbox: Inbox,
    clock: Clock,
    random: fn() -> u64,
) -> Result<(), WriterError> {
    writer.begin(clock.moment());
    loop {
        while writer.step(clock.moment(), random)? {}
        if writer.is_finished() {
            return writer.finish();
        }
        tokio::select! {
            biased;
            Some(batch) = completed.recv() => writer.on_completed(batch, clock.moment())?,
            work = inbox.next(), if writer.has_room() => {
                // Nobody can ask any more: that is a stop, too.
                writer.take(work.unwrap_or(Work::Stop), clock.moment());
                while writer.has_room() && let Some(work) = inbox.try_next() {
                    writer.take(work, clock.moment());
                }
            }
        }
    }
}
