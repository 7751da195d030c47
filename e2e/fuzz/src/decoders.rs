//! Owns: every decoder that a peer reaches, each as a function over bytes: the targets that are fuzzed.
//! Never: bounds its input; whoever calls a decoder does, and a fuzzer is told the same bound.
//!
//! A decoder that takes bytes returns true. What it must keep beside that is asserted here, so that a fuzzer finds a
//! broken promise as it finds a panic.

use bytes::Bytes;
use hub::{
    certs::SigningRequest,
    membership::JoinWish,
    snapshot,
    topology::admission::{Beside, Review},
};
use prost::Message as _;
use proto::v1;
use shared::{
    difference,
    identity::CertificateFacts,
    model::{JoinString, Revision},
    tls::frames_are_read_however_they_are_cut,
    wire,
};

/// A decoder: true if it takes the bytes.
pub type Decoder = fn(&[u8]) -> bool;

/// The targets by name: each has a file in `fuzz_targets`.
pub const TARGETS: [(&str, Decoder); 14] = [
    ("admission_reviews", admission_review),
    ("agent_messages", agent_message),
    ("certificates", certificate),
    ("control_frames", control_frames),
    ("desired_items", desired_item),
    ("differences", item_difference),
    ("events", event),
    ("facts", fact),
    ("hub_messages", hub_message),
    ("join_requests", join_request),
    ("join_strings", join_string),
    ("policies", policy),
    ("signing_requests", signing_request),
    ("snapshot_rows", snapshot_row),
];

/// Decodes an agent's message, as the hub does.
pub fn agent_message(bytes: &[u8]) -> bool {
    let Ok(message) = v1::AgentMessage::decode(bytes) else {
        return false;
    };
    let _ = wire::agent_message_kind(&message);
    wire::agent_message_from_proto(message).is_ok()
}

/// Decodes a hub's message, as the agent does.
pub fn hub_message(bytes: &[u8]) -> bool {
    let Ok(message) = v1::HubMessage::decode(bytes) else {
        return false;
    };
    wire::hub_message_from_proto(message).is_ok()
}

/// A fact of a member. What is taken is recorded, and must be read back as it was.
pub fn fact(bytes: &[u8]) -> bool {
    let recorded = wire::decode_recorded_fact(Bytes::copy_from_slice(bytes));
    let Ok(taken) = wire::decode_member_fact(Bytes::copy_from_slice(bytes)) else {
        return false;
    };
    assert_eq!(
        recorded,
        Ok(taken),
        "what was taken from a member is read otherwise"
    );
    true
}

/// A derived object, whole or as the difference to the one that was sent before.
pub fn desired_item(bytes: &[u8]) -> bool {
    wire::decode_told(Bytes::copy_from_slice(bytes)).is_ok()
}

/// A difference over a base: the first two bytes say how long the base is.
pub fn item_difference(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return false;
    };
    let base = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let (base, difference) = rest.split_at(base);
    match difference::restore(base, difference) {
        Ok(whole) => whole.len() <= difference::WHOLE_MAX,
        Err(_) => false,
    }
}

/// An event of a log, as a backup from elsewhere has it.
pub fn event(bytes: &[u8]) -> bool {
    wire::decode_event(Revision(1), Bytes::copy_from_slice(bytes)).is_ok()
}

/// A row of a snapshot. What is read is written so that it is read again.
pub fn snapshot_row(bytes: &[u8]) -> bool {
    let Ok(row) = snapshot::decode_row(bytes) else {
        return false;
    };
    let written = snapshot::encode_row(&row);
    assert!(snapshot::decode_row(&written).is_ok(), "a row is not read again");
    true
}

/// A policy document.
pub fn policy(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| wire::read_policy(text).is_ok())
}

/// A join string. One that is read is written as one that says the same.
pub fn join_string(bytes: &[u8]) -> bool {
    let Some(join) = std::str::from_utf8(bytes).ok().map(JoinString::parse) else {
        return false;
    };
    let Ok(join) = join else { return false };
    if let Some(text) = join.encode() {
        assert_eq!(JoinString::parse(&text), Ok(join));
    }
    true
}

/// The bytes of a client after its handshake, as far as control frames are counted. The first byte says how they are cut.
pub fn control_frames(bytes: &[u8]) -> bool {
    let Some((part, bytes)) = bytes.split_first() else {
        return false;
    };
    frames_are_read_however_they_are_cut(bytes, usize::from(*part))
}

/// A stranger's request to join.
pub fn join_request(bytes: &[u8]) -> bool {
    v1::JoinRequest::decode(bytes).is_ok_and(|request| JoinWish::read(&request).is_ok())
}

/// A request for a certificate, of a stranger who has a token or of a member that renews.
pub fn signing_request(bytes: &[u8]) -> bool {
    SigningRequest::read(bytes).is_ok()
}

/// A peer's certificate.
pub fn certificate(bytes: &[u8]) -> bool {
    CertificateFacts::read(bytes).is_ok()
}

/// A question of an API server, with its answer where nothing stands beside the object.
pub fn admission_review(bytes: &[u8]) -> bool {
    let Ok(review) = Review::read(bytes) else {
        return false;
    };
    let _ = review.judge(&Beside::default()).to_json();
    true
}
