//! The clusters that facts come from, as the hub describes them in this session.
//! The hub names a source as listed only after everything that its listing changed. Nothing here deletes anything.

use std::collections::BTreeMap;

use shared::model::{ClusterId, sync::Source};

/// Every source by its cluster. What the hub has not named in this session is unknown, and so not settled.
#[derive(Debug, Clone, Default)]
pub struct Sources(BTreeMap<ClusterId, Source>);

impl Sources {
    /// A session began, perhaps with a hub that has forgotten what was listed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The hub described these. True when that changed anything.
    pub(super) fn changed(&mut self, sources: &[Source]) -> bool {
        let mut changed = false;
        for source in sources {
            let before = self.0.insert(source.cluster.clone(), source.clone());
            changed |= before.as_ref() != Some(source);
        }
        changed
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
