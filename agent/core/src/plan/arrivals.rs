//! Owns: in which clusters this cluster's exports arrived, as hubs said, the one before this one included.
//! Never: decides anything but the words of a condition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{Arrival, Lack, ServiceKey, fact::MEMBER_FACTS_MAX, sync::ArrivedServices};

/// The last word of a hub on each export.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals(BTreeMap<ServiceKey, Arc<Arrival>>);

impl Arrivals {
    /// Takes what a hub says, and returns the services of which it is news. What that hub does not know, because it started
    /// or a cluster is away, stays as it was said before. Beyond as many exports as a member may have it takes no more.
    pub(super) fn hear(&mut self, groups: Vec<ArrivedServices>) -> BTreeSet<ServiceKey> {
        let mut news = BTreeSet::new();
        for ArrivedServices { services, arrival } in groups {
            for service in services {
                let before = self.0.get(&service);
                let arrival = match before {
                    Some(before) if arrival.has(Lack::NotKnown) => {
                        Arc::new(Arrival::clone(&arrival).or_as_before(before))
                    }
                    _ => arrival.clone(),
                };
                let has_room = before.is_some() || self.0.len() < MEMBER_FACTS_MAX;
                if before != Some(&arrival) && has_room {
                    self.0.insert(service.clone(), arrival);
                    news.insert(service);
                }
            }
        }
        news
    }

    /// The last word of a hub on a service.
    pub(super) fn of(&self, service: &ServiceKey) -> Option<&Arrival> {
        self.0.get(service).map(|arrival| &**arrival)
    }

    /// The hub has no word on the export any more.
    pub(super) fn forget(&mut self, service: &ServiceKey) {
        self.0.remove(service);
    }

    /// Keeps those of which the hub has a word.
    pub(super) fn keep(&mut self, keep: impl Fn(&ServiceKey) -> bool) {
        self.0.retain(|service, _| keep(service));
    }
}
