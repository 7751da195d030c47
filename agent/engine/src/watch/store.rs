//! The objects of one kind, as last listed and watched: shared by everything in the process that reads them. A relist
//! adds and changes at once, so that nothing is held twice, and removes at its end, never halfway. Unknown (not listed)
//! is not empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use kube_core::Resource;
use model::ServiceKey;
use tokio::sync::watch;

use super::{
    Dirty, Read, Unreadable,
    event::Event,
    kept::{Head, Kept, ObjectKey},
    unreadable::UnreadableObjects,
};

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
    /// The namespaces in which an object has begun or ceased to be one that cannot be decoded.
    unreadable_in: Mutex<Vec<Dirty<Box<str>>>>,
    listed: watch::Sender<bool>,
    /// The kind cannot be listed and watched, and people were told.
    followed_badly: AtomicBool,
}

struct State<K> {
    objects: BTreeMap<ObjectKey, Stored<K>>,
    /// Each service with each of its objects that does not bear its name.
    by_service: BTreeSet<(ServiceKey, ObjectKey)>,
    /// A listing is on its way.
    listing: bool,
    /// The number of the last listing that began: what it has shown bears it.
    begun: u64,
    /// Number of completed listings.
    listings: u64,
    /// The greatest resource version that the watch has shown: it tells all changes of a kind in their order.
    seen: u64,
    unreadable: UnreadableObjects,
}

