//! The network of a world: one two-way stream of encoded messages per session, and what lies in its way.
//! Messages of a stream keep their order, as TCP keeps it; what breaks is the stream. It knows no message.

use std::collections::{BTreeMap, VecDeque};

use model::{
    Revision,
    sync::{DesiredKey, ItemHash},
};

/// Most messages that may lie in one direction of a stream; then its sender waits, as HTTP/2 makes it wait.
pub(super) const IN_FLIGHT_MAX: usize = 64;

/// Names a stream.
pub(super) type StreamId = u64;

/// The hub's messages on a stream: each object, its revision, and the hash of its whole.
pub(super) type Told = BTreeMap<(DesiredKey, Revision), ItemHash>;

/// Why the hub ended a stream, as the agent reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended(pub(super) String);

/// One stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Index of the member's site.
    pub(super) site: usize,
    pub(super) to_hub: VecDeque<Vec<u8>>,
    pub(super) to_agent: VecDeque<Vec<u8>>,
    /// Noted beside the messages, for the law on differences.
    pub(super) told: Told,
    /// The agent let go of it; the hub learns when the way is free.
    pub(super) agent_gone: bool,
    /// The hub let go of it, and why.
    pub(super) hub_gone: Option<Ended>,
    /// It was reset: nothing arrives any more, whatever is still written.
    broken: bool,
}

/// A way between a site and the hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Blocked {
    pub(super) up: bool,
    pub(super) down: bool,
}

impl Blocked {
    pub(super) fn any(self) -> bool {
        self.up || self.down
    }
}

/// All streams, and every site's way.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) streams: BTreeMap<StreamId, Stream>,
    pub(super) ways: Vec<Blocked>,
    last: StreamId,
}

impl Network {
    /// The last way is of those who have no site.
    pub(super) fn new(sites: usize) -> Self {
        Self {
            ways: vec![Blocked::default(); sites + 1],
            ..Self::default()
        }
    }

    /// Opens a stream, if the way is free in both directions.
    pub(super) fn open(&mut self, site: usize) -> Option<StreamId> {
        (!self.ways[site].any()).then(|| self.open_at(site))
    }

    /// Opens a stream of somebody who has no site.
    pub(super) fn open_elsewhere(&mut self) -> StreamId {
        self.open_at(self.ways.len() - 1)
    }

    fn open_at(&mut self, site: usize) -> StreamId {
        self.last += 1;
        let stream = Stream {
            site,
            ..Stream::default()
        };
        self.streams.insert(self.last, stream);
        self.last
    }

    /// Takes the next message for the hub.
    pub(super) fn take_for_hub(&mut self, id: StreamId) -> Option<Vec<u8>> {
        let stream = self.streams.get_mut(&id)?;
        if self.ways[stream.site].up || stream.broken {
            return None;
        }
        stream.to_hub.pop_front()
    }

    /// Takes the next message for the agent.
    pub(super) fn take_for_agent(&mut self, id: StreamId) -> Option<Vec<u8>> {
        let stream = self.streams.get_mut(&id)?;
        if self.ways[stream.site].down || stream.broken {
            return None;
        }
        stream.to_agent.pop_front()
    }

    /// Returns true if the hub can know by now that the agent let go. What was sent before is read first.
    pub(super) fn agent_is_gone(&self, id: StreamId) -> bool {
        let gone = |stream: &Stream| {
            let read = stream.broken || stream.to_hub.is_empty();
            stream.agent_gone && read && !self.ways[stream.site].up
        };
        self.streams.get(&id).is_none_or(gone)
    }

    /// Why the agent knows by now that the hub let go.
    pub(super) fn hub_is_gone(&self, id: StreamId) -> Option<Ended> {
        let Some(stream) = self.streams.get(&id) else {
            return Some(Ended("the stream broke".into()));
        };
        let readable = (stream.broken || stream.to_agent.is_empty()) && !self.ways[stream.site].down;
        stream.hub_gone.clone().filter(|_| readable)
    }

    /// The agent lets go.
    pub(super) fn agent_leaves(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.agent_gone = true;
            if stream.hub_gone.is_some() {
                self.streams.remove(&id);
            }
        }
    }

    /// The hub lets go.
    pub(super) fn hub_leaves(&mut self, id: StreamId, why: &str) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.hub_gone = Some(Ended(why.into()));
            if stream.agent_gone {
                self.streams.remove(&id);
            }
        }
    }

    /// The hub's process ends: what it had written may still arrive or not, as the caller says.
    pub(super) fn hub_crashes(&mut self, lose: bool) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            if lose && let Some(stream) = self.streams.get_mut(&id) {
                stream.to_agent.clear();
            }
            self.hub_leaves(id, "the hub's process ended");
        }
    }

    /// A reset: both sides lose what is under way and learn of it when the way is free.
    pub(super) fn reset(&mut self, site: usize) -> usize {
        let mut broken = 0;
        for stream in self.streams.values_mut().filter(|stream| stream.site == site) {
            stream.broken = true;
            stream.agent_gone = true;
            stream.hub_gone = Some(Ended("connection reset".into()));
            broken += 1;
        }
        broken
    }
}
