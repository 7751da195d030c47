//! Budgets: how much one member may have recorded at a time, and how often it may change that. Verdicts only: who counts,
//! and what becomes of what is over a budget, is the hub's.

use std::array;

use super::super::{EncodedFact, Fact};

/// A limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// ServiceExports.
    Exports,
    /// EndpointSlices.
    EndpointSlices,
    /// Endpoints in all slices together.
    Endpoints,
    /// ClusterProperties.
    Properties,
    /// Bytes of all facts as they were sent, health included.
    FactBytes,
    /// Facts recorded in a minute: as many at once, and then as many a minute.
    EventsPerMinute,
}

impl Limit {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Exports,
        Self::EndpointSlices,
        Self::Endpoints,
        Self::Properties,
        Self::FactBytes,
        Self::EventsPerMinute,
    ];

    /// The field of a policy that sets it.
    pub fn field(self) -> &'static str {
        match self {
            Self::Exports => "exports",
            Self::EndpointSlices => "endpointSlices",
            Self::Endpoints => "endpoints",
            Self::Properties => "properties",
            Self::FactBytes => "factBytes",
            Self::EventsPerMinute => "eventsPerMinute",
        }
    }

    /// The counted things, in words.
    pub fn what(self) -> &'static str {
        match self {
            Self::Exports => "ServiceExports",
            Self::EndpointSlices => "EndpointSlices",
            Self::Endpoints => "endpoints",
            Self::Properties => "ClusterProperties",
            Self::FactBytes => "bytes of facts",
            Self::EventsPerMinute => "changes a minute",
        }
    }

    /// The limit if no policy states one: far above the use of a cluster in the measured fleets.
    pub fn default_most(self) -> u64 {
        match self {
            Self::Exports => 10_000,
            Self::EndpointSlices => 50_000,
            Self::Endpoints => 1_000_000,
            Self::Properties => 1_000,
            Self::FactBytes => 256 * 1024 * 1024,
            Self::EventsPerMinute => 60_000,
        }
    }
}

/// The budget of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget([u64; Limit::ALL.len()]);

impl Default for Budget {
    fn default() -> Self {
        Self(Limit::ALL.map(Limit::default_most))
    }
}

impl Budget {
    /// The most of this that it allows.
    pub fn most(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// The budget from several rules: of each limit the most that one of them states, or else the default.
    pub fn of<'a>(rules: impl Iterator<Item = &'a BudgetRule>) -> Self {
        let stated = rules.fold(BudgetRule::default(), |one, other| {
            BudgetRule(array::from_fn(|index| one.0[index].max(other.0[index])))
        });
        Self(Limit::ALL.map(|limit| stated.0[limit as usize].unwrap_or(limit.default_most())))
    }

    /// The first limit that is passed when `usage` becomes `next`: one that grows, and beyond what is allowed.
    pub fn passed(&self, usage: &Usage, next: &Usage) -> Option<Limit> {
        let counted = Limit::ALL
            .into_iter()
            .filter(|limit| *limit != Limit::EventsPerMinute);
        counted
            .into_iter()
            .find(|limit| next.of_limit(*limit) > self.most(*limit).max(usage.of_limit(*limit)))
    }
}

/// A rule's limits; the missing ones are left to other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetRule([Option<u64>; Limit::ALL.len()]);

impl BudgetRule {
    /// With this limit besides.
    pub fn with(mut self, limit: Limit, most: Option<u64>) -> Self {
        self.0[limit as usize] = most;
        self
    }
}

/// A member's use of its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage([u64; Limit::ALL.len()]);

impl Usage {
    /// The usage of one fact. A removal takes nothing.
    pub fn of(fact: &EncodedFact) -> Self {
        let mut usage = Self::default();
        let mut count = |limit: Limit, much: usize| usage.0[limit as usize] = much as u64;
        match &fact.fact {
            Fact::ExportUpserted(_) => count(Limit::Exports, 1),
            Fact::EndpointSliceUpserted(slice) => {
                count(Limit::EndpointSlices, 1);
                count(Limit::Endpoints, slice.endpoints.len());
            }
            Fact::ClusterPropertyUpserted(_) => count(Limit::Properties, 1),
            Fact::HealthReported(_) => {}
            _ => return usage,
        }
        count(Limit::FactBytes, fact.bytes.len());
        usage
    }

    /// The amount that counts for this limit.
    pub fn of_limit(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self(array::from_fn(|index| {
            self.0[index].saturating_add(other.0[index])
        }))
    }

    /// The usage without the other.
    pub fn without(self, other: Self) -> Self {
        Self(array::from_fn(|index| {
            self.0[index].saturating_sub(other.0[index])
        }))
    }

    /// Returns true if any amount is less than before.
    pub fn is_less_than(&self, before: &Self) -> bool {
        self.0.iter().zip(before.0).any(|(now, before)| *now < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(exports: u64, endpoints: u64) -> Usage {
        let mut usage = Usage::default();
        usage.0[Limit::Exports as usize] = exports;
        usage.0[Limit::Endpoints as usize] = endpoints;
        usage
    }

    #[test]
    fn rules_give_the_most_that_one_of_them_states_and_else_the_default() {
        let low = BudgetRule::default().with(Limit::Exports, Some(2));
        let high = BudgetRule::default()
            .with(Limit::Exports, Some(5))
            .with(Limit::Endpoints, Some(7));
        let both = Budget::of([&low, &high].into_iter());
        assert_eq!((both.most(Limit::Exports), both.most(Limit::Endpoints)), (5, 7));
        assert_eq!(both.most(Limit::Properties), Limit::Properties.default_most());
        assert_eq!(Budget::of([].into_iter()), Budget::default());
    }

    #[test]
    fn only_what_grows_beyond_a_limit_passes_it() {
        let budget = Budget::of([&BudgetRule::default().with(Limit::Exports, Some(2))].into_iter());
        assert_eq!(budget.passed(&usage(1, 0), &usage(2, 9)), None);
        assert_eq!(budget.passed(&usage(2, 0), &usage(3, 0)), Some(Limit::Exports));
        // A budget that came later takes nothing back.
        assert_eq!(budget.passed(&usage(5, 1), &usage(5, 2)), None);
        assert_eq!(budget.passed(&usage(5, 1), &usage(4, 1)), None);
    }
}
