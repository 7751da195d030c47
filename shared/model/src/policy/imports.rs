//! The imports that one member takes. It is asked about every change, so that the rules are matched with the member once.

use std::sync::Arc;

use super::ServiceRule;
use crate::ServiceKey;

/// The import rules for one member together.
#[derive(Debug, Clone, Default)]
pub struct Imports {
    /// The patterns of each rule on imports, in the order of the policy; `None`: none does.
    rules: Option<Vec<Arc<[ServiceRule]>>>,
}

impl Imports {
    /// The imports that these rules allow together; without any, everything.
    pub(super) fn of(rules: impl Iterator<Item = Arc<[ServiceRule]>>) -> Self {
        let rules: Vec<_> = rules.collect();
        Self {
            rules: (!rules.is_empty()).then_some(rules),
        }
    }

    /// Returns true if it accepts the import of a service.
    pub fn allow(&self, service: &ServiceKey) -> bool {
        self.entries()
            .is_none_or(|mut entries| entries.any(|one| one.matches(service)))
    }

    fn entries(&self) -> Option<impl Iterator<Item = &ServiceRule>> {
        Some(self.rules.as_ref()?.iter().flat_map(|list| list.iter()))
    }
}

/// The same is taken, in whatever rules that is written.
impl PartialEq for Imports {
    fn eq(&self, other: &Self) -> bool {
        match (self.entries(), other.entries()) {
            (Some(own), Some(others)) => own.eq(others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }
}

impl Eq for Imports {}
