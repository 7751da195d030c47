//! Owns: the objects of one kind as its watch shows them, and whether they may be relied on.
//! Never: takes a kind that was not listed to its end, or was not watched for too long, for one without objects.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::runtime::watcher::Event;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    desired::{
        compare::{MANAGER, UPSTREAM_MANAGER},
        objects::text,
    },
    model::Key,
};

/// Time for which the objects of a kind are relied on after its watch broke. Later nothing is known of the kind.
pub(super) const BROKEN_MAX: Duration = Duration::from_secs(60);

/// One kind.
#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, Kept>,
    /// The listing under way.
    listing: Option<BTreeMap<Key, Kept>>,
    is_listed: bool,
    /// Since when the kind is not watched, and why.
    broken: Option<(Instant, String)>,
    /// Own writes that the watch has not shown yet.
    awaited: BTreeMap<Key, Awaited>,
    /// Bytes of the objects, and of those that only the listing has.
    bytes: usize,
}

/// An object.
#[derive(Debug, Clone)]
struct Kept {
    object: Arc<Value>,
    bytes: usize,
}

/// The effect of a write that the watch is to show.
#[derive(Debug)]
struct Awaited {
    uid: String,
    /// The object's version then; none, if it was deleted.
    version: Option<String>,
    /// True if a listing that began later shows it in any case.
    is_relisted: bool,
}

/// The state of our knowledge of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// All of them.
    Listed,
    /// Not yet.
    NotYet,
    /// They cannot be read, for this reason.
    Unread(String),
}

/// There is no room for an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Store {
    /// Returns how far the objects are known.
    pub(super) fn known(&self, now: Instant) -> Known {
        match &self.broken {
            None if self.is_listed => Known::Listed,
            None => Known::NotYet,
            Some((since, _)) if self.is_listed && now.duration_since(*since) <= BROKEN_MAX => Known::Listed,
            Some((_, why)) => Known::Unread(why.clone()),
        }
    }

    /// The objects as of the last complete listing and what was seen since.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().map(|kept| &*kept.object)
    }

    /// Bytes that are kept, as JSON.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in an event, if there is room; returns true if a plan may depend on it.
    pub(super) fn see(&mut self, event: Event<Value>, room: usize) -> Result<bool, NoRoom> {
        match event {
            Event::Init => {
                self.drop_listing();
                self.listing = Some(BTreeMap::new());
                self.awaited.values_mut().for_each(|one| one.is_relisted = true);
                Ok(false)
            }
            Event::InitApply(object) => self.listed(object, room).map(|()| false),
            Event::InitDone => Ok(self.all_listed()),
            Event::Apply(object) => self.applied(object, room),
            Event::Delete(object) => {
                let key = key(&object);
                self.shown(&key, &object, true);
                let gone = self.objects.remove(&key);
                self.bytes -= gone.as_ref().map_or(0, |kept| kept.bytes);
                Ok(gone.is_some())
            }
        }
    }

    /// The watch broke.
    pub(super) fn failed(&mut self, why: String, now: Instant) {
        self.drop_listing();
        let since = self.broken.take().map_or(now, |(since, _)| since);
        self.broken = Some((since, why));
    }

    /// Nothing is kept any more, for this reason.
    pub(super) fn left_out(&mut self, why: String, now: Instant) {
        *self = Self {
            broken: Some((now, why)),
            ..Self::default()
        };
    }

    /// The server answered a write with this object; the watch is to show it.
    pub(super) fn wrote(&mut self, written: &Value) {
        let key = key(written);
        let there = self.objects.get(&key);
        if !there.is_some_and(|there| is_as_new(&there.object, written)) {
            self.awaited.insert(
                key,
                Awaited {
                    uid: of(written, "/metadata/uid"),
                    version: Some(of(written, "/metadata/resourceVersion")),
                    is_relisted: false,
                },
            );
        }
    }

    /// The server deletes the object of this identity; the watch is to show that.
    pub(super) fn deleted(&mut self, key: Key, uid: &str) {
        let there = self.objects.get(&key);
        if there.is_some_and(|there| is_left(&there.object, uid)) {
            self.awaited.insert(
                key,
                Awaited {
                    uid: uid.to_owned(),
                    version: None,
                    is_relisted: false,
                },
            );
        }
    }

    /// A write that the watch has not shown yet.
    pub(super) fn awaits(&self) -> Option<&Key> {
        self.awaited.keys().next()
    }

    fn drop_listing(&mut self) {
        if self.listing.take().is_some() {
            self.bytes = self.objects.values().map(|kept| kept.bytes).sum();
        }
    }

    fn listed(&mut self, object: Value, room: usize) -> Result<(), NoRoom> {
        let key = key(&object);
        let known = self.objects.get(&key);
        let kept = match known.filter(|kept| version(&kept.object) == version(&object)) {
            // Most of a later listing is known, and is not kept twice.
            Some(kept) => kept.clone(),
            None => {
                let kept = Kept::of(object);
                if kept.bytes > room {
                    return Err(NoRoom);
                }
                self.bytes += kept.bytes;
                kept
            }
        };
        self.listing.get_or_insert_default().insert(key, kept);
        Ok(())
    }

    fn all_listed(&mut self) -> bool {
        let listing = self.listing.take().unwrap_or_default();
        let is_same = self.is_listed
            && listing.len() == self.objects.len()
            && listing.iter().all(|(key, kept)| {
                let there = self.objects.get(key);
                there.is_some_and(|there| is_same(&there.object, &kept.object))
            });
        self.objects = listing;
        self.bytes = self.objects.values().map(|kept| kept.bytes).sum();
        (self.is_listed, self.broken) = (true, None);
        let objects = &self.objects;
        self.awaited.retain(|key, awaited| {
            let is_shown = match objects.get(key) {
                Some(there) => awaited.is_shown_by(&there.object),
                None => awaited.version.is_none(),
            };
            !awaited.is_relisted && !is_shown
        });
        !is_same
    }

    fn applied(&mut self, object: Value, room: usize) -> Result<bool, NoRoom> {
        let key = key(&object);
        self.shown(&key, &object, false);
        let kept = Kept::of(object);
        let before = self.objects.get(&key);
        let freed = before.map_or(0, |before| before.bytes);
        if kept.bytes > room + freed {
            return Err(NoRoom);
        }
        let is_same = before.is_some_and(|before| is_same(&before.object, &kept.object));
        self.bytes = self.bytes + kept.bytes - freed;
        self.objects.insert(key, kept);
        Ok(!is_same)
    }

    fn shown(&mut self, key: &Key, object: &Value, is_gone: bool) {
        let shows = |awaited: &Awaited| {
            // The end of a predecessor of that name shows nothing.
            awaited.is_shown_by(object) || (is_gone && of(object, "/metadata/uid") == awaited.uid)
        };
        if self.awaited.get(key).is_some_and(shows) {
            self.awaited.remove(key);
        }
    }
}

