//! Owns: how many calls are open over one connection, and of one identity over all of its connections.
//! Never: says how many there may be.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The open calls of one connection and of its holder; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    connection: Arc<AtomicUsize>,
    holder: Arc<Holder>,
}

/// The common state of all connections of one identity.
#[derive(Debug, Default)]
pub(super) struct Holder {
    calls: AtomicUsize,
    /// One stream of it takes more than its share before it has introduced itself.
    large: AtomicBool,
}

/// One open call; it ends when this is dropped.
#[derive(Debug)]
pub struct Call(Calls);

/// The one large introduction that an identity may be making; it ends when this is dropped.
#[derive(Debug)]
pub struct LargeIntroduction(Arc<Holder>);

impl Calls {
    /// The calls of a new connection of this holder.
    pub(super) fn of(holder: Arc<Holder>) -> Self {
        Self {
            connection: Arc::default(),
            holder,
        }
    }

    /// Open calls over this connection.
    pub(super) fn open(&self) -> usize {
        self.connection.load(Ordering::Relaxed)
    }

    /// Begins a call, unless its holder has `most` already, over all of its connections.
    pub fn begin(&self, most: usize) -> Option<Call> {
        let more = |open: usize| (open < most).then_some(open + 1);
        let calls = &self.holder.calls;
        calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        self.connection.fetch_add(1, Ordering::Relaxed);
        Some(Call(self.clone()))
    }

    /// Begins a large introduction, unless its holder is making one.
    pub fn introduce_at_length(&self) -> Option<LargeIntroduction> {
        let taken = self.holder.large.swap(true, Ordering::Relaxed);
        (!taken).then(|| LargeIntroduction(self.holder.clone()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.connection.fetch_sub(1, Ordering::Relaxed);
        self.0.holder.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for LargeIntroduction {
    fn drop(&mut self) {
        self.0.large.store(false, Ordering::Relaxed);
    }
}
