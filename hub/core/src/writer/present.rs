//! Owns: the way from the writer to queries: the writer puts the durable state here, and queries take it, all of them
//! the same, as long as they need it. Neither waits for the other longer than a pointer takes.
//! Never: looks into it.

use std::sync::{Arc, PoisonError, RwLock};

use super::{handle::Gone, published::Published};

/// The place at which queries find the current state. Clones are the same place.
#[derive(Debug, Clone)]
pub struct Present(Arc<RwLock<Option<Arc<Published>>>>);

/// The writer's end. The state that was put there is nobody's present once it is dropped: a writer that stopped knows
/// of none.
#[derive(Debug)]
pub(super) struct Publisher(Present);

impl Present {
    /// The durable state, as of now.
    pub fn read(&self) -> Result<Arc<Published>, Gone> {
        let present = self.0.read().unwrap_or_else(PoisonError::into_inner);
        present.clone().ok_or(Gone)
    }

    fn put(&self, published: Option<Published>) {
        let mut next = published.map(Arc::new);
        let mut present = self.0.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *present, &mut next);
        drop(present);
        // The previous state is dropped here: nobody waits meanwhile.
        drop(next);
    }
}

impl Publisher {
    /// The writer's end of a place where this is.
    pub(super) fn new(published: Published) -> Self {
        Self(Present(Arc::new(RwLock::new(Some(Arc::new(published))))))
    }

    /// The place at which queries find it.
    pub(super) fn present(&self) -> Present {
        self.0.clone()
    }

    /// This is durable.
    pub(super) fn publish(&self, published: Published) {
        self.0.put(Some(published));
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.put(None);
    }
}
