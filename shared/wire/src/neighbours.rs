//! Compatibility with fields of later releases: their bounds, and what a release without them sends and accepts.

use prost::Message as _;
use proto::v1::{self, agent_message::Message};

use super::{refusals::broken, *};
use model::{
    ChangedBy, EncodedFact, UnixMillis,
    sync::{
        AgentMessage, HUBS_MAX, HubMessage, ITEMS_WANTED_MAX, Observation, ObservedItem,
        PARKED_AGE_MAX_MILLIS, PARKED_NAMED_MAX, SIGNING_REQUEST_BYTES_MAX,
    },
};

#[test]
fn what_is_said_to_be_applied_is_bounded() {
    let heartbeat = |applied: v1::Applied| {
        let applied = Some(applied);
        agent_message_from_proto(v1::AgentMessage {
            message: Some(Message::Heartbeat(v1::Heartbeat { applied })),
        })
    };
    let parked = |parked, oldest_parked_age_millis| v1::Applied {
        cursor: None,
        parked,
        oldest_parked_age_millis,
        parked_services: Vec::new(),
    };
    assert!(heartbeat(parked(u32::MAX, PARKED_AGE_MAX_MILLIS)).is_ok());
    let field = "applied.oldestParkedAgeMillis";
    broken(heartbeat(parked(0, 1)), &format!("{field}: is 1 though nothing"));
    broken(heartbeat(parked(1, PARKED_AGE_MAX_MILLIS + 1)), field);
    let named = vec![v1::ServiceKey::default(); PARKED_NAMED_MAX + 1];
    broken(
        heartbeat(v1::Applied {
            parked_services: named,
            ..parked(65, 0)
        }),
        "applied.parkedServices",
    );
    let cursor = Some(v1::Cursor::default());
    broken(
        heartbeat(v1::Applied {
            cursor,
            ..parked(0, 0)
        }),
        "cursor.epoch: is missing",
    );
}

/// Neighbouring releases leave out what they do not know, and pass over what they do not know.
#[test]
fn messages_of_a_release_without_applied_terms_and_hubs_are_read() {
    let empty = v1::AgentMessage {
        message: Some(Message::Heartbeat(v1::Heartbeat { applied: None })),
    };
    assert_eq!(empty.encode_to_vec(), [0x22, 0x00], "as it was before");
    assert_eq!(agent_message_from_proto(empty), Ok(AgentMessage::Heartbeat(None)));
    let welcome = v1::Welcome {
        epoch: Some(v1::Epoch::default()),
        ..Default::default()
    };
    let welcome = v1::HubMessage {
        message: Some(v1::hub_message::Message::Welcome(welcome)),
    };
    let Ok(HubMessage::Welcome(welcome)) = hub_message_from_proto(welcome) else {
        panic!("a Welcome")
    };
    assert_eq!((welcome.term, welcome.hubs.len()), (0, 0));
}

/// The member's statement about the last writer is for people: a bad one is no reason to refuse the fact beside it.
#[test]
fn who_changed_an_object_rides_beside_the_fact_and_is_dropped_where_it_is_bad() {
    let fact = encode_fact(&model::Fact::ExportUpserted(super::frozen::export().into()));
    let at = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
    let said = |manager: &str, at| {
        let changed_by = Some(v1::ChangedBy {
            manager: manager.into(),
            at,
        });
        observed(&fact, changed_by)
    };
    let by = |observation: &Observation| observation.changed_by.clone();
    let taken = said("kubectl-edit", at(1_767_323_045, 0));
    let expected = ChangedBy::new("kubectl-edit", UnixMillis(1_767_323_045_000));
    assert_eq!(by(&taken), expected);
    let ObservedItem::Fact(known) = &taken.item else {
        panic!("a fact")
    };
    assert_eq!(
        (&known.bytes, known.hash),
        (&fact.bytes, fact.hash),
        "no part of it"
    );
    let last = 253_402_300_799;
    for bad in [
        observed(&fact, None),
        said("", at(1, 0)),
        said(&"m".repeat(129), at(1, 0)),
        said("a\u{1b}[2J", at(1, 0)),
        said("kubectl", None),
        said("kubectl", at(1, 1)),
        said("kubectl", at(-1, 0)),
        said("kubectl", at(last + 1, 0)),
        said("kubectl", at(i64::MAX, 0)),
    ] {
        assert_eq!(by(&bad), None);
        assert_eq!(bad.item, taken.item, "it is taken all the same");
    }
    assert!(by(&said("kubectl", at(last, 0))).is_some());
}

