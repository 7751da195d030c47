//! Generators of the messages of a session, in both directions.

use std::sync::Arc;

use bytes::Bytes;
use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
    sample::select,
};

use super::{
    cluster_id, cursor,
    desired::{desired_item, desired_key},
    epoch,
    fact::{changed_by, listing_group, member_fact},
    identity, namespaces, service_key,
};
use crate::{encode_desired, encode_fact};
use model::{
    Arrival, FactsDigest, Lack, Revision, SessionId,
    policy::LossAction,
    sync::{
        AgentMessage, Applied, ArrivedServices, Hello, HubAddress, HubMessage, Interest, Namespaces,
        Observation, ObservedItem, PARKED_AGE_MAX_MILLIS, Pong, RefusalReason, Refused, Renewed, Source,
        SourceState, UpTo, Welcome,
    },
};

/// An interest.
pub fn interest() -> impl Strategy<Value = Interest> {
    let which = prop_oneof![1 => Just(Namespaces::All), 3 => namespaces().prop_map(Namespaces::Only)];
    (any::<u64>(), which).prop_map(|(generation, namespaces)| Interest {
        generation,
        namespaces,
    })
}

/// A Hello.
pub fn hello() -> impl Strategy<Value = Hello> {
    let digest = || option::of(any::<[u8; 16]>().prop_map(FactsDigest));
    let numbers = any::<(u32, u64, i64)>();
    let texts = (identity(), identity(), identity());
    let known = (option::of(epoch()), option::of(cursor()), digest(), digest());
    (numbers, texts, known, btree_set(cluster_id(), 0..4), interest()).prop_map(
        |(numbers, texts, known, sources_held, interest)| Hello {
            protocol_version: numbers.0,
            features: numbers.1,
            lease_transitions: numbers.2,
            agent_version: texts.0,
            cluster_fingerprint: texts.1,
            instance: texts.2,
            highest_epoch: known.0,
            cursor: known.1,
            exports_digest: known.2,
            properties_digest: known.3,
            sources_held,
            interest,
        },
    )
}

/// An observation that can be sent.
pub fn observation() -> impl Strategy<Value = Observation> {
    let item = prop_oneof![
        4 => member_fact().prop_map(|fact| ObservedItem::Fact(encode_fact(&fact))),
        1 => listing_group().prop_map(ObservedItem::ListingCompleted),
    ];
    (any::<u64>(), item, option::of(changed_by())).prop_map(|(sequence, item, changed_by)| Observation {
        sequence,
        item,
        changed_by,
    })
}

/// The applied position of a member's cluster.
pub fn applied() -> impl Strategy<Value = Applied> {
    let parked = prop_oneof![Just((0, 0)), (1..=u32::MAX, 0..=PARKED_AGE_MAX_MILLIS)];
    let named = btree_set(service_key(), 0..4);
    (option::of(cursor()), parked, named).prop_map(
        |(cursor, (parked, oldest_parked_age_millis), parked_services)| Applied {
            cursor,
            parked,
            oldest_parked_age_millis,
            parked_services,
        },
    )
}

/// Services and where they arrived.
fn arrived() -> impl Strategy<Value = ArrivedServices> {
    let lack = select(vec![
        Lack::NoNamespace,
        Lack::Withheld,
        Lack::NotWritten,
        Lack::Waits,
        Lack::NotKnown,
    ]);
    let clusters = btree_set(cluster_id(), 0..4);
    let lacking = btree_map(cluster_id(), lack, 0..4);
    (btree_set(service_key(), 1..4), clusters, lacking).prop_map(|(services, clusters, mut lacking)| {
        lacking.retain(|cluster, _| !clusters.contains(cluster));
        ArrivedServices {
            services,
            arrival: Arc::new(Arrival { clusters, lacking }),
        }
    })
}

/// Bytes in the place of a certificate.
fn certificate() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 1..9).prop_map(Bytes::from)
}

/// A message of an agent.
pub fn agent_message() -> impl Strategy<Value = AgentMessage> {
    prop_oneof![
        hello().prop_map(|hello| AgentMessage::Hello(Box::new(hello))),
        vec(observation(), 0..4).prop_map(AgentMessage::Observations),
        (any::<u64>(), namespaces(), namespaces()).prop_map(|(generation, added, removed)| {
            AgentMessage::InterestChanged {
                generation,
                added,
                removed,
            }
        }),
        option::of(applied()).prop_map(AgentMessage::Heartbeat),
        Just(AgentMessage::Goodbye),
        (any::<u64>(), option::of(any::<bool>()))
            .prop_map(|(nonce, leads)| AgentMessage::Pong(Pong { nonce, leads })),
        btree_set(desired_key(), 1..4).prop_map(AgentMessage::ItemsWanted),
        certificate().prop_map(AgentMessage::RenewalRequested),
    ]
}

