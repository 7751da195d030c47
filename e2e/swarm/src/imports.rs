//! Owns: the law on what members take, at rest: nobody holds what the policy in force does not let it take, and a loosened
//! one restores it. `taken`: whether one does, and what is sent.
//! Never: says what there should be.

use std::collections::BTreeSet;

use fold::{DerivedContent, DerivedKey};
use model::{ClusterId, ServiceKey};

use oracle::{
    is_ours,
    laws::{Guarded, Law},
    owner,
};

use super::{
    hub::Hub,
    site::{Site, all_keys},
    taken::may_take,
};

/// The kinds that agents make of an import.
const MADE: [&str; 3] = ["ServiceImport", "Service", "EndpointSlice"];

/// A cluster and an import that it may not take.
pub(super) type Withheld = BTreeSet<(ClusterId, ServiceKey)>;

/// Services that a cluster may not import by the policy in force.
pub(super) fn withheld_from(hub: &Hub, cluster: &ClusterId) -> BTreeSet<ServiceKey> {
    let Some(policy) = hub.policy() else {
        return BTreeSet::new();
    };
    all_keys()
        .filter(|service| !may_take(policy, cluster, service))
        .collect()
}

/// The imports that there are, each with the clusters that may not take it.
pub(super) fn withheld(hub: &Hub, sites: &[Site]) -> Withheld {
    let names = sites.iter().map(|site| &site.name);
    let all = names.flat_map(|cluster| {
        let services = withheld_from(hub, cluster).into_iter();
        services.map(|service| (cluster.clone(), service))
    });
    all.filter(|(_, service)| is_imported(hub, service)).collect()
}

/// **Nobody holds what it may not take**, once everything is at rest: of an import that the policy keeps from a cluster
/// nothing of ours is in it, of its own slices neither. A stranger's object keeps what is beside it as it is.
pub(super) fn nobody_holds(withheld: &Withheld, sites: &[Site], guarded: &mut Guarded) -> Result<(), String> {
    for (cluster, service) in withheld {
        let Some(site) = sites.iter().find(|site| site.name == *cluster) else {
            continue;
        };
        if site.strangers.keys().any(|(_, strange)| strange == service) {
            continue;
        }
        guarded.count(Law::Taken, 1);
        for kind in MADE {
            let objects = site.cluster.objects(kind);
            let held = objects
                .iter()
                .find(|object| is_ours(object) && owner(object).as_ref() == Some(service));
            if let Some(held) = held {
                let name = &held["metadata"]["name"];
                return Err(Law::Taken.broken(format!("{kind} {name} of {service} is in {cluster}")));
            }
        }
    }
    Ok(())
}

/// **A loosened rule restores**: how many of these imports stand again. Every cluster was compared before.
pub(super) fn restored(hub: &Hub, sites: &[Site], withheld: &Withheld) -> u64 {
    let stands = |(cluster, service): &&(ClusterId, ServiceKey)| {
        let site = sites.iter().find(|site| site.name == *cluster);
        let import = site.and_then(|site| {
            site.cluster
                .get("ServiceImport", &service.namespace, &service.name)
        });
        is_imported(hub, service) && import.as_ref().is_some_and(is_ours)
    };
    withheld.iter().filter(stands).count() as u64
}

fn is_imported(hub: &Hub, service: &ServiceKey) -> bool {
    let import = hub.state().derived(&DerivedKey::Import(service.clone()));
    import.is_some_and(|derived| matches!(derived.content, DerivedContent::Import(_)))
}
