//! The outcome of differences: the objects that must be sent whole because a difference did not apply, and whether
//! differences are of any use. Pure bookkeeping; `desired` holds the objects, and the link sends the requests.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Revision,
    sync::{DesiredKey, ITEMS_WANTED_MAX},
};

/// The bookkeeping.
#[derive(Debug, Clone, Default)]
pub(super) struct Differences {
    /// Objects with a newer version that could not be restored, and none since: the revision of that version.
    wanted: BTreeMap<DesiredKey, Revision>,
    news: News,
    /// They came where they have no place, or too many could not be restored: none are taken until the next start.
    refused: bool,
}

/// The outcome of the differences of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// So many objects were restored.
    pub restored: u64,
    /// These are to be asked for whole.
    pub wanted: BTreeSet<DesiredKey>,
    /// The session has to end: everything must be sent anew, and whole.
    pub refused: bool,
    /// So many objects were not taken, or not whole, by this cluster's own rules.
    pub turned_away: u64,
    /// Complaints to log once.
    pub complaints: Vec<String>,
}

impl Differences {
    /// A session began without requests: everything behind the cursor is sent again.
    pub(super) fn begin(&mut self) {
        self.wanted.clear();
        self.news = News::default();
    }

    /// Returns true if the hub may send them.
    pub(super) fn are_taken(&self) -> bool {
        !self.refused
    }

    pub(super) fn restored(&mut self, key: &DesiredKey, at: Revision) {
        self.news.restored += 1;
        self.told(key, at);
    }

    /// The object has to be requested once, because this revision changed it. False: too many are, and the session is
    /// to end.
    pub(super) fn want(&mut self, key: &DesiredKey, at: Revision) -> bool {
        if let Some(wanted) = self.wanted.get_mut(key) {
            *wanted = at.max(*wanted);
            return true;
        }
        if self.wanted.len() >= ITEMS_WANTED_MAX {
            self.refuse();
            return false;
        }
        self.wanted.insert(key.clone(), at);
        self.news.wanted.insert(key.clone());
        true
    }

    pub(super) fn refuse(&mut self) {
        self.refused = true;
        self.news.refused = true;
    }

    /// The hub told the object as it was at a revision: nothing older is missing, and what is newer still is.
    pub(super) fn told(&mut self, key: &DesiredKey, at: Revision) {
        if self.wanted.get(key).is_some_and(|wanted| *wanted <= at) {
            self.settled(key);
        }
    }

    /// Nothing can be had of the object by asking for it.
    pub(super) fn settled(&mut self, key: &DesiredKey) {
        self.wanted.remove(key);
        self.news.wanted.remove(key);
    }

    /// Returns true if this object waits to be told whole.
    pub(super) fn wants(&self, key: &DesiredKey) -> bool {
        self.wanted.contains_key(key)
    }

    /// Returns true if what the hub says of its position holds here too.
    pub(super) fn are_settled(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Forgets what nobody is interested in any more.
    pub(super) fn retain(&mut self, keep: impl Fn(&DesiredKey) -> bool) {
        self.wanted.retain(|key, _| keep(key));
        self.news.wanted.retain(keep);
    }

    pub(super) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }
}
