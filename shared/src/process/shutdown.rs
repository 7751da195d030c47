//! Shutdown in two steps: the first SIGTERM or SIGINT drains, the second aborts.
//! It only says so; what draining means is up to those who watch the tokens.

use anyhow::Context;
use futures::{Stream, StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The two steps. Clones are the same shutdown.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Shutdown {
    /// Cancelled when the process should finish what it has begun and take nothing new.
    pub fn drain(&self) -> &CancellationToken {
        &self.drain
    }

    /// Cancelled when the process should end now.
    pub fn abort(&self) -> &CancellationToken {
        &self.abort
    }

    /// Begins the drain.
    pub fn begin(&self) {
        self.drain.cancel();
    }

    /// The shutdown of a part: it drains and aborts with the whole, and alone when told to.
    pub fn part(&self) -> Self {
        Self {
            drain: self.drain.child_token(),
            abort: self.abort.child_token(),
        }
    }

    /// Takes SIGTERM and SIGINT over; await the result beside the work, it never ends before the second signal.
    pub fn listen(&self) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
        let named = |kind: SignalKind, name: &'static str| {
            let signal = signal(kind).with_context(|| format!("cannot listen for {name}"))?;
            anyhow::Ok(stream::unfold(signal, move |mut signal| async move {
                signal.recv().await?;
                Some((name, signal))
            }))
        };
        let terminate = named(SignalKind::terminate(), "SIGTERM")?;
        let interrupt = named(SignalKind::interrupt(), "SIGINT")?;
        let signals = stream::select(terminate.boxed(), interrupt.boxed());
        Ok(on_signals(self.clone(), signals))
    }
}

/// Turns signals into the two steps; ends after the second, or when the signals do.
pub async fn on_signals(shutdown: Shutdown, mut signals: impl Stream<Item = &'static str> + Send + Unpin) {
    if let Some(signal) = signals.next().await {
        info!(signal, "draining; a second signal ends the process at once");
        shutdown.drain.cancel();
    }
    if let Some(signal) = signals.next().await {
        warn!(signal, "the drain is cut short");
        shutdown.abort.cancel();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    #[tokio::test]
    async fn the_first_signal_drains_and_the_second_aborts() {
        let shutdown = Shutdown::default();
        let (sender, receiver) = mpsc::channel(1);
        let watching = tokio::spawn(on_signals(shutdown.clone(), ReceiverStream::new(receiver)));
        sender.send("SIGTERM").await.expect("sent");
        shutdown.drain().cancelled().await;
        assert!(!shutdown.abort().is_cancelled());
        sender.send("SIGINT").await.expect("sent");
        shutdown.abort().cancelled().await;
        watching.await.expect("ended");
    }

    #[test]
    fn a_part_drains_alone_and_with_the_whole() {
        let whole = Shutdown::default();
        let (one, other) = (whole.part(), whole.part());
        one.begin();
        assert!(one.drain().is_cancelled() && !other.drain().is_cancelled());
        assert!(!whole.drain().is_cancelled());
        whole.begin();
        assert!(other.drain().is_cancelled() && !other.abort().is_cancelled());
    }
}
