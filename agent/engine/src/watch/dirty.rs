//! Keys that somebody has to look at again, in the order in which they were first marked. Level-triggered: a key
//! that is marked often is taken once, so that a slow reader costs memory in keys, never in messages.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Clones are the same keys.
#[derive(Debug)]
pub struct Dirty<M>(Arc<Shared<M>>);

#[derive(Debug)]
struct Shared<M> {
    keys: Mutex<Queue<M>>,
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
            keys: Mutex::default(),
            marked: Notify::new(),
        }))
    }
}

/// Keys in the order in which they came, each once.
#[derive(Debug)]
pub struct Queue<M> {
    order: VecDeque<M>,
    present: BTreeSet<M>,
}

impl<M> Default for Queue<M> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            present: BTreeSet::new(),
        }
    }
}

impl<M: Ord + Clone> Queue<M> {
    /// Puts a key at the end; one that waits keeps its place.
    pub fn push(&mut self, key: M) {
        if self.present.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    /// Takes the key that has waited longest.
    pub fn pop(&mut self) -> Option<M> {
        let key = self.order.pop_front()?;
        self.present.remove(&key);
        Some(key)
    }

    /// Number of waiting keys.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl<M: Ord + Clone> Dirty<M> {
    /// Marks keys.
    pub fn mark(&self, keys: impl IntoIterator<Item = M>) {
        let mut queue = self.lock();
        let before = queue.len();
        keys.into_iter().for_each(|key| queue.push(key));
        if queue.len() > before {
            self.0.marked.notify_one();
        }
    }

    /// Waits until there are keys, and takes them all. For one reader.
    pub async fn taken(&self) -> VecDeque<M> {
        loop {
            let keys = self.take_now();
            if !keys.is_empty() {
                return keys;
            }
            self.0.marked.notified().await;
        }
    }

    /// Takes the present keys, for a reader that does not wait.
    pub fn take_now(&self) -> VecDeque<M> {
        std::mem::take(&mut *self.lock()).order
    }

    /// Number of waiting keys.
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
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
        assert_eq!(dirty.taken().await, [1, 2]);
        let waiting = tokio::spawn({
            let dirty = dirty.clone();
            async move { dirty.taken().await }
        });
        dirty.mark([3]);
        assert_eq!(waiting.await.unwrap(), [3]);
        assert_eq!(dirty.waiting(), 0);
    }

    #[test]
    fn keys_come_in_the_order_in_which_they_were_first_marked() {
        let dirty = Dirty::default();
        dirty.mark([3, 1]);
        dirty.mark([2, 3, 0]);
        assert_eq!(dirty.take_now(), [3, 1, 2, 0]);
        dirty.mark([1, 3]);
        assert_eq!(dirty.take_now(), [1, 3]);
    }
}
