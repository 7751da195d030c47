//! A queue of services to look at again: a service that waits already does not wait twice.
//! It is bounded by the number of services and holds nothing but their keys.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::model::ServiceKey;
use tokio::sync::Notify;

/// The queue; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct KeyQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<BTreeSet<ServiceKey>>,
    pushed: Notify,
}

impl KeyQueue {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<ServiceKey>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds services.
    pub fn push(&self, services: impl IntoIterator<Item = ServiceKey>) {
        let mut waiting = self.waiting();
        waiting.extend(services);
        if !waiting.is_empty() {
            self.0.pushed.notify_one();
        }
    }

    /// Takes everything that waits; waits itself while nothing does.
    pub async fn take(&self) -> BTreeSet<ServiceKey> {
        loop {
            let taken = std::mem::take(&mut *self.waiting());
            if !taken.is_empty() {
                return taken;
            }
            self.0.pushed.notified().await;
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }
}
