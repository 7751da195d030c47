//! Owns: until when this agent may write, as the rooms that write ask it: nobody else knows of the Lease.
//! Never: decides it (`hold`), or lets a request through that was not asked for here.

use std::sync::Arc;

use tokio::{sync::watch, time::Instant};

/// Until when this agent may write. Clones are the same.
#[derive(Debug, Clone)]
pub struct WritePermit(Arc<watch::Sender<Until>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Never,
    Then(Instant),
    Always,
}

impl Default for WritePermit {
    /// One that nobody has given yet.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Until::Never)))
    }
}

impl WritePermit {
    /// For a process that no other one writes beside.
    pub fn unlimited() -> Self {
        Self(Arc::new(watch::Sender::new(Until::Always)))
    }

    /// Writing is allowed until then, and not after it; `None`: not any more.
    pub fn set(&self, until: Option<Instant>) {
        self.0.send_replace(until.map_or(Until::Never, Until::Then));
    }

    /// Writing is allowed, or not, until changed: for a simulation, whose time is its own.
    #[cfg(any(test, feature = "simulated"))]
    pub fn switch(&self, on: bool) {
        self.0.send_replace(if on { Until::Always } else { Until::Never });
    }

    /// Returns true if a write may begin now.
    pub fn holds(&self) -> bool {
        holds(*self.0.borrow())
    }

    /// Returns true if this agent leads as far as it knows: it was given the permit and nobody took it back, though it may have run
    /// out. For what does no harm when another one leads by now.
    pub fn is_leaders(&self) -> bool {
        !matches!(*self.0.borrow(), Until::Never)
    }

    /// Waits until a write may begin.
    pub async fn given(&self) {
        // `self` owns the sender, so the channel cannot close.
        let _ = self.0.subscribe().wait_for(|until| holds(*until)).await;
    }
}

fn holds(until: Until) -> bool {
    match until {
        Until::Never => false,
        Until::Then(until) => Instant::now() < until,
        Until::Always => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_permit_ends_by_itself_and_is_given_again() {
        let permit = WritePermit::default();
        assert!(!permit.holds(), "nobody has given it");
        permit.set(Some(Instant::now() + Duration::from_secs(4)));
        tokio::time::advance(Duration::from_millis(3_999)).await;
        assert!(permit.holds());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!permit.holds() && permit.is_leaders());
        let waiting = tokio::spawn({
            let permit = permit.clone();
            async move { permit.given().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        permit.set(Some(Instant::now() + Duration::from_secs(4)));
        waiting.await.expect("no panic");
        permit.set(None);
        assert!(!permit.holds() && !permit.is_leaders(), "another one leads");
    }
}
