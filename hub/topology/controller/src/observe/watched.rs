//! Owns: the Clusters and classes that two watches show, and whether both were listed to the end.
//! Never: takes a listing that was cut off for one of everything.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    mem,
};

use super::{
    bounds::{CLASSES_MAX, CLUSTERS_MAX},
    facts::{ClusterFacts, PublishedVariables},
    observation::Observation,
};
use crate::model::Key;

/// An event of a watch on objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// A listing begins.
    ListingBegins,
    /// An object of the listing.
    Listed(Key, T),
    /// The listing is complete.
    ListingEnds,
    /// An object as it is from now on.
    Changed(Key, T),
    /// An object is gone.
    Gone(Key),
}

/// The state of the cluster that Cluster API runs in.
#[derive(Debug)]
pub struct Watched {
    classes: Objects<PublishedVariables>,
    clusters: Objects<ClusterFacts>,
}

/// Objects of a kind: those that are there, and those that a listing has shown so far.
#[derive(Debug)]
struct Objects<T> {
    there: BTreeMap<Key, T>,
    listing: Option<BTreeMap<Key, T>>,
    complete: bool,
    most: usize,
}

impl<T> Objects<T> {
    fn none(most: usize) -> Self {
        Self {
            there: BTreeMap::new(),
            listing: None,
            complete: false,
            most,
        }
    }

    fn see(&mut self, seen: Seen<T>) {
        match seen {
            Seen::ListingBegins => self.listing = Some(BTreeMap::new()),
            Seen::Listed(key, object) => {
                if let Some(listing) = &mut self.listing {
                    insert(listing, key, object, self.most);
                }
            }
            Seen::ListingEnds => {
                if let Some(listing) = self.listing.take() {
                    self.there = listing;
                    self.complete = true;
                }
            }
            Seen::Changed(key, object) => insert(&mut self.there, key, object, self.most),
            Seen::Gone(key) => drop(self.there.remove(&key)),
        }
    }

    fn is_full(&self) -> bool {
        self.there.len() >= self.most
    }
}

/// Inserts or updates an object. Existing objects are always updated; new ones are dropped beyond the bound.
fn insert<T>(objects: &mut BTreeMap<Key, T>, key: Key, object: T, most: usize) {
    let room = objects.len() < most;
    match objects.entry(key) {
        Entry::Occupied(mut known) => drop(known.insert(object)),
        Entry::Vacant(place) if room => drop(place.insert(object)),
        Entry::Vacant(_) => {}
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            classes: Objects::none(CLASSES_MAX),
            clusters: Objects::none(CLUSTERS_MAX),
        }
    }
}

impl Watched {
    /// Takes what is seen of classes; one that lists nothing is none. True: a class publishes a variable that was not
    /// read of its Clusters, which have to be listed again.
    pub fn see_class(&mut self, seen: Seen<PublishedVariables>) -> bool {
        let seen = match seen {
            Seen::Listed(_, published) if published.is_empty() => return false,
            Seen::Changed(key, published) if published.is_empty() => Seen::Gone(key),
            seen => seen,
        };
        match seen {
            Seen::ListingEnds => {
                let before = mem::take(&mut self.classes.there);
                if self.classes.listing.is_none() {
                    self.classes.there = before;
                    return false;
                }
                self.classes.see(Seen::ListingEnds);
                let mut now = self.classes.there.iter();
                now.any(|(key, published)| is_more(published, before.get(key)))
            }
            Seen::Changed(key, published) => {
                let more = is_more(&published, self.classes.there.get(&key));
                self.classes.see(Seen::Changed(key, published));
                more
            }
            seen => {
                self.classes.see(seen);
                false
            }
        }
    }

    /// Takes what is seen of Clusters.
    pub fn see_cluster(&mut self, seen: Seen<ClusterFacts>) {
        self.clusters.see(seen);
    }

    /// The variables that a class publishes.
    pub fn published(&self, class: &Key) -> Option<&PublishedVariables> {
        self.classes.there.get(class)
    }

    /// Returns true if there may be more Clusters or classes than the cache holds.
    pub fn is_full(&self) -> bool {
        self.clusters.is_full() || self.classes.is_full()
    }

    /// The observation; none before both kinds were listed to the end.
    pub fn observation(&self) -> Option<Observation> {
        (self.classes.complete && self.clusters.complete)
            .then(|| Observation::of(&self.clusters.there, &self.classes.there))
    }
}

fn is_more(published: &PublishedVariables, before: Option<&PublishedVariables>) -> bool {
    before.is_none_or(|before| published.has_more_than(before))
}
