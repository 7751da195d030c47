//! A ServiceExport as facts and the plan read it.

use api::ServiceExport;
use kube_core::ObjectMeta;
use model::ChangedBy;

use super::{Head, Kept};
use crate::{
    convert::{
        changed_by::changed_by,
        condition::{Transitions, conditions_from},
        owned::OwnedFields,
    },
    plan::content::Condition,
};

/// The kept part of a ServiceExport.
#[derive(Debug)]
pub struct KeptExport {
    head: Head,
    exported: Box<ServiceExport>,
    changed_by: Option<ChangedBy>,
    conditions: Vec<Condition>,
    transitions: Transitions,
}

impl Kept for KeptExport {
    type Object = ServiceExport;

    fn keep(object: ServiceExport) -> Self {
        let status = object.status.as_ref();
        let conditions = status.map(|status| &status.conditions[..]).unwrap_or_default();
        Self {
            head: Head::of(&object.metadata),
            conditions: conditions_from(&OwnedFields::of_status(&object), conditions),
            transitions: Transitions::of(conditions),
            changed_by: changed_by(&object.metadata),
            exported: Box::new(stripped(object)),
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

impl KeptExport {
    /// The part that a fact is made from: all but the status and what others noted on the object.
    pub fn exported(&self) -> &ServiceExport {
        &self.exported
    }

    /// The last writer, conditions left out.
    pub fn changed_by(&self) -> Option<&ChangedBy> {
        self.changed_by.as_ref()
    }

    /// The conditions that are the agent's.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Since when its conditions have their status.
    pub(crate) fn transitions(&self) -> &Transitions {
        &self.transitions
    }
}

fn stripped(export: ServiceExport) -> ServiceExport {
    let meta = export.metadata;
    ServiceExport {
        metadata: ObjectMeta {
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            generation: meta.generation,
            creation_timestamp: meta.creation_timestamp,
            deletion_timestamp: meta.deletion_timestamp,
            ..ObjectMeta::default()
        },
        spec: export.spec,
        status: None,
    }
}
