//! Properties of the edge: whatever goes out comes back, and whatever comes in never panics.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::{prelude::*, sample::Index, strategy::ValueTree as _, test_runner::TestRunner};
use prost::Message as _;
use proto::v1;

use super::*;
use crate::testing::{
    desired::desired_item,
    fact::{any_fact, event, member_fact},
    message::{agent_message, hub_message},
};
use model::{ChainHash, Revision, validate};

proptest! {
    #[test]
    fn a_members_fact_is_taken_as_it_was_sent(fact in member_fact()) {
        let sent = encode_fact(&fact);
        prop_assert_eq!(decode_member_fact(sent.bytes.clone()), Ok(sent));
    }

    #[test]
    fn a_recorded_fact_of_any_kind_is_read_back(fact in any_fact()) {
        let recorded = encode_fact(&fact);
        prop_assert_eq!(decode_recorded_fact(recorded.bytes.clone()), Ok(recorded));
    }

    #[test]
    fn a_member_cannot_report_what_only_the_hub_decides(fact in any_fact()) {
        let taken = decode_member_fact(encode_fact(&fact).bytes);
        prop_assert_eq!(taken.is_ok(), fact.key().is_some());
    }

    #[test]
    fn an_event_is_read_back_and_shown(event in event(), hash in any::<[u8; 16]>()) {
        let bytes = Bytes::from(encode_event(&event));
        prop_assert_eq!(decode_event(event.revision, bytes), Ok(event.clone()));
        let view = event_to_view(&event, ChainHash(hash));
        prop_assert_eq!(view.hash.len(), 32);
        prop_assert_eq!(view.fact.unwrap().encode_to_vec(), event.fact.bytes);
    }

    #[test]
    fn an_event_is_read_back_from_its_difference(
        event in event(), place in any::<Index>(), put: Vec<u8>, other: Vec<u8>,
    ) {
        let mut base = event.fact.bytes.to_vec();
        let place = place.index(base.len() + 1);
        base.splice(place..place, put);
        let at = Revision(event.revision.0 / 2);
        if at.0 > 0 && let Some(bytes) = encode_event_over(&event, at, &base) {
            let recorded = parse_event(event.revision, bytes.clone().into()).unwrap();
            prop_assert_eq!(recorded.fact(), StoredFact::Over(at));
            prop_assert_eq!(recorded.recorded_at(), event.recorded_at);
            prop_assert!(decode_event(event.revision, bytes.into()).is_err());
            if let Ok(fact) = recorded.restore(&other) {
                prop_assert_eq!(&fact, &event.fact.bytes);
            }
            let fact = recorded.restore(&base).unwrap();
            prop_assert_eq!(recorded.into_event(fact), Ok(event));
        }
    }

    #[test]
    fn a_derived_object_is_read_back(item in desired_item()) {
        prop_assert_eq!(decode_desired(encode_desired(&item)), Ok(item));
    }

    #[test]
    fn an_agents_message_is_read_back(message in agent_message()) {
        let bytes = agent_message_to_proto(message.clone()).encode_to_vec();
        let sent = v1::AgentMessage::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(agent_message_from_proto(sent), Ok(message));
    }

    #[test]
    fn a_hubs_message_is_read_back(message in hub_message()) {
        let bytes = hub_message_to_proto(message.clone()).encode_to_vec();
        let sent = v1::HubMessage::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(hub_message_from_proto(sent), Ok(message));
    }

    #[test]
    fn damaged_bytes_are_refused_or_still_keep_every_rule(
        fact in member_fact(), place in any::<Index>(), flip in 1..=u8::MAX, cut in any::<Option<Index>>(),
    ) {
        let mut bytes = encode_fact(&fact).bytes.to_vec();
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let bytes = Bytes::from(bytes);
        match decode_member_fact(bytes.clone()) {
            Ok(taken) => {
                prop_assert_eq!(validate::fact(&taken.fact), Ok(()));
                prop_assert_eq!(taken.bytes, bytes);
            }
            Err(refused) => prop_assert!(!refused.message.is_empty()),
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = decode_member_fact(bytes.clone());
        let _ = decode_recorded_fact(bytes.clone());
        let _ = decode_desired(bytes.clone());
        let _ = decode_told(bytes.clone());
        let _ = decode_event(Default::default(), bytes.clone());
        let _ = v1::AgentMessage::decode(bytes.clone()).map(agent_message_from_proto);
        let _ = v1::HubMessage::decode(bytes).map(hub_message_from_proto);
    }
}

/// The properties above would be worth little if the generators left kinds out.
#[test]
fn the_generators_reach_every_kind() {
    let mut runner = TestRunner::deterministic();
    let mut generate = || any_fact().new_tree(&mut runner).unwrap().current();
    let kinds: BTreeSet<&str> = (0..512).map(|_| generate().kind()).collect();
    assert_eq!(kinds.len(), 36, "{kinds:?}");
}
