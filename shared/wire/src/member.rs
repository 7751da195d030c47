//! The hub's decisions about members ↔ protobuf.

use prost_types::Timestamp;
use proto::v1::{self, fact::Fact as ProtoFact};

use super::common::{Taken, timestamp};
use model::{
    Fact, InvalidKeyFingerprint, KeyAcceptance, KeyFingerprint, KeyTerms, UnixMillis, validate::InvalidValue,
};

/// A decision of the hub as protobuf; nothing for what members report.
pub(super) fn to_proto(fact: &Fact) -> Option<ProtoFact> {
    let fact = match fact {
        Fact::MemberJoined {
            key,
            cluster_fingerprint,
            terms,
        } => ProtoFact::MemberJoined(v1::MemberJoined {
            key_fingerprint: key.to_string(),
            cluster_fingerprint: cluster_fingerprint.to_string(),
            issuer: terms.issuer.as_deref().map(str::to_owned),
            not_after: terms.not_after.map(timestamp),
            accepted: acceptance_to_proto(terms.accepted).into(),
        }),
        Fact::MemberLeft | Fact::MemberLeaving { .. } | Fact::MemberStays { .. } => {
            return leaving_to_proto(fact);
        }
        Fact::MemberEvicted { operator } => ProtoFact::MemberEvicted(v1::MemberEvicted {
            operator: operator.to_string(),
        }),
        Fact::MemberRekeyed {
            operator,
            key,
            cluster_fingerprint,
            terms,
        } => ProtoFact::MemberRekeyed(v1::MemberRekeyed {
            operator: operator.to_string(),
            key_fingerprint: key.map(|key| key.to_string()).unwrap_or_default(),
            cluster_fingerprint: cluster_fingerprint.as_deref().unwrap_or_default().to_owned(),
            issuer: terms.issuer.as_deref().map(str::to_owned),
            not_after: terms.not_after.map(timestamp),
            accepted: acceptance_to_proto(terms.accepted).into(),
        }),
        Fact::MemberKeyRevoked { .. }
        | Fact::OperatorKeyRevoked { .. }
        | Fact::MemberKeyContested { .. }
        | Fact::MemberKeyCertified { .. } => return key_to_proto(fact),
        Fact::MemberForgotten { operator } => ProtoFact::MemberForgotten(v1::MemberForgotten {
            operator: operator.to_string(),
        }),
        Fact::MemberLive
        | Fact::MemberSuspect
        | Fact::MemberLost
        | Fact::MemberWithdrawn
        | Fact::SelfPreservationEntered { .. }
        | Fact::SelfPreservationLeft { .. }
        | Fact::BrakeEngaged { .. }
        | Fact::BrakeReleased { .. } => return standing_to_proto(fact),
        Fact::FoldVersionChanged { from, to } => {
            ProtoFact::FoldVersionChanged(v1::FoldVersionChanged { from: *from, to: *to })
        }
        Fact::LeaderChanged { term, replica } => ProtoFact::LeaderChanged(v1::LeaderChanged {
            term: *term,
            replica: replica.to_string(),
        }),
        Fact::TombstonesBounded { max } => ProtoFact::TombstonesBounded(v1::TombstonesBounded { max: *max }),
        // Decisions about the policy are converted beside it.
        Fact::PolicyApplied { .. } | Fact::PrecedenceContested { .. } | Fact::PrecedenceReleased { .. } => {
            return super::policy::to_proto(fact);
        }
        Fact::JoinTokenCreated { .. } | Fact::JoinTokenUsed { .. } | Fact::JoinTokenRevoked { .. } => {
            return super::token::to_proto(fact);
        }
        Fact::ExportUpserted(_)
        | Fact::ExportRemoved(_)
        | Fact::EndpointSliceUpserted(_)
        | Fact::EndpointSliceRemoved(_)
        | Fact::ClusterPropertyUpserted(_)
        | Fact::ClusterPropertyRemoved(_)
        | Fact::HealthReported(_)
        | Fact::ListingCompleted(_) => return None,
    };
    Some(fact)
}

