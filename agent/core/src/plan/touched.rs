//! Owns: which services a change of the desired state concerns.
//! Never: decides what is done about them.

use std::collections::BTreeSet;

use model::ServiceKey;

use super::sources::Settling;

/// The services to plan again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// These.
    Services(BTreeSet<ServiceKey>),
    /// The conditions of these exports, and nothing that a position waits for.
    Exports(BTreeSet<ServiceKey>),
    /// All in these namespaces.
    Namespaces(BTreeSet<Box<str>>),
    /// Services with objects from these clusters.
    Sources(Settling),
    /// Every one that is desired or observed.
    All,
}

impl Touched {
    /// Nothing.
    pub fn none() -> Self {
        Self::Services(BTreeSet::new())
    }
}
