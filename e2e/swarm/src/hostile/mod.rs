//! Owns: a certified member that means no good: what it states, and its session, which is kept as an agent keeps it, so
//! that nothing but what it says is wrong. `stated`: its facts; `picture`: what the oracle is to make of those that are
//! recorded; `stranger`: who comes in the name of another; `copied`: a copy of a member, which means no harm.
//! Never: has a cluster, or is judged by what it holds.

mod copied;
mod picture;
mod stated;
mod stranger;

use std::collections::BTreeSet;

use agent_core::{
    link::{Beginning, Introduction, Session},
    outbox::Outbox,
    plan::{Desired, Reach},
};
use agent_engine::observe::removal;
use model::{
    ClusterId, Epoch, Fact, KeyFingerprint, ListingGroup, UnixMillis,
    sync::{AgentMessage, HubMessage, Interest, Namespaces, Observation, ObservedItem},
};
use prost::Message;
use proto::v1;

pub(super) use self::{
    copied::Copied,
    picture::recorded,
    stated::{OWN_RANGE, SPECIAL},
    stranger::{knock, strange_key},
};
use super::{
    histogram::Histogram,
    network::{IN_FLIGHT_MAX, Network, StreamId},
};

/// Its id: before some of the others in their order, and behind some.
pub(super) const NAME: &str = "mallory";
/// The first byte of its key, and of strangers' keys: no cluster has one of them.
const KEY: u8 = 0xba;
/// Number of attempts after a refusal before it is provoked again.
const ATTEMPTS_MAX: u8 = 2;
/// Lead of an impossible epoch, in milliseconds: more than a clock may be wrong.
const IMPOSSIBLE_MILLIS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Lead of a possible epoch.
const POSSIBLE_MILLIS: u64 = 60 * 60 * 1000;

/// The member.
pub(super) struct Hostile {
    introduction: Introduction,
    outbox: Outbox,
    desired: Desired,
    known_epoch: Option<Epoch>,
    /// The claim of its next Hello.
    claims: Option<Epoch>,
    session: Option<Open>,
    generation: u64,
    /// Changes that it still has to say.
    flood: u8,
    /// It is about to say an observation again.
    replays: bool,
    attempts: u8,
    /// Exports that it made up.
    made_up: u64,
}

struct Open {
    stream: StreamId,
    machine: Session,
    began_at: u64,
}

/// Its id as one.
pub(super) fn name() -> ClusterId {
    ClusterId::new(NAME).expect("a label")
}

/// Its key.
pub(super) fn key() -> KeyFingerprint {
    KeyFingerprint([KEY; 32])
}

fn ahead(now: UnixMillis, millis: u64, which: u8) -> Epoch {
    Epoch {
        created_at: UnixMillis(now.0 + millis),
        random: u64::from(which),
    }
}

/// A later epoch that may be.
fn possible(now: UnixMillis, which: u8) -> Epoch {
    ahead(now, POSSIBLE_MILLIS, which)
}

/// One that may be, later than whatever the hostile member claims meanwhile, and than what begins because of the one
/// before it: a hub that adopts epochs believes the first. None while ours is ahead of the clock by it already: step by
/// step a hub that adopts would be led beyond what one that is emptied may believe.
pub(super) fn later(ours: Epoch, now: UnixMillis, which: u8) -> Option<Epoch> {
    let ahead_already = ours.created_at.0 > now.0 + POSSIBLE_MILLIS + 1_000;
    (!ahead_already).then(|| ahead(now, (2 + u64::from(which)) * POSSIBLE_MILLIS, which))
}

impl Hostile {
    pub(super) fn new() -> Self {
        let mut outbox = Outbox::new(removal);
        outbox.complete(ListingGroup::Exports);
        outbox.complete(ListingGroup::Properties);
        Self {
            introduction: Introduction {
                agent_version: "swarm".into(),
                cluster_fingerprint: NAME.into(),
                instance: NAME.into(),
                lease_transitions: 0,
            },
            outbox,
            desired: Desired::default(),
            known_epoch: None,
            claims: None,
            session: None,
            generation: 0,
            flood: 0,
            replays: false,
            attempts: ATTEMPTS_MAX,
            made_up: 0,
        }
    }

    /// It has a reason to try again.
    pub(super) fn provoke(&mut self) {
        self.attempts = ATTEMPTS_MAX;
    }

    /// It says so much, one change at a time.
    pub(super) fn flood(&mut self, changes: u8) {
        self.flood = self.flood.saturating_add(changes);
    }

    /// It says an observation again, as soon as it can.
    pub(super) fn replay(&mut self) {
        self.replays = true;
    }

    /// It connects anew and claims an epoch; see [`super::happening::Hostility::Epoch`].
    pub(super) fn claim_epoch(&mut self, which: u8, now: UnixMillis, network: &mut Network) {
        self.disconnect(network);
        self.claims = Some(match which % 3 {
            0 => Epoch::default(),
            1 => ahead(now, IMPOSSIBLE_MILLIS, which),
            _ => possible(now, which),
        });
    }

