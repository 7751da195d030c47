//! Readiness as named handles: the process is ready when every handle has been dropped. A part with work to finish
//! first holds a handle; there is no flag that somebody could forget to set. A process of several parts is ready while
//! one of them is: who asks one part must not lose the others with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

type Awaited = BTreeMap<String, usize>;

/// The conditions of a process's readiness. Clones are the same readiness.
#[derive(Clone)]
pub struct Readiness {
    awaited: Arc<Mutex<Awaited>>,
    /// Sends how many names are awaited, at each change.
    count: Arc<watch::Sender<usize>>,
    /// Parts that serve for themselves, by name.
    parts: Arc<Mutex<BTreeMap<String, Readiness>>>,
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
            parts: Arc::default(),
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

    /// The readiness of a part of the process that serves for itself. It is shown, and holds back only its own.
    pub fn part(&self, name: impl Into<String>) -> Self {
        let part = Self::default();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(name.into(), part.clone());
        part
    }

    /// Readiness of the process, and its text for people: the awaited conditions, and the state of each part. Of
    /// several parts one that is ready is enough.
    pub fn told(&self) -> (bool, String) {
        let (awaited, parts) = (self.awaited(), self.parts.lock());
        let parts = parts.unwrap_or_else(PoisonError::into_inner);
        let usable = parts.is_empty() || parts.values().any(Self::is_ready);
        let ready = awaited.is_empty() && usable;
        let first = if ready { "ok" } else { "not ready, awaited:" };
        let mut lines = vec![first.to_owned()];
        lines.extend(awaited);
        for (name, part) in parts.iter() {
            let awaited = part.awaited();
            lines.push(if awaited.is_empty() {
                format!("{name}: ok")
            } else {
                format!("{name}: {}", awaited.join(", "))
            });
        }
        lines.push(String::new());
        (ready, lines.join("\n"))
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

    #[test]
    fn of_several_parts_one_that_is_ready_is_enough_and_each_is_shown() {
        let readiness = Readiness::default();
        assert_eq!(readiness.told(), (true, "ok\n".into()), "without parts");
        let (shops, labs) = (readiness.part("shops"), readiness.part("labs"));
        let starting = readiness.handle("labs started");
        let opening = labs.handle("log opened");
        let text = "not ready, awaited:\nlabs started\nlabs: log opened\nshops: ok\n";
        assert_eq!(readiness.told(), (false, text.into()));
        drop(starting);
        assert_eq!(
            readiness.told(),
            (true, "ok\nlabs: log opened\nshops: ok\n".into())
        );
        let _ended = shops.handle("ended");
        assert!(!readiness.told().0, "none is left");
        drop(opening);
        assert_eq!(readiness.told(), (true, "ok\nlabs: ok\nshops: ended\n".into()));
    }
}
