//! The policy: an operator's decision that derivation reads. What would follow from one can be asked before it is
//! recorded; nothing here says it in words.

use std::{collections::BTreeMap, sync::Arc};

use shared::model::{
    ClusterId, Denial, Fact, Policy, ServiceKey,
    policy::{Limit, ServiceRule, Usage},
};

use super::{Draft, State, derived::Step, exports, gate::Gate, precedence, state::AppliedPolicy};

/// What another policy would change, all in order of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyOutcome {
    /// Exports that are taken now and would not be, and why.
    pub refused: Vec<(ServiceKey, ClusterId, Denial)>,
    /// Exports that are not taken now and would be.
    pub restored: Vec<(ServiceKey, ClusterId)>,
    /// Imports that would end, for no export of theirs is left.
    pub ending: Vec<ServiceKey>,
    /// Imports that would begin.
    pub beginning: Vec<ServiceKey>,
    /// Imports of which another export would stand first: now, and then.
    pub first: Vec<(ServiceKey, ClusterId, ClusterId)>,
    /// How many endpoints of exports that stay would be left out and are not now, by member.
    pub endpoints_left_out: BTreeMap<ClusterId, usize>,
    /// How many would come back.
    pub endpoints_restored: BTreeMap<ClusterId, usize>,
    /// How many imports that stand then a member would not take any more, by member.
    pub imports_gone: BTreeMap<ClusterId, usize>,
    /// How many it would take and does not now.
    pub imports_come: BTreeMap<ClusterId, usize>,
    /// Members that have more than they may: of what, how much, and the most.
    pub over_budget: Vec<(ClusterId, Limit, u64, u64)>,
    /// Patterns that match no member, each with its rule.
    pub unmatched: Vec<(Box<str>, String)>,
}

/// Nothing, if it is in force already.
pub(super) fn apply(state: &State, policy: &Arc<Policy>, operator: &str) -> Vec<Draft> {
    if state
        .policy
        .as_ref()
        .is_some_and(|applied| applied.policy == *policy)
    {
        return Vec::new();
    }
    vec![Draft::of_the_log(Fact::PolicyApplied {
        operator: operator.into(),
        policy: policy.clone(),
    })]
}

pub(super) fn applied(state: &mut State, operator: &str, policy: &Arc<Policy>, step: &mut Step) {
    state.policy = Some(AppliedPolicy {
        revision: step.revision,
        operator: operator.into(),
        at: step.recorded_at,
        policy: policy.clone(),
    });
    exports::rederive_all(state, step);
}

impl State {
    /// What would follow from a policy.
    pub fn outcome(&self, policy: &Arc<Policy>) -> PolicyOutcome {
        let (now, then) = (Gate::of(self), Gate::under(self, policy));
        let mut outcome = PolicyOutcome::default();
        for service in self.exporters.keys() {
            self.outcome_for(service, &now, &then, &mut outcome);
        }
        let members = self.members.iter().filter(|(_, member)| member.is_current());
        let members: Vec<(&ClusterId, Usage)> = members
            .map(|(cluster, member)| (cluster, member.usage()))
            .collect();
        for (cluster, usage) in &members {
            let budget = policy.budget_of(cluster);
            let limits = Limit::ALL.map(|limit| (limit, usage.of_limit(limit), budget.most(limit)));
            let over = limits.into_iter().filter(|(_, used, most)| used > most);
            let over = over.map(|(limit, used, most)| ((*cluster).clone(), limit, used, most));
            outcome.over_budget.extend(over);
        }
        let members: Vec<&ClusterId> = members.into_iter().map(|(cluster, _)| cluster).collect();
        self.count_imports(&members, policy, &then, &mut outcome);
        let unmatched = policy.unmatched(&members).into_iter();
        outcome.unmatched = unmatched
            .map(|(rule, pattern)| (rule.into(), pattern.to_string()))
            .collect();
        outcome
    }

    fn outcome_for(&self, service: &ServiceKey, now: &Gate, then: &Gate, outcome: &mut PolicyOutcome) {
        let (taken_now, refused_now) = precedence::judged(self, service, now);
        let (taken_then, refused_then) = precedence::judged(self, service, then);
        let was_taken = |cluster: &ClusterId| taken_now.iter().any(|one| one.cluster == cluster);
        for refused in refused_then.into_iter().filter(|one| was_taken(one.cluster)) {
            let (cluster, denial) = (refused.cluster.clone(), refused.denial);
            outcome.refused.push((service.clone(), cluster, denial));
        }
        for taken in &taken_then {
            if refused_now.iter().any(|one| one.cluster == taken.cluster) {
                outcome.restored.push((service.clone(), taken.cluster.clone()));
            } else {
                self.count_endpoints(service, taken.cluster, now, then, outcome);
            }
        }
        match (taken_now.first(), taken_then.first()) {
            (Some(_), None) => outcome.ending.push(service.clone()),
            (None, Some(_)) => outcome.beginning.push(service.clone()),
            (Some(now), Some(then)) if now.cluster != then.cluster => {
                let (now, then) = (now.cluster.clone(), then.cluster.clone());
                outcome.first.push((service.clone(), now, then));
            }
            _ => {}
        }
    }

    /// Numbers only: every member may take every import.
    fn count_imports(
        &self,
        members: &[&ClusterId],
        policy: &Policy,
        then: &Gate,
        outcome: &mut PolicyOutcome,
    ) {
        let applied = self.policy.as_ref();
        let rules = members.iter().map(|cluster| {
            let now = applied.and_then(|applied| applied.policy.imports_of(cluster));
            (*cluster, now, policy.imports_of(cluster))
        });
        let other: Vec<_> = rules.filter(|(_, now, then)| now != then).collect();
        if other.is_empty() {
            return;
        }
        let stands = |service: &&ServiceKey| !precedence::judged(self, service, then).0.is_empty();
        for service in self.exporters.keys().filter(stands) {
            let takes = |imports: &Option<Vec<ServiceRule>>| {
                let rules = imports.as_ref();
                rules.is_none_or(|rules| rules.iter().any(|rule| rule.matches(service)))
            };
            for (cluster, now, then) in &other {
                let counts = match (takes(now), takes(then)) {
                    (true, false) => &mut outcome.imports_gone,
                    (false, true) => &mut outcome.imports_come,
                    _ => continue,
                };
                *counts.entry((*cluster).clone()).or_default() += 1;
            }
        }
    }

    fn count_endpoints(
        &self,
        service: &ServiceKey,
        cluster: &ClusterId,
        now: &Gate,
        then: &Gate,
        outcome: &mut PolicyOutcome,
    ) {
        let (now, then) = (now.addresses(cluster), then.addresses(cluster));
        let member = self.current_member(cluster).into_iter();
        let slices = member.flat_map(|member| member.slices_of(service));
        for endpoint in slices.flat_map(|(_, slice)| slice.endpoints.iter()) {
            let counts = match (now.leaves_out(endpoint), then.leaves_out(endpoint)) {
                (false, true) => &mut outcome.endpoints_left_out,
                (true, false) => &mut outcome.endpoints_restored,
                _ => continue,
            };
            *counts.entry(cluster.clone()).or_default() += 1;
        }
    }
}
