//! Owns: all kinds of objects that topologies are made of, as watches show them: which are to be watched, and whether that is
//! all.
//! Never: asks a server, or reads a clock.

use std::collections::{BTreeMap, BTreeSet};

use kube::{api::ApiResource, runtime::watcher::Event};
use serde_json::Value;
use tokio::time::Instant;

use super::store::{Known, NoRoom, Store};
use crate::{
    desired::objects::{Listed, Unread, label, text},
    live::{
        OF_POOLS,
        kinds::{self, Kinds, Served},
    },
    model::Key,
};

/// Most bytes of objects that are kept, as JSON: in memory they are about four times that.
pub(super) const BYTES_MAX: usize = 256 * 1024 * 1024;
/// Most kinds that are watched at once: any class may name some.
pub(super) const KINDS_MAX: usize = 200;

/// A kind in one version, and of which of its objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Watched {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// True if only those of machine pools count: bootstrap objects of single machines are of the same kinds, and many.
    pub(super) is_of_pools: bool,
}

impl Watched {
    fn of((api_version, kind): &(String, String), is_of_pools: bool) -> Self {
        Self {
            api_version: api_version.clone(),
            kind: kind.clone(),
            is_of_pools,
        }
    }

    fn core(resource: &ApiResource) -> Self {
        Self {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            is_of_pools: false,
        }
    }

    fn shows(&self, object: &Value) -> bool {
        text(object, "/apiVersion") == Some(&self.api_version)
            && text(object, "/kind") == Some(&self.kind)
            && (!self.is_of_pools || label(object, OF_POOLS).is_some())
    }

    fn key(&self) -> (String, String) {
        (self.api_version.clone(), self.kind.clone())
    }
}

impl std::fmt::Display for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.kind, self.api_version)
    }
}

/// The kinds to watch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Kinds, those of Cluster API first.
    pub(super) kinds: Vec<Watched>,
    /// Kinds beyond the most that are watched.
    beyond: Vec<Watched>,
    /// True if no further kinds can come to light.
    pub(super) is_all: bool,
}

impl Wanted {
    fn add(&mut self, kinds: impl IntoIterator<Item = Watched>) {
        for watched in kinds {
            if self.kinds.contains(&watched) || self.beyond.contains(&watched) {
                continue;
            }
            if self.kinds.len() < KINDS_MAX {
                self.kinds.push(watched);
            } else if self.beyond.len() < KINDS_MAX {
                self.beyond.push(watched);
            }
        }
    }
}

/// The outcome of a look at everything.
#[derive(Debug)]
pub(super) enum Look {
    /// Everything that topologies are made of.
    Whole(Listed),
    /// Something is not known yet.
    Waits(String),
    /// Something that every topology needs cannot be read.
    Unread(String),
}

/// All kinds.
#[derive(Debug, Default)]
pub(super) struct Stores {
    served: Option<Result<Served, String>>,
    stores: BTreeMap<Watched, Store>,
    definitions: BTreeMap<Watched, Value>,
    /// Kinds whose watches are to begin anew.
    pub(super) restart: BTreeSet<Watched>,
}

impl Stores {
    /// Takes in which kinds of Cluster API the server has, or why it does not say.
    pub(super) fn serve(&mut self, served: Result<Served, String>) {
        let is_known = matches!(self.served, Some(Ok(_)));
        if served.is_ok() || !is_known {
            self.served = Some(served);
        }
    }

    /// The kind as the server has it, if it is one of Cluster API.
    pub(super) fn resource(&self, watched: &Watched) -> Option<ApiResource> {
        let served = self.served.as_ref()?.as_ref().ok()?;
        let mut all = served.kinds.iter().chain(&served.pools);
        all.find(|one| Watched::core(one) == *watched).cloned()
    }

    /// Takes in the definition of a kind; returns true if it is another one.
    pub(super) fn define(&mut self, watched: &Watched, definition: Option<Value>) -> bool {
        let before = match &definition {
            Some(definition) => self.definitions.insert(watched.clone(), definition.clone()),
            None => self.definitions.remove(watched),
        };
        before != definition
    }

    /// Takes in an event; returns true if a plan may depend on it.
    ///
    /// # Errors
    ///
    /// There is no room for the kind, of which nothing is kept then.
    pub(super) fn see(
        &mut self,
        watched: &Watched,
        event: Event<Value>,
        now: Instant,
    ) -> Result<bool, String> {
        let kept: usize = self.stores.values().map(Store::bytes).sum();
        let store = self.stores.entry(watched.clone()).or_default();
        match store.see(event, BYTES_MAX.saturating_sub(kept)) {
            Ok(is_news) => Ok(is_news),
            Err(NoRoom) => {
                let why = format!(
                    "{watched} is left out: objects of topologies have more than {} MiB, which is all that the hub keeps",
                    BYTES_MAX >> 20
                );
                store.left_out(why.clone(), now);
                Err(why)
            }
        }
    }

    /// The watch of a kind broke.
    pub(super) fn failed(&mut self, watched: &Watched, why: String, now: Instant) {
        let store = self.stores.entry(watched.clone()).or_default();
        store.failed(why, now);
    }

