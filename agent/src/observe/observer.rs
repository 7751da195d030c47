//! Looks at the services whose objects changed and states their facts to the outbox.
//! It owns which facts were stated for which service, and the verdicts on exports. It decides no conflict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::{
    api::convert::{NamespaceDenyList, property_from},
    model::{ClusterProperty, EncodedFact, Fact, FactKey, ListingGroup, ServiceKey},
    wire::encode_fact,
};
use tracing::warn;

use super::join::{Joined, Objects, join};
use crate::{
    outbox::Outbox,
    plan::{InvalidReason, Validity},
    watch::Cache,
};

/// The verdicts on this cluster's ServiceExports, as the plan reads them. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Verdicts(Arc<Mutex<BTreeMap<ServiceKey, Verdict>>>);

/// A verdict of the agent, and one of the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Verdict {
    own: Validity,
    refused: Option<Box<str>>,
}

impl Verdicts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ServiceKey, Verdict>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verdict on one export.
    pub fn get(&self, service: &ServiceKey) -> Validity {
        match self.all().get(service) {
            None => Validity::Unknown,
            Some(Verdict {
                own: Validity::Valid,
                refused: Some(message),
            }) => Validity::Invalid {
                reason: InvalidReason::InvalidExport,
                message: message.clone(),
            },
            Some(verdict) => verdict.own.clone(),
        }
    }

    /// The hub's refusal of an export's fact, or that it is not refused. Returns whether that is news.
    pub fn set_refused(&self, service: &ServiceKey, refused: Option<&str>) -> bool {
        let mut all = self.all();
        let Some(verdict) = all.get_mut(service) else {
            return false;
        };
        let news = verdict.refused.as_deref() != refused;
        verdict.refused = refused.map(Into::into);
        news
    }

    /// The agent's own verdict. Returns whether it is news.
    fn set_own(&self, service: &ServiceKey, own: Option<Validity>) -> bool {
        let mut all = self.all();
        match own {
            None => all.remove(service).is_some(),
            Some(own) => {
                let verdict = all.entry(service.clone()).or_default();
                let news = verdict.own != own;
                verdict.own = own;
                news
            }
        }
    }
}

/// The observer.
#[derive(Debug)]
pub struct Observer {
    deny: NamespaceDenyList,
    verdicts: Verdicts,
    /// The keys that were stated for each service.
    stated: BTreeMap<ServiceKey, BTreeSet<FactKey>>,
    stated_properties: BTreeSet<FactKey>,
    bad: BTreeSet<(ServiceKey, String)>,
}

impl Observer {
    /// An observer that has stated nothing.
    pub fn new(deny: NamespaceDenyList, verdicts: Verdicts) -> Self {
        Self {
            deny,
            verdicts,
            stated: BTreeMap::new(),
            stated_properties: BTreeSet::new(),
            bad: BTreeSet::new(),
        }
    }

    /// Looks at one service. Returns whether the verdict on its export changed.
    /// Called only when every kind of the group is listed: otherwise "there is no Service" would be a guess.
    pub fn look(&mut self, service: &ServiceKey, cache: &Cache, outbox: &mut Outbox) -> bool {
        let (namespace, name) = (&*service.namespace, &*service.name);
        let slices: Vec<_> = cache.slices_of(service).cloned().collect();
        let objects = Objects {
            export: cache.exports.find(namespace, name).map(Arc::as_ref),
            service: cache.services.find(namespace, name).map(Arc::as_ref),
            slices: slices.iter().map(Arc::as_ref).collect(),
        };
        let joined = join(service, &objects, &self.deny);
        self.report_bad_slices(service, &joined);
        let own = joined.export.map(|verdict| match verdict {
            Ok(()) => Validity::Valid,
            Err(problem) => Validity::Invalid {
                reason: invalid_reason(problem.reason()),
                message: problem.to_string().into(),
            },
        });
        self.state(service, joined.facts, outbox);
        let news = self.verdicts.set_own(service, own);
        let refusal = outbox.refusal(&FactKey::Export(service.clone()));
        let refused = refusal.map(|refusal| &*refusal.message);
        self.verdicts.set_refused(service, refused) || news
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
    pub fn look_at_properties(&mut self, cache: &Cache, outbox: &mut Outbox) {
        if !cache.properties.is_listed() {
            return;
        }
        let mut stated = BTreeSet::new();
        for (_, property) in cache.properties.iter() {
            match property_from(property) {
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

    /// Marks the groups complete whose watches are all listed.
    pub fn complete(&self, cache: &Cache, exports_looked_at: bool, health_known: bool, outbox: &mut Outbox) {
        if exports_looked_at && !outbox.is_complete(ListingGroup::Exports) {
            outbox.complete(ListingGroup::Exports);
        }
        let properties = cache.properties.is_listed() && health_known;
        if properties && !outbox.is_complete(ListingGroup::Properties) {
            outbox.complete(ListingGroup::Properties);
        }
    }
}

fn property_fact(property: ClusterProperty) -> (FactKey, EncodedFact) {
    let key = FactKey::ClusterProperty(property.name.clone());
    (
        key,
        encode_fact(&Fact::ClusterPropertyUpserted(Arc::new(property))),
    )
}

fn invalid_reason(reason: &str) -> InvalidReason {
    use InvalidReason::{InvalidExport, InvalidServiceType, NamespaceDenied, NoService};
    let all = [NoService, InvalidServiceType, NamespaceDenied];
    all.into_iter()
        .find(|known| known.as_str() == reason)
        .unwrap_or(InvalidExport)
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
