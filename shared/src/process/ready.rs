//! Readiness as named handles: the process is ready when every handle has been dropped.
//! Whoever has something to finish first holds a handle; there is no flag that somebody could forget to set.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

type Awaited = BTreeMap<String, usize>;

/// What the process waits for before it is ready. Clones are the same readiness.
#[derive(Clone)]
pub struct Readiness {
    awaited: Arc<Mutex<Awaited>>,
    /// Sends how many names are awaited, at each change.
    count: Arc<watch::Sender<usize>>,
}

/// Holds readiness back until it is dropped.
#[must_use = "dropping the handle says that what it names is done"]
pub struct ReadyHandle {
    readiness: Readiness,
    name: String,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            awaited: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Readiness {
    /// Holds readiness back until the handle is dropped. Taken later, it makes a ready process unready again:
    /// for a log that fails, or a drain that begins. The name is shown to people: "log opened".
    pub fn handle(&self, name: impl Into<String>) -> ReadyHandle {
        let name = name.into();
        self.change(|awaited| *awaited.entry(name.clone()).or_default() += 1);
        ReadyHandle {
            readiness: self.clone(),
            name,
        }
    }

    /// The names that are still awaited, in order; none when ready.
    pub fn awaited(&self) -> Vec<String> {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.keys().cloned().collect()
    }

    /// True when nothing is awaited.
    pub fn is_ready(&self) -> bool {
        self.awaited().is_empty()
    }

    /// Returns when nothing is awaited.
    pub async fn ready(&self) {
        // `self` owns a sender, so the channel cannot close.
        let _ = self.count.subscribe().wait_for(|&count| count == 0).await;
    }

    fn change(&self, edit: impl FnOnce(&mut Awaited)) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        edit(&mut awaited);
        // Sent under the lock, so that the last value sent is the last state.
        self.count.send_replace(awaited.len());
    }
}

impl Drop for ReadyHandle {
    fn drop(&mut self) {
        self.readiness.change(|awaited| {
            if let Some(holders) = awaited.get_mut(&self.name) {
                *holders -= 1;
                if *holders == 0 {
                    awaited.remove(&self.name);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_ready_when_the_last_handle_of_every_name_is_dropped() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready(), "nothing is awaited yet");
        let log = readiness.handle("log opened");
        let (first, second) = (readiness.handle("listed"), readiness.handle("listed"));
        assert_eq!(readiness.awaited(), ["listed", "log opened"]);
        drop(first);
        drop(log);
        assert_eq!(readiness.awaited(), ["listed"]);
        let waiting = tokio::spawn({
            let readiness = readiness.clone();
            async move { readiness.ready().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(second);
        waiting.await.expect("became ready");
    }

    #[test]
    fn a_ready_process_can_become_unready() {
        let readiness = Readiness::default();
        let failed = readiness.handle("log failed");
        assert!(!readiness.is_ready());
        drop(failed);
        assert!(readiness.is_ready());
    }
}
