//! The objects of one cluster: revisions, watch history, and the controllers that matter (namespaces, garbage).
//! Never sees a request; everything that was committed is valid.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    ops::Bound,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    clock::{Clock, Seeded, timestamp},
    kinds::{Kind, Kinds},
    media::{Form, Include},
    selector::Selector,
    service::{self, Range},
    status::Refusal,
};

/// Number of changes in the watch history; a watch from before them is answered by 410.
pub const HISTORY_CHANGES_MAX: usize = 4_096;
/// The first revision, so that 0 stays "any".
const FIRST_REVISION: u64 = 1;

/// Key of an object: kind key, namespace ("" for cluster-scoped), name.
pub(crate) type ObjectKey = (String, String, String);

/// Objects in the order of their keys.
type Objects<'a> = Box<dyn Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> + 'a>;

#[derive(Clone)]
struct Change {
    revision: u64,
    place: ObjectKey,
    old: Option<Arc<Value>>,
    new: Option<Arc<Value>>,
}

/// An open watch: what it wants and how far it has read.
#[derive(Debug, Clone)]
pub struct Watch {
    pub(crate) kind: Arc<Kind>,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) selector: Selector,
    pub(crate) revision: u64,
    pub(crate) bookmarks: bool,
    /// Existing objects are told before changes.
    pub(crate) initial: bool,
    /// A bookmark tells where the existing objects end.
    pub(crate) initial_bookmark: bool,
    pub(crate) timeout_seconds: u64,
    /// Form of its objects, and the part that goes with the rows of a table.
    pub(crate) form: Form,
    pub(crate) include: Include,
    pub(crate) opened: u64,
}

/// The state of one simulated cluster.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) kinds: Kinds,
    pub(crate) ranges: Vec<Range>,
    pub(crate) random: Seeded,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hold_controllers: bool,
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    revision: u64,
    history: VecDeque<Change>,
    /// Watches may start at this revision or later.
    oldest: u64,
    /// Of every object that is there.
    uids: BTreeSet<String>,
    /// Places of objects with owners that were written since garbage was collected.
    dependents: BTreeSet<ObjectKey>,
    /// An object was removed since then: anything may be garbage.
    removed: bool,
}

impl Store {
    pub(crate) fn new(kinds: Kinds, ranges: Vec<Range>, seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            kinds,
            ranges,
            random: Seeded::new(seed),
            clock,
            hold_controllers: false,
            objects: BTreeMap::new(),
            revision: FIRST_REVISION,
            history: VecDeque::new(),
            oldest: FIRST_REVISION,
            uids: BTreeSet::new(),
            dependents: BTreeSet::new(),
            removed: false,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, key: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects
            .get(&(key.to_owned(), namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    pub(crate) fn list(&self, key: &str, namespace: &str) -> Vec<Arc<Value>> {
        let found = self.behind(key, namespace, None);
        found.map(|(_, object)| object.clone()).collect()
    }

    /// Objects of a kind in order, from behind this namespace and name on.
    pub(crate) fn behind<'a>(
        &'a self,
        key: &'a str,
        namespace: &'a str,
        after: Option<&(String, String)>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> + use<'a> {
        let from = match after {
            Some((namespace, name)) => Bound::Excluded((key.to_owned(), namespace.clone(), name.clone())),
            None => Bound::Included((key.to_owned(), namespace.to_owned(), String::new())),
        };
        let all = self.objects.range((from, Bound::Unbounded));
        all.take_while(move |((found, within, _), _)| {
            found == key && (namespace.is_empty() || within == namespace)
        })
    }

    /// As [`Store::behind`], at a past revision; nothing when the history no longer reaches back to it.
    pub(crate) fn behind_at<'a>(
        &'a self,
        key: &'a str,
        namespace: &'a str,
        after: Option<&(String, String)>,
        revision: u64,
    ) -> Option<Objects<'a>> {
        if revision < self.oldest {
            return None;
        }
        let newer = self.history.iter().rev();
        let newer = newer.take_while(|change| change.revision > revision);
        // The oldest change of an object comes last and knows what it was.
        let mut then: BTreeMap<&ObjectKey, Option<&Arc<Value>>> = BTreeMap::new();
        for change in newer {
            let (found, within, name) = &change.place;
            let is_behind = after.is_none_or(|(namespace, last)| (within, name) > (namespace, last));
            if found == key && (namespace.is_empty() || namespace == within) && is_behind {
                then.insert(&change.place, change.old.as_ref());
            }
        }
        let now = self.behind(key, namespace, after);
        if then.is_empty() {
            return Some(Box::new(now)); // a page costs what it shows
        }
        let unchanged = now.filter(|(place, _)| !then.contains_key(place));
        let changed = then.iter().filter_map(|(place, old)| Some((*place, (*old)?)));
        let mut all: Vec<_> = unchanged.chain(changed).collect();
        all.sort_by_key(|(place, _)| *place);
        Some(Box::new(all.into_iter()))
    }