fn observed(fact: &EncodedFact, changed_by: Option<v1::ChangedBy>) -> Observation {
    let observations = vec![v1::Observation {
        sequence: 1,
        observation: Some(v1::observation::Observation::Fact(fact.bytes.clone())),
        changed_by,
    }];
    let message = Message::Observations(v1::Observations { observations });
    let message = agent_message_from_proto(v1::AgentMessage {
        message: Some(message),
    });
    let Ok(AgentMessage::Observations(mut taken)) = message else {
        panic!("observations")
    };
    taken.remove(0)
}

#[test]
fn a_welcome_names_a_bounded_number_of_hubs() {
    let welcome = |hubs: Vec<v1::HubAddress>| {
        let epoch = Some(v1::Epoch::default());
        let welcome = v1::Welcome {
            epoch,
            hubs,
            ..Default::default()
        };
        hub_message_from_proto(v1::HubMessage {
            message: Some(v1::hub_message::Message::Welcome(welcome)),
        })
    };
    let hub = |name: &str, address: &str| v1::HubAddress {
        name: name.into(),
        address: address.into(),
    };
    assert!(welcome(vec![hub("h1", ""); HUBS_MAX]).is_ok());
    broken(welcome(vec![hub("h1", ""); HUBS_MAX + 1]), "are 17; at most 16");
    broken(welcome(vec![hub("", "https://h1:8443")]), "welcome.hubs[0].name");
    broken(
        welcome(vec![hub("h1", &"x".repeat(513))]),
        "welcome.hubs[0].address",
    );
}

#[test]
fn requests_for_certificates_are_bounded() {
    let asked = |bytes: usize| {
        let certificate_signing_request = vec![1; bytes];
        agent_message_from_proto(v1::AgentMessage {
            message: Some(Message::RenewalRequested(v1::RenewalRequested {
                certificate_signing_request,
            })),
        })
    };
    assert!(asked(SIGNING_REQUEST_BYTES_MAX).is_ok());
    broken(asked(SIGNING_REQUEST_BYTES_MAX + 1), "has 4097 bytes");
    broken(asked(0), "has 0 bytes");
}

#[test]
fn what_is_asked_for_whole_is_bounded_and_named_in_full() {
    let wanted = |keys: Vec<v1::DesiredKey>| {
        agent_message_from_proto(v1::AgentMessage {
            message: Some(Message::ItemsWanted(v1::ItemsWanted { keys })),
        })
    };
    let slice = |source_slice: &str| {
        let service = v1::ServiceKey {
            namespace: "shop".into(),
            name: "cart".into(),
        };
        v1::DesiredKey {
            key: Some(v1::desired_key::Key::ImportedSlice(v1::ImportedSliceKey {
                service: Some(service),
                source_cluster: "east".into(),
                source_slice: source_slice.into(),
            })),
        }
    };
    assert!(wanted(vec![slice("cart-1"); ITEMS_WANTED_MAX]).is_ok());
    broken(
        wanted(vec![slice("cart-1"); ITEMS_WANTED_MAX + 1]),
        "itemsWanted.keys: are 257; at most 256 are taken in one message",
    );
    broken(wanted(Vec::new()), "itemsWanted.keys: are none; name what");
    let nothing = v1::DesiredKey { key: None };
    broken(wanted(vec![nothing]), "itemsWanted.keys[0].key: is missing");
    broken(
        wanted(vec![slice("cart-1"), slice(&"x".repeat(254))]),
        "itemsWanted.keys[1].sourceSlice: has 254 bytes",
    );
}

/// A hub of before passes over the new kind of message as one without content, and is never sent it: it sends no
/// differences. An agent of before has not the feature, and is sent none.
#[test]
fn differences_and_what_is_wanted_have_no_bytes_in_messages_of_before() {
    let pong = v1::AgentMessage {
        message: Some(Message::Pong(v1::Pong {
            nonce: 1,
            leads: None,
        })),
    };
    assert_eq!(pong.encode_to_vec(), [0x32, 0x02, 0x08, 0x01], "as it was before");
    let unknown: &[u8] = &[0x08, 0x07, 0x7a, 0x00];
    let told = decode_told(bytes::Bytes::from_static(unknown));
    let refused = told.expect_err("a kind of the next release").to_string();
    assert!(refused.contains("it is of an unknown kind"), "{refused}");
}
