//! A member's withdrawals: exports, and slices of theirs. While a hold is in force they are *held* and count as if they
//! were still reported; otherwise they are remembered for as long as they could cause a hold. Values only: it decides
//! nothing, derives nothing, and knows no state.

use std::sync::Arc;

use model::{EndpointSlice, Export, FactKey, Revision, ServiceKey, UnixMillis, policy::Usage};

use super::{
    Map,
    recorded::{RecordedFact, first_slice_of},
};

/// The brake of a member, engaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngagedBrake {
    /// Time at which that was recorded.
    pub since: UnixMillis,
    /// Exports that it withdrew then, or was about to.
    pub removed: u32,
    /// Number of its exports before.
    pub exports: u32,
}

/// A withdrawn fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFact {
    /// The fact as it was recorded.
    pub recorded: RecordedFact,
    /// Time at which its removal was recorded.
    pub at: UnixMillis,
}

impl RemovedFact {
    fn usage(&self) -> Usage {
        Usage::of(&self.recorded.encoded())
    }
}

/// The withdrawals of one member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenBack {
    brake: Option<EngagedBrake>,
    facts: Map<FactKey, RemovedFact>,
    /// The same in the order of forgetting; nothing is forgotten while on hold.
    order: Map<(UnixMillis, FactKey), ()>,
    /// The usage of the facts, as budgets count.
    usage: Usage,
}

impl TakenBack {
    /// As a snapshot has it.
    pub(super) fn restored(brake: Option<EngagedBrake>, facts: Map<FactKey, RemovedFact>) -> Self {
        let order = match brake {
            Some(_) => Map::new(),
            None => {
                let keys = facts.iter().map(|(key, removed)| (removed.at, key.clone()));
                keys.map(|key| (key, ())).collect()
            }
        };
        let usage = facts.values().map(RemovedFact::usage);
        Self {
            usage: usage.fold(Usage::default(), Usage::and),
            brake,
            facts,
            order,
        }
    }

    /// The brake, while it is engaged.
    pub fn brake(&self) -> Option<EngagedBrake> {
        self.brake
    }

    /// Everything on hold or remembered.
    pub fn facts(&self) -> &Map<FactKey, RemovedFact> {
        &self.facts
    }

    /// Returns the usage of everything here, as budgets count.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// A fact on hold.
    pub(super) fn held(&self, key: &FactKey) -> Option<&RecordedFact> {
        self.brake?;
        Some(&self.facts.get(key)?.recorded)
    }

    /// Time at which an export that is on hold was withdrawn.
    pub fn held_since(&self, service: &ServiceKey) -> Option<UnixMillis> {
        self.brake?;
        Some(self.facts.get(&FactKey::Export(service.clone()))?.at)
    }

    /// The services whose exports are on hold.
    pub fn held_exports(&self) -> impl Iterator<Item = &ServiceKey> {
        let engaged = self.brake.is_some();
        self.exports().filter(move |_| engaged)
    }

    /// The exports on hold from a service on, each with the time of its withdrawal.
    pub fn held_exports_from(
        &self,
        first: ServiceKey,
    ) -> impl Iterator<Item = (Revision, &Arc<Export>, UnixMillis)> {
        let first = FactKey::Export(first);
        let facts = self.brake.is_some().then(|| self.facts.from(first));
        facts.into_iter().flatten().map_while(|(_, removed)| {
            let recorded = &removed.recorded;
            Some((recorded.revision, recorded.export()?, removed.at))
        })
    }

    /// The slices on hold of a service.
    pub(super) fn held_slices_of<'a>(
        &'a self,
        service: &'a ServiceKey,
    ) -> impl Iterator<Item = (Revision, &'a Arc<EndpointSlice>)> + 'a {
        let facts = self
            .brake
            .is_some()
            .then(|| self.facts.from(first_slice_of(service)));
        let slices = facts.into_iter().flatten().map_while(|(_, removed)| {
            let recorded = &removed.recorded;
            Some((recorded.revision, recorded.endpoint_slice()?))
        });
        slices.take_while(move |(_, slice)| slice.key.service == *service)
    }

    /// Number of remembered withdrawn exports.
    pub(super) fn export_count(&self) -> usize {
        self.exports().count()
    }

    fn exports(&self) -> impl Iterator<Item = &ServiceKey> {
        self.facts.keys().map_while(|key| match key {
            FactKey::Export(service) => Some(service),
            _ => None,
        })
    }

    /// Returns true if the export of this service is among them.
    pub(super) fn has_export(&self, service: &ServiceKey) -> bool {
        self.facts.contains_key(&FactKey::Export(service.clone()))
    }

    /// A fact was withdrawn.
    pub(super) fn add(&mut self, key: FactKey, recorded: RecordedFact, at: UnixMillis) {
        if self.brake.is_none() {
            self.order.insert((at, key.clone()), ());
        }
        let removed = RemovedFact { recorded, at };
        self.usage = self.usage.and(removed.usage());
        if let Some(before) = self.facts.get(&key) {
            self.usage = self.usage.without(before.usage());
        }
        self.facts.insert(key, removed);
    }

    /// A fact is reported again.
    pub(super) fn remove(&mut self, key: &FactKey) -> Option<RemovedFact> {
        let removed = self.facts.remove(key)?;
        self.usage = self.usage.without(removed.usage());
        self.order.remove(&(removed.at, key.clone()));
        Some(removed)
    }

    /// The keys of everything that is here of a service.
    pub(super) fn keys_of(&self, service: &ServiceKey) -> Vec<FactKey> {
        let export = FactKey::Export(service.clone());
        let export = self.facts.contains_key(&export).then_some(export);
        let slices = self.facts.from(first_slice_of(service)).map(|(key, _)| key);
        let slices = slices.take_while(|key| match key {
            FactKey::EndpointSlice(slice) => slice.service == *service,
            _ => false,
        });
        export.into_iter().chain(slices.cloned()).collect()
    }

    /// Forgets withdrawals up to then. None of them is on hold.
    pub(super) fn forget_until(&mut self, then: UnixMillis) {
        let due = self.order.keys().take_while(|(at, _)| *at <= then);
        let due: Vec<(UnixMillis, FactKey)> = due.cloned().collect();
        for one in due {
            if let Some(gone) = self.facts.remove(&one.1) {
                self.usage = self.usage.without(gone.usage());
            }
            self.order.remove(&one);
        }
    }

    /// From here on everything is on hold.
    pub(super) fn engage(&mut self, brake: EngagedBrake) {
        self.brake = Some(brake);
        self.order = Map::new();
    }

    /// In another epoch its revisions mean nothing.
    pub(super) fn begin_epoch(&mut self) {
        self.facts = self
            .facts
            .with(|removed| removed.recorded.revision = Revision::default());
    }
}
