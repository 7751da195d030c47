//! The objects of one kind, as last listed and watched: shared by everything in the process that reads them.
//! A relist is the truth: it takes effect when it is done, never half. Unknown (not listed) is not empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use kube::{Resource, runtime::watcher::Event};
use shared::model::ServiceKey;
use tokio::sync::watch;

use super::Dirty;

/// Namespace (empty for kinds that have none) and name.
pub type ObjectKey = (Box<str>, Box<str>);

/// The service that an object belongs to, for [`Watched::of_service`].
pub type Index<K> = fn(&K) -> Option<ServiceKey>;

type Listener<K> = Box<dyn Fn(&K) + Send + Sync>;

/// The objects of one kind. Clones are the same store.
pub struct Watched<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    index: Index<K>,
    state: RwLock<State<K>>,
    listeners: Mutex<Vec<Listener<K>>>,
    listed: watch::Sender<bool>,
}

struct State<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    by_service: BTreeMap<ServiceKey, BTreeSet<ObjectKey>>,
    /// A listing on its way.
    listing: Option<BTreeMap<ObjectKey, Arc<K>>>,
    /// How many listings were completed.
    listings: u64,
    /// The greatest resource version that the watch has shown: it tells all changes of a kind in their order.
    seen: u64,
}

/// A write that began while the store was as it was then.
#[derive(Debug, Clone, Copy)]
pub struct WriteTicket(u64);

