//! Facts ↔ bytes. Encoding is deterministic; bytes from the wire are kept as they are and never encoded again, because
//! they are hashed, stored and compared.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use proto::v1::{self, fact::Fact as ProtoFact};

use super::{
    common::{Taken, group_from_proto, group_to_proto, service_key_from_proto, service_key_to_proto},
    endpoint, export, fact_kind, health,
    invalid_fact::{InvalidFact, undecodable},
    member, policy, property, slice, token,
};
use model::{
    EncodedFact, Fact, FactHash, fact::FACT_BYTES_MAX, sync::RefusalReason, validate, validate::InvalidValue,
};

/// Encodes a fact. The same fact always gives the same bytes.
pub fn encode_fact(fact: &Fact) -> EncodedFact {
    let bytes = Bytes::from(match fact {
        Fact::EndpointSliceUpserted(taken) => slice::to_fact(taken),
        other => fact_to_proto(other).encode_to_vec(),
    });
    let hash = FactHash::of(&bytes);
    EncodedFact {
        fact: fact.clone(),
        bytes,
        hash,
    }
}

/// Decodes and judges a fact that a member reports about its own cluster.
pub fn decode_member_fact(bytes: Bytes) -> Result<EncodedFact, InvalidFact> {
    if bytes.len() > FACT_BYTES_MAX {
        let message = format!(
            "the fact has {} bytes; at most {FACT_BYTES_MAX} are taken: split the object",
            bytes.len()
        );
        return Err(InvalidFact {
            reason: RefusalReason::Invalid,
            message,
        });
    }
    // Before anything in it is decoded: documents and keys of the hub's kinds are nothing to be read from a member.
    fact_kind::check_members(&bytes)?;
    let bytes = alone(bytes);
    let fact = decode(&bytes)?;
    validate::fact(&fact).map_err(|problem| invalid(&about(&fact), &problem))?;
    Ok(EncodedFact {
        hash: FactHash::of(&bytes),
        fact,
        bytes,
    })
}

/// Decodes a fact from the log, of any kind. Bounds were judged when it was recorded, by the rules of that
/// time; only its shape must hold.
pub fn decode_recorded_fact(bytes: Bytes) -> Result<EncodedFact, InvalidFact> {
    let bytes = alone(bytes);
    let fact = decode(&bytes)?;
    Ok(EncodedFact {
        hash: FactHash::of(&bytes),
        fact,
        bytes,
    })
}

/// A copy: what arrives is a part of a whole message, or of a page of the log, that must not be held with it.
fn alone(bytes: Bytes) -> Bytes {
    Bytes::copy_from_slice(&bytes)
}

fn decode(bytes: &Bytes) -> Result<Fact, InvalidFact> {
    if let Some(taken) = slice::from_fact(bytes) {
        return Ok(Fact::EndpointSliceUpserted(Arc::new(taken)));
    }
    decode_whole(bytes)
}

/// The way of all facts but slices, and of slices that are not written as we write them.
pub(super) fn decode_whole(bytes: &Bytes) -> Result<Fact, InvalidFact> {
    let fact = v1::Fact::decode(bytes.clone()).map_err(|error| undecodable(&error))?;
    let Some(fact) = fact.fact else {
        let message = "the fact is of a kind that this version does not know; update the hub";
        return Err(InvalidFact {
            reason: RefusalReason::UnknownKind,
            message: message.into(),
        });
    };
    fact_from_proto(fact).map_err(|problem| invalid(fact_kind::name(bytes), &problem))
}

fn invalid(what: &str, problem: &InvalidValue) -> InvalidFact {
    InvalidFact {
        reason: RefusalReason::Invalid,
        message: format!("{what}: {problem}"),
    }
}

/// The subject of a fact, for messages.
fn about(fact: &Fact) -> String {
    match fact {
        Fact::ExportUpserted(export) => format!("export {}", export.service),
        Fact::EndpointSliceUpserted(slice) => about_slice(&slice.key),
        Fact::EndpointSliceRemoved(key) => about_slice(key),
        Fact::ClusterPropertyUpserted(property) => {
            format!("cluster property {}", validate::shown(&property.name))
        }
        Fact::ClusterPropertyRemoved(name) => format!("cluster property {}", validate::shown(name)),
        _ => fact.kind().to_owned(),
    }
}

fn about_slice(key: &model::SliceKey) -> String {
    format!("endpoint slice {} of {}", validate::shown(&key.name), key.service)
}

