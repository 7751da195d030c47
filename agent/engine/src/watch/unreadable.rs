//! Objects of a kind that cannot be decoded in their current version. They are unknown: neither absent, nor as they
//! were last. It owns their names and faults; the store keeps their previous version.

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

    /// Takes note that an object can be decoded, or is gone; true when it was among them.
    pub(super) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.0.remove(key).is_some()
    }

    /// Forgets, at the end of a listing, those that it has not shown: they are gone.
    pub(super) fn listed_all(&mut self, listing: u64) -> Vec<ObjectKey> {
        let gone = self.0.extract_if(.., |_, noted| noted.listing != listing);
        gone.map(|(key, _)| key).collect()
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
}
