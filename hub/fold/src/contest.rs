//! Disputes over the first place among the exports of a service. Timestamps come from members and prove nothing: an
//! export that claims to be older than the first one is always an event with both sides. The policy decides whether it
//! gets the first place; if it does not, the event is the decision that holds the place.

use std::sync::Arc;

use model::{ClusterId, Export, Fact, Policy, Precedence, PrecedenceClaim, ServiceKey, advice};

use super::{
    Draft, Rejection, State,
    derived::Step,
    exports,
    gate::Gate,
    precedence::{self, Candidate},
    state::Contest,
};

/// The event about this export, if it would come before the first one, of another cluster.
pub(super) fn decide(state: &State, cluster: &ClusterId, export: &Export) -> Option<Draft> {
    let service = &export.service;
    let gate = Gate::of(state);
    if gate.denial(cluster, service).is_some() {
        return None;
    }
    let known = state.current_member(cluster)?.counted_export(service);
    let candidates = precedence::judged(state, service, &gate).0;
    let first = candidates.first().filter(|first| first.cluster != cluster)?;
    let is_older = (export.created_at, cluster) < (first.export.created_at, first.cluster);
    if !is_older || known.is_some_and(|(_, known)| known.uid == export.uid) {
        return None;
    }
    let challenger = claim(cluster, export);
    Some(contested_by(service, first, challenger, gate.precedence()))
}

/// The events about exports that the present policy refuses and this one accepts: one for each service whose oldest
/// such export would come before the first one, which stays.
pub(super) fn by_policy(state: &State, policy: &Arc<Policy>) -> Vec<Draft> {
    let (now, then) = (Gate::of(state), Gate::under(state, policy));
    let services = state.exporters.keys();
    let contests = services.filter_map(|service| {
        let (standing, refused) = precedence::judged(state, service, &now);
        let taken = precedence::judged(state, service, &then).0;
        let (standing, challenger) = precedence::restored_before(&standing, &refused, &taken)?;
        let challenger = claim(challenger.cluster, challenger.export);
        Some(contested_by(service, &standing, challenger, then.precedence()))
    });
    contests.collect()
}

fn contested_by(
    service: &ServiceKey,
    first: &Candidate<'_>,
    challenger: PrecedenceClaim,
    precedence: Precedence,
) -> Draft {
    let cluster = challenger.cluster.clone();
    let contested = Fact::PrecedenceContested {
        service: service.clone(),
        standing: claim(first.cluster, first.export),
        challenger,
        held: precedence == Precedence::Incumbent,
    };
    Draft::decided(&cluster, contested)
}

fn claim(cluster: &ClusterId, export: &Export) -> PrecedenceClaim {
    PrecedenceClaim {
        cluster: cluster.clone(),
        uid: export.uid.clone(),
        created_at: export.created_at,
    }
}

/// An operator lets the oldest export of a service stand first again.
pub(super) fn release(state: &State, service: &ServiceKey, operator: &str) -> Result<Vec<Draft>, Rejection> {
    match state.contests.get(service) {
        Some(contest) if contest.held => Ok(vec![Draft::of_the_log(Fact::PrecedenceReleased {
            operator: operator.into(),
            service: service.clone(),
        })]),
        _ => Err(Rejection::operator(format!(
            "there is nothing to release: the oldest export of {service} has the first place already. `{}` shows the \
             members",
            advice::member_list()
        ))),
    }
}

pub(super) fn contested(state: &mut State, service: &ServiceKey, contest: Contest, step: &mut Step) {
    if state.exporters.contains_key(service) {
        state.contests.insert(service.clone(), contest);
        exports::rederive(state, service, step);
    }
}

pub(super) fn released(state: &mut State, service: &ServiceKey, step: &mut Step) {
    if state.contests.remove(service).is_some() {
        exports::rederive(state, service, step);
    }
}
