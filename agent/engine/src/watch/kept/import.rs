//! A ServiceImport as the plan reads it.

use api::ServiceImport;

use super::{Head, Kept};
use crate::{
    convert::{condition::Transitions, import::import_of},
    plan::{Found, view::FoundImport},
};

/// The kept part of a ServiceImport.
#[derive(Debug)]
pub struct KeptImport {
    head: Head,
    found: Found<FoundImport>,
    transitions: Transitions,
}

impl Kept for KeptImport {
    type Object = ServiceImport;

    fn keep(object: ServiceImport) -> Self {
        let conditions = object.status.as_ref().map(|status| &status.conditions[..]);
        Self {
            head: Head::of(&object.metadata),
            found: import_of(&object),
            transitions: Transitions::of(conditions.unwrap_or_default()),
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

impl KeptImport {
    /// As a plan sees it.
    pub fn found(&self) -> &Found<FoundImport> {
        &self.found
    }

    /// Since when its conditions have their status.
    pub(crate) fn transitions(&self) -> &Transitions {
        &self.transitions
    }
}