    /// The server answered a write with this object.
    pub(super) fn wrote(&mut self, object: &Value) {
        let mut stores = self.stores.iter_mut();
        if let Some((_, store)) = stores.find(|(watched, _)| watched.shows(object)) {
            store.wrote(object);
        }
    }

    /// The server deletes the object of this identity.
    pub(super) fn deleted(&mut self, (api_version, kind): (&str, &str), key: &Key, uid: &str) {
        let of_kind = |watched: &&Watched| watched.api_version == api_version && watched.kind == kind;
        let watched = self.stores.keys().filter(of_kind).cloned();
        for watched in watched.collect::<Vec<_>>() {
            if let Some(store) = self.stores.get_mut(&watched) {
                store.deleted(key.clone(), uid);
            }
        }
    }

    /// Has the watches begin anew that do not show what was written.
    pub(super) fn restart_late(&mut self) {
        let late = self.stores.iter().filter(|(_, store)| store.awaits().is_some());
        let late: Vec<Watched> = late.map(|(watched, _)| watched.clone()).collect();
        self.restart.extend(late);
    }

    /// Forgets kinds that are not watched any more.
    pub(super) fn keep(&mut self, wanted: &Wanted) {
        if wanted.is_all {
            self.stores.retain(|watched, _| wanted.kinds.contains(watched));
            self.definitions
                .retain(|watched, _| wanted.kinds.contains(watched));
        }
    }

    fn known(&self, watched: &Watched, now: Instant) -> Known {
        let store = self.stores.get(watched);
        store.map_or(Known::NotYet, |store| store.known(now))
    }

    /// The kinds to watch, as far as the objects say that are there.
    pub(super) fn wanted(&self, now: Instant) -> Wanted {
        let mut wanted = Wanted::default();
        let Some(Ok(served)) = &self.served else {
            return wanted;
        };
        wanted.add(served.kinds.iter().chain(&served.pools).map(Watched::core));
        if !self.are_known(&wanted, now) {
            return wanted;
        }
        let core = self.objects(&wanted, now);
        let templates = kinds::of_classes(core.iter().copied());
        let of_clusters = kinds::of_clusters(core.iter().copied());
        let of_pools = kinds::of_pools(core);
        wanted.add(templates.iter().map(|kind| Watched::of(kind, false)));
        if !self.are_known(&wanted, now) {
            return wanted;
        }
        let unread = self.unread(&wanted, now);
        let made = |kinds: &Kinds| kinds::made(&templates, kinds, &unread);
        wanted.add(made(&of_clusters).iter().map(|kind| Watched::of(kind, false)));
        wanted.add(made(&of_pools).iter().map(|kind| Watched::of(kind, true)));
        wanted.is_all = self.are_known(&wanted, now);
        wanted
    }

    fn are_known(&self, wanted: &Wanted, now: Instant) -> bool {
        let mut kinds = wanted.kinds.iter();
        kinds.all(|watched| self.known(watched, now) != Known::NotYet)
    }

    fn objects(&self, wanted: &Wanted, now: Instant) -> Vec<&Value> {
        let listed = wanted
            .kinds
            .iter()
            .filter(|watched| self.known(watched, now) == Known::Listed);
        let stores = listed.filter_map(|watched| self.stores.get(watched));
        stores.flat_map(Store::objects).collect()
    }

    fn unread(&self, wanted: &Wanted, now: Instant) -> Unread {
        let kinds = wanted.kinds.iter();
        let unread = kinds.filter_map(|watched| match self.known(watched, now) {
            Known::Unread(why) => Some((watched.key(), why)),
            _ => None,
        });
        let beyond = wanted.beyond.iter().map(|watched| {
            let why = format!("the hub watches {KINDS_MAX} kinds at most, and classes name more");
            (watched.key(), why)
        });
        unread.chain(beyond).collect()
    }

    /// Everything that topologies are made of, if it is known.
    pub(super) fn look(&self, now: Instant) -> Look {
        let served = match &self.served {
            None => return Look::Waits("the server's kinds are not known yet".to_owned()),
            Some(Err(why)) => return Look::Unread(why.clone()),
            Some(Ok(served)) => served,
        };
        for needed in served.kinds.iter().map(Watched::core) {
            if let Known::Unread(why) = self.known(&needed, now) {
                return Look::Unread(why);
            }
        }
        let wanted = self.wanted(now);
        if !wanted.is_all {
            let mut kinds = wanted.kinds.iter();
            let waits = kinds.find(|watched| self.known(watched, now) == Known::NotYet);
            let waits = waits.map(|watched| format!("{watched} is not listed yet"));
            return Look::Waits(waits.unwrap_or_default());
        }
        for (watched, store) in &self.stores {
            if let Some((namespace, name)) = store.awaits() {
                let why =
                    format!("the watch of {watched} does not show yet that {namespace}/{name} was written");
                return Look::Waits(why);
            }
        }
        let objects = self.objects(&wanted, now).into_iter();
        Look::Whole(Listed {
            objects: objects.chain(self.definitions.values()).cloned().collect(),
            unread: self.unread(&wanted, now),
        })
    }
}

#[cfg(test)]
mod tests;
