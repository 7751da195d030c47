//! Rows of a snapshot ↔ bytes. Facts keep the bytes that were sent; nothing is judged here but the shape.

mod brakes;
mod leaving;
mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use model::{
    ClusterId, ContentDigest, ImportedSliceKey, KeyFingerprint, KeyTerms, ListingGroup, Revision, ServiceKey,
    SessionId, UnixMillis,
};
use prost::Message as _;
use proto::v1::{self, derived_key::Key as ProtoKey, snapshot_row::Row as ProtoRow};

use fold::{
    AdmittedKey, AppliedPolicy, CERTIFIED_OVER_MAX, Connectivity, Contest, DerivedKey, DerivedRow, KeyHolder,
    MemberRow, MemberStatus, RevokedKey, SnapshotHeader, SnapshotRow, State, TOMBSTONES_MAX,
};

/// Bytes that are no row of a snapshot of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a snapshot row cannot be read: {0}")]
pub struct SnapshotDecodeError(String);

type Decoded<T> = Result<T, SnapshotDecodeError>;

/// The encoded rows of a state, in the order in which they are restored.
pub fn rows(state: State) -> impl Iterator<Item = Vec<u8>> + Send {
    state.into_snapshot_rows().map(|row| encode_row(&row))
}

/// One row as bytes. The same row always gives the same bytes.
pub fn encode_row(row: &SnapshotRow) -> Vec<u8> {
    let row = match row {
        SnapshotRow::Header(header) => ProtoRow::Header(header_to_proto(header)),
        SnapshotRow::Member(member) => ProtoRow::Member(member_to_proto(member)),
        SnapshotRow::Fact {
            cluster,
            revision,
            fact,
        } => ProtoRow::Fact(v1::SnapshotFact {
            cluster: cluster.to_string(),
            revision: revision.0,
            fact: fact.bytes.clone(),
        }),
        SnapshotRow::Derived(derived) => ProtoRow::Derived(v1::SnapshotDerived {
            key: Some(key_to_proto(&derived.key)),
            revision: derived.revision.0,
            digest: derived.digest.0.to_vec(),
            import_revision: derived.import_revision.0,
            transitions_unix_millis: derived.transitions.iter().map(|at| at.0).collect(),
        }),
        SnapshotRow::RevokedKey(key, revoked) => ProtoRow::RevokedKey(revoked_to_proto(*key, revoked)),
        SnapshotRow::Policy(applied) => ProtoRow::Policy(policy_to_proto(applied)),
        SnapshotRow::Precedence(service, contest) => {
            ProtoRow::Precedence(precedence_to_proto(service, contest))
        }
        SnapshotRow::JoinToken(known) => ProtoRow::JoinToken(tokens::token_to_proto(known)),
        SnapshotRow::JoinTokenUse(hash, used) => {
            ProtoRow::JoinTokenUse(tokens::token_use_to_proto(*hash, used))
        }
        SnapshotRow::Brake(cluster, brake) => ProtoRow::Brake(brakes::brake_to_proto(cluster, *brake)),
        SnapshotRow::TakenBack {
            cluster,
            revision,
            at,
            fact,
        } => ProtoRow::TakenBack(brakes::taken_back_to_proto(cluster, *revision, *at, fact)),
        SnapshotRow::Tombstone { key, revision } => ProtoRow::Tombstone(v1::SnapshotTombstone {
            key: Some(key_to_proto(key)),
            revision: revision.0,
        }),
    };
    v1::SnapshotRow { row: Some(row) }.encode_to_vec()
}

