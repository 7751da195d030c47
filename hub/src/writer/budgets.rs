//! Owns: what each member has recorded against its budget, and how fast it changes that.
//! Never: refuses or asks by itself; `over_budget` says what becomes of an item that finds no room here.

use std::collections::BTreeMap;

use shared::model::{
    ClusterId, EncodedFact, Event, Fact,
    policy::{Budget, Limit, Usage},
};

use crate::fold::State;

/// Allowance of one event: a budget's `eventsPerMinute` is then what comes back in a millisecond.
const EVENT: u64 = 60_000;
/// The share of a minute's events that must have come back before a member is asked again.
const ASKED_FROM: u64 = 8;

/// All members' accounts.
#[derive(Debug, Default)]
pub(super) struct Budgets(BTreeMap<ClusterId, Account>);

/// One member's.
#[derive(Debug)]
struct Account {
    budget: Budget,
    usage: Usage,
    /// Allowance for events, as of `at` in monotonic milliseconds.
    allowance: u64,
    at: u64,
    /// Less is recorded, or more allowed, than when it was asked last.
    eased: bool,
    /// An item found no room for the number of events.
    too_fast: bool,
}

impl Budgets {
    /// Those of a state.
    pub(super) fn of(state: &State, now: u64) -> Self {
        let mut budgets = Self::default();
        for cluster in state.members().keys() {
            budgets.open(state, cluster, now);
        }
        budgets
    }

    /// Counts a member's facts anew, and reads its budget; what it may change at once stays what it was.
    fn open(&mut self, state: &State, cluster: &ClusterId, now: u64) {
        let Some(member) = state.current_member(cluster) else {
            self.0.remove(cluster);
            return;
        };
        let budget = budget_of(state, cluster);
        let before = self.0.remove(cluster);
        let full = budget.most(Limit::EventsPerMinute).saturating_mul(EVENT);
        let account = Account {
            budget,
            usage: member.usage(),
            allowance: before.as_ref().map_or(full, |before| before.allowance),
            at: before.map_or(now, |before| before.at),
            eased: true,
            too_fast: false,
        };
        self.0.insert(cluster.clone(), account);
    }

    /// Which limit stands in the way of recording a fact where `known` is recorded, and what it allows.
    pub(super) fn lack(
        &mut self,
        cluster: &ClusterId,
        known: Option<&EncodedFact>,
        fact: &EncodedFact,
        now: u64,
    ) -> Option<(Limit, u64)> {
        let account = self.0.get_mut(cluster)?;
        account.refill(now);
        let known = known.map(Usage::of).unwrap_or_default();
        let next = account.usage.without(known).and(Usage::of(fact));
        let mut limit = account.budget.passed(&account.usage, &next);
        if account.allowance < EVENT {
            account.too_fast = true;
            limit = limit.or(Some(Limit::EventsPerMinute));
        }
        limit.map(|limit| (limit, account.budget.most(limit)))
    }

    /// An event was applied; `replaced` is what its fact stands for from now on.
    pub(super) fn recorded(&mut self, state: &State, event: &Event, replaced: Usage, now: u64) {
        match (&event.cluster, &event.fact.fact) {
            (_, Fact::PolicyApplied { .. }) => *self = self.reopened(state, now),
            (
                Some(cluster),
                Fact::MemberJoined { .. }
                | Fact::MemberLeft
                | Fact::MemberEvicted { .. }
                | Fact::MemberForgotten { .. },
            ) => self.open(state, cluster, now),
            (Some(cluster), fact) if fact.is_removal() || Usage::of(&event.fact) != Usage::default() => {
                if let Some(account) = self.0.get_mut(cluster) {
                    let next = account.usage.without(replaced).and(Usage::of(&event.fact));
                    account.eased |= next.is_less_than(&account.usage);
                    account.usage = next;
                    account.refill(now);
                    account.allowance = account.allowance.saturating_sub(EVENT);
                }
            }
            _ => {}
        }
    }

    fn reopened(&mut self, state: &State, now: u64) -> Self {
        let mut budgets = std::mem::take(self);
        for cluster in state.members().keys() {
            budgets.open(state, cluster, now);
        }
        budgets
    }

    /// Whether a member whose items found no room is to be asked for them: the cause may have ended. It is said once.
    pub(super) fn has_eased(&mut self, cluster: &ClusterId, now: u64) -> bool {
        let Some(account) = self.0.get_mut(cluster) else {
            return false;
        };
        account.refill(now);
        let full = account.full();
        let may_again = account.too_fast && account.allowance >= (full / ASKED_FROM).max(EVENT);
        let eased = (account.eased && !account.too_fast) || may_again;
        if eased {
            (account.eased, account.too_fast) = (false, false);
        }
        eased
    }
}

impl Account {
    fn full(&self) -> u64 {
        self.budget.most(Limit::EventsPerMinute).saturating_mul(EVENT)
    }

    fn refill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at);
        let back = passed.saturating_mul(self.budget.most(Limit::EventsPerMinute));
        self.allowance = self.allowance.saturating_add(back).min(self.full());
        self.at = self.at.max(now);
    }
}

fn budget_of(state: &State, cluster: &ClusterId) -> Budget {
    let policy = state.policy().map(|applied| applied.policy.budget_of(cluster));
    policy.unwrap_or_default()
}
