//! Owns: which Clusters of a class may have their machines replaced now: a bounded number at once, and no further one while
//! one of them fails.
//! Never: holds what the owner of one Cluster said of its machines, or one that is being made.

use std::collections::BTreeMap;

use shared::model::UnixMillis;

use super::{
    event::ClusterName,
    ledger::{About, Ledger},
    said::{Said, said, said_with, says_otherwise},
    seen::SeenCluster,
};
use crate::desired::change::{Action, Plan};

/// The limits of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waves {
    /// Most Clusters of a class whose machines are replaced at once, unless a person edits them one by one.
    pub at_once: usize,
    /// A rollout that takes longer fails, milliseconds.
    pub patience_millis: u64,
}

/// The turn of a Cluster's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It is carried out.
    Go {
        /// True if it begins a rollout.
        begins: bool,
    },
    /// It waits, for this reason.
    Hold(String),
}

/// Returns true if a plan replaces existing machines.
pub fn replaces(plan: &Plan) -> bool {
    let writes = plan.changes.iter().filter(|change| change.action.writes());
    let mut replacing =
        writes.filter(|change| change.action != Action::Create && change.action != Action::Delete);
    replacing.any(|change| change.action == Action::Rotate || change.machines > 0)
}

/// Assigns turns, in the order of names.
pub fn turns(
    ledger: &Ledger,
    seen: &BTreeMap<ClusterName, SeenCluster<'_>>,
    plans: &BTreeMap<ClusterName, &Plan>,
    waves: Waves,
    now: UnixMillis,
) -> BTreeMap<ClusterName, Turn> {
    let nothing = About::default();
    let about = |name: &ClusterName| ledger.get(name).map_or(&nothing, |kept| &kept.about);
    let mut classes: BTreeMap<&(String, String), Rolling> = BTreeMap::new();
    for (name, cluster) in seen {
        let rolling = classes.entry(&cluster.class).or_default();
        // A resting Cluster replaces nothing more, and nobody waits for it.
        if let (Some(since), None) = (about(name).rolling_since, cluster.rests) {
            rolling.count += 1;
            rolling.see(name, about(name), since, (waves, now));
        }
    }
    let mut turns = BTreeMap::new();
    for (name, plan) in plans {
        let Some(cluster) = seen.get(name) else {
            continue;
        };
        let (about, rolling) = (about(name), classes.entry(&cluster.class).or_default());
        let begins = cluster.made && replaces(plan) && about.rolling_since.is_none();
        let is_edited = about
            .settled
            .is_some_and(|generation| generation != cluster.generation);
        let is_news = |now: Said| says_otherwise(&about.said, &now);
        // A word of its owner about its machines; what an autoscaler says of replicas is none, nor is a default that
        // another writer removes. The values of an older build are unknown.
        let is_own_edit = is_edited
            && !about.said.is_empty()
            && is_news(said(cluster.document))
            && is_news(said_with(cluster.document, &plan.defaults));
        let turn = match &rolling.failing {
            _ if !begins || is_own_edit => Turn::Go { begins },
            Some(why) => Turn::Hold(why.clone()),
            None if rolling.count >= waves.at_once => Turn::Hold(format!(
                "it waits for its turn: at most {} of its class are rolled out at once",
                waves.at_once
            )),
            None => Turn::Go { begins },
        };
        if turn == (Turn::Go { begins: true }) {
            rolling.count += 1;
        }
        turns.insert(name.clone(), turn);
    }
    turns
}

/// The rollout under way in one class.
#[derive(Debug, Default)]
struct Rolling {
    count: usize,
    failing: Option<String>,
}

impl Rolling {
    fn see(&mut self, name: &ClusterName, about: &About, since: u64, (waves, now): (Waves, UnixMillis)) {
        let why = if let Some(refused) = &about.refused {
            format!("Cluster {name} of its class fails: {refused}")
        } else if now.0.saturating_sub(since) > waves.patience_millis {
            let minutes = waves.patience_millis / 60_000;
            format!("Cluster {name} of its class is not rolled out after {minutes} minutes")
        } else {
            return;
        };
        self.failing.get_or_insert(why);
    }
}

#[cfg(test)]
mod tests;
