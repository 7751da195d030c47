//! Locking of shared state in this module: for moments, and never across a request. It owns no value.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere does not make the value unusable: it is changed in single steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
