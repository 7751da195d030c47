//! Owns: what a log's owner and its readers share: the durable head and the figures.
//! Never: touches a store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Cursor;

use super::Stats;

/// State shared by owner and readers: the durable head and the figures.
#[derive(Debug)]
pub(super) struct SharedHead {
    head: Mutex<(Cursor, Stats)>,
    /// The position that this disk has. Only a replica's head is ahead of it.
    synced: Mutex<Cursor>,
}

impl SharedHead {
    pub(super) fn new(head: Cursor, stats: Stats) -> Self {
        Self {
            head: Mutex::new((head, stats)),
            synced: Mutex::new(head),
        }
    }

    /// The position that this disk has.
    pub(super) fn synced(&self) -> Cursor {
        *self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_synced(&self, at: Cursor) {
        *self.synced.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Head and figures, for the owner to change.
    pub(super) fn lock(&self) -> MutexGuard<'_, (Cursor, Stats)> {
        // Nothing panics while it holds the lock; the values are whole in any case.
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last durable position.
    pub(super) fn head(&self) -> Cursor {
        self.lock().0
    }

    /// The figures as of now.
    pub(super) fn stats(&self) -> Stats {
        self.lock().1.clone()
    }
}
