//! The policy: an operator's decision that derivation reads. The effects of a policy can be computed before it is
//! recorded; other modules put them into words.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    ClusterId, Denial, Fact, Policy, Precedence, ServiceKey,
    policy::{Brake, Imports, Limit, Loss, Usage},
};

use super::{Draft, State, contest, derived::Step, exports, gate::Gate, precedence, state::AppliedPolicy};

/// Most imports that are named of those that one member no longer or newly accepts.
pub(super) const SERVICES_NAMED_MAX: usize = 5;

/// The changes that another policy would make, all in order of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyOutcome {
    /// Exports that are taken now and would not be, and why.
    pub refused: Vec<(ServiceKey, ClusterId, Denial)>,
    /// Exports that are not taken now and would be.
    pub restored: Vec<(ServiceKey, ClusterId)>,
    /// Imports that would end, because none of their exports is left.
    pub ending: Vec<ServiceKey>,
    /// Imports that would begin.
    pub beginning: Vec<ServiceKey>,
    /// Imports with a different first export: now, and then.
    pub first: Vec<(ServiceKey, ClusterId, ClusterId)>,
    /// Imports whose first export keeps its place, although an export that comes back is older: the first, and the
    /// older one.
    pub held: Vec<(ServiceKey, ClusterId, ClusterId)>,
    /// Number of endpoints of remaining exports that it would newly leave out, by member.
    pub endpoints_left_out: BTreeMap<ClusterId, usize>,
    /// Number of endpoints that would come back.
    pub endpoints_restored: BTreeMap<ClusterId, usize>,
    /// Imports that stand then and that a member would not take any more, by member.
    pub imports_gone: BTreeMap<ClusterId, SomeServices>,
    /// The imports that it would newly accept.
    pub imports_come: BTreeMap<ClusterId, SomeServices>,
    /// Members that have more than they may: of what, how much, and the most.
    pub over_budget: Vec<(ClusterId, Limit, u64, u64)>,
    /// Members that would no longer be on hold, with the number of exports.
    pub released: Vec<(ClusterId, usize)>,
    /// The policy on lost members now and then, if they differ.
    pub loss: Option<(Loss, Loss)>,
    /// Members that are withdrawn, and of whose endpoints something else would become.
    pub withdrawn: Vec<ClusterId>,
    /// The hold on mass withdrawals now and then, if they differ.
    pub brake: Option<(Brake, Brake)>,
    /// Patterns that match no member, each with its rule.
    pub unmatched: Vec<(Box<str>, String)>,
}

/// The first of some services, and how many more there are: every member may be about every import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SomeServices {
    /// In order of keys.
    pub named: Vec<ServiceKey>,
    /// Number of further ones.
    pub more: usize,
}

/// A member, and what it takes now and then. Rules are matched with it once, and not for every import.
struct Taker<'a> {
    cluster: &'a ClusterId,
    now: Imports,
    then: Imports,
}

/// Nothing, if it is in force already. Disputes over the first place that it opens are recorded before it, so that the
/// places are kept when it comes into force.
pub(super) fn apply(state: &State, policy: &Arc<Policy>, operator: &str) -> Vec<Draft> {
    if state
        .policy
        .as_ref()
        .is_some_and(|applied| applied.policy == *policy)
    {
        return Vec::new();
    }
    let mut drafts = contest::by_policy(state, policy);
    drafts.push(Draft::of_the_log(Fact::PolicyApplied {
        operator: operator.into(),
        policy: policy.clone(),
    }));
    drafts
}

pub(super) fn applied(state: &mut State, operator: &str, policy: &Arc<Policy>, step: &mut Step) {
    let before = state.policy.as_ref();
    let unchanged = match before {
        Some(before) => before.policy.agrees_on_imports(policy),
        None => policy.rules.iter().all(|rule| rule.imports.is_none()),
    };
    let imports_since = if unchanged {
        before.and_then(|before| before.imports_since)
    } else {
        Some(step.revision)
    };
    state.policy = Some(AppliedPolicy {
        imports_since,
        revision: step.revision,
        operator: operator.into(),
        at: step.recorded_at,
        policy: policy.clone(),
    });
    exports::rederive_all(state, step);
}

