//! Owns: what each member has recorded against its budget, what all have together, and how fast each changes that.
//! Never: refuses or asks by itself; `over_budget` says what becomes of an item that finds no room here.

use std::collections::BTreeMap;

use model::{
    ClusterId, EncodedFact, Event, Fact,
    policy::{Budget, Limit, Usage},
};

use super::totals::{self, Total};
use crate::bounds::StateBounds;
use fold::State;

/// Allowance of one event: a budget's `eventsPerMinute` is then what comes back in a millisecond.
const EVENT: u64 = 60_000;
/// The share of a minute's events that must have come back before a member is asked again.
const ASKED_FROM: u64 = 8;

/// All members' accounts.
#[derive(Debug)]
pub(super) struct Budgets {
    accounts: BTreeMap<ClusterId, Account>,
    /// The total usage: recorded facts, and withdrawn ones that are remembered.
    all: Usage,
    bounds: StateBounds,
}

/// The limit that prevents recording a fact, and what it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// The member's budget.
    Budget(Limit, u64),
    /// The bound on what all members together may have.
    Total(Total, u64),
}

/// One member's.
#[derive(Debug)]
struct Account {
    budget: Budget,
    usage: Usage,
    /// The usage of its withdrawn facts that are on hold or remembered. A fact forgotten since then counts until the
    /// next tick.
    remembered: Usage,
    /// Allowance for events, as of `at` in monotonic milliseconds.
    allowance: u64,
    at: u64,
    /// Less is recorded, or more allowed, than when it was asked last.
    eased: bool,
    /// An item found no room for the number of events.
    too_fast: bool,
    /// An item found no room in a total when all members had this.
    short_of_total: Option<Usage>,
}

impl Budgets {
    /// Those of a state, whose facts are counted.
    pub(super) fn of(state: &State, bounds: StateBounds, now: u64) -> Self {
        let mut budgets = Self {
            accounts: BTreeMap::new(),
            all: Usage::default(),
            bounds,
        };
        budgets.reopen(state, now);
        budgets
    }

    /// Returns the usage of all members.
    pub(super) fn all(&self) -> Usage {
        self.all
    }

    /// Counts each member's remembered withdrawals again.
    pub(super) fn tick(&mut self, state: &State) {
        for (cluster, account) in &mut self.accounts {
            account.remember(state, cluster, &mut self.all);
        }
    }

    /// Counts a member's facts again, and reads its budget; its burst allowance stays what it was.
    fn open(&mut self, state: &State, cluster: &ClusterId, now: u64) {
        let before = self.accounts.remove(cluster);
        if let Some(before) = &before {
            self.all = self.all.without(before.memory());
        }
        let Some(member) = state.current_member(cluster) else {
            return;
        };
        let budget = budget_of(state, cluster);
        let full = budget.most(Limit::EventsPerMinute).saturating_mul(EVENT);
        let account = Account {
            budget,
            usage: member.usage(),
            remembered: member.taken_back().usage(),
            allowance: before.as_ref().map_or(full, |before| before.allowance),
            at: before.map_or(now, |before| before.at),
            eased: true,
            too_fast: false,
            short_of_total: None,
        };
        self.all = self.all.and(account.memory());
        self.accounts.insert(cluster.clone(), account);
    }

    /// Returns the limit that prevents recording a fact in place of `known`. A member's budget comes first: that is its
    /// own to mend.
    pub(super) fn lack(
        &mut self,
        cluster: &ClusterId,
        known: Option<&EncodedFact>,
        fact: &EncodedFact,
        now: u64,
    ) -> Option<Lack> {
        let known = known.map(Usage::of).unwrap_or_default();
        let (fact, all) = (Usage::of(fact), self.all);
        let account = self.accounts.get_mut(cluster)?;
        account.refill(now);
        let next = account.usage.without(known).and(fact);
        let mut limit = account.budget.passed(&account.usage, &next);
        if account.allowance < EVENT {
            account.too_fast = true;
            limit = limit.or(Some(Limit::EventsPerMinute));
        }
        if let Some(limit) = limit {
            return Some(Lack::Budget(limit, account.budget.most(limit)));
        }
        let (own, next) = (account.memory(), next.and(account.remembered));
        let then = all.without(known).and(fact);
        let total = totals::lacking(&self.bounds, &own, &next, &then)?;
        account.short_of_total = Some(all);
        Some(Lack::Total(total, total.most(&self.bounds)))
    }

    /// An event was applied; `replaced` is the usage that its fact replaces.
    pub(super) fn recorded(&mut self, state: &State, event: &Event, replaced: Usage, now: u64) {
        match (&event.cluster, &event.fact.fact) {
            (_, Fact::PolicyApplied { .. }) => self.reopen(state, now),
            (
                Some(cluster),
                Fact::MemberJoined { .. }
                | Fact::MemberLeft
                | Fact::MemberEvicted { .. }
                | Fact::MemberForgotten { .. },
            ) => self.open(state, cluster, now),
            (Some(cluster), fact) if fact.is_removal() || Usage::of(&event.fact) != Usage::default() => {
                if let Some(account) = self.accounts.get_mut(cluster) {
                    let next = account.usage.without(replaced).and(Usage::of(&event.fact));
                    account.eased |= next.is_less_than(&account.usage);
                    self.all = self.all.without(account.usage).and(next);
                    account.usage = next;
                    account.remember(state, cluster, &mut self.all);
                    account.refill(now);
                    account.allowance = account.allowance.saturating_sub(EVENT);
                }
            }
            _ => {}
        }
    }

    fn reopen(&mut self, state: &State, now: u64) {
        for cluster in state.members().keys() {
            self.open(state, cluster, now);
        }
    }

    /// Returns true if a member whose items found no room is to be asked for them: the cause may have ended. It is
    /// reported once.
    pub(super) fn has_eased(&mut self, cluster: &ClusterId, now: u64) -> bool {
        let all = self.all;
        let Some(account) = self.accounts.get_mut(cluster) else {
            return false;
        };
        account.refill(now);
        let full = account.full();
        let may_again = account.too_fast && account.allowance >= (full / ASKED_FROM).max(EVENT);
        let less = account
            .short_of_total
            .is_some_and(|before| all.is_less_than(&before));
        let eased = ((account.eased || less) && !account.too_fast) || may_again;
        if eased {
            (account.eased, account.too_fast) = (false, false);
            account.short_of_total = None;
        }
        eased
    }
}

impl Account {
    /// Returns its usage, with its remembered withdrawals.
    fn memory(&self) -> Usage {
        self.usage.and(self.remembered)
    }

    fn remember(&mut self, state: &State, cluster: &ClusterId, all: &mut Usage) {
        let member = state.current_member(cluster);
        let remembered = member.map(|member| member.taken_back().usage());
        let before = std::mem::replace(&mut self.remembered, remembered.unwrap_or_default());
        *all = all.without(before).and(self.remembered);
    }

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
