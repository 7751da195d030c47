//! Seniority: the one order that decides every disagreement. Where the policy lets the incumbent come first, it
//! precedes older exports unless an operator let it go.

use std::sync::Arc;

use model::{ClusterId, Denial, Export, Precedence, Revision, ServiceKey};

use super::{State, gate::Gate};

/// One cluster's export of a service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) cluster: &'a ClusterId,
    pub(super) revision: Revision,
    pub(super) export: &'a Arc<Export>,
    /// It is first although another one is older.
    pub(super) held: bool,
}

/// An export that is not taken, and why.
#[derive(Debug, Clone)]
pub(super) struct Refused<'a> {
    pub(super) cluster: &'a ClusterId,
    pub(super) revision: Revision,
    pub(super) export: &'a Arc<Export>,
    pub(super) denial: Denial,
}

/// All exports of a service through a gate: those that are taken, by precedence (creationTimestamp as the API server
/// states it, then cluster id), and the others by cluster.
pub(super) fn judged<'a>(
    state: &'a State,
    service: &ServiceKey,
    gate: &Gate,
) -> (Vec<Candidate<'a>>, Vec<Refused<'a>>) {
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for cluster in state.exporters(service) {
        let member = state.current_member(cluster);
        let Some((revision, export)) = member.and_then(|member| member.counted_export(service)) else {
            continue;
        };
        match gate.denial(cluster, service) {
            None => candidates.push(Candidate {
                cluster,
                revision,
                export,
                held: false,
            }),
            Some(denial) => refused.push(Refused {
                cluster,
                revision,
                export,
                denial,
            }),
        }
    }
    candidates.sort_by_key(|candidate| (candidate.export.created_at, candidate.cluster));
    if gate.precedence() == Precedence::Incumbent
        && let Some(place) = candidates
            .iter()
            .skip(1)
            .position(|one| is_held(state, service, one))
    {
        candidates[..=place + 1].rotate_right(1);
        candidates[0].held = true;
    }
    (candidates, refused)
}

/// The first export now, if it stays, and the oldest of those before it that are refused now and accepted then, if
/// there are any.
pub(super) fn restored_before<'a>(
    now: &[Candidate<'a>],
    refused_now: &[Refused<'a>],
    taken_then: &[Candidate<'a>],
) -> Option<(Candidate<'a>, Candidate<'a>)> {
    let first = now.first()?;
    let standing = taken_then.iter().find(|one| one.cluster == first.cluster)?;
    let restored = |one: &&Candidate<'_>| refused_now.iter().any(|refused| refused.cluster == one.cluster);
    let age = |one: &Candidate<'a>| (one.export.created_at, one.cluster);
    let challenger = taken_then.iter().filter(restored).min_by_key(|one| age(one))?;
    (age(challenger) < age(standing)).then_some((*standing, *challenger))
}

fn is_held(state: &State, service: &ServiceKey, candidate: &Candidate<'_>) -> bool {
    let contest = state.contests.get(service).filter(|contest| contest.held);
    contest.is_some_and(|contest| {
        contest.standing.cluster == *candidate.cluster && contest.standing.uid == candidate.export.uid
    })
}