impl<K> Clone for Watched<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Resource> Watched<K> {
    /// An empty, unlisted store whose objects are found by service with `index`.
    pub fn new(index: Index<K>) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            by_service: BTreeMap::new(),
            listing: None,
            listings: 0,
            seen: 0,
        };
        Self {
            shared: Arc::new(Shared {
                index,
                state: RwLock::new(state),
                listeners: Mutex::new(Vec::new()),
                listed: watch::Sender::new(false),
            }),
        }
    }

    /// Whether the kind has been listed, and can be.
    pub fn is_listed(&self) -> bool {
        *self.shared.listed.borrow()
    }

    /// Follows [`Watched::is_listed`].
    pub fn listed(&self) -> watch::Receiver<bool> {
        self.shared.listed.subscribe()
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read().objects.get(&(namespace.into(), name.into())).cloned()
    }

    /// The objects that belong to a service.
    pub fn of_service(&self, service: &ServiceKey) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.by_service.get(service).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    /// Every service that has an object.
    pub fn services(&self) -> Vec<ServiceKey> {
        self.read().by_service.keys().cloned().collect()
    }

    /// All objects, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// From now on marks in `dirty` what `key_of` says of each object that comes, changes or goes, both of its
    /// old and its new state.
    pub fn mark_changes<M: Ord + Clone + Send + 'static>(
        &self,
        dirty: &Dirty<M>,
        key_of: impl Fn(&K) -> Option<M> + Send + Sync + 'static,
    ) where
        K: 'static,
    {
        let dirty = dirty.clone();
        let listener: Listener<K> = Box::new(move |object| dirty.mark(key_of(object)));
        let mut listeners = self
            .shared
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
    }

    /// [`Watched::mark_changes`] with the service that an object belongs to.
    pub fn mark_services(&self, dirty: &Dirty<ServiceKey>)
    where
        K: 'static,
    {
        self.mark_changes(dirty, self.shared.index);
    }

    /// Takes an event of the watch.
    pub fn handle(&self, event: Event<K>) {
        match event {
            Event::Init => self.write().listing = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.write().listing {
                    listing.insert(key_of(&object), Arc::new(object));
                }
            }
            Event::InitDone => self.replace_all(),
            Event::Apply(object) => {
                self.write().saw(&object);
                self.put(object, |_| true);
            }
            Event::Delete(object) => {
                self.write().saw(&object);
                let uid = object.meta().uid.as_deref().unwrap_or_default();
                self.remove(key_of(&object), uid);
            }
        }
    }

    /// Says that a write begins, before it is sent.
    pub fn begin_write(&self) -> WriteTicket {
        WriteTicket(self.read().listings)
    }

    /// Takes the answer to that write, so that it is seen before the watch shows it. An answer that comes later
    /// than the watch, or than a listing, has nothing to tell: the object may be gone again.
    pub fn written(&self, ticket: WriteTicket, object: K) {
        let version = version(&object);
        self.put(object, |state| state.listings == ticket.0 && state.seen < version);
    }

    /// Takes note that an object we deleted is gone.
    pub fn deleted(&self, namespace: &str, name: &str, uid: &str) {
        self.remove((namespace.into(), name.into()), uid);
    }

    /// The kind cannot be listed (any more): what is held may be outdated.
    pub fn unlisted(&self) {
        self.shared.listed.send_if_modified(std::mem::take);
    }

    /// Takes a newer state of an object, if `when` holds of the store, and tells of the old and the new one.
    fn put(&self, object: K, when: impl FnOnce(&State<K>) -> bool) {
        let (key, object) = (key_of(&object), Arc::new(object));
        let old = {
            let mut state = self.write();
            let outdated = state.objects.get(&key).is_some_and(|found| {
                found.meta().uid == object.meta().uid && version(&**found) > version(&*object)
            });
            if outdated || !when(&state) {
                return;
            }
            let old = state.objects.insert(key.clone(), object.clone());
            state.reindex(self.shared.index, &key, old.as_deref(), Some(&object));
            old
        };
        self.tell(old.into_iter().chain([object]));
    }

    /// Removes the object of this uid, and no later one of its name, and tells of it.
    fn remove(&self, key: ObjectKey, uid: &str) {
        let old = {
            let mut state = self.write();
            let same = |found: &&Arc<K>| found.meta().uid.as_deref().unwrap_or_default() == uid;
            if state.objects.get(&key).filter(same).is_none() {
                return;
            }
            let old = state.objects.remove(&key);
            state.reindex(self.shared.index, &key, old.as_deref(), None);
            old
        };
        self.tell(old);
    }

    /// The listing is complete. Objects that did not change in it are not told of.
    fn replace_all(&self) {
        let mut changed = Vec::new();
        let index = self.shared.index;
        {
            let mut state = self.write();
            let Some(listing) = state.listing.take() else {
                return;
            };
            state.listings += 1;
            listing.values().for_each(|object| state.saw(&**object));
            let old = std::mem::replace(&mut state.objects, listing);
            state.by_service.clear();
            let State {
                objects, by_service, ..
            } = &mut *state;
            for (key, object) in &*objects {
                if let Some(service) = index(object) {
                    by_service.entry(service).or_default().insert(key.clone());
                }
                let before = old.get(key);
                let same =
                    |before: &&Arc<K>| before.meta().resource_version == object.meta().resource_version;
                if before.filter(same).is_none() {
                    changed.extend(before.cloned());
                    changed.push(object.clone());
                }
            }
            let gone = old.iter().filter(|(key, _)| !objects.contains_key(*key));
            changed.extend(gone.map(|(_, object)| object.clone()));
        }
        self.shared
            .listed
            .send_if_modified(|listed| !std::mem::replace(listed, true));
        self.tell(changed);
    }

    fn tell(&self, objects: impl IntoIterator<Item = Arc<K>>) {
        let listeners = self
            .shared
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for object in objects {
            listeners.iter().for_each(|listener| listener(&object));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.shared.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K> {
    fn saw(&mut self, object: &K)
    where
        K: Resource,
    {
        self.seen = self.seen.max(version(object));
    }

    fn reindex(&mut self, index: Index<K>, key: &ObjectKey, old: Option<&K>, new: Option<&K>) {
        let (old, new) = (old.and_then(index), new.and_then(index));
        if old == new {
            return;
        }
        if let Some(service) = old
            && let Some(keys) = self.by_service.get_mut(&service)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_service.remove(&service);
            }
        }
        if let Some(service) = new {
            self.by_service.entry(service).or_default().insert(key.clone());
        }
    }
}

