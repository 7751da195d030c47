//! A hub's part that a simulation runs in its own thread: what can be done is done within the call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use replication::machine::{Now, Standing};

use super::{
    calls::Word,
    node::{Node, Part},
    types::{Fold, Happened},
};
use crate::{LogError, Replica};

/// A part without a thread. Dropped, with the logs of its terms, its process is over.
pub struct Stepped<F> {
    shared: Arc<Shared<F>>,
    drive: Arc<dyn Fn() + Send + Sync>,
}

struct Shared<F>(Mutex<Option<(Node<F>, Now)>>);

impl<F: Fold> Shared<F> {
    fn lock(&self) -> MutexGuard<'_, Option<(Node<F>, Now)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completions may call the log again: not under the lock.
    fn run(&self) {
        loop {
            let told: Vec<_> = match &mut *self.lock() {
                Some((node, now)) => {
                    while node.step(*now) {}
                    node.told.drain(..).collect()
                }
                None => return,
            };
            if told.is_empty() {
                return;
            }
            told.into_iter().for_each(|told| told());
        }
    }
}

impl<F: Fold> Stepped<F> {
    /// Begins at a time.
    pub fn start(part: Part<F>, now: Now) -> Result<Self, LogError> {
        let shared = Arc::new(Shared(Mutex::new(None)));
        let of_drive = Arc::clone(&shared);
        let drive: Arc<dyn Fn() + Send + Sync> = Arc::new(move || of_drive.run());
        let weak: Weak<dyn Fn() + Send + Sync> = Arc::downgrade(&drive);
        let node = Node::new(part, Some(weak), now)?;
        *shared.lock() = Some((node, now));
        Ok(Self { shared, drive })
    }

    /// Goes on to a time, and returns what happened until then.
    pub fn advance(&self, now: Now) -> Vec<Happened<F>> {
        if let Some((_, time)) = &mut *self.shared.lock() {
            *time = now;
        }
        (self.drive)();
        match &mut *self.shared.lock() {
            Some((node, _)) => node.happened.drain(..).collect(),
            None => Vec::new(),
        }
    }

    fn say(&self, word: Word) {
        if let Some((node, _)) = &*self.shared.lock() {
            node.inbox.say(word);
        }
    }

    /// Says whether this hub may lead, from the next step on.
    pub fn set_able(&self, is_able: bool) {
        self.say(Word::Able(is_able));
    }

    /// The log was copied from the leader.
    pub fn copied(&self, replica: Box<dyn Replica>) {
        self.say(Word::Copied(replica));
    }

    /// The hub's present part.
    pub fn standing(&self) -> Standing {
        let shared = self.shared.lock();
        shared
            .as_ref()
            .map_or(Standing::Waits, |(node, _)| node.standing())
    }
}
