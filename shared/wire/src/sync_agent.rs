//! The agent's messages ↔ protobuf.

use std::collections::BTreeSet;

use bytes::Bytes;
use proto::v1::{self, agent_message::Message, observation};

use super::{
    changed_by,
    common::{
        Taken, at_most, cluster_from_proto, cursor_from_proto, cursor_to_proto, each, epoch_from_proto,
        epoch_to_proto, fixed_bytes, group_from_proto, group_to_proto, names_to_proto, namespaces_from_proto,
        required, service_key_from_proto, service_key_to_proto,
    },
    fact::decode_member_fact,
    item_key,
};
use model::{
    ClusterId, FactsDigest,
    fact::IDENTITY_STRING_BYTES_MAX,
    sync::{
        AgentMessage, AgentMessageKind, Applied, DesiredKey, Hello, INTEREST_NAMESPACES_MAX,
        ITEMS_WANTED_MAX, Interest, Namespaces, Observation, ObservedItem, PARKED_AGE_MAX_MILLIS,
        PARKED_NAMED_MAX, Pong, RefusalReason, Refused, SIGNING_REQUEST_BYTES_MAX, SOURCES_HELD_MAX,
    },
    validate::{self, InvalidValue},
};

/// Most observations in one message.
const MESSAGE_OBSERVATIONS_MAX: usize = 65_536;

pub(super) fn to_proto(message: AgentMessage) -> v1::AgentMessage {
    let message = match message {
        AgentMessage::Hello(hello) => Message::Hello(hello_to_proto(*hello)),
        AgentMessage::Observations(observations) => Message::Observations(v1::Observations {
            observations: observations.into_iter().map(observation_to_proto).collect(),
        }),
        AgentMessage::InterestChanged {
            generation,
            added,
            removed,
        } => Message::InterestChanged(v1::InterestChanged {
            generation,
            added: names_to_proto(added),
            removed: names_to_proto(removed),
        }),
        AgentMessage::Heartbeat(applied) => Message::Heartbeat(v1::Heartbeat {
            applied: applied.map(applied_to_proto),
        }),
        AgentMessage::Goodbye => Message::Goodbye(v1::Goodbye {}),
        AgentMessage::Pong(Pong { nonce, leads }) => Message::Pong(v1::Pong { nonce, leads }),
        AgentMessage::ItemsWanted(keys) => Message::ItemsWanted(v1::ItemsWanted {
            keys: keys.iter().map(item_key::key_to_proto).collect(),
        }),
        AgentMessage::RenewalRequested(request) => Message::RenewalRequested(v1::RenewalRequested {
            certificate_signing_request: request.into(),
        }),
    };
    v1::AgentMessage {
        message: Some(message),
    }
}

pub(super) fn kind(message: &v1::AgentMessage) -> AgentMessageKind {
    match &message.message {
        Some(Message::Hello(_)) => AgentMessageKind::Hello,
        Some(Message::Heartbeat(_)) => AgentMessageKind::Heartbeat,
        Some(Message::Goodbye(_)) => AgentMessageKind::Goodbye,
        Some(Message::Pong(_)) => AgentMessageKind::Pong,
        _ => AgentMessageKind::Other,
    }
}

pub(super) fn from_proto(message: v1::AgentMessage) -> Taken<AgentMessage> {
    Ok(match required("message", message.message)? {
        Message::Hello(hello) => AgentMessage::Hello(Box::new(hello_from_proto(hello)?)),
        Message::Observations(observations) => {
            at_most(
                "observations",
                &observations.observations,
                MESSAGE_OBSERVATIONS_MAX,
            )?;
            AgentMessage::Observations(
                observations
                    .observations
                    .into_iter()
                    .map(observation_from_proto)
                    .collect(),
            )
        }
        Message::InterestChanged(change) => AgentMessage::InterestChanged {
            generation: change.generation,
            added: namespaces_from_proto("interestChanged.added", change.added, INTEREST_NAMESPACES_MAX)?,
            removed: namespaces_from_proto(
                "interestChanged.removed",
                change.removed,
                INTEREST_NAMESPACES_MAX,
            )?,
        },
        Message::Heartbeat(heartbeat) => {
            AgentMessage::Heartbeat(heartbeat.applied.map(applied_from_proto).transpose()?)
        }
        Message::Goodbye(_) => AgentMessage::Goodbye,
        Message::Pong(v1::Pong { nonce, leads }) => AgentMessage::Pong(Pong { nonce, leads }),
        Message::ItemsWanted(wanted) => AgentMessage::ItemsWanted(wanted_from_proto(wanted)?),
        Message::RenewalRequested(requested) => {
            AgentMessage::RenewalRequested(requested_from_proto(requested)?)
        }
    })
}

