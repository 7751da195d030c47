//! Owns: what the clusters of a world are compared with: the oracle, who counts beside the clusters or not at all, and
//! what strangers made.
//! Never: knows facts, revisions or what the hub derives.

use std::collections::{BTreeMap, BTreeSet};

use fold::Member;
use model::{ClusterId, ServiceKey};
use serde_json::Value;

use oracle::{self, Judgement, Object, Picture};

use super::{
    held::HeldExports,
    hostile::{self, OWN_RANGE, SPECIAL, recorded},
    hub::Hub,
    imports, refusals,
    site::Site,
};

/// Further circumstances of clusters' expected state, beside their own objects: operators' decisions, and records of
/// members that have no cluster, or whose reports wait in part.
#[derive(Debug, Default)]
pub(super) struct Circumstances {
    /// In the place of what their clusters declare.
    recorded: BTreeMap<String, Picture>,
    /// Those of them of which something waits: what their exports come to elsewhere may be older than what is recorded.
    waiting: BTreeSet<String>,
    /// Clusters whose exports a policy refuses.
    denied: Vec<String>,
    /// The member whose export of a service is first though it is not the oldest.
    held: BTreeMap<ServiceKey, String>,
    /// Services that a policy keeps from clusters.
    withheld: BTreeMap<String, BTreeSet<ServiceKey>>,
    /// Withdrawals of clusters that still count.
    taken_back: HeldExports,
}

impl Circumstances {
    /// Those under which this hub derives.
    pub(super) fn of(hub: &Hub, taken_back: HeldExports) -> Self {
        let members = || {
            hub.state()
                .members()
                .iter()
                .filter(|(_, member)| member.is_current())
        };
        let waits = |cluster: &ClusterId| {
            hub.policy().is_some_and(|policy| {
                let mut budgets = policy
                    .rules
                    .iter()
                    .filter(|rule| rule.budget != Default::default());
                budgets.any(|rule| rule.members.iter().any(|one| one.to_string() == cluster.as_str()))
            })
        };
        let apart = members().filter(|(cluster, _)| cluster.as_str() == hostile::NAME || waits(cluster));
        Self {
            recorded: apart
                .map(|(cluster, member)| (cluster.to_string(), picture_of(hub, cluster, member)))
                .collect(),
            waiting: members()
                .filter(|(cluster, _)| !hub.listed().contains(*cluster))
                .map(|(cluster, _)| cluster.to_string())
                .collect(),
            denied: members()
                .filter(|(cluster, _)| refusals::is_refused(hub, cluster))
                .map(|(cluster, _)| cluster.to_string())
                .collect(),
            held: hub
                .kept_first()
                .map(|(service, cluster)| (service.clone(), cluster.to_string()))
                .collect(),
            withheld: members()
                .map(|(cluster, _)| (cluster.to_string(), imports::withheld_from(hub, cluster)))
                .filter(|(_, services)| !services.is_empty())
                .collect(),
            taken_back,
        }
    }

    /// Nothing but the clusters' own objects decides.
    pub(super) fn is_ordinary(&self) -> bool {
        let own = self.recorded.is_empty() && self.denied.is_empty() && self.held.is_empty();
        own && self.withheld.is_empty() && self.taken_back.is_empty()
    }

    /// Something counts that was taken back.
    pub(super) fn holds(&self) -> bool {
        !self.taken_back.is_empty()
    }

    /// The counting members: the present clusters, each in its circumstances.
    fn members(&self, places: &[Picture]) -> Vec<Picture> {
        let own = places
            .iter()
            .filter(|place| !self.recorded.contains_key(&place.cluster));
        own.chain(self.recorded.values())
            .cloned()
            .map(|picture| self.with_taken_back(self.circumscribe(picture)))
            .collect()
    }

    fn with_taken_back(&self, picture: Picture) -> Picture {
        let held = self.taken_back.get(&picture.cluster).into_iter().flatten();
        held.fold(picture, |picture, (service, then)| match then {
            Some(then) => picture.with_taken_back(service, then),
            None => picture,
        })
    }

    /// Returns true if what a service must be is known where an export of it was taken back: not in the cluster that
    /// did, nor where nobody knows what that had of it.
    fn knows(&self, place: &Picture, service: &ServiceKey) -> bool {
        let mut held = self
            .taken_back
            .iter()
            .filter_map(|(cluster, held)| Some((cluster, held.get(service)?)));
        held.all(|(cluster, then)| then.is_some() && *cluster != place.cluster)
    }

