//! Owns: how many requests of each caller are answered at once: members and readers have a number each and all
//! together, and operators never wait behind more than these, however much anybody asks.
//! Never: refuses: who has asked for more waits until its own are answered. The number of waiting requests is bounded
//! per identity before a request comes here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::Caller;

/// Requests of one member, or one reader, that are answered at once.
pub const ANSWERED_OF_ONE_MAX: usize = 2;
/// Requests of all members that are answered at once.
pub const ANSWERED_OF_MEMBERS_MAX: usize = 4;
/// Requests of all readers that are answered at once.
pub const ANSWERED_OF_READERS_MAX: usize = 4;
/// Watches of one member, or one reader, that are open at once: fewer than there are places for all of them.
pub const WATCHES_OF_ONE_MAX: usize = 8;
/// Callers with a remembered request; others are forgotten beyond it.
const CALLERS_REMEMBERED: usize = 64;

/// The turns of all callers. Clones are the same ones.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    members: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    of_one: OfOne,
}

/// The places of each caller. Clones are the same ones.
#[derive(Debug, Clone)]
pub(super) struct OfOne {
    most: usize,
    callers: Arc<Mutex<BTreeMap<Caller, Weak<Semaphore>>>>,
}

/// A request is answered until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The first is of the caller alone.
    _taken: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            members: Arc::new(Semaphore::new(ANSWERED_OF_MEMBERS_MAX)),
            readers: Arc::new(Semaphore::new(ANSWERED_OF_READERS_MAX)),
            of_one: OfOne::new(ANSWERED_OF_ONE_MAX),
        }
    }
}

impl Turns {
    /// Waits for the caller's turn. Operators have it at once. First among its own requests: a busy caller gets no more
    /// of the common share than a quiet one.
    pub(super) async fn of(&self, caller: &Caller) -> Turn {
        let all = match caller {
            Caller::Operator(_) => return Turn::default(),
            Caller::Reader(_) => &self.readers,
            Caller::Member(_) => &self.members,
        };
        let own = self.of_one.places(caller).acquire_owned().await;
        let all = all.clone().acquire_owned().await;
        Turn {
            // They are never closed.
            _taken: own.ok().zip(all.ok()),
        }
    }
}

impl OfOne {
    /// Gives each caller so many places.
    pub(super) fn new(most: usize) -> Self {
        let callers = Arc::default();
        Self { most, callers }
    }

    /// The places of a caller.
    pub(super) fn places(&self, caller: &Caller) -> Arc<Semaphore> {
        // It guards handles only.
        let mut of_one = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = of_one.get(caller).and_then(Weak::upgrade) {
            return own;
        }
        if of_one.len() >= CALLERS_REMEMBERED {
            of_one.retain(|_, own| own.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(self.most));
        of_one.insert(caller.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use shared::model::ClusterId;

    use super::*;

    fn member(number: usize) -> Caller {
        Caller::Member(ClusterId::new(&format!("c{number}")).expect("an id"))
    }

    #[tokio::test]
    async fn who_asks_much_waits_for_itself_and_all_together_keep_no_operator_waiting() {
        let turns = Turns::default();
        let now = |caller: &Caller| turns.of(caller).now_or_never();
        let mut taken = Vec::new();
        for _ in 0..ANSWERED_OF_ONE_MAX {
            taken.push(now(&member(1)).expect("its own turn"));
        }
        assert!(now(&member(1)).is_none(), "it has what one has");
        for number in 2..=ANSWERED_OF_MEMBERS_MAX - ANSWERED_OF_ONE_MAX + 1 {
            taken.push(now(&member(number)).expect("another's turn"));
        }
        assert!(now(&member(99)).is_none(), "members have what they have");
        assert!(now(&Caller::Reader("dashboard".into())).is_some());
        for _ in 0..100 {
            assert!(now(&Caller::Operator("alice".into())).is_some());
        }
        drop(taken);
        assert!(now(&member(1)).is_some());
    }

    #[tokio::test]
    async fn callers_that_ask_nothing_are_forgotten() {
        let turns = Turns::default();
        for number in 0..10 * CALLERS_REMEMBERED {
            drop(turns.of(&member(number)).await);
        }
        let remembered = turns.of_one.callers.lock().expect("not poisoned").len();
        assert!(remembered <= CALLERS_REMEMBERED, "{remembered}");
    }
}
