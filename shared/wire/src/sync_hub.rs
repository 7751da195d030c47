//! The hub's messages ↔ protobuf.

use bytes::Bytes;
use proto::v1::{self, hub_message::Message};

use super::arrival;
use super::common::{
    Taken, at_most, cluster_from_proto, cursor_from_proto, cursor_to_proto, each, epoch_from_proto,
    epoch_to_proto, names_to_proto, namespaces_from_proto, required, unknown_value,
};
use model::{
    Revision, SessionId,
    policy::LossAction,
    sync::{
        HUB_ADDRESS_BYTES_MAX, HUBS_MAX, HubAddress, HubMessage, INTEREST_NAMESPACES_MAX, MESSAGE_BYTES_MAX,
        RENEWAL_CERTIFICATES_MAX, RefusalReason, Refused, Renewed, SOURCES_HELD_MAX, Source, SourceState,
        UpTo, Welcome,
    },
    validate,
};

/// Most derived objects in one message.
const MESSAGE_ITEMS_MAX: usize = 65_536;

pub(super) fn to_proto(message: HubMessage) -> v1::HubMessage {
    let message = match message {
        HubMessage::Welcome(welcome) => Message::Welcome(welcome_to_proto(*welcome)),
        HubMessage::Acknowledged(sequence) => Message::Acknowledged(v1::Acknowledged { sequence }),
        HubMessage::Refused(refused) => Message::Refused(v1::Refused {
            sequence: refused.sequence,
            reason: reason_to_proto(refused.reason),
            message: refused.message.to_string(),
        }),
        HubMessage::Desired {
            interest_generation,
            items,
        } => Message::Desired(v1::Desired {
            interest_generation,
            items,
        }),
        HubMessage::SnapshotBegin {
            epoch,
            interest_generation,
        } => Message::SnapshotBegin(v1::SnapshotBegin {
            epoch: Some(epoch_to_proto(epoch)),
            interest_generation,
        }),
        HubMessage::SnapshotComplete(up_to) => Message::SnapshotComplete(v1::SnapshotComplete {
            interest_generation: up_to.interest_generation,
            cursor: Some(cursor_to_proto(up_to.cursor)),
        }),
        HubMessage::NamespaceComplete {
            interest_generation,
            namespaces,
        } => Message::NamespaceComplete(v1::NamespaceComplete {
            interest_generation,
            namespaces: names_to_proto(namespaces),
        }),
        HubMessage::SourcesChanged(sources) => Message::SourcesChanged(v1::SourcesChanged {
            sources: sources.iter().map(source_to_proto).collect(),
        }),
        HubMessage::UpTo(up_to) => Message::UpTo(up_to_to_proto(up_to)),
        HubMessage::Heartbeat(up_to) => Message::Heartbeat(v1::HubHeartbeat {
            up_to: up_to.map(up_to_to_proto),
        }),
        HubMessage::Ping(nonce) => Message::Ping(v1::Ping { nonce }),
        HubMessage::ReportAgain => Message::ReportAgain(v1::ReportAgain {}),
        HubMessage::RenewalAnswered(answer) => Message::RenewalAnswered(answer_to_proto(answer)),
        HubMessage::ExportsArrived(groups) => Message::ExportsArrived(arrival::to_proto(&groups)),
    };
    v1::HubMessage {
        message: Some(message),
    }
}

pub(super) fn from_proto(message: v1::HubMessage) -> Taken<HubMessage> {
    Ok(match required("message", message.message)? {
        Message::Welcome(welcome) => HubMessage::Welcome(Box::new(welcome_from_proto(welcome)?)),
        Message::Acknowledged(acknowledged) => HubMessage::Acknowledged(acknowledged.sequence),
        Message::Refused(refused) => HubMessage::Refused(Refused {
            sequence: refused.sequence,
            reason: reason_from_proto(refused.reason),
            message: refused.message.into(),
        }),
        Message::Desired(desired) => {
            at_most("desired.items", &desired.items, MESSAGE_ITEMS_MAX)?;
            HubMessage::Desired {
                interest_generation: desired.interest_generation,
                items: desired.items,
            }
        }
        Message::SnapshotBegin(begin) => HubMessage::SnapshotBegin {
            epoch: epoch_from_proto(required("snapshotBegin.epoch", begin.epoch)?),
            interest_generation: begin.interest_generation,
        },
        Message::SnapshotComplete(complete) => {
            HubMessage::SnapshotComplete(up_to(complete.interest_generation, complete.cursor)?)
        }
        Message::NamespaceComplete(complete) => HubMessage::NamespaceComplete {
            interest_generation: complete.interest_generation,
            namespaces: namespaces_from_proto(
                "namespaceComplete.namespaces",
                complete.namespaces,
                INTEREST_NAMESPACES_MAX,
            )?,
        },
        Message::SourcesChanged(changed) => HubMessage::SourcesChanged(sources_from_proto(changed.sources)?),
        Message::UpTo(value) => HubMessage::UpTo(up_to(value.interest_generation, value.cursor)?),
        Message::Heartbeat(heartbeat) => {
            let value = heartbeat
                .up_to
                .map(|value| up_to(value.interest_generation, value.cursor));
            HubMessage::Heartbeat(value.transpose()?)
        }
        Message::Ping(ping) => HubMessage::Ping(ping.nonce),
        Message::ReportAgain(v1::ReportAgain {}) => HubMessage::ReportAgain,
        Message::RenewalAnswered(answer) => HubMessage::RenewalAnswered(answer_from_proto(answer)?),
        Message::ExportsArrived(arrived) => HubMessage::ExportsArrived(arrival::from_proto(arrived)?),
    })
}

