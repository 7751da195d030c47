//! The view as the writer and its readers hold it together: one writes, everyone reads, and only those wait for a
//! change whom it concerns. It never looks into what it holds.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use model::{
    ClusterId, Cursor,
    sync::{Namespaces, Source},
};
use tokio::sync::watch;

use super::{ImportRules, Listener, Publication, Room, View, listeners::Listeners, room};

/// One view, many hands.
#[derive(Debug, Clone)]
pub struct SharedView {
    view: Arc<RwLock<View>>,
    version: watch::Sender<u64>,
    listeners: Listeners,
}

impl SharedView {
    /// Shares a view.
    pub fn new(view: View) -> Self {
        Self {
            view: Arc::new(RwLock::new(view)),
            version: watch::Sender::new(0),
            listeners: Listeners::default(),
        }
    }

    /// Looks at it. Short: the writer waits.
    pub fn read(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes what a batch changed that became durable `at` that time, in monotonic milliseconds, and wakes those
    /// whom it concerns.
    pub fn publish(
        &self,
        head: Cursor,
        at: u64,
        changes: Vec<Publication>,
        sources: Option<Vec<Source>>,
        import_rules: Option<ImportRules>,
        tombstones_max: usize,
    ) {
        let rooms: BTreeSet<Room> = changes.iter().filter_map(|change| room(&change.key)).collect();
        let (known, told, other_imports) = self.change(|view| {
            let known = view.sources_version();
            view.publish(head, changes, tombstones_max);
            view.stamp(at);
            if let Some(sources) = sources {
                view.set_sources(sources);
            }
            let other_imports = view.set_import_rules(import_rules);
            (known, view.sources_version(), other_imports)
        });
        if known == told && !other_imports {
            self.listeners.wake(&rooms)
        } else {
            self.listeners.wake_all()
        }
    }

    /// Puts a view of a new epoch in its place.
    pub fn replace(&self, view: View) {
        self.change(|published| published.replace(view));
        self.listeners.wake_all();
    }

    fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let mut guard: RwLockWriteGuard<'_, View> = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let outcome = change(&mut guard);
        drop(guard);
        self.version.send_modify(|version| *version += 1);
        outcome
    }

    /// Tells of every change: the number grows with each.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells of changes that concern a member: its own room, what is known of sources, and the namespaces of its
    /// interest once that is stated.
    pub fn listen(&self, member: &ClusterId) -> Listener {
        self.listeners
            .add(Some(Room::Member(member.clone())), &Namespaces::default())
    }
}