fn key_of<K: Resource>(object: &K) -> ObjectKey {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    (namespace.into(), meta.name.as_deref().unwrap_or_default().into())
}

/// Resource versions of one kind grow; one that is no number counts as the oldest, so that the watch decides.
fn version<K: Resource>(object: &K) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    use super::*;

    fn object(name: &str, version: u64) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                namespace: Some("shop".into()),
                name: Some(name.into()),
                uid: Some("u".into()),
                resource_version: Some(version.to_string()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    fn store() -> Watched<ConfigMap> {
        Watched::new(|object| {
            let meta = &object.metadata;
            ServiceKey::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
        })
    }

    fn names(store: &Watched<ConfigMap>) -> Vec<String> {
        store
            .all()
            .iter()
            .map(|object| object.metadata.name.clone().unwrap())
            .collect()
    }

    fn list(store: &Watched<ConfigMap>, names: &[&str]) {
        store.handle(Event::Init);
        names
            .iter()
            .for_each(|name| store.handle(Event::InitApply(object(name, 1))));
        store.handle(Event::InitDone);
    }

    #[test]
    fn a_double_init_keeps_the_last_completed_set_until_it_is_done() {
        let store = store();
        assert!(!store.is_listed());
        list(&store, &["a", "b"]);
        store.handle(Event::Init);
        store.handle(Event::InitApply(object("c", 1)));
        store.handle(Event::Init);
        assert_eq!(names(&store), ["a", "b"]);
        store.handle(Event::InitApply(object("b", 1)));
        store.handle(Event::InitDone);
        assert_eq!(names(&store), ["b"]);
        assert!(store.is_listed());
        assert_eq!(store.services().len(), 1);
    }

    #[tokio::test]
    async fn a_relist_tells_of_what_changed_and_what_went_only() {
        let (store, dirty) = (store(), Dirty::default());
        list(&store, &["a", "b", "c"]);
        store.mark_changes(&dirty, |object: &ConfigMap| object.metadata.name.clone());
        store.handle(Event::Init);
        store.handle(Event::InitApply(object("a", 1)));
        store.handle(Event::InitApply(object("b", 2)));
        store.handle(Event::InitDone);
        let told: Vec<_> = dirty.taken().await.into_iter().collect();
        assert_eq!(told, ["b", "c"]);
    }

    #[test]
    fn an_answer_to_a_write_is_not_undone_by_an_older_event() {
        let store = store();
        list(&store, &["a"]);
        store.written(store.begin_write(), object("a", 5));
        store.handle(Event::Apply(object("a", 3)));
        assert_eq!(
            store
                .get("shop", "a")
                .unwrap()
                .metadata
                .resource_version
                .as_deref(),
            Some("5")
        );
        store.handle(Event::Apply(object("a", 6)));
        assert_eq!(
            store
                .get("shop", "a")
                .unwrap()
                .metadata
                .resource_version
                .as_deref(),
            Some("6")
        );
    }

    #[test]
    fn a_late_answer_does_not_bring_back_what_is_gone() {
        let store = store();
        list(&store, &["a"]);
        let ticket = store.begin_write();
        store.handle(Event::Apply(object("a", 5)));
        store.handle(Event::Delete(object("a", 6)));
        store.written(ticket, object("a", 5));
        assert!(names(&store).is_empty(), "the watch has told of its end");
        let ticket = store.begin_write();
        list(&store, &[]);
        store.written(ticket, object("b", 9));
        assert!(names(&store).is_empty(), "it was not among what was listed since");
        store.written(store.begin_write(), object("b", 9));
        assert_eq!(names(&store), ["b"]);
    }

    #[test]
    fn a_kind_that_cannot_be_listed_any_more_is_unknown_and_not_empty() {
        let store = store();
        list(&store, &["a"]);
        store.unlisted();
        assert!(!store.is_listed());
        assert_eq!(names(&store), ["a"]);
        list(&store, &[]);
        assert!(store.is_listed() && names(&store).is_empty());
    }
}
