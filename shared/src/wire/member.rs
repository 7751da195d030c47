//! The hub's decisions about members ↔ protobuf.

use proto::v1::{self, fact::Fact as ProtoFact};

use super::common::Taken;
use crate::model::{Fact, InvalidKeyFingerprint, KeyFingerprint, validate::InvalidValue};

/// A decision of the hub as protobuf; nothing for what members report.
pub(super) fn to_proto(fact: &Fact) -> Option<ProtoFact> {
    let fact = match fact {
        Fact::MemberJoined {
            key,
            cluster_fingerprint,
        } => ProtoFact::MemberJoined(v1::MemberJoined {
            key_fingerprint: key.to_string(),
            cluster_fingerprint: cluster_fingerprint.to_string(),
        }),
        Fact::MemberLeft => ProtoFact::MemberLeft(v1::MemberLeft {}),
        Fact::MemberEvicted { operator } => ProtoFact::MemberEvicted(v1::MemberEvicted {
            operator: operator.to_string(),
        }),
        Fact::MemberRekeyed {
            operator,
            key,
            cluster_fingerprint,
        } => ProtoFact::MemberRekeyed(v1::MemberRekeyed {
            operator: operator.to_string(),
            key_fingerprint: key.map(|key| key.to_string()).unwrap_or_default(),
            cluster_fingerprint: cluster_fingerprint.as_deref().unwrap_or_default().to_owned(),
        }),
        Fact::MemberForgotten { operator } => ProtoFact::MemberForgotten(v1::MemberForgotten {
            operator: operator.to_string(),
        }),
        Fact::MemberLive => ProtoFact::MemberLive(v1::MemberLive {}),
        Fact::MemberSuspect => ProtoFact::MemberSuspect(v1::MemberSuspect {}),
        Fact::MemberLost => ProtoFact::MemberLost(v1::MemberLost {}),
        Fact::FoldVersionChanged { from, to } => {
            ProtoFact::FoldVersionChanged(v1::FoldVersionChanged { from: *from, to: *to })
        }
        Fact::TombstonesBounded { max } => ProtoFact::TombstonesBounded(v1::TombstonesBounded { max: *max }),
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

pub(super) fn joined_from_proto(joined: v1::MemberJoined) -> Taken<Fact> {
    Ok(Fact::MemberJoined {
        key: key_fingerprint(&joined.key_fingerprint)?,
        cluster_fingerprint: joined.cluster_fingerprint.into(),
    })
}

/// Empty texts stand for "unchanged".
pub(super) fn rekeyed_from_proto(rekeyed: v1::MemberRekeyed) -> Taken<Fact> {
    let key = match rekeyed.key_fingerprint.as_str() {
        "" => None,
        text => Some(key_fingerprint(text)?),
    };
    let cluster_fingerprint = Some(rekeyed.cluster_fingerprint).filter(|text| !text.is_empty());
    Ok(Fact::MemberRekeyed {
        operator: rekeyed.operator.into(),
        key,
        cluster_fingerprint: cluster_fingerprint.map(Box::from),
    })
}

fn key_fingerprint(text: &str) -> Taken<KeyFingerprint> {
    text.parse()
        .map_err(|error: InvalidKeyFingerprint| InvalidValue::new("keyFingerprint", error.to_string()))
}
