//! Owns: which member each Cluster is, and the properties that follow from it.
//! Never: chooses between two Clusters that name one member.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use shared::{api::names::PROPERTY_TOPOLOGY_PREFIX, model::ClusterId};

use super::{
    bounds,
    drift::drift,
    facts::{ClusterFacts, PublishedVariables, Stamped},
    life::Life,
};
use crate::model::Key;

/// An observation of all Clusters at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// By the member that they are: Clusters that alone name it, and have a topology.
    members: BTreeMap<ClusterId, Member>,
    ambiguous: BTreeSet<ClusterId>,
    clusters: usize,
    /// All Clusters, with the member that each is or is to be, if it alone names it.
    lives: BTreeMap<Key, (Option<ClusterId>, Arc<Life>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    stamped: Arc<Stamped>,
    /// The variables that its class lists now, possibly fewer than were read.
    published: PublishedVariables,
}

impl Observation {
    pub(super) fn of(
        clusters: &BTreeMap<Key, ClusterFacts>,
        classes: &BTreeMap<Key, PublishedVariables>,
    ) -> Self {
        let mut named: BTreeMap<&ClusterId, Vec<(&Key, &ClusterFacts)>> = BTreeMap::new();
        let mut lives = BTreeMap::new();
        for (key, facts) in clusters {
            lives.insert(key.clone(), (None, facts.life.clone()));
            if let Some(member) = &facts.member {
                named.entry(member).or_default().push((key, facts));
            }
        }
        let mut observation = Self {
            clusters: clusters.len(),
            lives,
            ..Self::default()
        };
        for (member, facts) in named {
            let [(key, only)] = facts[..] else {
                observation.ambiguous.insert(member.clone());
                continue;
            };
            let life = (Some(member.clone()), only.life.clone());
            observation.lives.insert(key.clone(), life);
            if let Some(stamped) = &only.stamped {
                let published = classes.get(&stamped.class).cloned().unwrap_or_default();
                let stamped = stamped.clone();
                observation
                    .members
                    .insert(member.clone(), Member { stamped, published });
            }
        }
        observation
    }

    /// Ids of members that more than one Cluster names: none of those counts.
    pub fn ambiguous(&self) -> &BTreeSet<ClusterId> {
        &self.ambiguous
    }

    /// All Clusters in the order of their names, each with the id of the member that it alone names.
    pub fn lives(&self) -> impl Iterator<Item = (&Key, Option<&ClusterId>, &Arc<Life>)> {
        self.lives
            .iter()
            .map(|(key, (member, life))| (key, member.as_ref(), life))
    }

    /// Number of Clusters.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// Names and values of the properties of a member whose API server has this version, empty if it is not known.
    pub fn properties(&self, member: &ClusterId, version: &str) -> Vec<(String, String)> {
        let Some(Member { stamped, published }) = self.members.get(member) else {
            return Vec::new();
        };
        let drift = drift(&stamped.version, version).and_then(|drift| bounds::text(&drift));
        let drift = drift.map(|value| (format!("{PROPERTY_TOPOLOGY_PREFIX}drift"), value));
        let variables = stamped.variables.iter();
        let variables = variables
            .filter(|(name, _)| published.contains(name))
            .filter_map(|(name, value)| {
                let name = bounds::name(PROPERTY_TOPOLOGY_PREFIX, &format!("variables.{name}"))?;
                Some((name, value.clone()))
            });
        let fixed = stamped.properties.iter().cloned();
        fixed.chain(drift).chain(variables).collect()
    }
}
