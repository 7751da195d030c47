//! Owns: the kinds of facts by their field numbers, read from the bytes of a fact without its content.
//! Never: decodes what a kind has in it. So a fact that a member must not report costs nothing.

use bytes::{Buf as _, Bytes};
use prost::{
    DecodeError,
    encoding::{DecodeContext, decode_key, skip_field},
};

use super::invalid_fact::{InvalidFact, undecodable};
use model::sync::RefusalReason;

/// The kinds of `Fact` by their field numbers, in order.
const KINDS: [(u32, &str); 36] = [
    (1, "export_upserted"),
    (2, "export_removed"),
    (3, "endpoint_slice_upserted"),
    (4, "endpoint_slice_removed"),
    (5, "cluster_property_upserted"),
    (6, "cluster_property_removed"),
    (7, "health_reported"),
    (8, "listing_completed"),
    (16, "member_joined"),
    (17, "member_left"),
    (18, "member_evicted"),
    (19, "member_rekeyed"),
    (20, "member_forgotten"),
    (21, "member_live"),
    (22, "member_suspect"),
    (23, "member_lost"),
    (24, "fold_version_changed"),
    (25, "tombstones_bounded"),
    (26, "member_key_revoked"),
    (27, "operator_key_revoked"),
    (28, "member_key_contested"),
    (29, "policy_applied"),
    (30, "precedence_contested"),
    (31, "precedence_released"),
    (32, "member_withdrawn"),
    (33, "self_preservation_entered"),
    (34, "self_preservation_left"),
    (35, "join_token_created"),
    (36, "join_token_used"),
    (37, "join_token_revoked"),
    (50, "brake_engaged"),
    (51, "brake_released"),
    (52, "member_key_certified"),
    (53, "member_leaving"),
    (54, "member_stays"),
    (55, "leader_changed"),
];
/// The last number of what a member reports about its own cluster.
const LAST_OF_MEMBERS: u32 = 7;
/// The number of `listing_completed`.
const LISTING_COMPLETED: u32 = 8;

/// Refuses bytes that have a kind in them that no member reports. Kinds that this version does not know pass.
pub(super) fn check_members(fact: &Bytes) -> Result<(), InvalidFact> {
    let foreign = |number: u32| number > LAST_OF_MEMBERS && named(number).is_some();
    let found = find(fact, foreign).map_err(|error| undecodable(&error))?;
    let Some((number, kind)) = found.and_then(|number| Some((number, named(number)?))) else {
        return Ok(());
    };
    let why = if number == LISTING_COMPLETED {
        "a completed listing travels as an observation of its own, not as a fact"
    } else {
        "only the hub decides facts of this kind; a member reports what it observes in its own cluster"
    };
    Err(InvalidFact {
        reason: RefusalReason::NotAMembersFact,
        message: format!("{kind}: {why}"),
    })
}

/// The kind of a fact in one word, for messages.
pub(super) fn name(fact: &Bytes) -> &'static str {
    let known = find(fact, |number| named(number).is_some());
    known.ok().flatten().and_then(named).unwrap_or("fact")
}

fn named(number: u32) -> Option<&'static str> {
    let at = KINDS.binary_search_by_key(&number, |(number, _)| *number);
    at.ok().map(|at| KINDS[at].1)
}

/// The first field of this kind. Fields are passed over by their length.
fn find(fact: &Bytes, wanted: impl Fn(u32) -> bool) -> Result<Option<u32>, DecodeError> {
    let mut rest: &[u8] = fact;
    while rest.has_remaining() {
        let (number, wire_type) = decode_key(&mut rest)?;
        if wanted(number) {
            return Ok(Some(number));
        }
        skip_field(wire_type, number, &mut rest, DecodeContext::default())?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::encode_fact;
    use crate::testing::fact::any_fact;

    proptest! {
        #[test]
        fn every_kind_is_known_by_its_number(fact in any_fact()) {
            let encoded = encode_fact(&fact);
            prop_assert_eq!(name(&encoded.bytes), fact.kind());
            prop_assert_eq!(check_members(&encoded.bytes).is_ok(), fact.key().is_some());
        }
    }

    #[test]
    fn a_kind_of_the_hub_is_found_wherever_it_stands() {
        let left = proto::v1::Fact {
            fact: Some(proto::v1::fact::Fact::MemberLeft(proto::v1::MemberLeft::default())),
        };
        let removed = proto::v1::Fact {
            fact: Some(proto::v1::fact::Fact::ClusterPropertyRemoved(
                proto::v1::ClusterPropertyKey { name: "x".into() },
            )),
        };
        let both = |first: &proto::v1::Fact, second: &proto::v1::Fact| {
            Bytes::from([first.encode_to_vec(), second.encode_to_vec()].concat())
        };
        for bytes in [both(&left, &removed), both(&removed, &left)] {
            assert_eq!(
                check_members(&bytes).unwrap_err().reason,
                RefusalReason::NotAMembersFact
            );
        }
        assert_eq!(check_members(&both(&removed, &removed)), Ok(()));
    }
}
