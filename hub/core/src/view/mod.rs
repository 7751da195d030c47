//! The published state: the derived objects as of the last durable event, ready to be sent. It owns the items, an index
//! of changes by revision, and the knowledge of each source. The writer updates it after a batch is durable, never
//! before; it decides nothing. `item`: an object that is encoded once, and its difference from the one before.
//! `shared_view`: how writer and readers hold it together. `listeners`: wakes the sessions that a change concerns.

mod item;
mod listeners;
mod shared_view;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::Arc,
};

use model::{ClusterId, Cursor, Policy, Revision, sync::Source};

pub use self::{item::Item, listeners::Listener, shared_view::SharedView};
use fold::DerivedKey;

/// Most recent heads whose hashes are kept for checking cursors without reading the log.
const HEADS_MAX: usize = 4_096;
/// Most recent heads with a known time of recording.
const STAMPS_MAX: usize = 4_096;

/// One derived object as members get it, or its tombstone.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Revision of the event that last changed it.
    pub revision: Revision,
    /// The item; for a tombstone the removal.
    pub item: Item,
    /// True for a tombstone.
    pub removed: bool,
}

/// Progress of a reader of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangePosition {
    /// Everything up to this revision.
    Revision(Revision),
    /// Everything up to this change, in the middle of a revision.
    Change((Revision, Arc<DerivedKey>)),
}

impl ChangePosition {
    /// The last revision that was read completely.
    pub fn whole(&self) -> Revision {
        match self {
            Self::Revision(revision) => *revision,
            Self::Change((revision, _)) => Revision(revision.0 - 1),
        }
    }
}

/// A source, and since when it is so.
#[derive(Debug, Clone)]
struct SourceEntry {
    version: u64,
    since: Revision,
    source: Source,
}

/// A change to the published objects.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The object.
    pub key: DerivedKey,
    /// Its new state.
    pub entry: Entry,
}

/// The audience of an object: everyone with an interest in a namespace, or one member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Members interested in the namespace.
    Namespace(Box<str>),
    /// One member.
    Member(ClusterId),
}

/// The room in which an object is announced; `None`: it is internal to the hub.
pub fn room(key: &DerivedKey) -> Option<Room> {
    match key {
        DerivedKey::Import(service) => Some(Room::Namespace(service.namespace.clone())),
        DerivedKey::Slice(slice) => Some(Room::Namespace(slice.service.namespace.clone())),
        DerivedKey::ExportStatus(cluster, _) => Some(Room::Member(cluster.clone())),
        DerivedKey::Profile(_) => None,
    }
}

/// The rules on imports of the policy in force.
#[derive(Debug, Clone)]
pub struct ImportRules {
    /// Revision of the event that made them what they are: who holds what it was sent up to there, or later, was sent it
    /// by these.
    pub since: Revision,
    /// The policy that has them.
    pub policy: Arc<Policy>,
}

/// The published state of one clusterset.
#[derive(Debug, Default)]
pub struct View {
    head: Cursor,
    heads: VecDeque<Cursor>,
    /// Times at which recent heads became durable, in monotonic milliseconds. The time of the first one, and of earlier
    /// ones, is unknown.
    stamps: VecDeque<(Revision, u64)>,
    /// Keys are long and are in several indexes: each is held once.
    entries: BTreeMap<Arc<DerivedKey>, Entry>,
    rooms: BTreeMap<Room, BTreeSet<Arc<DerivedKey>>>,
    changed: BTreeSet<(Revision, Arc<DerivedKey>)>,
    tombstones: BTreeSet<(Revision, Arc<DerivedKey>)>,
    tombstone_floor: Revision,
    import_rules: Option<ImportRules>,
    sources: BTreeMap<ClusterId, SourceEntry>,
    /// The source of each version that is still the present one of its source.
    sources_changed: BTreeMap<u64, ClusterId>,
    sources_version: u64,
}

impl View {
    /// A view at `head`, with tombstones complete after `tombstone_floor`.
    pub fn new(head: Cursor, tombstone_floor: Revision) -> Self {
        Self {
            head,
            heads: VecDeque::from([head]),
            stamps: VecDeque::from([(head.revision, 0)]),
            tombstone_floor,
            ..Self::default()
        }
    }