fn answer_to_proto(answer: Result<Box<Renewed>, Box<str>>) -> v1::RenewalAnswered {
    match answer {
        Ok(renewed) => v1::RenewalAnswered {
            certificates: renewed.certificates.into_iter().map(Into::into).collect(),
            refusal: String::new(),
            authorities: renewed.authorities.into_iter().map(Into::into).collect(),
        },
        Err(refusal) => v1::RenewalAnswered {
            refusal: refusal.into(),
            ..v1::RenewalAnswered::default()
        },
    }
}

fn answer_from_proto(answer: v1::RenewalAnswered) -> Taken<Result<Box<Renewed>, Box<str>>> {
    let of = |field: &'static str, all: Vec<Vec<u8>>| {
        at_most(field, &all, RENEWAL_CERTIFICATES_MAX)?;
        Ok(all.into_iter().map(Bytes::from).collect::<Vec<_>>())
    };
    let certificates = of("renewalAnswered.certificates", answer.certificates)?;
    if certificates.is_empty() {
        return Ok(Err(answer.refusal.into()));
    }
    Ok(Ok(Box::new(Renewed {
        certificates,
        authorities: of("renewalAnswered.authorities", answer.authorities)?,
    })))
}

fn welcome_to_proto(welcome: Welcome) -> v1::Welcome {
    v1::Welcome {
        protocol_version: welcome.protocol_version,
        features: welcome.features,
        hub_version: welcome.hub_version.into(),
        hub: welcome.hub.into(),
        epoch: Some(epoch_to_proto(welcome.epoch)),
        resume: welcome.resume,
        list_exports: welcome.list_exports,
        list_properties: welcome.list_properties,
        session: welcome.session.0,
        incarnation: welcome.incarnation.0,
        heartbeat_interval_millis: welcome.heartbeat_interval_millis,
        silence_max_millis: welcome.silence_max_millis,
        message_bytes_max: MESSAGE_BYTES_MAX as u32,
        unacknowledged_max: welcome.unacknowledged_max,
        term: welcome.term,
        hubs: welcome.hubs.into_iter().map(hub_to_proto).collect(),
    }
}

fn welcome_from_proto(welcome: v1::Welcome) -> Taken<Welcome> {
    Ok(Welcome {
        protocol_version: welcome.protocol_version,
        features: welcome.features,
        hub_version: welcome.hub_version.into(),
        hub: welcome.hub.into(),
        epoch: epoch_from_proto(required("welcome.epoch", welcome.epoch)?),
        resume: welcome.resume,
        list_exports: welcome.list_exports,
        list_properties: welcome.list_properties,
        session: SessionId(welcome.session),
        incarnation: Revision(welcome.incarnation),
        heartbeat_interval_millis: welcome.heartbeat_interval_millis,
        silence_max_millis: welcome.silence_max_millis,
        unacknowledged_max: welcome.unacknowledged_max,
        term: welcome.term,
        hubs: hubs_from_proto(welcome.hubs)?,
    })
}

fn hub_to_proto(hub: HubAddress) -> v1::HubAddress {
    v1::HubAddress {
        name: hub.name.into(),
        address: hub.address.map(String::from).unwrap_or_default(),
    }
}

fn hubs_from_proto(hubs: Vec<v1::HubAddress>) -> Taken<Vec<HubAddress>> {
    at_most("welcome.hubs", &hubs, HUBS_MAX)?;
    each("welcome.hubs", hubs, |hub| {
        validate::bounded_text("name", &hub.name, HUB_ADDRESS_BYTES_MAX)?;
        if !hub.address.is_empty() {
            validate::bounded_text("address", &hub.address, HUB_ADDRESS_BYTES_MAX)?;
        }
        Ok(HubAddress {
            name: hub.name.into(),
            address: Some(hub.address)
                .filter(|address| !address.is_empty())
                .map(Box::from),
        })
    })
}

fn up_to_to_proto(up_to: UpTo) -> v1::UpTo {
    v1::UpTo {
        interest_generation: up_to.interest_generation,
        cursor: Some(cursor_to_proto(up_to.cursor)),
    }
}

