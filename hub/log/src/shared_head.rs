//! Owns: what a log's owner and its readers share: the durable head and the figures.
//! Never: touches a store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Cursor;

use super::Stats;

/// State shared by owner and readers: the durable head and the figures.
#[derive(Debug)]
pub(super) struct SharedHead(Mutex<(Cursor, Stats)>);

impl SharedHead {
    pub(super) fn new(head: Cursor, stats: Stats) -> Self {
        Self(Mutex::new((head, stats)))
    }

    /// Head and figures, for the owner to change.
    pub(super) fn lock(&self) -> MutexGuard<'_, (Cursor, Stats)> {
        // Nothing panics while it holds the lock; the values are whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
