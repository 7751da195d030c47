//! Owns: leases of a few things of one kind that are expensive to start: each has one holder at a time, and one more is
//! started when all others are leased, up to a bound.
//! Never: knows what is leased.

use std::{
    fmt::Display,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Items that may be leased, and the state of each.
pub(super) struct Pool<T, E> {
    /// One permit for each thing that there may be.
    permits: Semaphore,
    /// One is started after the other: the first is of use while the next one starts.
    starting: tokio::sync::Mutex<()>,
    state: Mutex<State<T, E>>,
}

struct State<T, E> {
    /// Nobody has them.
    idle: Vec<Arc<T>>,
    /// Those that are started or being started, and not retired.
    running: usize,
    /// A first start that failed is not tried again: everybody gets the same reason.
    failed: Option<Arc<E>>,
}

/// A thing that nobody else has for as long as this lives.
pub struct Lease<'a, T, E> {
    pool: &'a Pool<T, E>,
    leased: Arc<T>,
    retired: bool,
    // Dropped last: the thing is idle, or gone, before somebody else gets the permit.
    _permit: SemaphorePermit<'a>,
}

impl<T, E: Display> Pool<T, E> {
    /// For at most so many.
    pub(super) fn of(most: usize) -> Self {
        Self {
            permits: Semaphore::new(most),
            starting: tokio::sync::Mutex::new(()),
            state: Mutex::new(State {
                idle: Vec::new(),
                running: 0,
                failed: None,
            }),
        }
    }

    /// Waits for one. What cannot be started beside others is done without, and one of the others is waited for.
    pub(super) async fn lease<Run>(&self, start: impl Fn() -> Run) -> Result<Lease<'_, T, E>, Arc<E>>
    where
        Run: Future<Output = Result<T, E>>,
    {
        loop {
            // Nobody closes it.
            let Ok(permit) = self.permits.acquire().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let found = self.state().take()?;
            let started = match found {
                Some(idle) => Ok(idle),
                None => {
                    let _alone = self.starting.lock().await;
                    start().await.map(Arc::new)
                }
            };
            match started {
                Ok(leased) => {
                    return Ok(Lease {
                        pool: self,
                        leased,
                        retired: false,
                        _permit: permit,
                    });
                }
                Err(error) => {
                    let mut state = self.state();
                    state.running -= 1;
                    if state.running == 0 {
                        let error = Arc::new(error);
                        state.failed = Some(Arc::clone(&error));
                        return Err(error);
                    }
                    eprintln!(
                        "{} are shared, for one more cannot be started: {error}",
                        state.running
                    );
                    permit.forget();
                }
            }
        }
    }

    /// Takes those that nobody has.
    pub(super) fn idle(&self) -> Vec<Arc<T>> {
        let mut state = self.state();
        let idle = std::mem::take(&mut state.idle);
        state.running -= idle.len();
        idle
    }
}

impl<T, E> Pool<T, E> {
    /// A panic in a holder leaves the pool as it was.
    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E> State<T, E> {
    /// An idle one, or nothing: one is to be started.
    fn take(&mut self) -> Result<Option<Arc<T>>, Arc<E>> {
        if let Some(failed) = &self.failed {
            return Err(Arc::clone(failed));
        }
        let found = self.idle.pop();
        self.running += usize::from(found.is_none());
        Ok(found)
    }
}

impl<T, E> Lease<'_, T, E> {
    /// The thing.
    pub fn leased(&self) -> &Arc<T> {
        &self.leased
    }

    /// It ends with this lease: something is in it, or wrong with it, that the next holder must not meet.
    pub fn retire(&mut self) {
        self.retired = true;
    }
}

impl<T, E> Drop for Lease<'_, T, E> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        if self.retired {
            state.running -= 1;
        } else {
            state.idle.push(Arc::clone(&self.leased));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{FutureExt, executor::block_on};

    use super::*;

    /// Counts starts, of which those from `fails_from` on fail.
    struct Starts {
        count: AtomicUsize,
        fails_from: usize,
    }

    impl Starts {
        fn from(fails_from: usize) -> Self {
            Self {
                count: AtomicUsize::new(0),
                fails_from,
            }
        }

        async fn one(&self) -> Result<usize, String> {
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            if number < self.fails_from {
                Ok(number)
            } else {
                Err(format!("start {number} failed"))
            }
        }
    }

    #[test]
    fn one_more_is_started_when_all_are_leased_and_never_above_the_bound() {
        let (pool, starts) = (Pool::of(2), Starts::from(9));
        let lease = || pool.lease(|| starts.one());
        drop(block_on(lease()).expect("a first one"));
        let first = block_on(lease()).expect("the idle one");
        assert_eq!(**first.leased(), 0);
        let second = block_on(lease()).expect("one more");
        assert_eq!(**second.leased(), 1);
        assert!(lease().now_or_never().is_none(), "both are leased");
        drop(first);
        assert_eq!(**block_on(lease()).expect("the idle one").leased(), 0);
        assert_eq!(starts.count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_retired_one_is_given_to_nobody() {
        let (pool, starts) = (Pool::of(1), Starts::from(9));
        let lease = || pool.lease(|| starts.one());
        let mut first = block_on(lease()).expect("a first one");
        let gone = Arc::downgrade(first.leased());
        first.retire();
        drop(first);
        assert!(gone.upgrade().is_none(), "it has ended");
        assert_eq!(**block_on(lease()).expect("another one").leased(), 1);
        assert_eq!(pool.idle().len(), 1);
    }

    #[test]
    fn what_cannot_be_started_beside_others_is_done_without() {
        let (pool, starts) = (Pool::of(3), Starts::from(1));
        let lease = || pool.lease(|| starts.one());
        let first = block_on(lease()).expect("a first one");
        assert!(lease().now_or_never().is_none(), "it waits for the first one");
        drop(first);
        assert_eq!(**block_on(lease()).expect("the idle one").leased(), 0);
    }

    #[test]
    fn a_first_start_that_fails_is_tried_once() {
        let (pool, starts) = (Pool::of(3), Starts::from(0));
        for _ in 0..2 {
            let error = block_on(pool.lease(|| starts.one())).err().expect("no start");
            assert_eq!(*error, "start 0 failed");
        }
    }
}
