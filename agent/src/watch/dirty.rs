//! A set of keys that somebody has to look at again. Level-triggered: a key that is marked often is taken once,
//! so that a slow reader costs memory in keys, never in messages.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Clones are the same set.
#[derive(Debug)]
pub struct Dirty<M>(Arc<Shared<M>>);

#[derive(Debug)]
struct Shared<M> {
    keys: Mutex<BTreeSet<M>>,
    marked: Notify,
}

impl<M> Clone for Dirty<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> Default for Dirty<M> {
    fn default() -> Self {
        Self(Arc::new(Shared {
            keys: Mutex::new(BTreeSet::new()),
            marked: Notify::new(),
        }))
    }
}

impl<M: Ord> Dirty<M> {
    /// Marks keys.
    pub fn mark(&self, keys: impl IntoIterator<Item = M>) {
        let mut set = self.lock();
        let before = set.len();
        set.extend(keys);
        if set.len() > before {
            self.0.marked.notify_one();
        }
    }

    /// Waits until there are keys, and takes them all. For one reader.
    pub async fn taken(&self) -> BTreeSet<M> {
        loop {
            let keys = self.take_now();
            if !keys.is_empty() {
                return keys;
            }
            self.0.marked.notified().await;
        }
    }

    /// Takes the keys that there are now, for a reader that does not wait.
    pub fn take_now(&self) -> BTreeSet<M> {
        std::mem::take(&mut *self.lock())
    }

    /// How many keys wait.
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<M>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_that_is_marked_often_is_taken_once() {
        let dirty = Dirty::default();
        dirty.mark([1, 2]);
        dirty.mark([2]);
        assert_eq!(dirty.taken().await, BTreeSet::from([1, 2]));
        let waiting = tokio::spawn({
            let dirty = dirty.clone();
            async move { dirty.taken().await }
        });
        dirty.mark([3]);
        assert_eq!(waiting.await.unwrap(), BTreeSet::from([3]));
        assert_eq!(dirty.waiting(), 0);
    }
}
