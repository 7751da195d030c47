//! The thread that runs a hub's part in the shared log.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use replication::machine::{Now, Standing, TICK_MILLIS};

use super::{
    calls::{SharedInbox, Word},
    node::{Node, Part},
    types::{Fold, Happened},
};
use crate::{LogError, Replica};

/// Tells the time.
pub type Clock = Box<dyn Fn() -> Now + Send>;

/// A part that runs. It ends when this is dropped.
pub struct Running {
    inbox: SharedInbox,
    standing: Arc<Mutex<Standing>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Runs a part until it is dropped. `happened` is called on its thread, and hands over.
    pub fn start<F: Fold>(
        part: Part<F>,
        clock: Clock,
        mut happened: impl FnMut(Happened<F>) + Send + 'static,
    ) -> Result<Self, LogError> {
        let mut node = Node::new(part, None, clock())?;
        let inbox = Arc::clone(&node.inbox);
        let standing = Arc::new(Mutex::new(node.standing()));
        let shown = Arc::clone(&standing);
        let span = tracing::Span::current();
        let run = move || {
            while !node.is_over {
                while node.step(clock()) {}
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = node.standing();
                node.told.drain(..).for_each(|told| told());
                node.happened.drain(..).for_each(&mut happened);
                if !node.is_over {
                    node.inbox.wait(Duration::from_millis(TICK_MILLIS));
                }
            }
        };
        let thread = std::thread::Builder::new().name("shared-log".into());
        let thread = thread.spawn(move || span.in_scope(run));
        let thread = thread.map_err(|error: io::Error| LogError::Refused(error.to_string()))?;
        Ok(Self {
            inbox,
            standing,
            thread: Some(thread),
        })
    }

    /// Says whether this hub may lead.
    pub fn set_able(&self, is_able: bool) {
        self.inbox.say(Word::Able(is_able));
    }

    /// The log was copied from the leader.
    pub fn copied(&self, replica: Box<dyn Replica>) {
        self.inbox.say(Word::Copied(replica));
    }

    /// The hub's present part.
    pub fn standing(&self) -> Standing {
        self.standing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.inbox.say(Word::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic of its was printed where it happened.
            let _ = thread.join();
        }
    }
}
