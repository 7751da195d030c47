//! Looks at the services whose objects changed and states their facts to the outbox.
//! It owns which facts were stated for which service. It decides no conflict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use shared::{
    api::{
        ClusterProperty as ClusterPropertyObject,
        convert::{NamespaceDenyList, property_from},
    },
    model::{ClusterProperty, EncodedFact, Fact, FactKey, ServiceKey},
    wire::encode_fact,
};
use tracing::warn;

use super::join::{Joined, Objects, join};
use crate::{
    outbox::Outbox,
    watch::{Watched, Watches},
};

/// The observer.
#[derive(Debug)]
pub struct Observer {
    deny: NamespaceDenyList,
    /// The keys that were stated for each service.
    stated: BTreeMap<ServiceKey, BTreeSet<FactKey>>,
    stated_properties: BTreeSet<FactKey>,
    bad: BTreeSet<(ServiceKey, String)>,
}

impl Observer {
    /// An observer that has stated nothing.
    pub fn new(deny: NamespaceDenyList) -> Self {
        Self {
            deny,
            stated: BTreeMap::new(),
            stated_properties: BTreeSet::new(),
            bad: BTreeSet::new(),
        }
    }

    /// Looks at one service. Called only when every kind of the group is listed: otherwise "there is no Service"
    /// would be a guess.
    pub fn look(&mut self, service: &ServiceKey, watches: &Watches, outbox: &mut Outbox) {
        let (namespace, name) = (&*service.namespace, &*service.name);
        let export = watches.exports.get(namespace, name);
        let local = watches.services.get(namespace, name);
        let slices = watches.slices.of_service(service);
        let objects = Objects {
            export: export.as_deref(),
            service: local.as_deref(),
            slices: slices.iter().map(Arc::as_ref).collect(),
        };
        let joined = join(service, &objects, &self.deny);
        self.report_bad_slices(service, &joined);
        self.state(service, joined.facts, outbox);
    }

    fn state(&mut self, service: &ServiceKey, facts: BTreeMap<FactKey, EncodedFact>, outbox: &mut Outbox) {
        let stated: BTreeSet<FactKey> = facts.keys().cloned().collect();
        let before = match stated.is_empty() {
            true => self.stated.remove(service),
            false => self.stated.insert(service.clone(), stated.clone()),
        };
        // Slices go before their export, and come after it: nobody sees a slice of a service that is not there.
        let before = before.unwrap_or_default();
        for gone in before.iter().rev().filter(|key| !stated.contains(key)) {
            outbox.set(gone.clone(), None);
        }
        for (key, fact) in facts {
            outbox.set(key, Some(fact));
        }
    }

    fn report_bad_slices(&mut self, service: &ServiceKey, joined: &Joined) {
        for (slice, problem) in &joined.bad_slices {
            if self.bad.insert((service.clone(), slice.clone())) {
                warn!(%service, slice, problem, "this EndpointSlice is not reported");
            }
        }
        self.bad
            .retain(|(of, slice)| of != service || joined.bad_slices.iter().any(|(bad, _)| bad == slice));
    }

    /// States the ClusterProperties.
    pub fn look_at_properties(&mut self, properties: &Watched<ClusterPropertyObject>, outbox: &mut Outbox) {
        let mut stated = BTreeSet::new();
        for property in properties.all() {
            match property_from(&property) {
                Ok(property) => {
                    let (key, fact) = property_fact(property);
                    stated.insert(key.clone());
                    outbox.set(key, Some(fact));
                }
                Err(problem) => {
                    let name = property.metadata.name.as_deref().unwrap_or_default();
                    warn!(property = name, %problem, "this ClusterProperty is not reported");
                }
            }
        }
        for gone in self.stated_properties.difference(&stated) {
            outbox.set(gone.clone(), None);
        }
        self.stated_properties = stated;
    }
}

fn property_fact(property: ClusterProperty) -> (FactKey, EncodedFact) {
    let key = FactKey::ClusterProperty(property.name.clone());
    (
        key,
        encode_fact(&Fact::ClusterPropertyUpserted(Arc::new(property))),
    )
}

/// The removal of what a key names, as the outbox sends it. Health is never removed.
pub fn removal(key: &FactKey) -> EncodedFact {
    encode_fact(&match key {
        FactKey::Export(service) => Fact::ExportRemoved(service.clone()),
        FactKey::EndpointSlice(slice) => Fact::EndpointSliceRemoved(slice.clone()),
        FactKey::ClusterProperty(name) => Fact::ClusterPropertyRemoved(name.clone()),
        FactKey::Health => unreachable!("health is only ever replaced"),
    })
}