    /// Puts a view of a new epoch in the place of this one. The knowledge of sources stays, as of now.
    pub fn replace(&mut self, view: View) {
        let (sources, sources_version) = (std::mem::take(&mut self.sources), self.sources_version);
        *self = View {
            sources_version,
            ..view
        };
        self.set_sources(sources.into_values().map(|entry| entry.source));
    }

    /// The last durable position.
    pub fn head(&self) -> Cursor {
        self.head
    }

    /// Tombstones up to this revision have been dropped: who has read less may have missed a removal.
    pub fn tombstone_floor(&self) -> Revision {
        self.tombstone_floor
    }

    /// The rules on imports in force at the head; `None`: there never were any.
    pub fn import_rules(&self) -> Option<&ImportRules> {
        self.import_rules.as_ref()
    }

    /// States the rules on imports at the head; true when they are others.
    pub fn set_import_rules(&mut self, rules: Option<ImportRules>) -> bool {
        let since = |rules: &Option<ImportRules>| rules.as_ref().map(|rules| rules.since);
        let changed = since(&self.import_rules) != since(&rules);
        self.import_rules = rules;
        changed
    }

    /// The chain hash at one of the recent revisions.
    pub fn recent_head(&self, revision: Revision) -> Option<Cursor> {
        let index = self
            .heads
            .binary_search_by_key(&revision, |cursor| cursor.revision)
            .ok()?;
        self.heads.get(index).copied()
    }

    /// The head became durable at that time, in monotonic milliseconds.
    pub fn stamp(&mut self, at: u64) {
        let last = self.stamps.back().map(|(revision, _)| *revision);
        if last < Some(self.head.revision) {
            self.stamps.push_back((self.head.revision, at));
        }
        if self.stamps.len() > STAMPS_MAX {
            self.stamps.pop_front();
        }
    }

    /// Time at which a revision became durable, in monotonic milliseconds; `None`: too long ago, or not yet.
    pub fn recorded_at(&self, revision: Revision) -> Option<u64> {
        let index = self.stamps.partition_point(|(head, _)| *head < revision);
        let (_, at) = self.stamps.get(index).filter(|_| index > 0)?;
        Some(*at)
    }

    /// Takes what a durable batch changed.
    pub fn publish(&mut self, head: Cursor, changes: Vec<Publication>, tombstones_max: usize) {
        for Publication { key, entry } in changes {
            self.put(key, entry);
        }
        while self.tombstones.len() > tombstones_max {
            let Some((revision, key)) = self.tombstones.pop_first() else {
                break;
            };
            self.changed.remove(&(revision, key.clone()));
            self.entries.remove(&key);
            self.tombstone_floor = self.tombstone_floor.max(revision);
        }
        if head != self.head {
            self.head = head;
            self.heads.push_back(head);
            if self.heads.len() > HEADS_MAX {
                self.heads.pop_front();
            }
        }
    }

    fn put(&mut self, key: DerivedKey, entry: Entry) {
        let known = self
            .entries
            .get_key_value(&key)
            .map(|(key, old)| (key.clone(), old.revision, old.removed));
        let Some((key, before, was_removed)) = known else {
            self.put_new(Arc::new(key), entry);
            return;
        };
        let mut place = (before, key);
        self.changed.remove(&place);
        if was_removed {
            self.tombstones.remove(&place);
        }
        if was_removed != entry.removed
            && let Some(room) = room(&place.1)
        {
            self.place(room, &place.1, entry.removed);
        }
        place.0 = entry.revision;
        if entry.removed {
            self.tombstones.insert(place.clone());
        }
        if let Some(known) = self.entries.get_mut(&place.1) {
            let old = std::mem::replace(known, entry);
            known.item.replaces(old.item);
        }
        self.changed.insert(place);
    }

    fn put_new(&mut self, key: Arc<DerivedKey>, entry: Entry) {
        let Some(room) = room(&key) else { return };
        let place = (entry.revision, key.clone());
        self.place(room, &key, entry.removed);
        if entry.removed {
            self.tombstones.insert(place.clone());
        }
        self.entries.insert(key, entry);
        self.changed.insert(place);
    }

