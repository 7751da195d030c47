//! Which objects of a kind cannot be decoded as they are now. They are unknown: neither absent, nor as they were last.
//! It owns their names and faults; what was known of them before stays with the store.

use std::collections::BTreeMap;

use super::kept::ObjectKey;

/// The objects of one kind that cannot be decoded.
#[derive(Debug, Default)]
pub(super) struct UnreadableObjects(BTreeMap<ObjectKey, Noted>);

#[derive(Debug)]
struct Noted {
    problem: Box<str>,
    /// The last listing that showed it, or during which it was shown otherwise.
    listing: u64,
}

impl UnreadableObjects {
    /// Takes note of an object; true when that is news.
    pub(super) fn note(&mut self, key: ObjectKey, problem: &str, listing: u64) -> bool {
        let noted = Noted {
            problem: problem.into(),
            listing,
        };
        let before = self.0.insert(key, noted);
        before.is_none_or(|before| *before.problem != *problem)
    }

    /// It can be decoded, or is gone.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// A listing ended: those that it has not shown are gone.
    pub(super) fn listed_all(&mut self, listing: u64) {
        self.0.retain(|_, noted| noted.listing == listing);
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Their names with their faults, in the order of the names.
    pub(super) fn all(&self) -> Vec<(ObjectKey, Box<str>)> {
        let all = self.0.iter();
        all.map(|(key, noted)| (key.clone(), noted.problem.clone()))
            .collect()
    }
}