/// One row from bytes.
pub fn decode_row(bytes: &[u8]) -> Decoded<SnapshotRow> {
    let row = v1::SnapshotRow::decode(Bytes::copy_from_slice(bytes)).map_err(wrong)?;
    Ok(match required(row.row, "its kind is unknown")? {
        ProtoRow::Header(header) => SnapshotRow::Header(header_from_proto(&header)),
        ProtoRow::Member(member) => SnapshotRow::Member(Box::new(member_from_proto(member)?)),
        ProtoRow::Fact(fact) => SnapshotRow::Fact {
            cluster: cluster(&fact.cluster)?,
            revision: Revision(fact.revision),
            fact: wire::decode_recorded_fact(fact.fact).map_err(wrong)?,
        },
        ProtoRow::Derived(derived) => SnapshotRow::Derived(DerivedRow {
            key: key_from_proto(derived.key)?,
            revision: Revision(derived.revision),
            digest: ContentDigest(fixed(&derived.digest)?),
            import_revision: Revision(derived.import_revision),
            transitions: derived
                .transitions_unix_millis
                .into_iter()
                .map(UnixMillis)
                .collect(),
        }),
        ProtoRow::RevokedKey(revoked) => revoked_from_proto(revoked)?,
        ProtoRow::Policy(applied) => policy_from_proto(applied)?,
        ProtoRow::Precedence(precedence) => precedence_from_proto(precedence)?,
        ProtoRow::JoinToken(known) => tokens::token_from_proto(known)?,
        ProtoRow::JoinTokenUse(used) => tokens::token_use_from_proto(used)?,
        ProtoRow::Brake(brake) => brakes::brake_from_proto(&brake)?,
        ProtoRow::TakenBack(removed) => brakes::taken_back_from_proto(removed)?,
        ProtoRow::Tombstone(tombstone) => SnapshotRow::Tombstone {
            key: key_from_proto(tombstone.key)?,
            revision: Revision(tombstone.revision),
        },
    })
}

fn wrong(why: impl std::fmt::Display) -> SnapshotDecodeError {
    SnapshotDecodeError(why.to_string())
}