impl SomeServices {
    fn add(&mut self, service: &ServiceKey) {
        if self.named.len() < SERVICES_NAMED_MAX {
            self.named.push(service.clone());
        } else {
            self.more += 1;
        }
    }
}

impl Taker<'_> {
    /// Notes an import that exists then.
    fn note(&self, service: &ServiceKey, outcome: &mut PolicyOutcome) {
        let changed = match (self.now.allow(service), self.then.allow(service)) {
            (true, false) => &mut outcome.imports_gone,
            (false, true) => &mut outcome.imports_come,
            _ => return,
        };
        changed.entry(self.cluster.clone()).or_default().add(service);
    }
}

impl State {
    /// Computes the effects of a policy.
    pub fn outcome(&self, policy: &Arc<Policy>) -> PolicyOutcome {
        let (now, then) = (Gate::of(self), Gate::under(self, policy));
        let mut outcome = PolicyOutcome::default();
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
        self.outcome_for_lost_and_held(policy, &mut outcome);
        let members: Vec<&ClusterId> = members.into_iter().map(|(cluster, _)| cluster).collect();
        let takers = self.takers(&members, policy);
        for service in self.exporters.keys() {
            if self.outcome_for(service, &now, &then, &mut outcome) {
                takers.iter().for_each(|taker| taker.note(service, &mut outcome));
            }
        }
        let unmatched = policy.unmatched(&members).into_iter();
        outcome.unmatched = unmatched
            .map(|(rule, pattern)| (rule.into(), pattern.to_string()))
            .collect();
        outcome
    }

    /// Computes the effects on lost members, and on members on hold.
    fn outcome_for_lost_and_held(&self, policy: &Policy, outcome: &mut PolicyOutcome) {
        let (loss, brake) = (self.loss(), self.brake());
        outcome.loss = (loss != policy.loss).then_some((loss, policy.loss));
        outcome.brake = (brake != policy.brake).then_some((brake, policy.brake));
        if loss.action != policy.loss.action {
            outcome.withdrawn = self.withdrawn.keys().cloned().collect();
        }
        if !policy.brake.enabled {
            let held = self.members.iter().filter_map(|(cluster, member)| {
                member.taken_back.brake()?;
                Some((cluster.clone(), member.taken_back.export_count()))
            });
            outcome.released = held.collect();
        }
    }

    /// Computes the effects on the exports of one service; returns whether its import exists then.
    fn outcome_for(
        &self,
        service: &ServiceKey,
        now: &Gate,
        then: &Gate,
        outcome: &mut PolicyOutcome,
    ) -> bool {
        let (taken_now, refused_now) = precedence::judged(self, service, now);
        let (mut taken_then, refused_then) = precedence::judged(self, service, then);
        if let Some((standing, challenger)) =
            precedence::restored_before(&taken_now, &refused_now, &taken_then)
            && then.precedence() == Precedence::Incumbent
        {
            let (one, other) = (standing.cluster.clone(), challenger.cluster.clone());
            outcome.held.push((service.clone(), one, other));
            taken_then.sort_by_key(|one| one.cluster != standing.cluster);
        }
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
        !taken_then.is_empty()
    }

    /// The members that would take by other rules than now.
    fn takers<'a>(&self, members: &[&'a ClusterId], policy: &Policy) -> Vec<Taker<'a>> {
        let applied = self.policy.as_ref();
        let takers = members.iter().map(|cluster| Taker {
            cluster,
            now: applied
                .map(|applied| applied.policy.imports_of(cluster))
                .unwrap_or_default(),
            then: policy.imports_of(cluster),
        });
        takers.filter(|taker| taker.now != taker.then).collect()
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
        let slices = member.flat_map(|member| member.counted_slices_of(service));
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