fn up_to(interest_generation: u64, cursor: Option<v1::Cursor>) -> Taken<UpTo> {
    Ok(UpTo {
        interest_generation,
        cursor: cursor_from_proto(required("cursor", cursor)?)?,
    })
}

fn source_to_proto(source: &Source) -> v1::Source {
    v1::Source {
        cluster: source.cluster.to_string(),
        state: source_state_to_proto(source.state).into(),
        listed: source.listed,
        ended: source.ended,
        on_loss: loss_policy_to_proto(source.on_loss).into(),
    }
}

fn sources_from_proto(sources: Vec<v1::Source>) -> Taken<Vec<Source>> {
    at_most("sources", &sources, SOURCES_HELD_MAX)?;
    each("sources", sources, |source| {
        Ok(Source {
            cluster: cluster_from_proto("cluster", &source.cluster)?,
            state: source_state_from_proto(source.state)?,
            listed: source.listed,
            ended: source.ended,
            on_loss: loss_policy_from_proto(source.on_loss),
        })
    })
}

fn loss_policy_to_proto(action: Option<LossAction>) -> v1::LossPolicy {
    match action {
        None => v1::LossPolicy::Unspecified,
        Some(LossAction::Withdraw) => v1::LossPolicy::LossWithdraw,
        Some(LossAction::NotReady) => v1::LossPolicy::LossNotReady,
        Some(LossAction::Retain) => v1::LossPolicy::LossRetain,
    }
}

/// An unknown action counts as none: then nothing is removed.
fn loss_policy_from_proto(number: i32) -> Option<LossAction> {
    match v1::LossPolicy::try_from(number) {
        Ok(v1::LossPolicy::LossWithdraw) => Some(LossAction::Withdraw),
        Ok(v1::LossPolicy::LossNotReady) => Some(LossAction::NotReady),
        Ok(v1::LossPolicy::LossRetain) => Some(LossAction::Retain),
        Ok(v1::LossPolicy::Unspecified) | Err(_) => None,
    }
}

pub(super) fn source_state_to_proto(state: SourceState) -> v1::SourceState {
    match state {
        SourceState::Live => v1::SourceState::SourceLive,
        SourceState::Suspect => v1::SourceState::SourceSuspect,
        SourceState::Lost => v1::SourceState::SourceLost,
        SourceState::Left => v1::SourceState::SourceLeft,
        SourceState::Evicted => v1::SourceState::SourceEvicted,
        SourceState::Forgotten => v1::SourceState::SourceForgotten,
    }
}

/// A state that is not known could mean "gone" or not: the difference deletes objects, so it is never guessed.
fn source_state_from_proto(number: i32) -> Taken<SourceState> {
    match v1::SourceState::try_from(number) {
        Ok(v1::SourceState::SourceLive) => Ok(SourceState::Live),
        Ok(v1::SourceState::SourceSuspect) => Ok(SourceState::Suspect),
        Ok(v1::SourceState::SourceLost) => Ok(SourceState::Lost),
        Ok(v1::SourceState::SourceLeft) => Ok(SourceState::Left),
        Ok(v1::SourceState::SourceEvicted) => Ok(SourceState::Evicted),
        Ok(v1::SourceState::SourceForgotten) => Ok(SourceState::Forgotten),
        Ok(v1::SourceState::Unspecified) | Err(_) => Err(unknown_value("state", number)),
    }
}

fn reason_to_proto(reason: RefusalReason) -> i32 {
    match reason {
        RefusalReason::Invalid => v1::RefusalReason::Invalid,
        RefusalReason::UnknownKind => v1::RefusalReason::UnknownKind,
        RefusalReason::TimestampChanged => v1::RefusalReason::TimestampChanged,
        RefusalReason::NotAMembersFact => v1::RefusalReason::NotAMembersFact,
        RefusalReason::TooMany => v1::RefusalReason::TooMany,
        RefusalReason::NoRoom => v1::RefusalReason::NoRoom,
        RefusalReason::OverBudget => v1::RefusalReason::OverBudget,
    }
    .into()
}

/// A newer hub's reason still refuses; its message says why.
fn reason_from_proto(number: i32) -> RefusalReason {
    match v1::RefusalReason::try_from(number) {
        Ok(v1::RefusalReason::UnknownKind) => RefusalReason::UnknownKind,
        Ok(v1::RefusalReason::TimestampChanged) => RefusalReason::TimestampChanged,
        Ok(v1::RefusalReason::NotAMembersFact) => RefusalReason::NotAMembersFact,
        Ok(v1::RefusalReason::TooMany) => RefusalReason::TooMany,
        Ok(v1::RefusalReason::NoRoom) => RefusalReason::NoRoom,
        Ok(v1::RefusalReason::OverBudget) => RefusalReason::OverBudget,
        Ok(v1::RefusalReason::Invalid | v1::RefusalReason::Unspecified) | Err(_) => RefusalReason::Invalid,
    }
}