/// The steps of an orderly end of membership.
fn leaving_to_proto(fact: &Fact) -> Option<ProtoFact> {
    Some(match fact {
        Fact::MemberLeft => ProtoFact::MemberLeft(v1::MemberLeft {}),
        Fact::MemberLeaving {
            operator,
            until,
            evicts,
        } => ProtoFact::MemberLeaving(v1::MemberLeaving {
            operator: operator.to_string(),
            until: Some(timestamp(*until)),
            evicts: *evicts,
        }),
        Fact::MemberStays { operator } => ProtoFact::MemberStays(v1::MemberStays {
            operator: operator.to_string(),
        }),
        _ => return None,
    })
}

/// The decisions about a key.
fn key_to_proto(fact: &Fact) -> Option<ProtoFact> {
    Some(match fact {
        Fact::MemberKeyRevoked { operator, key } => ProtoFact::MemberKeyRevoked(v1::MemberKeyRevoked {
            operator: operator.to_string(),
            key_fingerprint: key.to_string(),
        }),
        Fact::OperatorKeyRevoked {
            operator,
            name,
            reader,
            key,
        } => ProtoFact::OperatorKeyRevoked(v1::OperatorKeyRevoked {
            operator: operator.to_string(),
            name: name.to_string(),
            key_fingerprint: key.to_string(),
            reader: *reader,
        }),
        Fact::MemberKeyContested { key, kept } => ProtoFact::MemberKeyContested(v1::MemberKeyContested {
            key_fingerprint: key.to_string(),
            kept_key_fingerprint: kept.to_string(),
        }),
        Fact::MemberKeyCertified {
            key,
            by,
            issuer,
            not_after,
        } => ProtoFact::MemberKeyCertified(v1::MemberKeyCertified {
            key_fingerprint: key.to_string(),
            certified_by: by.to_string(),
            issuer: issuer.to_string(),
            not_after: Some(timestamp(*not_after)),
        }),
        _ => return None,
    })
}

/// The observations of a member, and their consequences.
fn standing_to_proto(fact: &Fact) -> Option<ProtoFact> {
    Some(match fact {
        Fact::MemberLive => ProtoFact::MemberLive(v1::MemberLive {}),
        Fact::MemberSuspect => ProtoFact::MemberSuspect(v1::MemberSuspect {}),
        Fact::MemberLost => ProtoFact::MemberLost(v1::MemberLost {}),
        Fact::MemberWithdrawn => ProtoFact::MemberWithdrawn(v1::MemberWithdrawn {}),
        Fact::SelfPreservationEntered { lost, members } => {
            ProtoFact::SelfPreservationEntered(v1::SelfPreservationEntered {
                lost: *lost,
                members: *members,
            })
        }
        Fact::SelfPreservationLeft { operator } => {
            ProtoFact::SelfPreservationLeft(v1::SelfPreservationLeft {
                operator: operator.to_string(),
            })
        }
        Fact::BrakeEngaged { removed, exports } => ProtoFact::BrakeEngaged(v1::BrakeEngaged {
            removed: *removed,
            exports: *exports,
        }),
        Fact::BrakeReleased { operator } => ProtoFact::BrakeReleased(v1::BrakeReleased {
            operator: operator.to_string(),
        }),
        _ => return None,
    })
}

pub(super) fn joined_from_proto(joined: v1::MemberJoined) -> Taken<Fact> {
    Ok(Fact::MemberJoined {
        key: key_fingerprint(&joined.key_fingerprint)?,
        terms: KeyTerms {
            accepted: acceptance_from_proto(joined.accepted()),
            issuer: joined.issuer.map(Into::into),
            not_after: joined
                .not_after
                .map(|at| millis_from_proto("notAfter", at))
                .transpose()?,
        },
        cluster_fingerprint: joined.cluster_fingerprint.into(),
    })
}

pub(super) fn leaving_from_proto(leaving: v1::MemberLeaving) -> Taken<Fact> {
    let until = leaving
        .until
        .ok_or_else(|| InvalidValue::new("until", "is missing".to_owned()))?;
    Ok(Fact::MemberLeaving {
        operator: leaving.operator.into(),
        until: millis_from_proto("until", until)?,
        evicts: leaving.evicts,
    })
}

pub(super) fn key_revoked_from_proto(revoked: v1::MemberKeyRevoked) -> Taken<Fact> {
    Ok(Fact::MemberKeyRevoked {
        key: key_fingerprint(&revoked.key_fingerprint)?,
        operator: revoked.operator.into(),
    })
}

