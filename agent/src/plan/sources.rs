//! The clusters that facts come from, as the hub describes them in this session.
//! The hub names a source as listed only after everything that its listing changed. Nothing here deletes anything.

use std::collections::{BTreeMap, BTreeSet};

use shared::model::{ClusterId, sync::Source};

/// What may be believed of absence is another since then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settling {
    /// Clusters that became settled, or are not any more.
    pub clusters: BTreeSet<ClusterId>,
    /// Whether all are settled is another answer than before.
    pub all: bool,
}

impl Settling {
    /// Whether anything changed.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty() && !self.all
    }
}

/// Every source by its cluster. What the hub has not named in this session is unknown, and so not settled.
#[derive(Debug, Clone, Default)]
pub struct Sources(BTreeMap<ClusterId, Source>);

impl Sources {
    /// A session began, perhaps with a hub that has forgotten what was listed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The hub described these. A plan reads nothing of them but whether they are settled.
    pub(super) fn changed(&mut self, sources: &[Source]) -> Settling {
        let all_before = self.all_settled();
        let mut clusters = BTreeSet::new();
        for source in sources {
            let before = self.is_settled(&source.cluster);
            self.0.insert(source.cluster.clone(), source.clone());
            if before != is_settled(source) {
                clusters.insert(source.cluster.clone());
            }
        }
        Settling {
            clusters,
            all: all_before != self.all_settled(),
        }
    }

    /// True when nothing of `cluster` has to be waited for: what the hub does not name of it is not there.
    pub fn is_settled(&self, cluster: &ClusterId) -> bool {
        self.0.get(cluster).is_some_and(is_settled)
    }

    /// True when that holds of every source the hub named, and it named one.
    pub fn all_settled(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(is_settled)
    }

    /// The sources.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.values()
    }
}

fn is_settled(source: &Source) -> bool {
    source.listed || source.state.is_gone()
}
