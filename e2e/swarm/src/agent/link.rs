//! An agent's side of its session: it opens one, says and reads one message at a time, and gives it up.

use std::collections::BTreeSet;

use agent_core::{
    link::{Beginning, Reaction, Session, touched_by},
    plan::Desired,
};
use agent_engine::watch::Kept;
use model::{
    Export, Fact, KeyFingerprint, UnixMillis,
    sync::{AgentMessage, FEATURE_DIFFERENCES, HubMessage, Interest, Namespaces, ObservedItem, Told},
};
use prost::Message;
use proto::v1;
use tokio::runtime::Runtime;

use oracle::laws::Law;

use super::{Agent, Differences, Network, Open, StreamId};
use crate::{
    histogram::Histogram,
    network::{IN_FLIGHT_MAX, Stream},
};

/// By how much a lie about an age is wrong, in milliseconds.
const FORGED_MILLIS: u64 = 3_600_000;

impl Agent {
    fn interest(&self, generation: u64) -> Interest {
        Interest {
            generation,
            namespaces: Namespaces::Only(self.namespaces()),
        }
    }

    fn namespaces(&self) -> BTreeSet<Box<str>> {
        let all = self.watches.namespaces.all();
        all.iter()
            .map(|namespace| namespace.head().name.clone())
            .collect()
    }

    /// Opens a session, if there is none and the way is free; `clock` is the wall clock. Returns the stream.
    pub(crate) fn connect(
        &mut self,
        site: usize,
        network: &mut Network,
        (now, clock): (u64, UnixMillis),
    ) -> Option<StreamId> {
        if self.session.is_some() || !self.leads() || !self.watches.namespaces.is_listed() {
            return None;
        }
        let stream = network.open(site)?;
        self.generation += 1;
        let interest = self.interest(self.generation);
        let sources_held = self.handle.sources_held();
        let (machine, mut hello) = self.handle.note(|desired| {
            Session::begin(Beginning {
                introduction: &self.introduction,
                known_epoch: self.known_epoch,
                interest,
                sources_held,
                outbox: &mut self.outbox,
                desired,
                now: 0,
                clock,
            })
        });
        self.session = Some(Open {
            stream,
            machine,
            differences: Differences::default(),
            began_at: now,
        });
        if self.is_old {
            hello.features &= !FEATURE_DIFFERENCES;
        }
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        let stream_of = network.streams.get_mut(&stream)?;
        stream_of.to_hub.push_back(hello.encode_to_vec());
        Some(stream)
    }

    /// Says that it shuts down, if it has a session in which there is room to.
    pub(crate) fn say_goodbye(&self, network: &mut Network) {
        let Some(open) = self.session.as_ref().filter(|open| open.machine.is_open()) else {
            return;
        };
        let room = |stream: &&mut Stream| stream.to_hub.len() < IN_FLIGHT_MAX;
        if let Some(stream) = network.streams.get_mut(&open.stream).filter(room) {
            let goodbye = wire::agent_message_to_proto(AgentMessage::Goodbye);
            stream.to_hub.push_back(goodbye.encode_to_vec());
        }
    }

    /// Ends its session.
    pub(crate) fn disconnect(&mut self, network: &mut Network) {
        let Some(open) = self.session.take() else { return };
        network.agent_leaves(open.stream);
        self.outbox.end_session();
        self.handle.note(Desired::session_ended);
    }

    /// Says one thing, if there is anything to say and room. A heartbeat does not count.
    pub(crate) fn speak(
        &mut self,
        network: &mut Network,
        (now, lies): (u64, bool),
        trace: &mut blake3::Hasher,
    ) -> bool {
        self.follow_namespaces();
        let leads = self.may_write();
        let Some(open) = &mut self.session else {
            return false;
        };
        let room = |stream: &&mut Stream| stream.to_hub.len() < IN_FLIGHT_MAX;
        let Some(stream) = network.streams.get_mut(&open.stream).filter(room) else {
            return false;
        };
        let standing = (self.handle.reach_at(now), leads);
        let Some(mut message) = open.machine.poll(&mut self.outbox, standing, now - open.began_at) else {
            return false;
        };
        if lies {
            forge_ages(&mut message);
        }
        let idle = matches!(message, AgentMessage::Heartbeat(_));
        let message = wire::agent_message_to_proto(message);
        if !idle {
            tracing::debug!(cluster = %self.cluster, ?message, "agent says");
        }
        let bytes = message.encode_to_vec();
        trace.update(&bytes);
        stream.to_hub.push_back(bytes);
        !idle
    }

