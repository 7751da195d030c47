//! Owns: a stranger's Hello, in the name of a member or under an id of its own.
//! Never: says more than that, or answers: what is admitted so holds a place and is silent.

use std::collections::BTreeSet;

use model::{
    Epoch, KeyFingerprint,
    sync::{AgentMessage, Hello, Interest, Namespaces, PROTOCOL_VERSION},
};
use prost::Message;

use super::KEY;
use crate::network::{Network, StreamId};

/// A key that no member of this number has.
pub(crate) fn strange_key(number: u8) -> KeyFingerprint {
    let mut key = [KEY; 32];
    key[1] = number;
    KeyFingerprint(key)
}

/// Opens a stream and says a Hello of a cluster with this fingerprint, which knows this epoch.
pub(crate) fn knock(network: &mut Network, fingerprint: &str, known: Option<Epoch>) -> StreamId {
    let stream = network.open_elsewhere();
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        agent_version: "swarm".into(),
        highest_epoch: known,
        cluster_fingerprint: fingerprint.into(),
        instance: format!("stranger-{stream}").into(),
        lease_transitions: 0,
        cursor: None,
        exports_digest: None,
        properties_digest: None,
        sources_held: BTreeSet::new(),
        interest: Interest {
            generation: 1,
            namespaces: Namespaces::All,
        },
    };
    if let Some(opened) = network.streams.get_mut(&stream) {
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        opened.to_hub.push_back(hello.encode_to_vec());
    }
    stream
}