fn required<T>(value: Option<T>, why: &str) -> Decoded<T> {
    value.ok_or_else(|| wrong(why))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Decoded<[u8; N]> {
    <[u8; N]>::try_from(bytes).map_err(|_| wrong(format!("{} bytes stand where {N} belong", bytes.len())))
}

fn cluster(name: &str) -> Decoded<ClusterId> {
    ClusterId::new(name).map_err(wrong)
}

fn service_to_proto(service: &ServiceKey) -> v1::ServiceKey {
    v1::ServiceKey {
        namespace: service.namespace.to_string(),
        name: service.name.to_string(),
    }
}

fn service_from_proto(service: Option<v1::ServiceKey>) -> Decoded<ServiceKey> {
    let service = required(service, "a service is missing")?;
    ServiceKey::new(&service.namespace, &service.name).map_err(wrong)
}

fn header_to_proto(header: &SnapshotHeader) -> v1::SnapshotHeader {
    v1::SnapshotHeader {
        fold_version: header.fold_version,
        rules_since_unix_millis: header.rules_since.0,
        revision: header.revision.0,
        recorded_at_unix_millis: header.recorded_at.0,
        tombstone_floor: header.tombstone_floor.0,
        members: header.members,
        facts: header.facts,
        derived: header.derived,
        tombstones: header.tombstones,
        // Snapshots of logs that never said otherwise have the bytes that older builds give them.
        tombstones_max: (header.tombstones_max != TOMBSTONES_MAX).then_some(header.tombstones_max),
        revoked_keys: header.revoked_keys,
        policies: header.policies,
        precedences: header.precedences,
        self_preservation_since_unix_millis: header.self_preservation.map(|since| since.0),
        join_tokens: header.join_tokens,
        join_token_uses: header.join_token_uses,
        brakes: header.brakes,
        taken_back: header.taken_back,
        term: header.term,
        last_session: header.last_session.0,
    }
}

fn header_from_proto(header: &v1::SnapshotHeader) -> SnapshotHeader {
    SnapshotHeader {
        fold_version: header.fold_version,
        rules_since: UnixMillis(header.rules_since_unix_millis),
        revision: Revision(header.revision),
        recorded_at: UnixMillis(header.recorded_at_unix_millis),
        tombstone_floor: Revision(header.tombstone_floor),
        members: header.members,
        facts: header.facts,
        derived: header.derived,
        tombstones: header.tombstones,
        tombstones_max: header.tombstones_max.unwrap_or(TOMBSTONES_MAX),
        revoked_keys: header.revoked_keys,
        policies: header.policies,
        precedences: header.precedences,
        self_preservation: header.self_preservation_since_unix_millis.map(UnixMillis),
        join_tokens: header.join_tokens,
        join_token_uses: header.join_token_uses,
        brakes: header.brakes,
        taken_back: header.taken_back,
        term: header.term,
        last_session: SessionId(header.last_session),
    }
}

fn member_to_proto(member: &MemberRow) -> v1::SnapshotMember {
    let last_heard = connectivity_to_proto(member.connectivity);
    let state = match member.status {
        MemberStatus::Joined => last_heard,
        MemberStatus::Left => v1::SourceState::SourceLeft,
        MemberStatus::Evicted => v1::SourceState::SourceEvicted,
        MemberStatus::Forgotten => v1::SourceState::SourceForgotten,
    };
    let keys = |keys: &BTreeSet<KeyFingerprint>| keys.iter().map(|key| key.0.to_vec()).collect();
    let listed = |group| member.listings.get(&group).map(|revision| revision.0);
    v1::SnapshotMember {
        cluster: member.cluster.to_string(),
        state: state.into(),
        incarnation: member.incarnation.0,
        ended: member.ended.map(|revision| revision.0),
        cluster_fingerprint: member.cluster_fingerprint.to_string(),
        next_cluster_fingerprint: member.next_cluster_fingerprint.as_deref().map(str::to_owned),
        key_fingerprints: member.keys.keys().map(|key| key.0.to_vec()).collect(),
        key_terms: member.keys.iter().filter_map(terms_to_proto).collect(),
        contested_key_fingerprints: keys(&member.contested_keys),
        refused_key_fingerprints: keys(&member.refused_keys),
        refused_until_unix_millis: member.refused_until.map(|until| until.0),
        since_unix_millis: member.since.0,
        exports_listed: listed(ListingGroup::Exports),
        properties_listed: listed(ListingGroup::Properties),
        last_heard: last_heard.into(),
        withdrawn: member.withdrawn,
        leaving: member.leaving.as_ref().map(leaving::to_proto),
    }
}

fn member_from_proto(member: v1::SnapshotMember) -> Decoded<MemberRow> {
    let keys = |keys: &[Vec<u8>]| -> Decoded<BTreeSet<KeyFingerprint>> {
        keys.iter().map(|key| Ok(KeyFingerprint(fixed(key)?))).collect()
    };
    let listed = [
        (ListingGroup::Exports, member.exports_listed),
        (ListingGroup::Properties, member.properties_listed),
    ];
    let listings: BTreeMap<ListingGroup, Revision> = listed
        .into_iter()
        .filter_map(|(group, revision)| Some((group, Revision(revision?))))
        .collect();
    Ok(MemberRow {
        cluster: cluster(&member.cluster)?,
        status: match member.state() {
            v1::SourceState::SourceLeft => MemberStatus::Left,
            v1::SourceState::SourceEvicted => MemberStatus::Evicted,
            v1::SourceState::SourceForgotten => MemberStatus::Forgotten,
            v1::SourceState::Unspecified => return Err(wrong("a member has no state")),
            _ => MemberStatus::Joined,
        },
        incarnation: Revision(member.incarnation),
        ended: member.ended.map(Revision),
        connectivity: connectivity_from_proto(member.last_heard())?,
        keys: admitted_from_proto(&member.key_fingerprints, &member.key_terms)?,
        contested_keys: keys(&member.contested_key_fingerprints)?,
        refused_keys: keys(&member.refused_key_fingerprints)?,
        refused_until: member.refused_until_unix_millis.map(UnixMillis),
        since: UnixMillis(member.since_unix_millis),
        withdrawn: member.withdrawn,
        leaving: member.leaving.map(leaving::from_proto),
        listings,
        cluster_fingerprint: member.cluster_fingerprint.into(),
        next_cluster_fingerprint: member.next_cluster_fingerprint.map(Into::into),
    })
}

/// An unknown value is not in a snapshot: it has the bytes of older builds.
fn terms_to_proto((key, known): (&KeyFingerprint, &AdmittedKey)) -> Option<v1::SnapshotKeyTerms> {
    (*known != AdmittedKey::default()).then(|| v1::SnapshotKeyTerms {
        key_fingerprint: key.0.to_vec(),
        issuer: known.terms.issuer.as_deref().map(str::to_owned),
        not_after_unix_millis: known.terms.not_after.map(|at| at.0),
        accepted: wire::acceptance_to_proto(known.terms.accepted).into(),
        accepted_at_unix_millis: known.accepted_at.0,
        certified_over: known.certified_over.iter().map(|key| key.0.to_vec()).collect(),
    })
}

fn admitted_from_proto(
    keys: &[Vec<u8>],
    terms: &[v1::SnapshotKeyTerms],
) -> Decoded<BTreeMap<KeyFingerprint, AdmittedKey>> {
    let unknown = keys
        .iter()
        .map(|key| Ok((KeyFingerprint(fixed(key)?), AdmittedKey::default())));
    let mut admitted = unknown.collect::<Decoded<BTreeMap<_, _>>>()?;
    for known in terms {
        let key = KeyFingerprint(fixed(&known.key_fingerprint)?);
        let admitted = admitted.get_mut(&key);
        *admitted.ok_or_else(|| wrong("a key is described that is not admitted"))? = AdmittedKey {
            terms: KeyTerms {
                issuer: known.issuer.as_deref().map(Into::into),
                not_after: known.not_after_unix_millis.map(UnixMillis),
                accepted: wire::acceptance_from_proto(known.accepted()),
            },
            accepted_at: UnixMillis(known.accepted_at_unix_millis),
            certified_over: certified_over(&known.certified_over)?,
        };
    }
    Ok(admitted)
}

fn certified_over(keys: &[Vec<u8>]) -> Decoded<Vec<KeyFingerprint>> {
    if keys.len() > CERTIFIED_OVER_MAX {
        return Err(wrong("a key came over more keys than are remembered"));
    }
    keys.iter().map(|key| Ok(KeyFingerprint(fixed(key)?))).collect()
}

fn revoked_to_proto(key: KeyFingerprint, revoked: &RevokedKey) -> v1::SnapshotRevokedKey {
    let (cluster, operator) = match &revoked.holder {
        KeyHolder::Member(cluster) => (cluster.to_string(), String::new()),
        KeyHolder::Operator(name) | KeyHolder::Reader(name) => (String::new(), name.to_string()),
    };
    v1::SnapshotRevokedKey {
        key_fingerprint: key.0.to_vec(),
        cluster,
        operator,
        revoked_at_unix_millis: revoked.at.0,
        reader: matches!(revoked.holder, KeyHolder::Reader(_)),
    }
}

fn revoked_from_proto(revoked: v1::SnapshotRevokedKey) -> Decoded<SnapshotRow> {
    let holder = match revoked.cluster.as_str() {
        "" if revoked.reader => KeyHolder::Reader(revoked.operator.into()),
        "" => KeyHolder::Operator(revoked.operator.into()),
        name => KeyHolder::Member(cluster(name)?),
    };
    let at = UnixMillis(revoked.revoked_at_unix_millis);
    let key = KeyFingerprint(fixed(&revoked.key_fingerprint)?);
    Ok(SnapshotRow::RevokedKey(key, RevokedKey { holder, at }))
}

fn policy_to_proto(applied: &AppliedPolicy) -> v1::SnapshotPolicy {
    v1::SnapshotPolicy {
        revision: applied.revision.0,
        operator: applied.operator.to_string(),
        applied_at_unix_millis: applied.at.0,
        document: applied.policy.document.to_string(),
        imports_since: applied.imports_since.map(|revision| revision.0),
    }
}

fn policy_from_proto(applied: v1::SnapshotPolicy) -> Decoded<SnapshotRow> {
    Ok(SnapshotRow::Policy(AppliedPolicy {
        revision: Revision(applied.revision),
        operator: applied.operator.into(),
        at: UnixMillis(applied.applied_at_unix_millis),
        policy: Arc::new(wire::read_recorded_policy(&applied.document).map_err(wrong)?),
        imports_since: applied.imports_since.map(Revision),
    }))
}

fn precedence_to_proto(service: &ServiceKey, contest: &Contest) -> v1::SnapshotPrecedence {
    v1::SnapshotPrecedence {
        service: Some(service_to_proto(service)),
        revision: contest.revision.0,
        standing: Some(wire::claim_to_proto(&contest.standing)),
        challenger: Some(wire::claim_to_proto(&contest.challenger)),
        held: contest.held,
    }
}

fn precedence_from_proto(precedence: v1::SnapshotPrecedence) -> Decoded<SnapshotRow> {
    let service = service_from_proto(precedence.service)?;
    let contest = Contest {
        revision: Revision(precedence.revision),
        standing: wire::claim_from_proto("standing", precedence.standing).map_err(wrong)?,
        challenger: wire::claim_from_proto("challenger", precedence.challenger).map_err(wrong)?,
        held: precedence.held,
    };
    Ok(SnapshotRow::Precedence(service, contest))
}

fn connectivity_to_proto(connectivity: Connectivity) -> v1::SourceState {
    match connectivity {
        Connectivity::Live => v1::SourceState::SourceLive,
        Connectivity::Suspect => v1::SourceState::SourceSuspect,
        Connectivity::Lost => v1::SourceState::SourceLost,
    }
}

fn connectivity_from_proto(state: v1::SourceState) -> Decoded<Connectivity> {
    match state {
        v1::SourceState::SourceLive => Ok(Connectivity::Live),
        v1::SourceState::SourceSuspect => Ok(Connectivity::Suspect),
        v1::SourceState::SourceLost => Ok(Connectivity::Lost),
        _ => Err(wrong("how a member was last heard from is missing")),
    }
}

fn key_to_proto(key: &DerivedKey) -> v1::DerivedKey {
    let key = match key {
        DerivedKey::Import(service) => ProtoKey::ServiceImport(service_to_proto(service)),
        DerivedKey::Slice(slice) => ProtoKey::ImportedSlice(v1::ImportedSliceKey {
            service: Some(service_to_proto(&slice.service)),
            source_cluster: slice.source_cluster.to_string(),
            source_slice: slice.source_slice.to_string(),
        }),
        DerivedKey::ExportStatus(cluster, service) => ProtoKey::ExportStatus(v1::ExportStatusKey {
            cluster: cluster.to_string(),
            service: Some(service_to_proto(service)),
        }),
        DerivedKey::Profile(cluster) => ProtoKey::Profile(cluster.to_string()),
    };
    v1::DerivedKey { key: Some(key) }
}

fn key_from_proto(key: Option<v1::DerivedKey>) -> Decoded<DerivedKey> {
    let key = key.and_then(|key| key.key);
    Ok(match required(key, "the key of a derived object is missing")? {
        ProtoKey::ServiceImport(service) => DerivedKey::Import(service_from_proto(Some(service))?),
        ProtoKey::ImportedSlice(slice) => DerivedKey::Slice(ImportedSliceKey {
            service: service_from_proto(slice.service)?,
            source_cluster: cluster(&slice.source_cluster)?,
            source_slice: slice.source_slice.into(),
        }),
        ProtoKey::ExportStatus(status) => {
            DerivedKey::ExportStatus(cluster(&status.cluster)?, service_from_proto(status.service)?)
        }
        ProtoKey::Profile(name) => DerivedKey::Profile(cluster(&name)?),
    })
}

#[cfg(test)]
mod tests;
