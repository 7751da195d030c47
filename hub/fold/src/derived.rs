//! The derived objects: content with the revision that last changed it, and tombstones of removed ones.
//! It decides only whether content really changed; what the content is, is derived elsewhere.

use std::sync::Arc;

use model::{ClusterId, Revision, ServiceImport, ServiceKey, UnixMillis};

use super::{Change, DerivedContent, DerivedKey, Map};

/// Most removals that are remembered, where the log does not say otherwise. Half of them, the oldest, go when there
/// are more.
pub const TOMBSTONES_MAX: u32 = 50_000;

/// A derived object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// Revision of the event that last changed its content.
    pub revision: Revision,
    /// Its content.
    pub content: DerivedContent,
}

/// The changes of one event: its position, and the changes so far.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) revision: Revision,
    pub(super) recorded_at: UnixMillis,
    pub(super) changes: Vec<Change>,
}

/// All derived objects. A key has content or a tombstone, never both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DerivedStore {
    objects: Map<DerivedKey, Derived>,
    tombstones: Map<DerivedKey, Revision>,
    /// Number of removals to remember: it determines the state, and so it is recorded.
    tombstones_max: u32,
    /// A cursor below it may have missed a removal.
    floor: Revision,
}

impl Default for DerivedStore {
    fn default() -> Self {
        Self::restored(Map::new(), Map::new(), TOMBSTONES_MAX, Revision::default())
    }
}

impl DerivedStore {
    pub(super) fn get(&self, key: &DerivedKey) -> Option<&Derived> {
        self.objects.get(key)
    }

    pub(super) fn import(&self, service: &ServiceKey) -> Option<(Revision, &ServiceImport)> {
        let derived = self.objects.get(&DerivedKey::Import(service.clone()))?;
        match &derived.content {
            DerivedContent::Import(import) => Some((derived.revision, import)),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn tombstone_count(&self) -> usize {
        self.tombstones.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&DerivedKey, &Derived)> {
        self.objects.iter()
    }

    pub(super) fn from(&self, first: DerivedKey) -> impl Iterator<Item = (&DerivedKey, &Derived)> {
        self.objects.from(first)
    }

    pub(super) fn tombstones(&self) -> impl Iterator<Item = (&DerivedKey, Revision)> {
        self.tombstones.iter().map(|(key, revision)| (key, *revision))
    }

    pub(super) fn tombstone(&self, key: &DerivedKey) -> Option<Revision> {
        self.tombstones.get(key).copied()
    }

    pub(super) fn tombstones_max(&self) -> u32 {
        self.tombstones_max
    }

    /// From here on at most so many removals are remembered.
    pub(super) fn remember(&mut self, tombstones_max: u32) {
        self.tombstones_max = tombstones_max;
        self.bound_tombstones();
    }

    pub(super) fn tombstone_floor(&self) -> Revision {
        self.floor
    }

    pub(super) fn changed_since(&self, revision: Revision) -> impl Iterator<Item = Change> + '_ {
        let changed = self.objects.iter().filter(move |(_, d)| d.revision > revision);
        let changed = changed.map(|(key, derived)| Change {
            key: key.clone(),
            revision: derived.revision,
            content: Some(derived.content.clone()),
        });
        let removed = self.tombstones.iter().filter(move |(_, at)| **at > revision);
        changed.chain(removed.map(|(key, at)| Change {
            key: key.clone(),
            revision: *at,
            content: None,
        }))
    }

    /// Sets the content of `key`; a change only if the content differs.
    pub(super) fn set(&mut self, key: DerivedKey, content: DerivedContent, step: &mut Step) {
        let known = self.objects.get(&key);
        if known.is_none_or(|known| !known.content.same_content(&content)) {
            self.set_changed(key, content, step);
        }
    }

    /// Sets the content of `key`, which is known to differ.
    pub(super) fn set_changed(&mut self, key: DerivedKey, content: DerivedContent, step: &mut Step) {
        let derived = Derived {
            revision: step.revision,
            content: content.clone(),
        };
        if !self.objects.contains_key(&key) {
            self.tombstones.remove(&key);
        }
        self.objects.replace(key.clone(), derived);
        step.changes.push(Change {
            key,
            revision: step.revision,
            content: Some(content),
        });
    }

    /// Removes `key`; a change only if there was something.
    pub(super) fn remove(&mut self, key: &DerivedKey, step: &mut Step) {
        if self.objects.remove(key).is_none() {
            return;
        }
        self.tombstones.insert(key.clone(), step.revision);
        self.bound_tombstones();
        step.changes.push(Change {
            key: key.clone(),
            revision: step.revision,
            content: None,
        });
    }

    /// Removes the slices of one cluster behind one service.
    pub(super) fn remove_slices(&mut self, service: &ServiceKey, cluster: &ClusterId, step: &mut Step) {
        let first = DerivedKey::first_slice(service, cluster);
        let of_cluster = |key: &DerivedKey| match key {
            DerivedKey::Slice(slice) => slice.service == *service && slice.source_cluster == *cluster,
            _ => false,
        };
        let slices = self.from(first).map(|(key, _)| key);
        let slices: Vec<DerivedKey> = slices.take_while(|key| of_cluster(key)).cloned().collect();
        for key in &slices {
            self.remove(key, step);
        }
    }

    /// From `revision` on nothing before it can be told apart: every older cursor needs a snapshot.
    pub(super) fn forget_before(&mut self, revision: Revision) {
        self.tombstones = Map::new();
        self.floor = revision;
    }

    /// Keeps the newest half of the bound once there are too many: seldom, so that each removal stays cheap.
    fn bound_tombstones(&mut self) {
        let max = self.tombstones_max as usize;
        if self.tombstones.len() <= max {
            return;
        }
        let mut revisions: Vec<Revision> = self.tombstones.values().copied().collect();
        let newest_dropped = revisions.len() - 1 - max / 2;
        let (_, &mut threshold, _) = revisions.select_nth_unstable(newest_dropped);
        self.tombstones = self.tombstones.only(|_, revision| *revision > threshold);
        self.floor = self.floor.max(threshold);
    }

    pub(super) fn into_parts(self) -> (Map<DerivedKey, Derived>, Map<DerivedKey, Revision>) {
        (self.objects, self.tombstones)
    }

    /// A new epoch counts from zero: everything existed before its first event, and no removal is remembered.
    pub(super) fn begin_epoch(&mut self) {
        self.forget_before(Revision::default());
        self.objects = self.objects.with(|derived| {
            derived.revision = Revision::default();
            if let DerivedContent::Slice(slice) = &mut derived.content {
                Arc::make_mut(slice).import_revision = Revision::default();
            }
        });
    }

    /// A store as a snapshot recorded it.
    pub(super) fn restored(
        objects: Map<DerivedKey, Derived>,
        tombstones: Map<DerivedKey, Revision>,
        tombstones_max: u32,
        floor: Revision,
    ) -> Self {
        Self {
            objects,
            tombstones,
            tombstones_max,
            floor,
        }
    }
}