/// A source.
pub fn source() -> impl Strategy<Value = Source> {
    let state = select(vec![
        SourceState::Live,
        SourceState::Suspect,
        SourceState::Lost,
        SourceState::Left,
        SourceState::Evicted,
        SourceState::Forgotten,
    ]);
    let on_loss = option::of(select(vec![
        LossAction::Withdraw,
        LossAction::NotReady,
        LossAction::Retain,
    ]));
    let told = (cluster_id(), state, any::<bool>(), any::<bool>(), on_loss);
    told.prop_map(|(cluster, state, listed, ended, on_loss)| Source {
        cluster,
        state,
        listed,
        ended,
        on_loss,
    })
}

/// A hub.
pub fn hub_address() -> impl Strategy<Value = HubAddress> {
    (identity(), option::of(identity())).prop_map(|(name, address)| HubAddress { name, address })
}

/// A Welcome.
pub fn welcome() -> impl Strategy<Value = Welcome> {
    let wide = any::<[u64; 4]>();
    (
        wide,
        any::<[u32; 4]>(),
        any::<[bool; 3]>(),
        (identity(), identity(), epoch()),
        vec(hub_address(), 0..3),
    )
        .prop_map(|(wide, narrow, flags, (hub_version, hub, epoch), hubs)| Welcome {
            protocol_version: narrow[0],
            features: wide[0],
            hub_version,
            hub,
            epoch,
            resume: flags[0],
            list_exports: flags[1],
            list_properties: flags[2],
            session: SessionId(wide[1]),
            incarnation: Revision(wide[2]),
            heartbeat_interval_millis: narrow[1],
            silence_max_millis: narrow[2],
            unacknowledged_max: narrow[3],
            term: wide[3],
            hubs,
        })
}

/// A refusal.
pub fn refused() -> impl Strategy<Value = Refused> {
    let reason = select(vec![
        RefusalReason::Invalid,
        RefusalReason::UnknownKind,
        RefusalReason::TimestampChanged,
        RefusalReason::NotAMembersFact,
        RefusalReason::TooMany,
        RefusalReason::NoRoom,
        RefusalReason::OverBudget,
    ]);
    (any::<u64>(), reason, ".{0,20}").prop_map(|(sequence, reason, message)| Refused {
        sequence,
        reason,
        message: message.into(),
    })
}

/// An up-to.
pub fn up_to() -> impl Strategy<Value = UpTo> {
    (any::<u64>(), cursor()).prop_map(|(interest_generation, cursor)| UpTo {
        interest_generation,
        cursor,
    })
}

/// A message of the hub.
pub fn hub_message() -> impl Strategy<Value = HubMessage> {
    let items = vec(desired_item().prop_map(|item| encode_desired(&item)), 0..3);
    prop_oneof![
        welcome().prop_map(|welcome| HubMessage::Welcome(Box::new(welcome))),
        any::<u64>().prop_map(HubMessage::Acknowledged),
        Just(HubMessage::ReportAgain),
        (vec(certificate(), 1..3), vec(certificate(), 0..3)).prop_map(|(certificates, authorities)| {
            HubMessage::RenewalAnswered(Ok(Box::new(Renewed {
                certificates,
                authorities,
            })))
        }),
        Just(HubMessage::RenewalAnswered(Err("no".into()))),
        refused().prop_map(HubMessage::Refused),
        (any::<u64>(), items).prop_map(|(interest_generation, items)| HubMessage::Desired {
            interest_generation,
            items
        }),
        (any::<u64>(), epoch()).prop_map(|(interest_generation, epoch)| HubMessage::SnapshotBegin {
            epoch,
            interest_generation
        }),
        up_to().prop_map(HubMessage::SnapshotComplete),
        (any::<u64>(), namespaces()).prop_map(|(interest_generation, namespaces)| {
            HubMessage::NamespaceComplete {
                interest_generation,
                namespaces,
            }
        }),
        vec(source(), 0..4).prop_map(HubMessage::SourcesChanged),
        up_to().prop_map(HubMessage::UpTo),
        option::of(up_to()).prop_map(HubMessage::Heartbeat),
        any::<u64>().prop_map(HubMessage::Ping),
        vec(arrived(), 1..4).prop_map(HubMessage::ExportsArrived),
    ]
}
