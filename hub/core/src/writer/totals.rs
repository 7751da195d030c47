//! Owns: how much all members together may have recorded, and which share of that one member may take.
//! Never: counts facts; that is `budgets`. Refuses nothing by itself.
//!
//! A member may grow while it has at most twice what is left for all. A lone member gets two thirds of a total, two get two
//! fifths each, and something is always left for the next one.

use model::policy::{Limit, Usage};

use crate::bounds::StateBounds;

/// A member may have so many times what is left.
const SHARE_OF_WHAT_IS_LEFT: u64 = 2;
/// Bytes of memory for each byte of a fact: its bytes, its decoded form, what is derived from it, what members are sent.
const MEMORY_OF_FACT_BYTE: u64 = 6;
/// Bytes of memory for each fact besides: keys, indexes, revisions.
const MEMORY_OF_FACT: u64 = 1_024;
/// From this share of a total on, in percent, the hub warns. It is less than what a lone member may take.
pub const STATE_ALARM_PERCENT: u64 = 60;

/// A total that is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Total {
    /// ServiceExports.
    Exports,
    /// EndpointSlices.
    EndpointSlices,
    /// Bytes of memory that the state takes, as estimated from its facts.
    Memory,
}

impl Total {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Exports, Self::EndpointSlices, Self::Memory];

    /// The word that metrics use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exports => "exports",
            Self::EndpointSlices => "endpoint_slices",
            Self::Memory => "memory",
        }
    }

    /// The flag that sets it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Exports => "--state-exports",
            Self::EndpointSlices => "--state-endpoint-slices",
            Self::Memory => "--state-memory",
        }
    }

    /// The most that there may be.
    pub fn most(self, bounds: &StateBounds) -> u64 {
        match self {
            Self::Exports => bounds.exports,
            Self::EndpointSlices => bounds.endpoint_slices,
            Self::Memory => bounds.memory,
        }
    }

    /// Returns how much of it these facts take.
    pub fn of(self, usage: &Usage) -> u64 {
        match self {
            Self::Exports => usage.of_limit(Limit::Exports),
            Self::EndpointSlices => usage.of_limit(Limit::EndpointSlices),
            Self::Memory => {
                let counted = [Limit::Exports, Limit::EndpointSlices, Limit::Properties];
                let facts: u64 = counted.map(|limit| usage.of_limit(limit)).iter().sum();
                let bytes = usage
                    .of_limit(Limit::FactBytes)
                    .saturating_mul(MEMORY_OF_FACT_BYTE);
                bytes.saturating_add(facts.saturating_mul(MEMORY_OF_FACT))
            }
        }
    }

    /// Returns true if a member may not have `next`, where all have `all` then.
    fn is_short(self, bounds: &StateBounds, next: &Usage, all: &Usage) -> bool {
        let left = self.most(bounds).checked_sub(self.of(all));
        left.is_none_or(|left| self.of(next) > left.saturating_mul(SHARE_OF_WHAT_IS_LEFT))
    }
}

/// Returns the first total that is used up for a member. It has `own`, and would have `next`; all would have `all`.
pub(super) fn lacking(bounds: &StateBounds, own: &Usage, next: &Usage, all: &Usage) -> Option<Total> {
    let grows = |total: &Total| total.of(next) > total.of(own);
    let mut grown = Total::ALL.into_iter().filter(grows);
    grown.find(|total| total.is_short(bounds, next, all))
}

/// Returns the most used total, and its used share in percent.
pub fn fullest(bounds: &StateBounds, all: &Usage) -> (Total, u64) {
    let share = |total: Total| {
        let percent = u128::from(total.of(all)) * 100 / u128::from(total.most(bounds).max(1));
        (total, u64::try_from(percent).unwrap_or(u64::MAX))
    };
    let shares = Total::ALL.map(share);
    shares
        .into_iter()
        .fold(shares[0], |most, next| if next.1 > most.1 { next } else { most })
}

#[cfg(test)]
mod tests;
