//! Owns: what a shape consists of: members, their namespaces, exports and slices.
//! Never: moves: it is the same for every run.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::ensure;
use bytes::Bytes;
use shared::model::{ClusterId, ServiceKey, sync::Namespaces};

use super::{
    args::MEMBERS_MAX,
    facts::{self, SliceTemplate},
};

/// Of the services, one in so many is exported by every member of its namespace, ten at most.
const SHARED_ONE_IN: usize = 10;
const EXPORTERS_MAX: usize = 10;
/// Of the shared services, one in so many has a conflict: one in a hundred of all.
const CONFLICT_ONE_IN_SHARED: usize = 10;

/// The measures of a shape.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Measures {
    /// Clusters.
    pub(super) members: usize,
    /// Namespaces, spread evenly.
    pub(super) namespaces: usize,
    /// Members in which a namespace exists.
    pub(super) members_per_namespace: usize,
    /// Exports, each with one EndpointSlice.
    pub(super) slices: usize,
    /// Endpoints of a slice.
    pub(super) endpoints: usize,
    /// True if a tenth of the services has several exporters.
    pub(super) shared: bool,
    /// True if every member wants every namespace.
    pub(super) all: bool,
}

/// One member of a shape.
#[derive(Debug, Clone)]
pub(super) struct ShapeMember {
    /// Its id.
    pub(super) cluster: ClusterId,
    /// Its interest.
    pub(super) interest: Namespaces,
    /// Its exports, encoded.
    pub(super) exports: Vec<Bytes>,
    /// Its slices.
    pub(super) slices: Vec<SliceTemplate>,
}

/// A slice of the shape, by owner.
#[derive(Debug, Clone, Copy)]
pub(super) struct SliceAt {
    /// The member that reports it.
    pub(super) member: usize,
    /// Index of the member's slice.
    pub(super) slice: usize,
    /// The namespace of its service.
    namespace: usize,
}

/// A whole shape.
#[derive(Debug, Clone)]
pub(super) struct LoadShape {
    /// Its measures.
    pub(super) measures: Measures,
    /// Its members.
    pub(super) members: Arc<[ShapeMember]>,
    /// All slices, those of one member far apart.
    pub(super) slices: Vec<SliceAt>,
}

impl LoadShape {
    /// Lays a shape out.
    pub(super) fn new(measures: Measures) -> anyhow::Result<Self> {
        let Measures {
            members: count,
            namespaces,
            members_per_namespace,
            ..
        } = measures;
        ensure!(
            (1..=MEMBERS_MAX).contains(&count),
            "one process plays 1 to {MEMBERS_MAX} members"
        );
        ensure!(
            namespaces > 0 && (1..=count).contains(&members_per_namespace),
            "namespaces lie in members"
        );
        let mut members: Vec<ShapeMember> = (0..count)
            .map(|index| member(index, &measures))
            .collect::<Result<_, _>>()?;
        let mut slices = Vec::with_capacity(measures.slices);
        for service in 0.. {
            if slices.len() >= measures.slices {
                break;
            }
            let namespace = service % namespaces;
            let key = facts::service(&namespace_name(namespace), service)?;
            let homes: Vec<usize> = homes(namespace, &measures).collect();
            let shared = measures.shared && service % SHARED_ONE_IN == 0;
            let exporters = if shared { EXPORTERS_MAX.min(homes.len()) } else { 1 };
            let first = service / namespaces;
            for turn in 0..exporters.min(measures.slices - slices.len()) {
                let home = homes[(first + turn) % homes.len()];
                let conflicts = turn == 1 && (service / SHARED_ONE_IN).is_multiple_of(CONFLICT_ONE_IN_SHARED);
                let index = slices.len();
                let slice = give(&mut members[home], &key, index, conflicts, &measures);
                slices.push(SliceAt {
                    member: home,
                    slice,
                    namespace,
                });
            }
        }
        Ok(Self {
            measures,
            members: members.into(),
            slices,
        })
    }

    /// The members that receive a slice.
    pub(super) fn receivers(&self, at: &SliceAt) -> Box<dyn Iterator<Item = usize>> {
        if self.measures.all {
            Box::new(0..self.measures.members)
        } else {
            Box::new(homes(at.namespace, &self.measures))
        }
    }