    /// Replaces or removes an object; the new one gets the next revision.
    pub(crate) fn commit(&mut self, place: ObjectKey, new: Option<Value>) -> Arc<Value> {
        self.revision += 1;
        let old = self.objects.remove(&place);
        let new = new.map(|mut object| {
            object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
            Arc::new(object)
        });
        if let Some(object) = &new {
            self.objects.insert(place.clone(), object.clone());
        }
        self.note_for_garbage(&place, old.as_deref(), new.as_deref());
        let answer = new.clone().or_else(|| old.clone()).unwrap_or_default();
        self.history.push_back(Change {
            revision: self.revision,
            place,
            old,
            new,
        });
        if self.history.len() > HISTORY_CHANGES_MAX {
            self.forget_history(1);
        }
        answer
    }

    /// Drops the oldest changes from the watch history.
    pub(crate) fn forget_history(&mut self, changes: usize) {
        for change in self.history.drain(..changes.min(self.history.len())) {
            self.oldest = change.revision;
        }
    }

    /// The versions of a kind's objects after a revision, in order, as far as the history reaches.
    pub(crate) fn versions_since<'a>(
        &'a self,
        key: &'a str,
        revision: u64,
    ) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        let from = self.history.partition_point(|change| change.revision <= revision);
        let changes = self.history.range(from..);
        changes
            .filter(move |change| change.place.0 == key)
            .filter_map(|change| change.new.as_ref())
    }

    pub(crate) fn history_length(&self) -> usize {
        self.history.len()
    }

    /// The events that a watch has not sent yet, as (event type, object).
    pub(crate) fn poll(&self, watch: &mut Watch) -> Result<Vec<(&'static str, Value)>, Refusal> {
        let key = watch.kind.key();
        let mut events = Vec::new();
        if std::mem::take(&mut watch.initial) {
            let existing = self.list(key, &watch.namespace);
            let wanted = existing.iter().filter(|object| watch.selector.matches(object));
            events.extend(wanted.map(|object| ("ADDED", Value::clone(object))));
            watch.revision = self.revision;
        }
        if std::mem::take(&mut watch.initial_bookmark) {
            let mut bookmark = self.bookmark(watch);
            bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            events.push(("BOOKMARK", bookmark));
        }
        if watch.revision < self.oldest {
            return Err(Refusal::expired(watch.revision, self.oldest));
        }
        let from = self
            .history
            .partition_point(|change| change.revision <= watch.revision);
        for change in self.history.range(from..) {
            let (found, namespace, _) = &change.place;
            if *found != key || !(watch.namespace.is_empty() || watch.namespace == *namespace) {
                continue;
            }
            let seen = |object: &&Arc<Value>| watch.selector.matches(object);
            match (change.old.as_ref().filter(seen), change.new.as_ref().filter(seen)) {
                (None, Some(new)) => events.push(("ADDED", Value::clone(new))),
                (Some(_), Some(new)) => events.push(("MODIFIED", Value::clone(new))),
                (Some(old), None) => {
                    let mut last = Value::clone(old);
                    last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                    events.push(("DELETED", last));
                }
                (None, None) => {}
            }
        }
        watch.revision = watch.revision.max(self.revision);
        Ok(events)
    }

    pub(crate) fn bookmark(&self, watch: &Watch) -> Value {
        json!({"kind": watch.kind.kind, "apiVersion": watch.kind.api_version(&watch.version),
               "metadata": {"resourceVersion": watch.revision.to_string()}})
    }

    pub(crate) fn taken_addresses(&self) -> BTreeSet<IpAddr> {
        self.list("services", "")
            .iter()
            .flat_map(|service| service::addresses_of(&service["spec"]))
            .collect()
    }

    /// Deletes an object, or marks it when finalizers hold it; a namespace turns Terminating.
    pub(crate) fn delete(&mut self, kind: &Kind, place: ObjectKey, orphan: bool) -> Arc<Value> {
        let Some(mut object) = self.objects.get(&place).map(|object| Value::clone(object)) else {
            return Arc::default();
        };
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if orphan {
            self.release_dependents(&object["metadata"]["uid"]);
        }
        if kind.kind != "Namespace" && !held {
            return self.commit(place, None);
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(timestamp(self.clock.now_ms()));
            if kind.kind == "Namespace" {
                object["status"]["phase"] = json!("Terminating");
            } else {
                object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            }
            return self.commit(place, Some(object));
        }
        Arc::new(object)
    }

    fn release_dependents(&mut self, uid: &Value) {
        let owned = |object: &Value| owners(object).any(|owner| owner["uid"] == *uid);
        let dependents: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(_, object)| owned(object))
            .map(|(place, _)| place.clone())
            .collect();
        for place in dependents {
            let mut object = Value::clone(&self.objects[&place]);
            if let Some(list) = object["metadata"]["ownerReferences"].as_array_mut() {
                list.retain(|owner| owner["uid"] != *uid);
            }
            self.commit(place, Some(object));
        }
    }

    /// Lets the namespace controller and the garbage collector finish what they can, unless they are held.
    pub(crate) fn run_controllers(&mut self) {
        while !self.hold_controllers {
            let before = self.revision;
            self.empty_namespaces();
            self.collect_garbage();
            if self.revision == before {
                break;
            }
        }
    }

    fn empty_namespaces(&mut self) {
        for namespace in self.list("namespaces", "") {
            let name = namespace["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if namespace["metadata"]["deletionTimestamp"].is_null() {
                continue;
            }
            let inside: Vec<ObjectKey> = self
                .objects
                .keys()
                .filter(|(_, found, _)| *found == name)
                .cloned()
                .collect();
            if inside.is_empty() {
                self.commit(("namespaces".into(), String::new(), name), None);
            }
            self.delete_all(inside);
        }
    }

    fn note_for_garbage(&mut self, place: &ObjectKey, old: Option<&Value>, new: Option<&Value>) {
        let (was, is) = (old.and_then(uid), new.and_then(uid));
        if was != is {
            was.map(|uid| self.uids.remove(uid));
            is.map(|uid| self.uids.insert(uid.to_owned()));
        }
        if new.is_some_and(|object| owners(object).next().is_some()) {
            self.dependents.insert(place.clone());
        }
        self.removed |= was.is_some() && was != is;
    }

    /// Deletes what has owners of which none is there; looks at everything only when something was removed.
    fn collect_garbage(&mut self) {
        let dependents = std::mem::take(&mut self.dependents);
        let looked_at: Box<dyn Iterator<Item = &ObjectKey>> = if std::mem::take(&mut self.removed) {
            Box::new(self.objects.keys())
        } else {
            Box::new(dependents.iter())
        };
        let lives = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| self.uids.contains(uid));
        let is_garbage = |place: &&ObjectKey| {
            let object = self.objects.get(*place);
            object.is_some_and(|object| owners(object).next().is_some() && !owners(object).any(lives))
        };
        let garbage: Vec<ObjectKey> = looked_at.filter(is_garbage).cloned().collect();
        self.delete_all(garbage);
    }

    fn delete_all(&mut self, places: Vec<ObjectKey>) {
        for place in places {
            if let Some(kind) = self.kinds.by_key(&place.0) {
                self.delete(&kind, place, false);
            }
        }
    }

    /// Stops serving a custom kind: every object of it is deleted first, and watchers are told.
    pub(crate) fn remove_kind(&mut self, qualified: &str) -> Option<Arc<Kind>> {
        for object in self.list(qualified, "") {
            self.commit(place_of(qualified, &object), None);
        }
        self.kinds.remove(qualified)
    }
}

pub(crate) fn place_of(key: &str, object: &Value) -> ObjectKey {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (key.to_owned(), text("namespace"), text("name"))
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}
