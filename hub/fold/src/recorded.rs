//! A stored fact: the current one of its key, or a withdrawn one. Values only.

use std::sync::Arc;

use bytes::Bytes;
use model::{
    ClusterProperty, EncodedFact, EndpointSlice, Export, Fact, FactHash, FactKey, Health, Revision,
    ServiceKey, SliceKey,
};

/// The current fact of one key, and where it was recorded. Never a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFact {
    /// Revision of the event that recorded it.
    pub revision: Revision,
    /// Hash of the bytes that were sent.
    pub hash: FactHash,
    /// The bytes that were sent. They are stored without any structure around them.
    pub bytes: Bytes,
    reported: Reported,
}

/// A member's possible report about a key, for the kinds with a current fact. Other facts are large, and there are many
/// of these.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reported {
    Export(Arc<Export>),
    EndpointSlice(Arc<EndpointSlice>),
    ClusterProperty(Arc<ClusterProperty>),
    Health(Arc<Health>),
}

impl RecordedFact {
    /// `None`: the kind has no current fact.
    pub(super) fn new(fact: &EncodedFact, revision: Revision) -> Option<Self> {
        let reported = match &fact.fact {
            Fact::ExportUpserted(export) => Reported::Export(export.clone()),
            Fact::EndpointSliceUpserted(slice) => Reported::EndpointSlice(slice.clone()),
            Fact::ClusterPropertyUpserted(property) => Reported::ClusterProperty(property.clone()),
            Fact::HealthReported(health) => Reported::Health(health.clone()),
            _ => return None,
        };
        Some(Self {
            revision,
            hash: fact.hash,
            bytes: fact.bytes.clone(),
            reported,
        })
    }

    /// The fact with its bytes.
    pub fn encoded(&self) -> EncodedFact {
        EncodedFact {
            fact: match &self.reported {
                Reported::Export(export) => Fact::ExportUpserted(export.clone()),
                Reported::EndpointSlice(slice) => Fact::EndpointSliceUpserted(slice.clone()),
                Reported::ClusterProperty(property) => Fact::ClusterPropertyUpserted(property.clone()),
                Reported::Health(health) => Fact::HealthReported(health.clone()),
            },
            bytes: self.bytes.clone(),
            hash: self.hash,
        }
    }

    /// Its export, if it is one.
    pub fn export(&self) -> Option<&Arc<Export>> {
        match &self.reported {
            Reported::Export(export) => Some(export),
            _ => None,
        }
    }

    /// Its slice, if it is one.
    pub fn endpoint_slice(&self) -> Option<&Arc<EndpointSlice>> {
        match &self.reported {
            Reported::EndpointSlice(slice) => Some(slice),
            _ => None,
        }
    }

    /// Its property, if it is one.
    pub fn property(&self) -> Option<&Arc<ClusterProperty>> {
        match &self.reported {
            Reported::ClusterProperty(property) => Some(property),
            _ => None,
        }
    }

    /// Its health, if it is one.
    pub fn health(&self) -> Option<&Arc<Health>> {
        match &self.reported {
            Reported::Health(health) => Some(health),
            _ => None,
        }
    }
}

/// A key before those of all slices of a service; none has it.
pub(super) fn first_slice_of(service: &ServiceKey) -> FactKey {
    FactKey::EndpointSlice(SliceKey {
        service: service.clone(),
        name: "".into(),
    })
}
