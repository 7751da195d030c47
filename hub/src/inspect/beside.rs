//! Owns: a thread beside all others, and behind them, on which answers are put together: who asks much waits for it, and
//! no session does, though the hub has one core.
//! Never: knows what is asked.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    thread,
};

use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tracing::warn;

/// Answers that may wait at once in the queue; a further caller waits before that.
const WAITING_MAX: usize = 64;
/// The least share of the processor that there is, as `nice` says it.
const NICE: i32 = 19;

type Work = Box<dyn FnOnce() + Send>;

/// The background query thread. Clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct Beside(Option<mpsc::Sender<Work>>);

impl Beside {
    /// Starts the thread; it ends when nobody can ask any more.
    pub fn begin() -> io::Result<Self> {
        let (sender, mut works) = mpsc::channel::<Work>(WAITING_MAX);
        thread::Builder::new().name("answers".into()).spawn(move || {
            // On Linux this is about the thread that calls, and nobody else.
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                warn!(%error, "answers are put together with the priority of everything else");
            }
            while let Some(work) = works.blocking_recv() {
                work();
            }
        })?;
        Ok(Self(Some(sender)))
    }

    /// Runs this work and returns its result. Without a thread, as in simulations, it runs here.
    pub(crate) async fn done<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        let Some(thread) = &self.0 else {
            return Ok(work());
        };
        let (sender, done) = oneshot::channel();
        let work = move || {
            // The caller may be gone, now or afterwards.
            if !sender.is_closed()
                && let Ok(done) = panic::catch_unwind(AssertUnwindSafe(work))
            {
                let _ = sender.send(done);
            }
        };
        thread.send(Box::new(work)).await.map_err(|_| ended())?;
        done.await.map_err(|_| ended())
    }
}

fn ended() -> Status {
    Status::internal("the hub could not put the answer together; its log says why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_on_a_thread_of_its_own_that_gives_way_and_outlives_a_panic() {
        let beside = Beside::begin().expect("a thread");
        let own = rustix::process::getpriority_process(None).expect("a priority");
        let look = || {
            let name = thread::current().name().map(str::to_owned);
            (
                name,
                rustix::process::getpriority_process(None).expect("a priority"),
            )
        };
        let expected = (Some("answers".to_owned()), NICE.max(own));
        assert_eq!(beside.done(look).await.expect("done"), expected);
        let failed = beside.done(|| panic!("on purpose")).await;
        assert!(failed.is_err_and(|status: Status| status.message().contains("its log says why")));
        assert_eq!(beside.done(look).await.expect("done again"), expected);
        assert_eq!(
            rustix::process::getpriority_process(None).expect("a priority"),
            own
        );
    }

    #[tokio::test]
    async fn without_a_thread_work_is_done_where_it_is_asked_for() {
        let here = thread::current().id();
        let done = Beside::default().done(|| thread::current().id()).await;
        assert_eq!(done.expect("done"), here);
    }
}
