//! Owns: which items of one session found no room in its member's budget.
//! Never: asks for them.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use model::{FactKey, ListingGroup, fact::MEMBER_FACTS_MAX};

/// Most keys of one session that are known to wait: as many as a member may have facts. A cluster with more waiting
/// items does not count as listed before its agent connects again.
const WAITING_MAX: usize = MEMBER_FACTS_MAX;

/// Between two times that a member is asked for what waits, in milliseconds.
pub(super) const ASKED_EVERY_MILLIS: u64 = 5_000;

/// Items of one session for which the member's budget has no room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Waiting {
    /// Hashes of the keys, by whether they are of the exports' group.
    keys: BTreeSet<(bool, u64)>,
    /// There are more than are known.
    more: bool,
    /// The exports were listed, but for those that wait.
    exports_listed: bool,
    asked_at: u64,
}

impl Waiting {
    /// This item found no room.
    pub(super) fn add(&mut self, key: &FactKey) {
        if self.keys.len() < WAITING_MAX {
            self.keys.insert(short(key));
        } else {
            self.more = true;
        }
    }

    /// This item was dealt with. True: the exports were listed but for it.
    pub(super) fn remove(&mut self, key: &FactKey) -> bool {
        if self.keys.is_empty() || !self.keys.remove(&short(key)) {
            return false;
        }
        let all_listed = self.exports_listed && !self.lacks_exports();
        self.exports_listed &= !all_listed;
        all_listed
    }

    /// The exports were listed. True: none of them waits.
    pub(super) fn listed(&mut self) -> bool {
        self.exports_listed = self.lacks_exports();
        !self.exports_listed
    }

    /// Returns true if anything waits.
    pub(super) fn is_empty(&self) -> bool {
        !self.more && self.keys.is_empty()
    }

    /// Returns true if something waits, and was not asked for just now.
    pub(super) fn is_due(&self, now: u64) -> bool {
        !self.is_empty() && now.saturating_sub(self.asked_at) >= ASKED_EVERY_MILLIS
    }

    /// It is asked for.
    pub(super) fn asked(&mut self, now: u64) {
        self.asked_at = now;
    }

    fn lacks_exports(&self) -> bool {
        self.more || self.keys.last().is_some_and(|(of_exports, _)| *of_exports)
    }
}

/// Enough of a key to know it again: a member that finds two of one hash deceives itself only.
fn short(key: &FactKey) -> (bool, u64) {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (key.group() == ListingGroup::Exports, hasher.finish())
}
