//! What must hold at every moment, whatever is broken: what has come right stays right for as long as users leave
//! it as it is. So nothing that lives is deleted, narrowed or given another winner by any fault. While something is
//! broken there may be too much: what the hub was not told yet, or what a hub that lost its data was told before.

use std::collections::BTreeMap;

use super::judge::{Object, Picture, Verdicts, Wrong, declared, judge};
use crate::sim::SimCluster;

/// A message that is older than this arrives no more: by then its session counts as dead. Until everything said
/// before has arrived or is lost, something can be right by chance and wrong again.
const IN_FLIGHT_LONGEST: u64 = 12_000;

/// What is remembered of one object.
struct Seen {
    declared: String,
    /// Since when users have declared just this, in simulated milliseconds.
    since: u64,
    right: bool,
}

/// Looks at the clusters again and again.
#[derive(Default)]
pub(super) struct Vigil {
    seen: BTreeMap<(String, Object), Seen>,
    revisions: Vec<u64>,
    verdicts: Verdicts,
    /// Nothing is broken, and everybody knows everything: nothing may be too much either.
    pub(super) calm: bool,
}

impl Vigil {
    /// Looks; an error is a law that was broken. Without a change in any cluster there is nothing to look at.
    pub(super) fn look<'a>(
        &mut self,
        at: u64,
        clusters: impl Iterator<Item = &'a SimCluster> + Clone,
    ) -> Result<(), String> {
        let revisions: Vec<u64> = clusters.clone().map(SimCluster::revision).collect();
        if revisions == self.revisions {
            return Ok(());
        }
        self.revisions = revisions;
        let pictures: Vec<Picture> = clusters.map(Picture::take).collect();
        self.verdicts = judge(&pictures);
        for (key, verdict) in &self.verdicts {
            let (Object::Import(name) | Object::Export(name)) = &key.1;
            let declared = declared(&pictures, name);
            let before = self.seen.remove(key);
            let same = before.as_ref().filter(|before| before.declared == declared);
            let since = same.map_or(at, |before| before.since);
            let was_right = same.is_some_and(|before| before.right) && at >= since + IN_FLIGHT_LONGEST;
            let now = Seen {
                declared,
                since,
                right: verdict.is_ok(),
            };
            self.seen.insert(key.clone(), now);
            if let (Err(why), Object::Import(_)) = (verdict, &key.1)
                && was_right
                && (self.calm || matches!(why, Wrong::Lacking(_)))
            {
                return Err(format!(
                    "{} in {} was right and no user changed it, but now: {why}",
                    name, key.0
                ));
            }
        }
        self.seen.retain(|key, _| self.verdicts.contains_key(key));
        Ok(())
    }

    /// What is not as it must be, at the last look.
    pub(super) fn wrong(&self) -> Vec<String> {
        let wrong = self.verdicts.iter().filter_map(|((cluster, object), verdict)| {
            let why = verdict.as_ref().err()?;
            Some(format!("{object:?} in {cluster}: {why}"))
        });
        wrong.collect()
    }

    /// How many objects were judged at the last look.
    pub(super) fn judged(&self) -> usize {
        self.verdicts.len()
    }
}