struct Stored<K> {
    object: Arc<K>,
    /// The last listing that showed it, or during which it was shown otherwise.
    listing: u64,
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

impl<K: Kept> Watched<K> {
    /// An empty, unlisted store whose objects are found by service with `index`.
    pub fn new(index: Index<K>) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            by_service: BTreeSet::new(),
            listing: false,
            begun: 0,
            listings: 0,
            seen: 0,
            unreadable: UnreadableObjects::default(),
        };
        Self {
            shared: Arc::new(Shared {
                index,
                state: RwLock::new(state),
                listeners: Mutex::new(Vec::new()),
                unreadable_in: Mutex::new(Vec::new()),
                listed: watch::Sender::new(false),
                followed_badly: AtomicBool::new(false),
            }),
        }
    }

    /// Returns true if the kind has been listed, and can be.
    pub fn is_listed(&self) -> bool {
        *self.shared.listed.borrow()
    }

    /// Follows [`Watched::is_listed`].
    pub fn listed(&self) -> watch::Receiver<bool> {
        self.shared.listed.subscribe()
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let state = self.read();
        let stored = state.objects.get(&(namespace.into(), name.into()));
        stored.map(|stored| stored.object.clone())
    }

    /// The objects that belong to a service.
    pub fn of_service(&self, service: &ServiceKey) -> Vec<Arc<K>> {
        let state = self.read();
        let of = |key: &ObjectKey| Some(&state.objects.get(key)?.object);
        let namesake = (service.namespace.clone(), service.name.clone());
        let namesake = of(&namesake).filter(|object| (self.shared.index)(object).as_ref() == Some(service));
        let first = (service.clone(), ObjectKey::default());
        let others = state.by_service.range(first..);
        let others = others.take_while(|(its, _)| its == service).map(|(_, key)| key);
        namesake
            .into_iter()
            .chain(others.filter_map(of))
            .cloned()
            .collect()
    }

    /// Every service that has an object.
    pub fn services(&self) -> Vec<ServiceKey> {
        let state = self.read();
        let index = self.shared.index;
        let namesakes = state.objects.iter().filter_map(|(key, stored)| {
            let service = index(&stored.object)?;
            is_namesake(key, &service).then_some(service)
        });
        let others = state.by_service.iter().map(|(service, _)| service.clone());
        let services: BTreeSet<ServiceKey> = namesakes.chain(others).collect();
        services.into_iter().collect()
    }

    /// All objects, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<K>> {
        let state = self.read();
        state
            .objects
            .values()
            .map(|stored| stored.object.clone())
            .collect()
    }

    /// From now on marks in `dirty` what `key_of` says of each object that comes, changes or goes, both of its
    /// old and its new state.
    pub fn mark_changes<M: Ord + Clone + Send + 'static>(
        &self,
        dirty: &Dirty<M>,
        key_of: impl Fn(&K) -> Option<M> + Send + Sync + 'static,
    ) {
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
    pub fn mark_services(&self, dirty: &Dirty<ServiceKey>) {
        self.mark_changes(dirty, self.shared.index);
    }

    /// From now on marks the namespace of each object that begins or ceases to be one that cannot be decoded. Nobody knows
    /// which service such an object belongs to, so that each one of its namespace may be another one since.
    pub fn mark_unreadable(&self, dirty: &Dirty<Box<str>>) {
        let dirties = &self.shared.unreadable_in;
        let mut dirties = dirties.lock().unwrap_or_else(PoisonError::into_inner);
        dirties.push(dirty.clone());
    }

    /// Returns true if the object cannot be decoded in its present version: the known one is older, or there is none.
    pub fn is_unreadable(&self, namespace: &str, name: &str) -> bool {
        self.read().unreadable.has(&(namespace.into(), name.into()))
    }

    /// The ones of them that were never known before.
    pub fn unknown(&self) -> Vec<ObjectKey> {
        let state = self.read();
        let mut unknown = state.unreadable.keys();
        unknown.retain(|key| !state.objects.contains_key(key));
        unknown
    }

    /// The number of objects that cannot be decoded.
    pub fn unreadable_count(&self) -> usize {
        self.read().unreadable.len()
    }

    /// Takes an event of the watch.
    pub fn handle(&self, event: Event<K::Object>) {
        self.handle_read(match event {
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(Ok(object)),
            Event::InitDone => Event::InitDone,
            Event::Apply(object) => Event::Apply(Ok(object)),
            Event::Delete(object) => Event::Delete(Ok(object)),
        });
    }

    /// Takes an event of a watch that reads objects one by one. One that cannot be decoded leaves what is known of it as it
    /// is; true comes back when that is news.
    pub fn handle_read(&self, event: Event<Read<K::Object>>) -> bool {
        match event {
            Event::Init => {
                let mut state = self.write();
                state.listing = true;
                state.begun += 1;
            }
            Event::InitApply(Ok(object)) => self.list(K::keep(object)),
            Event::InitDone => self.listed_all(),
            Event::Apply(Ok(object)) => {
                let object = K::keep(object);
                self.write().saw(object.head());
                self.put(object, |_| true);
            }
            Event::InitApply(Err(unreadable)) | Event::Apply(Err(unreadable)) => {
                return self.note(&unreadable);
            }
            Event::Delete(object) => {
                let head =
                    object.map_or_else(|unreadable| unreadable.head(), |object| Head::of(object.meta()));
                self.write().saw(&head);
                self.remove(&head.key(), &head.uid);
            }
        }
        false
    }

    fn note(&self, unreadable: &Unreadable) -> bool {
        let head = unreadable.head();
        let key = head.key();
        let (gone, began, is_news) = {
            let mut state = self.write();
            state.saw(&head);
            let begun = state.begun;
            // It is there, whatever it says; one of another uid took the place of the one that is known.
            let another = match state.objects.get_mut(&key) {
                Some(found) if found.object.head().uid == head.uid => {
                    found.listing = begun;
                    false
                }
                found => found.is_some(),
            };
            let gone = another.then(|| state.take(self.shared.index, &key)).flatten();
            let began = !state.unreadable.has(&key);
            let is_news = state.unreadable.note(key.clone(), unreadable.problem(), begun);
            (gone, began, is_news)
        };
        self.tell_unreadable((began || gone.is_some()).then_some(&key));
        self.tell(gone);
        is_news
    }

    /// Says that a write begins, before it is sent.
    pub fn begin_write(&self) -> WriteTicket {
        WriteTicket(self.read().listings)
    }

    /// Takes the answer to that write, so that it is seen before the watch shows it. An answer that comes later
    /// than the watch, or than a listing, has nothing to tell: the object may be gone again.
    pub fn written(&self, ticket: WriteTicket, object: K::Object) {
        let object = K::keep(object);
        let version = object.head().version;
        self.put(object, |state| state.listings == ticket.0 && state.seen < version);
    }

    /// Takes note that an object we deleted is gone.
    pub fn deleted(&self, namespace: &str, name: &str, uid: &str) {
        self.remove(&(namespace.into(), name.into()), uid);
    }

    /// The kind cannot be listed (any more): what is held may be outdated.
    pub fn unlisted(&self) {
        self.shared.listed.send_if_modified(std::mem::take);
    }

    /// Says that lists or watches of the kind fail again and again, or no longer do.
    pub fn follows_badly(&self, badly: bool) {
        self.shared.followed_badly.store(badly, Ordering::Relaxed);
    }

    /// Returns true while lists or watches of the kind fail again and again: changes are not seen.
    pub fn is_followed_badly(&self) -> bool {
        self.shared.followed_badly.load(Ordering::Relaxed)
    }

    /// Takes a newer state of an object, if `when` holds of the store, and tells of the old and the new one.
    fn put(&self, object: K, when: impl FnOnce(&State<K>) -> bool) {
        let object = Arc::new(object);
        let (old, readable) = {
            let mut state = self.write();
            let found = state.objects.get(&object.head().key());
            let outdated = found.is_some_and(|found| is_older(&*object, &*found.object));
            if outdated || !when(&state) {
                return;
            }
            let readable = state.unreadable.forget(&object.head().key());
            (state.insert(self.shared.index, object.clone()), readable)
        };
        self.tell_unreadable(readable.then(|| object.head().key()).as_ref());
        self.tell(old.into_iter().chain([object]));
    }

    /// Takes an object of a listing, and tells of it if it is news. A listing is believed whatever was seen before,
    /// because the cluster may be restored from an older backup; but not against what was seen since it began.
    fn list(&self, object: K) {
        let object = Arc::new(object);
        let (old, news, readable) = {
            let mut state = self.write();
            if !state.listing {
                return;
            }
            state.saw(object.head());
            let readable = state.unreadable.forget(&object.head().key());
            let begun = state.begun;
            let found = state.objects.get_mut(&object.head().key());
            let known = found.filter(|found| {
                let same = found.object.head().is_same_state(object.head());
                same || (found.listing == begun && is_older(&*object, &*found.object))
            });
            if let Some(known) = known {
                known.listing = begun;
                (None, None, readable)
            } else {
                let old = state.insert(self.shared.index, object.clone());
                (old, Some(object.clone()), readable)
            }
        };
        self.tell_unreadable(readable.then(|| object.head().key()).as_ref());
        self.tell(old.into_iter().chain(news));
    }

    /// Removes the object of this uid, and no later one of its name, and tells of it.
    fn remove(&self, key: &ObjectKey, uid: &str) {
        let (old, unreadable) = {
            let mut state = self.write();
            let unreadable = state.unreadable.forget(key);
            let found = state.objects.get(key);
            let is_it = found.is_some_and(|found| *found.object.head().uid == *uid);
            let old = is_it.then(|| state.take(self.shared.index, key)).flatten();
            (old, unreadable)
        };
        self.tell_unreadable(unreadable.then_some(key));
        self.tell(old);
    }

    /// The listing is complete: what it has not shown is gone.
    fn listed_all(&self) {
        let (gone, unreadable): (Vec<Arc<K>>, Vec<ObjectKey>) = {
            let mut state = self.write();
            if !std::mem::take(&mut state.listing) {
                return;
            }
            state.listings += 1;
            let begun = state.begun;
            let unreadable = state.unreadable.listed_all(begun);
            let gone = state.objects.iter().filter(|(_, stored)| stored.listing != begun);
            let gone: Vec<ObjectKey> = gone.map(|(key, _)| key.clone()).collect();
            let index = self.shared.index;
            let gone = gone.iter().filter_map(|key| state.take(index, key)).collect();
            (gone, unreadable)
        };
        self.shared
            .listed
            .send_if_modified(|listed| !std::mem::replace(listed, true));
        self.tell_unreadable(&unreadable);
        self.tell(gone);
    }

    /// Marks the namespaces of objects that began or ceased to be ones that cannot be decoded.
    fn tell_unreadable<'a>(&self, keys: impl IntoIterator<Item = &'a ObjectKey>) {
        let namespaces: BTreeSet<Box<str>> =
            keys.into_iter().map(|(namespace, _)| namespace.clone()).collect();
        if namespaces.is_empty() {
            return;
        }
        let dirties = &self.shared.unreadable_in;
        let dirties = dirties.lock().unwrap_or_else(PoisonError::into_inner);
        dirties
            .iter()
            .for_each(|dirty| dirty.mark(namespaces.iter().cloned()));
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

impl<K: Kept> State<K> {
    fn saw(&mut self, head: &Head) {
        self.seen = self.seen.max(head.version);
    }

    /// Puts an object in the place of the one that is returned.
    fn insert(&mut self, index: Index<K>, object: Arc<K>) -> Option<Arc<K>> {
        let key = object.head().key();
        let stored = Stored {
            object: object.clone(),
            listing: self.begun,
        };
        let old = self.objects.insert(key.clone(), stored).map(|old| old.object);
        self.reindex(index, key, old.as_deref(), Some(&object));
        old
    }

    fn take(&mut self, index: Index<K>, key: &ObjectKey) -> Option<Arc<K>> {
        let old = self.objects.remove(key)?.object;
        self.reindex(index, key.clone(), Some(&old), None);
        Some(old)
    }

    fn reindex(&mut self, index: Index<K>, key: ObjectKey, old: Option<&K>, new: Option<&K>) {
        let (old, new) = (old.and_then(index), new.and_then(index));
        if old == new {
            return;
        }
        if let Some(service) = old {
            self.by_service.remove(&(service, key.clone()));
        }
        if let Some(service) = new.filter(|service| !is_namesake(&key, service)) {
            self.by_service.insert((service, key));
        }
    }
}

/// Returns true if an object has the name of its service.
fn is_namesake((namespace, name): &ObjectKey, service: &ServiceKey) -> bool {
    *namespace == service.namespace && *name == service.name
}

/// A state of the same object that was there before the other one.
fn is_older<K: Kept>(object: &K, than: &K) -> bool {
    let (head, other) = (object.head(), than.head());
    head.uid == other.uid && head.version < other.version
}

#[cfg(test)]
mod tests;
