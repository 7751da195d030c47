//! The record of the requests that a simulated cluster answered, for assertions such as "zero writes".
//! Bounded; never changes an answer.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// Number of remembered requests; the oldest go first.
pub const REQUESTS_MAX: usize = 65_536;

/// One answered request.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// get, list, watch, create, update, patch or delete.
    pub verb: &'static str,
    /// The plural of the kind.
    pub resource: String,
    /// Through the status subresource.
    pub status: bool,
    /// Empty for all namespaces and cluster-scoped kinds.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// The client's User-Agent.
    pub user_agent: String,
    /// The field manager it wrote as.
    pub manager: String,
    /// Judged, and not carried out.
    pub dry_run: bool,
    /// The HTTP status.
    pub code: u16,
    /// Its time, by the cluster's clock.
    pub at_ms: i64,
}

impl Entry {
    /// True for everything but get, list, watch and dry runs.
    pub fn is_write(&self) -> bool {
        !self.dry_run && !matches!(self.verb, "get" | "list" | "watch" | "unknown")
    }
}

/// The record itself; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<VecDeque<Entry>>>);

impl Requests {
    pub(crate) fn record(&self, entry: Entry) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == REQUESTS_MAX {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// Everything since the last `clear`.
    pub fn all(&self) -> Vec<Entry> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    /// The writes among them, refused ones too.
    pub fn writes(&self) -> Vec<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|entry| entry.is_write()).cloned().collect()
    }

    /// Number of requests.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// All but the first so many.
    pub fn since(&self, first: usize) -> Vec<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().skip(first).cloned().collect()
    }

    /// Everything since then, which is forgotten.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Forgets what was recorded.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
