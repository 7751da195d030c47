//! A reported fact: new, known already, or refused. It judges a fact against the state; whether the bytes
//! are a valid fact at all is settled where they are decoded.

use model::{ClusterId, EncodedFact, Fact, FactKey, SessionId, fact::MEMBER_FACTS_MAX, sync::RefusalReason};

use super::{Draft, DraftFact, Member, Rejection, State, contest, membership};

pub(super) fn observe(
    state: &State,
    cluster: &ClusterId,
    session: SessionId,
    sequence: u64,
    fact: &EncodedFact,
) -> Result<Vec<Draft>, Rejection> {
    let member = membership::current(state, cluster)?;
    let Some(key) = fact.fact.key() else {
        return Err(not_a_members_fact(&fact.fact));
    };
    let known = member.facts.get(&key);
    let unchanged = match (known, fact.fact.is_removal()) {
        (None, true) => true,
        (Some(_), true) | (None, false) => false,
        (Some(known), false) => known.hash == fact.hash,
    };
    if unchanged {
        return Ok(Vec::new());
    }
    if known.is_none() && member.facts.len() >= MEMBER_FACTS_MAX {
        return Err(too_many(cluster, &key));
    }
    keeps_its_timestamp(member, &fact.fact)?;
    let contested = match &fact.fact {
        Fact::ExportUpserted(export) => contest::decide(state, cluster, export),
        _ => None,
    };
    let observed = Draft {
        cluster: Some(cluster.clone()),
        session,
        member_sequence: sequence,
        fact: DraftFact::Encoded(fact.clone()),
    };
    let released = is_last_held(member, &fact.fact).then(|| {
        let operator = "".into();
        Draft::decided(cluster, Fact::BrakeReleased { operator })
    });
    Ok(contested.into_iter().chain([observed]).chain(released).collect())
}

/// Returns true if an export comes back that is the last one on hold: it ends the hold.
fn is_last_held(member: &Member, fact: &Fact) -> bool {
    match fact {
        Fact::ExportUpserted(export) => member.taken_back.held_exports().eq([&export.service]),
        _ => false,
    }
}

/// Precedence depends on creationTimestamp, so the same ServiceExport cannot have two.
fn keeps_its_timestamp(member: &Member, fact: &Fact) -> Result<(), Rejection> {
    let Fact::ExportUpserted(export) = fact else {
        return Ok(());
    };
    match member.export(&export.service) {
        Some((_, known)) if known.uid == export.uid && known.created_at != export.created_at => {
            Err(Rejection::refused(
                RefusalReason::TimestampChanged,
                format!(
                    "ServiceExport {} (uid {}) was reported with creationTimestamp {} before, and now with {}. The hub keeps \
                     the first one. To change the place of the export, delete the ServiceExport and create it again",
                    export.service,
                    export.uid,
                    known.created_at.rfc3339(),
                    export.created_at.rfc3339()
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn not_a_members_fact(fact: &Fact) -> Rejection {
    Rejection::refused(
        RefusalReason::NotAMembersFact,
        format!(
            "a member does not report facts of the kind {}: the hub decides them; upgrade or correct the agent",
            fact.kind()
        ),
    )
}

fn too_many(cluster: &ClusterId, key: &FactKey) -> Rejection {
    let what = match key {
        FactKey::Export(service) => format!("ServiceExport {service}"),
        FactKey::EndpointSlice(slice) => format!("EndpointSlice {} of {}", slice.name, slice.service),
        FactKey::ClusterProperty(name) => format!("ClusterProperty {name}"),
        FactKey::Health => "the health of the control plane".to_owned(),
    };
    Rejection::refused(
        RefusalReason::TooMany,
        format!(
            "{what}: cluster {cluster} has {MEMBER_FACTS_MAX} exports, slices and properties already, the \
             most a member may have. Withdraw exports that are not needed"
        ),
    )
}