/// A fact as protobuf, for services that show it.
pub fn fact_to_proto(fact: &Fact) -> v1::Fact {
    let reported = match fact {
        Fact::ExportUpserted(value) => ProtoFact::ExportUpserted(export::to_proto(value)),
        Fact::ExportRemoved(key) => ProtoFact::ExportRemoved(service_key_to_proto(key)),
        Fact::EndpointSliceUpserted(slice) => {
            ProtoFact::EndpointSliceUpserted(endpoint::slice_to_proto(slice))
        }
        Fact::EndpointSliceRemoved(key) => ProtoFact::EndpointSliceRemoved(endpoint::key_to_proto(key)),
        Fact::ClusterPropertyUpserted(value) => {
            ProtoFact::ClusterPropertyUpserted(property::property_to_proto(value))
        }
        Fact::ClusterPropertyRemoved(name) => ProtoFact::ClusterPropertyRemoved(v1::ClusterPropertyKey {
            name: name.to_string(),
        }),
        Fact::HealthReported(health) => ProtoFact::HealthReported(health::to_proto(health)),
        Fact::ListingCompleted(group) => ProtoFact::ListingCompleted(v1::ListingCompleted {
            group: group_to_proto(*group),
        }),
        decision => {
            return v1::Fact {
                fact: member::to_proto(decision),
            };
        }
    };
    v1::Fact { fact: Some(reported) }
}

fn fact_from_proto(fact: ProtoFact) -> Taken<Fact> {
    Ok(match fact {
        ProtoFact::ExportUpserted(value) => Fact::ExportUpserted(Arc::new(export::from_proto(value)?)),
        ProtoFact::ExportRemoved(key) => Fact::ExportRemoved(service_key_from_proto("service", Some(key))?),
        ProtoFact::EndpointSliceUpserted(slice) => {
            Fact::EndpointSliceUpserted(Arc::new(endpoint::slice_from_proto(slice)?))
        }
        ProtoFact::EndpointSliceRemoved(key) => Fact::EndpointSliceRemoved(endpoint::key_from_proto(key)?),
        ProtoFact::ClusterPropertyUpserted(value) => {
            Fact::ClusterPropertyUpserted(Arc::new(property::property_from_proto(value)?))
        }
        ProtoFact::ClusterPropertyRemoved(key) => Fact::ClusterPropertyRemoved(key.name.into()),
        ProtoFact::HealthReported(health) => Fact::HealthReported(Arc::new(health::from_proto(health)?)),
        ProtoFact::ListingCompleted(listing) => Fact::ListingCompleted(group_from_proto(listing.group)?),
        ProtoFact::MemberJoined(joined) => member::joined_from_proto(joined)?,
        ProtoFact::MemberLeft(_) => Fact::MemberLeft,
        ProtoFact::MemberLeaving(leaving) => member::leaving_from_proto(leaving)?,
        ProtoFact::MemberStays(stays) => Fact::MemberStays {
            operator: stays.operator.into(),
        },
        ProtoFact::MemberEvicted(evicted) => Fact::MemberEvicted {
            operator: evicted.operator.into(),
        },
        ProtoFact::MemberRekeyed(rekeyed) => member::rekeyed_from_proto(rekeyed)?,
        ProtoFact::MemberForgotten(forgotten) => Fact::MemberForgotten {
            operator: forgotten.operator.into(),
        },
        ProtoFact::MemberKeyRevoked(revoked) => member::key_revoked_from_proto(revoked)?,
        ProtoFact::OperatorKeyRevoked(revoked) => member::operator_revoked_from_proto(revoked)?,
        ProtoFact::MemberKeyContested(contested) => member::contested_from_proto(&contested)?,
        ProtoFact::MemberKeyCertified(certified) => member::certified_from_proto(certified)?,
        ProtoFact::MemberLive(_) => Fact::MemberLive,
        ProtoFact::MemberSuspect(_) => Fact::MemberSuspect,
        ProtoFact::MemberLost(_) => Fact::MemberLost,
        ProtoFact::MemberWithdrawn(_) => Fact::MemberWithdrawn,
        ProtoFact::SelfPreservationEntered(entered) => Fact::SelfPreservationEntered {
            lost: entered.lost,
            members: entered.members,
        },
        ProtoFact::SelfPreservationLeft(left) => Fact::SelfPreservationLeft {
            operator: left.operator.into(),
        },
        ProtoFact::BrakeEngaged(engaged) => Fact::BrakeEngaged {
            removed: engaged.removed,
            exports: engaged.exports,
        },
        ProtoFact::BrakeReleased(released) => Fact::BrakeReleased {
            operator: released.operator.into(),
        },
        ProtoFact::FoldVersionChanged(change) => Fact::FoldVersionChanged {
            from: change.from,
            to: change.to,
        },
        ProtoFact::LeaderChanged(changed) => Fact::LeaderChanged {
            term: changed.term,
            replica: changed.replica.into(),
        },
        ProtoFact::TombstonesBounded(bound) => Fact::TombstonesBounded { max: bound.max },
        ProtoFact::PolicyApplied(applied) => policy::applied_from_proto(applied)?,
        ProtoFact::PrecedenceContested(contested) => policy::contested_from_proto(contested)?,
        ProtoFact::PrecedenceReleased(released) => policy::released_from_proto(released)?,
        ProtoFact::JoinTokenCreated(created) => token::created_from_proto(created)?,
        ProtoFact::JoinTokenUsed(used) => token::used_from_proto(used)?,
        ProtoFact::JoinTokenRevoked(revoked) => token::revoked_from_proto(revoked)?,
    })
}
