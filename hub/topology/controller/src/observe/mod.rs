//! Owns: the topology properties in ClusterProfiles: which Cluster a member is, what of it is published, within which
//! bounds; and the stage of each Cluster's life.
//! Never: matches by a name alone, tells a variable that its class does not list, or forgets what it knew because a listing
//! was cut off.

mod bounds;
mod drift;
mod facts;
mod life;
mod observation;
#[cfg(test)]
mod tests;
mod watched;

pub use self::{
    bounds::{CLASSES_MAX, CLUSTERS_MAX, PUBLISHED_VARIABLES_MAX},
    facts::{ClusterFacts, PublishedVariables, cluster_facts},
    life::Life,
    observation::Observation,
    watched::{Seen, Watched},
};
