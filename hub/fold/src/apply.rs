//! Folds an event: chooses the file for its kind. Total: any log gives a state.

use model::{ClusterId, Event, Fact};

use super::{
    Change, Connectivity, Contest, KeyHolder, MemberStatus, State, brake, connectivity, contest,
    derived::Step, endpoint_slices, exports, keys, leaving, listing, lost, membership, policy, properties,
    remembered, tokens,
};

/// Folds the next event into the state and says which derived objects changed by it.
/// A fact of a cluster that is no current member moves the revision and nothing else.
pub fn apply(state: &mut State, event: &Event) -> Vec<Change> {
    let mut step = Step {
        revision: event.revision,
        recorded_at: event.recorded_at,
        changes: Vec::new(),
    };
    state.revision = event.revision;
    state.recorded_at = event.recorded_at;
    state.note_session(event.session);
    remembered::forget(state, event.recorded_at);
    match (&event.cluster, &event.fact.fact) {
        (_, Fact::FoldVersionChanged { to, .. }) => {
            if state.fold_version != *to {
                state.rules_since = event.recorded_at;
            }
            state.fold_version = *to;
            exports::rederive_all(state, &mut step);
            // Objects may look different now at revisions that members have already passed.
            state.derived.forget_before(event.revision);
        }
        (_, Fact::SelfPreservationEntered { .. }) => state.self_preservation = Some(event.recorded_at),
        (_, Fact::SelfPreservationLeft { .. }) => state.self_preservation = None,
        (_, Fact::LeaderChanged { term, .. }) => state.term = state.term.max(*term),
        (_, Fact::TombstonesBounded { max }) => state.derived.remember(*max),
        (
            _,
            Fact::OperatorKeyRevoked {
                name, reader, key, ..
            },
        ) => {
            let holder = if *reader {
                KeyHolder::Reader
            } else {
                KeyHolder::Operator
            };
            keys::revoked(state, holder(name.clone()), *key, &step);
        }
        (_, Fact::PolicyApplied { operator, policy }) => policy::applied(state, operator, policy, &mut step),
        (_, Fact::JoinTokenCreated { operator, token }) => tokens::created(state, operator, token, &step),
        (_, Fact::JoinTokenRevoked { token, .. }) => tokens::revoked(state, *token, &step),
        (_, Fact::JoinTokenUsed { .. }) => tokens::used(state, &event.fact.fact, &step),
        (_, Fact::PrecedenceReleased { service, .. }) => contest::released(state, service, &mut step),
        (
            _,
            Fact::PrecedenceContested {
                service,
                standing,
                challenger,
                held,
            },
        ) => {
            let dispute = Contest {
                revision: event.revision,
                standing: standing.clone(),
                challenger: challenger.clone(),
                held: *held,
            };
            contest::contested(state, service, dispute, &mut step);
        }
        (Some(cluster), fact) => apply_to_cluster(state, cluster, fact, event, &mut step),
        (None, _) => {}
    }
    step.changes
}

fn apply_to_cluster(state: &mut State, cluster: &ClusterId, fact: &Fact, event: &Event, step: &mut Step) {
    match fact {
        Fact::MemberJoined {
            key,
            cluster_fingerprint,
            terms,
        } => membership::joined(state, cluster, *key, cluster_fingerprint, terms, step),
        Fact::MemberForgotten { .. } => membership::forgotten(state, cluster, step),
        Fact::MemberKeyRevoked { key, .. } => {
            keys::revoked(state, KeyHolder::Member(cluster.clone()), *key, step);
        }
        // An operator's word for an id that was evicted.
        Fact::MemberRekeyed {
            key: Some(key),
            terms,
            ..
        } if keys::is_evicted(state, cluster) => {
            keys::admitted(state, cluster, *key, terms, step);
        }
        _ if state.current_member(cluster).is_none() => {}
        Fact::MemberLeft => membership::ended(state, cluster, MemberStatus::Left, step),
        Fact::MemberEvicted { .. } => membership::ended(state, cluster, MemberStatus::Evicted, step),
        Fact::MemberLeaving { .. } | Fact::MemberStays { .. } => leaving::said(state, cluster, fact, step),
        Fact::MemberRekeyed {
            key,
            cluster_fingerprint,
            terms,
            ..
        } => {
            key.iter()
                .for_each(|key| keys::admitted(state, cluster, *key, terms, step));
            membership::rekeyed(state, cluster, cluster_fingerprint.as_deref());
        }
        Fact::MemberKeyContested { key, .. } => keys::contested(state, cluster, *key),
        Fact::MemberKeyCertified {
            key,
            by,
            issuer,
            not_after,
        } => keys::certified(state, cluster, (*key, *by), (issuer, *not_after), step),
        Fact::MemberLive => connectivity::changed(state, cluster, Connectivity::Live, step),
        Fact::MemberSuspect => connectivity::changed(state, cluster, Connectivity::Suspect, step),
        Fact::MemberLost => connectivity::changed(state, cluster, Connectivity::Lost, step),
        Fact::BrakeEngaged { removed, exports } => brake::engaged(state, cluster, (*removed, *exports), step),
        Fact::BrakeReleased { .. } => brake::released(state, cluster, step),
        Fact::MemberWithdrawn => lost::set_withdrawn(state, cluster, true, step),
        Fact::ListingCompleted(group) => listing::completed(state, cluster, *group, step),
        Fact::ExportUpserted(export) => exports::upserted(state, cluster, export, &event.fact, step),
        Fact::ExportRemoved(service) => exports::removed(state, cluster, service, step),
        Fact::EndpointSliceUpserted(slice) => {
            endpoint_slices::upserted(state, cluster, slice, &event.fact, step);
        }
        Fact::EndpointSliceRemoved(key) => endpoint_slices::removed(state, cluster, key, step),
        Fact::ClusterPropertyUpserted(_) | Fact::HealthReported(_) => {
            properties::upserted(state, cluster, &event.fact, step);
        }
        Fact::ClusterPropertyRemoved(name) => properties::removed(state, cluster, name, step),
        Fact::FoldVersionChanged { .. }
        | Fact::LeaderChanged { .. }
        | Fact::TombstonesBounded { .. }
        | Fact::SelfPreservationEntered { .. }
        | Fact::SelfPreservationLeft { .. }
        | Fact::OperatorKeyRevoked { .. }
        | Fact::PolicyApplied { .. }
        | Fact::PrecedenceContested { .. }
        | Fact::PrecedenceReleased { .. }
        | Fact::JoinTokenCreated { .. }
        | Fact::JoinTokenUsed { .. }
        | Fact::JoinTokenRevoked { .. } => {}
    }
}
