//! What a watch has shown of one kind: the last complete listing and everything since.
//! Pure bookkeeping over the watcher's events. A listing that was begun again starts from nothing, and the last
//! completed one stays until the new one is complete; what is missing in it is then gone.

use std::{collections::BTreeMap, sync::Arc};

use kube::{Resource, ResourceExt, runtime::watcher::Event};

/// Namespace (empty for cluster-scoped kinds) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, or empty.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
}

impl ObjectKey {
    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Self {
            namespace: text(&meta.namespace),
            name: text(&meta.name),
        }
    }
}

/// One object that came, changed or went.
#[derive(Debug, Clone)]
pub struct Change<K> {
    /// Which one.
    pub key: ObjectKey,
    /// What it was.
    pub old: Option<Arc<K>>,
    /// What it is.
    pub new: Option<Arc<K>>,
}

/// What an event led to.
#[derive(Debug)]
pub struct Changes<K> {
    /// The objects that differ.
    pub objects: Vec<Change<K>>,
    /// True when this event completed the first listing.
    pub became_listed: bool,
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Store<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    staged: Option<BTreeMap<ObjectKey, Arc<K>>>,
    listed: bool,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            staged: None,
            listed: false,
        }
    }
}

impl<K: Resource> Store<K> {
    /// Takes an event of the watcher.
    pub fn take(&mut self, event: Event<K>) -> Changes<K> {
        let mut changes = Changes {
            objects: Vec::new(),
            became_listed: false,
        };
        match event {
            Event::Init => self.staged = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                let staged = self.staged.get_or_insert_default();
                staged.insert(ObjectKey::of(&object), Arc::new(object));
            }
            Event::InitDone => {
                changes.became_listed = !self.listed;
                self.listed = true;
                self.replace(&mut changes.objects);
            }
            Event::Apply(object) => {
                let (key, new) = (ObjectKey::of(&object), Arc::new(object));
                let old = self.objects.insert(key.clone(), new.clone());
                changes.objects.push(Change {
                    key,
                    old,
                    new: Some(new),
                });
            }
            Event::Delete(object) => {
                let key = ObjectKey::of(&object);
                if let Some(old) = self.objects.remove(&key) {
                    changes.objects.push(Change {
                        key,
                        old: Some(old),
                        new: None,
                    });
                }
            }
        }
        changes
    }

    /// The complete listing takes the place of what was known; same resourceVersions are no change.
    fn replace(&mut self, changes: &mut Vec<Change<K>>) {
        let new = self.staged.take().unwrap_or_default();
        let mut old = std::mem::take(&mut self.objects);
        for (key, object) in &new {
            let before = old.remove(key);
            let same = before.as_ref().is_some_and(|before| {
                before.resource_version().is_some()
                    && before.resource_version() == object.resource_version()
                    && before.uid() == object.uid()
            });
            if !same {
                changes.push(Change {
                    key: key.clone(),
                    old: before,
                    new: Some(object.clone()),
                });
            }
        }
        changes.extend(old.into_iter().map(|(key, before)| Change {
            key,
            old: Some(before),
            new: None,
        }));
        self.objects = new;
    }
}

impl<K> Store<K> {
    /// Whether a listing was ever completed: before it, absence says nothing.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// An object by namespace and name.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Arc<K>> {
        let (namespace, name) = (namespace.into(), name.into());
        self.objects.get(&ObjectKey { namespace, name })
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter()
    }

    /// The keys from `first` on.
    pub fn range_from<'a>(&'a self, first: &'a ObjectKey) -> impl Iterator<Item = &'a ObjectKey> {
        self.objects.range(first..).map(|(key, _)| key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::ObjectMeta;

    use super::*;

    fn namespace(name: &str, version: &str) -> Namespace {
        Namespace {
            metadata: ObjectMeta {
                name: Some(name.into()),
                resource_version: Some(version.into()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        }
    }

    fn list(store: &mut Store<Namespace>, objects: &[(&str, &str)]) -> Vec<(String, bool)> {
        store.take(Event::Init);
        for (name, version) in objects {
            store.take(Event::InitApply(namespace(name, version)));
        }
        changed(store.take(Event::InitDone))
    }

    fn changed(changes: Changes<Namespace>) -> Vec<(String, bool)> {
        let one = |change: Change<Namespace>| (change.key.name.to_string(), change.new.is_some());
        changes.objects.into_iter().map(one).collect()
    }

    #[test]
    fn a_relist_is_the_truth_and_tells_only_what_differs() {
        let mut store = Store::default();
        list(&mut store, &[("a", "1"), ("b", "1"), ("c", "1")]);
        let changes = list(&mut store, &[("a", "1"), ("b", "2"), ("d", "1")]);
        let expected = [("b", true), ("d", true), ("c", false)].map(|(name, exists)| (name.into(), exists));
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_listing_begun_twice_keeps_the_last_completed_set_until_it_is_done() {
        let mut store = Store::default();
        list(&mut store, &[("a", "1"), ("b", "1")]);
        store.take(Event::Init);
        store.take(Event::InitApply(namespace("stale", "1")));
        assert_eq!(store.len(), 2);
        // The page after it failed: the watcher begins again, and what it had staged is forgotten.
        assert_eq!(list(&mut store, &[("b", "1")]), [("a".into(), false)]);
        assert!(store.find("", "stale").is_none());
    }

    #[test]
    fn nothing_is_listed_before_the_first_listing_is_complete() {
        let mut store = Store::default();
        store.take(Event::Init);
        store.take(Event::InitApply(namespace("a", "1")));
        assert!(!store.is_listed() && store.is_empty());
        assert!(store.take(Event::InitDone).became_listed && store.is_listed());
        assert!(!store.take(Event::InitDone).became_listed);
    }
}
