//! The clusters that facts come from, as the hub describes them in this session.
//! The hub names a source as listed only after everything that its listing changed, and as ended only where the
//! process that speaks has seen the end. Nothing here deletes anything.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, sync::Source};

/// Rules about absence have changed since then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settling {
    /// Clusters that became settled, or are not any more.
    pub clusters: BTreeSet<ClusterId>,
    /// True if all are settled is another answer than before.
    pub all: bool,
}

impl Settling {
    /// Returns true if anything changed.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty() && !self.all
    }
}

/// Every source by its cluster. A source that the hub has not named in this session is unknown, and so not settled.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    told: BTreeMap<ClusterId, Source>,
    /// Sources that ended by an earlier session, in the history that this one continues.
    ended_before: BTreeSet<ClusterId>,
}

impl Sources {
    /// A session began, perhaps with a hub that has forgotten what was listed and who ended. A session that `resumes`
    /// continues the history that this agent knows: an ended source stays ended until the hub names it otherwise.
    pub(super) fn begin(&mut self, resumes: bool) {
        let told = std::mem::take(&mut self.told).into_values();
        self.ended_before
            .extend(told.filter(|source| source.ended).map(|source| source.cluster));
        if !resumes {
            self.ended_before.clear();
        }
    }

    /// An object of this cluster came: it is back, if it had ended, and its source is sent after its objects.
    pub(super) fn heard_of(&mut self, cluster: &ClusterId) {
        self.ended_before.remove(cluster);
        if let Some(source) = self.told.get_mut(cluster) {
            source.ended = false;
        }
    }

    /// The hub described these. A plan reads nothing of them but whether they are settled.
    pub(super) fn changed(&mut self, sources: &[Source]) -> Settling {
        let all_before = self.all_settled();
        let mut clusters = BTreeSet::new();
        for source in sources {
            let mut source = source.clone();
            if !source.state.is_gone() {
                self.ended_before.remove(&source.cluster);
            }
            source.ended |= self.ended_before.contains(&source.cluster);
            if self.is_settled(&source.cluster) != is_settled(&source) {
                clusters.insert(source.cluster.clone());
            }
            self.told.insert(source.cluster.clone(), source);
        }
        Settling {
            clusters,
            all: all_before != self.all_settled(),
        }
    }

    /// True when nothing of `cluster` has to be waited for: what the hub does not name of it is not there.
    pub fn is_settled(&self, cluster: &ClusterId) -> bool {
        self.told.get(cluster).is_some_and(is_settled)
    }

    /// True when that holds of every source the hub named, and it named one.
    pub fn all_settled(&self) -> bool {
        !self.told.is_empty() && self.told.values().all(is_settled)
    }

    /// The sources.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.told.values()
    }
}

fn is_settled(source: &Source) -> bool {
    source.listed || source.ended
}
