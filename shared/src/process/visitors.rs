//! Owns: how many connections a port of HTTP has at the same time, and which of them goes for a new one.
//! Never: knows what is asked over one.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::{AbortHandle, JoinError, JoinSet};

/// Connections of a port of HTTP at the same time. Probes, scrapes and API servers need a handful; the rest is far below
/// the file descriptors that a process keeps for other things than the port of its clusters.
pub const HTTP_CONNECTIONS_MAX: usize = 64;

/// The open connections, oldest first.
#[derive(Default)]
pub(super) struct Visitors {
    present: VecDeque<Visitor>,
    tasks: JoinSet<()>,
}

struct Visitor {
    task: AbortHandle,
    asked: Asked,
}

/// Set once a visitor has sent a request; clones are of the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked(Arc<AtomicBool>);

impl Asked {
    /// It has.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn yet(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Visitors {
    /// Lets one in. If there are too many, the oldest that has asked for nothing is closed, or else the oldest: an idle
    /// peer keeps no probe out.
    pub(super) async fn enter<V>(&mut self, visit: impl FnOnce(Asked) -> V)
    where
        V: Future<Output = ()> + Send + 'static,
    {
        if self.present.len() >= HTTP_CONNECTIONS_MAX {
            let silent = self.present.iter().position(|visitor| !visitor.asked.yet());
            if let Some(gone) = self.present.remove(silent.unwrap_or_default()) {
                gone.task.abort();
            }
        }
        // Its descriptor is free when its task is gone.
        while self.tasks.len() >= HTTP_CONNECTIONS_MAX && self.leave().await {}
        let asked = Asked::default();
        let task = self.tasks.spawn(visit(asked.clone()));
        self.present.push_back(Visitor { task, asked });
    }

    /// Waits until one goes; false when nobody is there.
    pub(super) async fn leave(&mut self) -> bool {
        let left = self.tasks.join_next_with_id().await;
        let gone = left.map(|left| left.map_or_else(|error: JoinError| error.id(), |(id, ())| id));
        self.present.retain(|visitor| gone != Some(visitor.task.id()));
        gone.is_some()
    }
}