impl Kept {
    fn of(mut object: Value) -> Self {
        reduce(&mut object);
        let mut bytes = Counted(0);
        // Counting never fails.
        let _ = serde_json::to_writer(&mut bytes, &object);
        Self {
            object: Arc::new(object),
            bytes: bytes.0,
        }
    }
}

impl Awaited {
    fn is_shown_by(&self, object: &Value) -> bool {
        match &self.version {
            Some(version) => is_at_least(&of(object, "/metadata/resourceVersion"), version),
            None => !is_left(object, &self.uid),
        }
    }
}

/// A writer that counts.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps of an object's managers those that plans ask for: the other entries are half of many objects.
fn reduce(object: &mut Value) {
    let managers = object.pointer_mut("/metadata/managedFields");
    if let Some(managers) = managers.and_then(Value::as_array_mut) {
        managers.retain(|entry| {
            let manager = text(entry, "/manager");
            manager == Some(MANAGER) || manager == Some(UPSTREAM_MANAGER)
        });
    }
}

fn key(object: &Value) -> Key {
    (of(object, "/metadata/namespace"), of(object, "/metadata/name"))
}

fn of(object: &Value, place: &str) -> String {
    text(object, place).unwrap_or_default().to_owned()
}

fn version(object: &Value) -> Option<&str> {
    text(object, "/metadata/resourceVersion")
}

/// Returns true if nothing but the version differs.
fn is_same(before: &Value, now: &Value) -> bool {
    let (Some(old), Some(new)) = (before.as_object(), now.as_object()) else {
        return before == now;
    };
    let about = |object: &Value| {
        let mut about = object["metadata"].clone();
        about.as_object_mut().map(|about| about.remove("resourceVersion"));
        about
    };
    let differs = |(name, value): (&String, &Value)| name != "metadata" && new.get(name) != Some(value);
    old.len() == new.len() && !old.iter().any(differs) && about(before) == about(now)
}

fn is_as_new(there: &Value, written: &Value) -> bool {
    is_at_least(
        version(there).unwrap_or_default(),
        version(written).unwrap_or_default(),
    )
}

/// Compares versions. Kubernetes has them be numbers that grow; of others only the same one counts.
fn is_at_least(version: &str, wanted: &str) -> bool {
    match (version.parse::<u64>(), wanted.parse::<u64>()) {
        (Ok(version), Ok(wanted)) => version >= wanted,
        _ => version == wanted,
    }
}

/// Returns true if the object of this identity is there and nobody deletes it.
fn is_left(object: &Value, uid: &str) -> bool {
    text(object, "/metadata/uid") == Some(uid) && object.pointer("/metadata/deletionTimestamp").is_none()
}

#[cfg(test)]
mod tests;