    /// Reads what is there up to the first message that is more than a heartbeat, or learns that the stream is gone,
    /// or gives it up. False: there was none, and nothing is left to read.
    pub(crate) fn listen(
        &mut self,
        runtime: &Runtime,
        network: &mut Network,
        now: u64,
        seen: &mut Histogram,
    ) -> Result<bool, String> {
        while let Some(open) = &mut self.session {
            let at = now - open.began_at;
            let Some(bytes) = network.take_for_agent(open.stream) else {
                if network.hub_is_gone(open.stream).is_some() {
                    self.disconnect(network);
                    return Ok(true);
                }
                if open.machine.check_silence(at).is_err() {
                    seen.count("silence ended a session");
                    self.disconnect(network);
                    return Ok(true);
                }
                return Ok(false);
            };
            let message = v1::HubMessage::decode(&*bytes).map_err(|error| error.to_string())?;
            let mut message: HubMessage =
                wire::hub_message_from_proto(message).map_err(|error| error.to_string())?;
            let news = !matches!(message, HubMessage::Heartbeat(_));
            let keys = open.differences.disturb(&mut message, seen);
            let reaction = self.handle.feed(|desired| {
                let reaction = open
                    .machine
                    .on_message(message, &mut self.outbox, desired, decode, at);
                touched_by(reaction)
            });
            if let Some(stream) = network.streams.get(&open.stream) {
                let told = (&keys, &stream.told);
                self.handle
                    .read(|desired| open.differences.look(desired, told, seen))?;
            }
            match reaction {
                Ok(reaction) => self.react(runtime, reaction, network, seen)?,
                Err(_) => {
                    self.disconnect(network);
                    return Ok(true);
                }
            }
            if news {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn react(
        &mut self,
        runtime: &Runtime,
        reaction: Reaction,
        network: &mut Network,
        seen: &mut Histogram,
    ) -> Result<(), String> {
        if let Some(welcome) = &reaction.welcomed {
            seen.guarded
                .count(Law::Epochs, u64::from(self.known_epoch.is_some()));
            if self.known_epoch.is_some_and(|known| welcome.epoch < known) {
                return Err(
                    Law::Epochs.broken(format!("{} took an epoch lower than it has known", self.cluster))
                );
            }
            if self.known_epoch.is_none_or(|known| known < welcome.epoch) {
                let lease = self.lease.as_ref();
                match lease.map(|lease| runtime.block_on(lease.remember(welcome.epoch))) {
                    Some(Ok(())) => self.known_epoch = Some(welcome.epoch),
                    // Before it is remembered nothing of it may be applied.
                    _ => self.disconnect(network),
                }
            }
        }
        seen.guarded.count(Law::Differences, reaction.restored);
        if self.is_old && reaction.restored + reaction.wanted > 0 {
            let why = "was sent a difference, and is of a release without them";
            return Err(Law::Differences.broken(format!("{} {why}", self.cluster)));
        }
        if let Some(Ok(renewed)) = &reaction.renewed {
            self.renewed = renewed.certificates[0]
                .as_ref()
                .try_into()
                .ok()
                .map(KeyFingerprint);
        }
        self.handle.facts_taken(&reaction.taken);
        if reaction.room_again {
            self.handle.room_again();
        }
        for key in &reaction.refused {
            if let Some(refusal) = self.outbox.refusal(key) {
                self.handle.fact_refused(key, refusal);
            }
        }
        Ok(())
    }

    /// Asks for a certificate for another key: its bytes are the request.
    pub(crate) fn ask_for_certificate(&mut self, key: KeyFingerprint) -> bool {
        let request = bytes::Bytes::copy_from_slice(&key.0);
        let open = self.session.as_mut();
        open.is_some_and(|open| open.machine.ask_for_certificate(request))
    }

    /// The key that it was given a certificate for since it was asked last.
    pub(crate) fn take_renewed(&mut self) -> Option<KeyFingerprint> {
        self.renewed.take()
    }

    fn follow_namespaces(&mut self) {
        if self.namespaces_changed.take_now().is_empty() {
            return;
        }
        let present = self.namespaces();
        let Some(open) = &mut self.session else { return };
        let (machine, generation) = (&mut open.machine, &mut self.generation);
        self.handle
            .note(|desired| machine.follow_namespaces(present, generation, desired));
    }
}

/// Forges a member's report of its exports: each an hour older than it is.
fn forge_ages(message: &mut AgentMessage) {
    let AgentMessage::Observations(observations) = message else {
        return;
    };
    for observation in observations {
        if let ObservedItem::Fact(fact) = &mut observation.item
            && let Fact::ExportUpserted(export) = &fact.fact
        {
            let mut older = Export::clone(export);
            older.created_at = UnixMillis(older.created_at.0.saturating_sub(FORGED_MILLIS));
            *fact = wire::encode_fact(&Fact::ExportUpserted(older.into()));
        }
    }
}

fn decode(item: bytes::Bytes) -> Option<Told> {
    wire::decode_told(item).ok()
}