fn wanted_from_proto(wanted: v1::ItemsWanted) -> Taken<BTreeSet<DesiredKey>> {
    let field = "itemsWanted.keys";
    at_most(field, &wanted.keys, ITEMS_WANTED_MAX)?;
    if wanted.keys.is_empty() {
        return Err(InvalidValue::new(
            field,
            "are none; name what is to be sent whole",
        ));
    }
    let keys = each(field, wanted.keys, item_key::key_from_proto)?;
    Ok(keys.into_iter().collect())
}

fn requested_from_proto(requested: v1::RenewalRequested) -> Taken<Bytes> {
    let request = Bytes::from(requested.certificate_signing_request);
    if request.is_empty() || request.len() > SIGNING_REQUEST_BYTES_MAX {
        let problem = format!(
            "has {} bytes; 1 to {SIGNING_REQUEST_BYTES_MAX} are taken",
            request.len()
        );
        return Err(InvalidValue::new(
            "renewalRequested.certificateSigningRequest",
            problem,
        ));
    }
    Ok(request)
}

fn hello_to_proto(hello: Hello) -> v1::Hello {
    v1::Hello {
        protocol_version: hello.protocol_version,
        features: hello.features,
        agent_version: hello.agent_version.into(),
        highest_epoch: hello.highest_epoch.map(epoch_to_proto),
        cluster_fingerprint: hello.cluster_fingerprint.into(),
        instance: hello.instance.into(),
        lease_transitions: hello.lease_transitions,
        cursor: hello.cursor.map(cursor_to_proto),
        exports_digest: hello.exports_digest.map(|digest| digest.0.to_vec()),
        properties_digest: hello.properties_digest.map(|digest| digest.0.to_vec()),
        sources_held: hello.sources_held.iter().map(ToString::to_string).collect(),
        interest: Some(interest_to_proto(hello.interest)),
    }
}

fn hello_from_proto(hello: v1::Hello) -> Taken<Hello> {
    validate::identity("hello.clusterFingerprint", &hello.cluster_fingerprint)?;
    validate::identity("hello.instance", &hello.instance)?;
    validate::bounded_text(
        "hello.agentVersion",
        &hello.agent_version,
        IDENTITY_STRING_BYTES_MAX,
    )?;
    Ok(Hello {
        protocol_version: hello.protocol_version,
        features: hello.features,
        agent_version: hello.agent_version.into(),
        highest_epoch: hello.highest_epoch.map(epoch_from_proto),
        cluster_fingerprint: hello.cluster_fingerprint.into(),
        instance: hello.instance.into(),
        lease_transitions: hello.lease_transitions,
        cursor: hello.cursor.map(cursor_from_proto).transpose()?,
        exports_digest: digest_from_proto("hello.exportsDigest", hello.exports_digest)?,
        properties_digest: digest_from_proto("hello.propertiesDigest", hello.properties_digest)?,
        sources_held: sources_from_proto(&hello.sources_held)?,
        interest: interest_from_proto(required("hello.interest", hello.interest)?)?,
    })
}

fn applied_to_proto(applied: Applied) -> v1::Applied {
    v1::Applied {
        cursor: applied.cursor.map(cursor_to_proto),
        parked: applied.parked,
        oldest_parked_age_millis: applied.oldest_parked_age_millis,
        parked_services: applied.parked_services.iter().map(service_key_to_proto).collect(),
    }
}