    fn circumscribe(&self, mut picture: Picture) -> Picture {
        picture.denied = self.denied.contains(&picture.cluster);
        let held = self.held.iter().filter(|(_, holder)| **holder == picture.cluster);
        picture.held = held.map(|(service, _)| service.clone()).collect();
        picture.withheld = self.withheld.get(&picture.cluster).cloned().unwrap_or_default();
        picture
    }

    /// Returns true if a member with waiting items takes part in a service, or took part in it and still has objects
    /// somewhere: nothing that came from it may go before it has listed, though a hub that began anew has nothing of
    /// it.
    fn waits(&self, service: &ServiceKey, places: &[Picture]) -> bool {
        let mut waiting = self
            .recorded
            .values()
            .filter(|picture| self.waiting.contains(&picture.cluster));
        waiting.any(|picture| {
            let shown = |place: &Picture| oracle::shows(place, service, &picture.cluster);
            picture.exports(service) || places.iter().any(shown)
        })
    }

    /// Returns true if all can be said of an object in a cluster: what waits at it stands in its own objects otherwise
    /// than at others.
    fn judges(&self, place: &Picture, object: &Object, places: &[Picture]) -> bool {
        let own = self.recorded.contains_key(&place.cluster) && place.exports(object.service());
        let known = self.knows(place, object.service());
        !(own || !known || matches!(object, Object::Import(_)) && self.waits(object.service(), places))
    }
}

fn picture_of(hub: &Hub, cluster: &ClusterId, member: &Member) -> Picture {
    let rules = hub.policy().and_then(|policy| policy.ranges_of(cluster));
    let own = OWN_RANGE.trim_end_matches("0.0/16");
    let passes = |address: &str| !SPECIAL.contains(&address) && (rules.is_none() || address.starts_with(own));
    recorded(cluster, member, passes)
}

/// One cluster's objects at this moment.
pub(super) fn picture(site: &Site) -> Picture {
    Picture::of(site.name.as_str(), |kind| site.cluster.objects(kind))
}

/// Compares every cluster with what it must hold. The first difference comes back in words.
pub(super) fn judge(sites: &[Site], circumstances: &Circumstances) -> Result<Judgement, String> {
    let places: Vec<Picture> = sites
        .iter()
        .map(|site| circumstances.circumscribe(picture(site)))
        .collect();
    let mut judgement = oracle::judge_among(&circumstances.members(&places), &places);
    judgement.verdicts.retain(|(cluster, object), _| {
        places
            .iter()
            .any(|place| place.cluster == *cluster && circumstances.judges(place, object, &places))
    });
    if let Some(wrong) = judgement.wrong().next() {
        return Err(wrong);
    }
    nobody_is_lost(&places, circumstances)?;
    sites.iter().try_for_each(strangers_are_untouched)?;
    Ok(judgement)
}

/// If something of one member waits, the import may be of another shape than it will be; every other exporter of the
/// service is in it nevertheless.
fn nobody_is_lost(places: &[Picture], circumstances: &Circumstances) -> Result<(), String> {
    let services: BTreeSet<ServiceKey> = places.iter().flat_map(Picture::services).collect();
    let waits = |service: &&ServiceKey| circumstances.waits(service, places);
    for service in services.iter().filter(waits) {
        let apart = |place: &&Picture| !circumstances.recorded.contains_key(&place.cluster);
        for other in places
            .iter()
            .filter(apart)
            .filter(|other| oracle::is_valid(other, service))
        {
            let lacks = |place: &&Picture| oracle::lacks(place, service, &other.cluster);
            if let Some(place) = places.iter().find(lacks) {
                return Err(format!("{service} in {} lacks {}", place.cluster, other.cluster));
            }
        }
    }
    Ok(())
}

/// A type that changes and the like is nobody's business; what its maker wrote is.
fn strangers_are_untouched(site: &Site) -> Result<(), String> {
    for ((kind, service), made) in &site.strangers {
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let found = site.cluster.get(kind, &service.namespace, name);
        let same = |found: &Value| found["spec"] == made["spec"];
        if !found.as_ref().is_some_and(same) {
            return Err(format!(
                "{service} in {}: a stranger's {kind} was touched",
                site.name
            ));
        }
    }
    Ok(())
}