pub(super) fn operator_revoked_from_proto(revoked: v1::OperatorKeyRevoked) -> Taken<Fact> {
    Ok(Fact::OperatorKeyRevoked {
        key: key_fingerprint(&revoked.key_fingerprint)?,
        name: revoked.name.into(),
        reader: revoked.reader,
        operator: revoked.operator.into(),
    })
}

pub(super) fn contested_from_proto(contested: &v1::MemberKeyContested) -> Taken<Fact> {
    Ok(Fact::MemberKeyContested {
        key: key_fingerprint(&contested.key_fingerprint)?,
        kept: key_fingerprint(&contested.kept_key_fingerprint)?,
    })
}

pub(super) fn certified_from_proto(certified: v1::MemberKeyCertified) -> Taken<Fact> {
    let not_after = certified
        .not_after
        .ok_or_else(|| InvalidValue::new("notAfter", "is missing".to_owned()))?;
    Ok(Fact::MemberKeyCertified {
        key: key_fingerprint(&certified.key_fingerprint)?,
        by: key_fingerprint(&certified.certified_by)?,
        issuer: certified.issuer.into(),
        not_after: millis_from_proto("notAfter", not_after)?,
    })
}

/// The acceptance of a key, for services that show keys.
pub fn acceptance_to_proto(accepted: Option<KeyAcceptance>) -> v1::KeyAcceptance {
    match accepted {
        None => v1::KeyAcceptance::Unspecified,
        Some(KeyAcceptance::Pinned) => v1::KeyAcceptance::Pinned,
        Some(KeyAcceptance::ByOperator) => v1::KeyAcceptance::ByOperator,
        Some(KeyAcceptance::Renewed) => v1::KeyAcceptance::Renewed,
        Some(KeyAcceptance::Certified) => v1::KeyAcceptance::Certified,
    }
}

/// The acceptance of a key, from an event or a snapshot.
pub fn acceptance_from_proto(accepted: v1::KeyAcceptance) -> Option<KeyAcceptance> {
    match accepted {
        v1::KeyAcceptance::Unspecified => None,
        v1::KeyAcceptance::Pinned => Some(KeyAcceptance::Pinned),
        v1::KeyAcceptance::ByOperator => Some(KeyAcceptance::ByOperator),
        v1::KeyAcceptance::Renewed => Some(KeyAcceptance::Renewed),
        v1::KeyAcceptance::Certified => Some(KeyAcceptance::Certified),
    }
}

/// To the millisecond: our own values have no more.
fn millis_from_proto(field: &'static str, at: Timestamp) -> Taken<UnixMillis> {
    let seconds = u64::try_from(at.seconds).ok();
    let millis = seconds.and_then(|seconds| {
        let part = u64::try_from(at.nanos).ok()? / 1_000_000;
        seconds.checked_mul(1_000)?.checked_add(part)
    });
    millis.map(UnixMillis).ok_or_else(|| {
        let problem = format!(
            "is {}.{:09} s, and lies before 1970 or too far ahead",
            at.seconds, at.nanos
        );
        InvalidValue::new(field, problem)
    })
}

/// Empty texts stand for "unchanged".
pub(super) fn rekeyed_from_proto(rekeyed: v1::MemberRekeyed) -> Taken<Fact> {
    let key = match rekeyed.key_fingerprint.as_str() {
        "" => None,
        text => Some(key_fingerprint(text)?),
    };
    let terms = KeyTerms {
        accepted: acceptance_from_proto(rekeyed.accepted()),
        issuer: rekeyed.issuer.map(Into::into),
        not_after: rekeyed
            .not_after
            .map(|at| millis_from_proto("notAfter", at))
            .transpose()?,
    };
    let cluster_fingerprint = Some(rekeyed.cluster_fingerprint).filter(|text| !text.is_empty());
    Ok(Fact::MemberRekeyed {
        terms,
        operator: rekeyed.operator.into(),
        key,
        cluster_fingerprint: cluster_fingerprint.map(Box::from),
    })
}

fn key_fingerprint(text: &str) -> Taken<KeyFingerprint> {
    text.parse()
        .map_err(|error: InvalidKeyFingerprint| InvalidValue::new("keyFingerprint", error.to_string()))
}
