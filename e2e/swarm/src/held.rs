//! Owns: the law on members that took back most of their exports at once: what is held stays, its endpoints where nobody else
//! answers, and what the clusters had of it before.
//! Never: says who is to be held, or how the hub comes to it.

use std::collections::{BTreeMap, BTreeSet};

use fold::{DerivedContent, DerivedKey};
use model::{ClusterId, ServiceKey, UnixMillis};

use oracle::{
    Picture,
    laws::{Guarded, Law},
};

use super::{hub::Hub, lost, refusals};

/// Counted exports of each member on hold at the last look, and the begin of the hold.
#[derive(Debug, Default)]
pub(super) struct HeldBefore(BTreeMap<ClusterId, (UnixMillis, BTreeSet<ServiceKey>)>);

/// Clusters' exports when their definition was deleted, if nobody had touched it since everything was at rest: the hub
/// has just these.
#[derive(Debug, Default)]
pub(super) struct Definitions(BTreeMap<(String, ServiceKey), Picture>);

/// The exports of members that are held, each with what its cluster had of it, if that is known.
pub(super) type HeldExports = BTreeMap<String, BTreeMap<ServiceKey, Option<Picture>>>;

impl HeldBefore {
    /// **What is held stays**: while the brake of a member is engaged, each of its exports counts that counted before, or
    /// came since, unless it is denied; and its endpoints are beside those of nobody.
    pub(super) fn look(&mut self, hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
        let mut now = BTreeMap::new();
        for (cluster, member) in hub.state().members().iter() {
            let Some(brake) = member.taken_back().brake() else {
                continue;
            };
            let broken = |service: &ServiceKey, why: &str| {
                Err(Law::Held.broken(format!("{service} of {cluster}, which is held: {why}")))
            };
            let counted: BTreeSet<ServiceKey> = member.counted_services().cloned().collect();
            if let Some((_, before)) = self.0.get(cluster).filter(|(since, _)| *since == brake.since)
                && let Some(gone) = before.difference(&counted).next()
            {
                return broken(gone, "it counts no more, and nobody let it go");
            }
            for service in member.taken_back().held_exports() {
                guarded.count(Law::Held, 1);
                let denied = refusals::is_denied(hub.policy(), cluster, service);
                if !denied && !is_imported(hub, cluster, service) {
                    return broken(service, "the import does not have it");
                }
                if is_served_by_others(hub, service) && lost::has_slices(hub, cluster, service) {
                    return broken(service, "its endpoints stand beside those of others");
                }
            }
            now.insert(cluster.clone(), (brake.since, counted));
        }
        self.0 = now;
        Ok(())
    }

    /// Another hub begins, perhaps with less than the one before had decided.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Returns true if a member answers that is not lost, and whose export nobody holds.
fn is_served_by_others(hub: &Hub, service: &ServiceKey) -> bool {
    hub.state().members().iter().any(|(other, member)| {
        let counts = member.is_current() && !member.is_withdrawn();
        let held = member.taken_back().held_since(service).is_some();
        counts && !held && lost::has_ready(hub, other, service)
    })
}

fn is_imported(hub: &Hub, cluster: &ClusterId, service: &ServiceKey) -> bool {
    let import = hub.state().derived(&DerivedKey::Import(service.clone()));
    import.is_some_and(|derived| match &derived.content {
        DerivedContent::Import(import) => import.clusters.contains_key(cluster),
        _ => false,
    })
}

impl Definitions {
    /// The definition of exports is about to go from a cluster that is so; of what was touched since the last rest the hub
    /// may know something older.
    pub(super) fn goes(&mut self, picture: &Picture, touched: &BTreeSet<ServiceKey>) {
        for service in picture
            .services()
            .into_iter()
            .filter(|service| picture.exports(service))
        {
            let key = (picture.cluster.clone(), service);
            if touched.contains(&key.1) {
                self.0.remove(&key);
            } else {
                self.0.insert(key, picture.clone());
            }
        }
    }

    /// Nothing of that is known any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The exports that a hub holds. Where others answer, nobody has the endpoints.
    pub(super) fn held(&self, hub: &Hub) -> HeldExports {
        let mut held = HeldExports::new();
        for (cluster, member) in hub.state().members().iter() {
            for service in member.taken_back().held_exports() {
                let known = self.0.get(&(cluster.to_string(), service.clone())).cloned();
                let yields = is_served_by_others(hub, service);
                let known = known.map(|picture| {
                    if yields {
                        picture.without_slices(service)
                    } else {
                        picture
                    }
                });
                let of_cluster = held.entry(cluster.to_string()).or_default();
                of_cluster.insert(service.clone(), known);
            }
        }
        held
    }
}