    /// Endpoints of the clusterset.
    pub(super) fn endpoints(&self) -> usize {
        self.slices.len() * self.measures.endpoints
    }
}

fn member(index: usize, measures: &Measures) -> anyhow::Result<ShapeMember> {
    let own =
        (0..measures.namespaces).filter(|&namespace| homes(namespace, measures).any(|home| home == index));
    let names: BTreeSet<Box<str>> = own.map(|namespace| namespace_name(namespace).into()).collect();
    Ok(ShapeMember {
        cluster: ClusterId::new(&format!("member-{index:04}"))?,
        interest: if measures.all {
            Namespaces::All
        } else {
            Namespaces::Only(names)
        },
        exports: Vec::new(),
        slices: Vec::new(),
    })
}

fn give(
    member: &mut ShapeMember,
    key: &ServiceKey,
    index: usize,
    conflicts: bool,
    measures: &Measures,
) -> usize {
    member.exports.push(facts::export(key, index, conflicts));
    let name = format!("{}-{index:05}", key.name);
    member
        .slices
        .push(SliceTemplate::new(key, &name, measures.endpoints));
    member.slices.len() - 1
}

/// The members in which a namespace exists.
fn homes(namespace: usize, measures: &Measures) -> impl Iterator<Item = usize> + use<> {
    let members = measures.members;
    (0..measures.members_per_namespace).map(move |turn| (namespace + turn) % members)
}

fn namespace_name(index: usize) -> String {
    format!("team-{index:04}")
}

#[cfg(test)]
mod tests {
    use shared::model::policy::Limit;

    use super::*;
    use crate::churn::{FLEET, MESH, MESH_RATE};

    /// More than an endpoint takes in a fact.
    const WHOLE_ENDPOINT_BYTES: u64 = 200;

    fn mesh(members: usize, slices: usize) -> LoadShape {
        let measures = Measures {
            members,
            namespaces: members,
            members_per_namespace: 10.min(members),
            slices,
            endpoints: 2,
            shared: true,
            all: false,
        };
        LoadShape::new(measures).expect("valid")
    }

    #[test]
    fn every_slice_has_an_owner_and_receivers_and_nobody_is_left_out() {
        let world = mesh(25, 250);
        assert_eq!(world.slices.len(), 250);
        assert!(
            world
                .slices
                .iter()
                .all(|slice| world.receivers(slice).any(|member| member == slice.member))
        );
        let owned: usize = world.members.iter().map(|member| member.slices.len()).sum();
        assert_eq!(owned, 250);
        assert!(world.members.iter().all(|member| !member.slices.is_empty()));
        for member in world.members.iter() {
            assert!(matches!(&member.interest, Namespaces::Only(names) if names.len() == 10));
        }
    }

    /// Nobody who has what these fleets have meets a budget that no policy states.
    #[test]
    fn members_of_the_measured_fleets_are_far_below_their_budgets() {
        for (fleet, rate) in [(MESH, u64::from(MESH_RATE)), (FLEET, 100)] {
            let endpoints = fleet.endpoints as u64;
            let small = Measures {
                endpoints: 1,
                ..fleet
            };
            let world = LoadShape::new(small).expect("valid");
            for member in world.members.iter() {
                let slices = member.slices.len() as u64;
                let has = [
                    (Limit::Exports, member.exports.len() as u64),
                    (Limit::EndpointSlices, slices),
                    (Limit::Endpoints, slices * endpoints),
                    (Limit::FactBytes, slices * endpoints * WHOLE_ENDPOINT_BYTES),
                    (Limit::EventsPerMinute, rate * 60),
                ];
                for (limit, has) in has {
                    assert!(2 * has <= limit.default_most(), "{limit:?}: {has}");
                }
            }
        }
    }

    #[test]
    fn a_tenth_of_the_services_is_shared() {
        let world = mesh(25, 1_900);
        let exports: usize = world.members.iter().map(|member| member.exports.len()).sum();
        assert_eq!(exports, 1_900);
        let distinct: BTreeSet<_> = world.members.iter().flat_map(|member| &member.exports).collect();
        assert_eq!(distinct.len(), exports, "created at different times");
        // 1,000 services with one or ten exporters make 1,900 exports.
        let one_member = mesh(1, 10);
        assert_eq!(one_member.slices.len(), 10);
    }
}
