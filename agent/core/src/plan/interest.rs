//! The namespaces that this agent asked about, the generation of each request, and the ones the hub has fully answered.
//! Pure bookkeeping; `desired` holds the answers.

use std::collections::{BTreeMap, BTreeSet};

use model::sync::{Interest, Namespaces};

/// The interest as it is now, and since when each namespace is part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct InterestState {
    all: bool,
    /// The generation in which each namespace came (the last time it did).
    added_at: BTreeMap<Box<str>, u64>,
}

impl InterestState {
    /// Takes a whole interest over. Namespaces that stay keep the generation in which they came.
    pub(super) fn replace(&mut self, interest: &Interest) {
        match &interest.namespaces {
            Namespaces::All => {
                self.all = true;
                self.added_at.clear();
            }
            Namespaces::Only(namespaces) => {
                self.all = false;
                self.added_at
                    .retain(|namespace, _| namespaces.contains(namespace));
                for namespace in namespaces {
                    self.added_at
                        .entry(namespace.clone())
                        .or_insert(interest.generation);
                }
            }
        }
    }

    pub(super) fn add(&mut self, generation: u64, namespace: Box<str>) {
        if !self.all {
            self.added_at.insert(namespace, generation);
        }
    }

    pub(super) fn remove(&mut self, namespace: &str) {
        self.added_at.remove(namespace);
    }

    /// Returns true if a message computed under `generation` describes `namespace` as it is now: a namespace that was
    /// deleted and created since is answered again.
    pub(super) fn admits(&self, namespace: &str, generation: u64) -> bool {
        self.all
            || self
                .added_at
                .get(namespace)
                .is_some_and(|&added_at| added_at <= generation)
    }

    /// Returns true if `namespace` is part of the interest.
    pub(super) fn contains(&self, namespace: &str) -> bool {
        self.all || self.added_at.contains_key(namespace)
    }

    /// The namespaces that a snapshot computed under `generation` covers completely.
    pub(super) fn covered_by(&self, generation: u64) -> Covered {
        if self.all {
            return Covered {
                all: true,
                namespaces: BTreeSet::new(),
            };
        }
        let namespaces = self
            .added_at
            .iter()
            .filter(|&(_, &added_at)| added_at <= generation)
            .map(|(namespace, _)| namespace.clone())
            .collect();
        Covered {
            all: false,
            namespaces,
        }
    }

    /// Returns true if everything is known of every namespace of the interest.
    pub(super) fn is_covered(&self, covered: &Covered) -> bool {
        if self.all {
            return covered.all;
        }
        covered.all
            || self
                .added_at
                .keys()
                .all(|namespace| covered.namespaces.contains(namespace))
    }
}

/// The namespaces that are completely received.
#[derive(Debug, Clone, Default)]
pub(super) struct Covered {
    pub(super) all: bool,
    pub(super) namespaces: BTreeSet<Box<str>>,
}

impl Covered {
    pub(super) fn contains(&self, namespace: &str) -> bool {
        self.all || self.namespaces.contains(namespace)
    }
}