fn applied_from_proto(applied: v1::Applied) -> Taken<Applied> {
    let (parked, age) = (applied.parked, applied.oldest_parked_age_millis);
    let field = "applied.oldestParkedAgeMillis";
    if parked == 0 && age > 0 {
        let problem = format!("is {age} though nothing is parked; leave it out");
        return Err(InvalidValue::new(field, problem));
    }
    if age > PARKED_AGE_MAX_MILLIS {
        let problem = format!("is {age}; at most {PARKED_AGE_MAX_MILLIS} are taken");
        return Err(InvalidValue::new(field, problem));
    }
    let field = "applied.parkedServices";
    at_most(field, &applied.parked_services, PARKED_NAMED_MAX)?;
    let parked_services = each(field, applied.parked_services, |key| {
        service_key_from_proto("service", Some(key))
    })?;
    Ok(Applied {
        cursor: applied.cursor.map(cursor_from_proto).transpose()?,
        parked,
        oldest_parked_age_millis: age,
        parked_services: parked_services.into_iter().collect(),
    })
}

fn digest_from_proto(field: &str, digest: Option<Vec<u8>>) -> Taken<Option<FactsDigest>> {
    digest
        .map(|bytes| fixed_bytes(field, &bytes).map(FactsDigest))
        .transpose()
}

fn sources_from_proto(sources: &[String]) -> Taken<BTreeSet<ClusterId>> {
    at_most("hello.sourcesHeld", sources, SOURCES_HELD_MAX)?;
    sources
        .iter()
        .map(|source| cluster_from_proto("hello.sourcesHeld", source))
        .collect()
}

fn interest_to_proto(interest: Interest) -> v1::Interest {
    let (all, namespaces) = match interest.namespaces {
        Namespaces::All => (true, Vec::new()),
        Namespaces::Only(names) => (false, names_to_proto(names)),
    };
    v1::Interest {
        generation: interest.generation,
        all,
        namespaces,
    }
}

fn interest_from_proto(interest: v1::Interest) -> Taken<Interest> {
    let named = namespaces_from_proto(
        "hello.interest.namespaces",
        interest.namespaces,
        INTEREST_NAMESPACES_MAX,
    )?;
    let namespaces = if interest.all {
        Namespaces::All
    } else {
        Namespaces::Only(named)
    };
    Ok(Interest {
        generation: interest.generation,
        namespaces,
    })
}

fn observation_to_proto(observation: Observation) -> v1::Observation {
    let item = match observation.item {
        ObservedItem::Fact(fact) => Some(observation::Observation::Fact(fact.bytes)),
        ObservedItem::ListingCompleted(group) => {
            Some(observation::Observation::ListingCompleted(group_to_proto(group)))
        }
        ObservedItem::Invalid(_) => None,
    };
    v1::Observation {
        sequence: observation.sequence,
        observation: item,
        changed_by: observation.changed_by.as_ref().map(changed_by::to_proto),
    }
}

/// Never fails: what cannot be taken is refused item by item.
fn observation_from_proto(observation: v1::Observation) -> Observation {
    let sequence = observation.sequence;
    let changed_by = changed_by::from_proto(observation.changed_by);
    let unknown = |message: String| (RefusalReason::UnknownKind, message);
    let taken = match observation.observation {
        Some(observation::Observation::Fact(bytes)) => decode_member_fact(bytes)
            .map(ObservedItem::Fact)
            .map_err(|error| (error.reason, error.message)),
        Some(observation::Observation::ListingCompleted(group)) => group_from_proto(group)
            .map(ObservedItem::ListingCompleted)
            .map_err(|problem| unknown(format!("listing completed: {problem}"))),
        None => Err(unknown(
            "the observation is of a kind that this hub does not know; update the hub".into(),
        )),
    };
    let item = taken.unwrap_or_else(|(reason, message)| {
        ObservedItem::Invalid(Refused {
            sequence,
            reason,
            message: message.into(),
        })
    });
    Observation {
        sequence,
        item,
        changed_by,
    }
}