    fn place(&mut self, room: Room, key: &Arc<DerivedKey>, removed: bool) {
        if !removed {
            self.rooms.entry(room).or_default().insert(key.clone());
        } else if let Some(objects) = self.rooms.get_mut(&room) {
            objects.remove(key);
            if objects.is_empty() {
                self.rooms.remove(&room);
            }
        }
    }

    /// States what is known of all sources; only what differs counts as a change, and one that is not named any more is
    /// forgotten. Call it after [`View::publish`]: a source's state may be told only with everything up to the head.
    pub fn set_sources(&mut self, sources: impl IntoIterator<Item = Source>) {
        let since = self.head.revision;
        let mut named = BTreeSet::new();
        for source in sources {
            named.insert(source.cluster.clone());
            let known = self.sources.get(&source.cluster);
            if known.is_some_and(|known| known.source == source) {
                continue;
            }
            if let Some(known) = known {
                self.sources_changed.remove(&known.version);
            }
            self.sources_version += 1;
            let version = self.sources_version;
            let cluster = source.cluster.clone();
            self.sources_changed.insert(version, cluster.clone());
            let entry = SourceEntry {
                version,
                since,
                source,
            };
            self.sources.insert(cluster, entry);
        }
        if self.sources.len() > named.len() {
            for (_, entry) in self.sources.extract_if(.., |cluster, _| !named.contains(cluster)) {
                self.sources_changed.remove(&entry.version);
            }
        }
    }

    /// The sources that changed after `version`, at most `limit` of them, as far as a member may hear of them that has
    /// everything up to `settled`: hearing that a source is listed before its objects arrived would delete them.
    /// Returns the version to continue from.
    pub fn sources_after(&self, version: u64, settled: Revision, limit: usize) -> (u64, Vec<Source>) {
        let changed = self
            .sources_changed
            .range((Bound::Excluded(version), Bound::Unbounded));
        // Versions and revisions grow together.
        let due: Vec<&SourceEntry> = changed
            .filter_map(|(_, cluster)| self.sources.get(cluster))
            .take_while(|entry| entry.since <= settled)
            .take(limit)
            .collect();
        let version = due.last().map_or(version, |entry| entry.version);
        (
            version,
            due.into_iter().map(|entry| entry.source.clone()).collect(),
        )
    }

    /// All sources, by cluster.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.values().map(|entry| &entry.source)
    }

    /// A number that grows whenever a source changes.
    pub fn sources_version(&self) -> u64 {
        self.sources_version
    }

    /// Changes after `position`, oldest first, removals included: each is a position to go on from. Readers look up the
    /// entry ([`View::entry`]) of what concerns them, and of nothing else.
    pub fn changed_after<'a>(
        &'a self,
        position: &'a ChangePosition,
    ) -> impl Iterator<Item = &'a (Revision, Arc<DerivedKey>)> {
        match position {
            ChangePosition::Revision(revision) => self.changed.range((
                Bound::Included((revision.next(), Arc::new(DerivedKey::first_of_namespace("")))),
                Bound::Unbounded,
            )),
            ChangePosition::Change(change) => self
                .changed
                .range((Bound::Excluded(change.clone()), Bound::Unbounded)),
        }
    }

    /// An object or its tombstone.
    pub fn entry(&self, key: &DerivedKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The objects of a room, after `last`, in key order; no tombstones.
    pub fn objects<'a>(
        &'a self,
        room: &Room,
        last: Option<&'a DerivedKey>,
    ) -> impl Iterator<Item = (&'a DerivedKey, &'a Entry)> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        let keys = self
            .rooms
            .get(room)
            .map(|objects| objects.range::<DerivedKey, _>((start, Bound::Unbounded)));
        keys.into_iter()
            .flatten()
            .filter_map(|key| self.entries.get(key).map(|entry| (&**key, entry)))
    }

    /// The rooms there are, after `last`.
    pub fn rooms_after(&self, last: Option<&Room>) -> impl Iterator<Item = &Room> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.rooms.range((start, Bound::Unbounded)).map(|(room, _)| room)
    }

    /// Number of objects and of tombstones.
    pub fn len(&self) -> (usize, usize) {
        (self.entries.len() - self.tombstones.len(), self.tombstones.len())
    }
}

#[cfg(test)]
mod tests;