    /// From here on nothing but what it stated is wrong.
    pub(super) fn calm(&mut self) {
        (self.claims, self.flood, self.replays) = (None, 0, false);
        self.provoke();
    }

    /// Nothing is left to say or to read.
    pub(super) fn is_quiet(&self) -> bool {
        let open = self.session.as_ref().is_some_and(|open| open.machine.is_open());
        open && self.outbox.depth() == (0, 0)
    }

    /// Opens a session if there is none. One that is `banished` stops trying after a while.
    pub(super) fn connect(&mut self, network: &mut Network, now: u64, banished: bool) -> Option<StreamId> {
        if self.session.is_some() || (banished && self.attempts == 0) {
            return None;
        }
        let stream = network.open_elsewhere();
        (self.generation, self.attempts) = (self.generation + 1, self.attempts.saturating_sub(1));
        let interest = Interest {
            generation: self.generation,
            namespaces: Namespaces::Only(BTreeSet::new()),
        };
        let (machine, mut hello) = Session::begin(Beginning {
            introduction: &self.introduction,
            known_epoch: self.known_epoch,
            interest,
            sources_held: BTreeSet::new(),
            outbox: &mut self.outbox,
            desired: &mut self.desired,
            now: 0,
            // Agents of this world have no wall clock.
            clock: model::UnixMillis(u64::MAX),
        });
        hello.highest_epoch = self.claims.take().or(hello.highest_epoch);
        self.session = Some(Open {
            stream,
            machine,
            began_at: now,
        });
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        let stream_of = network.streams.get_mut(&stream)?;
        stream_of.to_hub.push_back(hello.encode_to_vec());
        Some(stream)
    }

    fn disconnect(&mut self, network: &mut Network) {
        if let Some(open) = self.session.take() {
            network.agent_leaves(open.stream);
            self.outbox.end_session();
            self.desired.session_ended();
        }
    }

    /// Says one thing, if there is anything to say and room. A heartbeat does not count.
    pub(super) fn speak(
        &mut self,
        network: &mut Network,
        now: u64,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
    ) -> bool {
        if self.session.as_ref().is_some_and(|open| open.machine.is_open()) && self.flood > 0 {
            self.flood -= 1;
            self.state_flood(self.flood);
        }
        let Some(open) = &mut self.session else {
            return false;
        };
        let stream = network.streams.get_mut(&open.stream);
        let Some(stream) = stream.filter(|stream| stream.to_hub.len() < IN_FLIGHT_MAX) else {
            return false;
        };
        let message = if self.replays && open.machine.is_open() {
            self.replays = false;
            seen.count("sequence replayed");
            again()
        } else {
            match open
                .machine
                .poll(&mut self.outbox, (Reach::default(), true), now - open.began_at)
            {
                Some(message) => message,
                None => return false,
            }
        };
        let idle = matches!(message, AgentMessage::Heartbeat(_));
        if !idle {
            tracing::debug!(instance = %self.introduction.instance, ?message, "agent says");
        }
        let bytes = wire::agent_message_to_proto(message).encode_to_vec();
        trace.update(&bytes);
        stream.to_hub.push_back(bytes);
        !idle
    }

    /// Reads one thing. False: there was none, or a heartbeat.
    pub(super) fn listen(&mut self, network: &mut Network, now: u64) -> Result<bool, String> {
        let Some(open) = &mut self.session else {
            return Ok(false);
        };
        let at = now - open.began_at;
        let Some(bytes) = network.take_for_agent(open.stream) else {
            let over = network.hub_is_gone(open.stream).is_some() || open.machine.check_silence(at).is_err();
            if over {
                self.disconnect(network);
            }
            return Ok(over);
        };
        let message = v1::HubMessage::decode(&*bytes).map_err(|error| error.to_string())?;
        let message: HubMessage = wire::hub_message_from_proto(message).map_err(|error| error.to_string())?;
        let news = !matches!(message, HubMessage::Heartbeat(_));
        let decode = |item| wire::decode_told(item).ok();
        let reaction = open
            .machine
            .on_message(message, &mut self.outbox, &mut self.desired, decode, at);
        match reaction {
            Ok(reaction) => {
                let epoch = reaction.welcomed.map(|welcome| welcome.epoch);
                self.known_epoch = self.known_epoch.max(epoch);
            }
            Err(_) => self.disconnect(network),
        }
        Ok(news)
    }
}

/// The first observation of a session, whatever it was, once more.
fn again() -> AgentMessage {
    let fact = Fact::ClusterPropertyRemoved("replayed".into());
    AgentMessage::Observations(vec![Observation {
        sequence: 1,
        item: ObservedItem::Fact(wire::encode_fact(&fact)),
        changed_by: None,
    }])
}
