//! The hub of a world: the writer's core over a log in memory, the view, and one session machine per stream.
//! It does in turns what the writer's thread and the sessions' tasks do: collects, appends, syncs, and releases what
//! a batch did only then.

mod batches;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use hub::{
    fold::State,
    log::{self, AppendError, Log, MemoryDisk, MemoryLog},
    replay,
    session::machine::{Effect, Session},
    view::View,
    writer::{AdmitRequest, Batch, Core, CursorCheck, Options, Request, TICK_MILLIS, Token, view_of},
};
use prost::Message;
use proto::v1;
use shared::{
    model::{
        ChainHash, ClusterId, Clusterset, Cursor, Epoch, KeyFingerprint, SessionId, UnixMillis,
        sync::{AgentMessage, HubMessage},
    },
    wire,
};

use super::{
    histogram::Histogram,
    network::{IN_FLIGHT_MAX, Network, StreamId},
};

/// How long the holder of a member may take to answer, in milliseconds.
const HOLDER_ANSWER_MILLIS: u64 = 2_000;

/// The present moment, as the hub sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: u64,
    pub(super) wall: UnixMillis,
}

/// A process of the hub.
pub(super) struct Hub {
    core: Core,
    log: MemoryLog,
    view: View,
    /// Appended and not released: what each batch will do.
    in_flight: VecDeque<Batch>,
    done: Arc<Mutex<Vec<Result<Cursor, AppendError>>>>,
    sessions: BTreeMap<StreamId, HubSession>,
    admitting: BTreeMap<Token, StreamId>,
    last_token: Token,
    ticked_at: u64,
    random: u64,
    /// The process ended by itself: its log failed.
    pub(super) failed: Option<String>,
    /// The last position at which somebody was promised something.
    pub(super) promised: Cursor,
}

struct HubSession {
    cluster: ClusterId,
    machine: Session,
    admitted: Option<SessionId>,
    effects: VecDeque<Effect>,
    heard_at: u64,
    request: Option<AdmitRequest>,
    asking: Option<Asking>,
}

/// The holder is being asked whether it lives.
struct Asking {
    holder: SessionId,
    until: u64,
    answered: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Starts over a disk: replays, and takes up the rules if others folded the log.
    pub(super) fn start(
        disk: &MemoryDisk,
        set: &Clusterset,
        at: Moment,
        random: u64,
    ) -> Result<Self, String> {
        let epoch = Epoch {
            created_at: at.wall,
            random,
        };
        let log = MemoryLog::open(disk, set, epoch).map_err(|error| error.to_string())?;
        let (state, head) = replay::replay(&log.reader()).map_err(|error| error.to_string())?;
        log.hold_syncs(true);
        let options = Options {
            hub: "hub".into(),
            hub_version: "swarm".into(),
            // An operator of a swarm answers the question whether another hub runs with no.
            adopt_epoch: true,
        };
        let view = view_of(&state, head);
        let recorded_at = state.recorded_at();
        let mut core = Core::new(state, head, recorded_at, options, at.now);
        core.adopt_fold_version(at.wall);
        Ok(Self {
            core,
            log,
            view,
            in_flight: VecDeque::new(),
            done: Arc::default(),
            sessions: BTreeMap::new(),
            admitting: BTreeMap::new(),
            last_token: 0,
            ticked_at: at.now,
            random,
            failed: None,
            promised: head,
        })
    }

    /// The state, for looking at.
    pub(super) fn state(&self) -> &State {
        self.core.state()
    }

    /// The last durable position.
    pub(super) fn head(&self) -> Cursor {
        self.log.head()
    }

    /// Whether `cursor` is on this log's history.
    pub(super) fn holds(&self, cursor: Cursor) -> bool {
        self.hash_at(cursor) == Some(cursor.hash)
    }

    /// The chain hash that the log has where `cursor` stands.
    fn hash_at(&self, cursor: Cursor) -> Option<ChainHash> {
        let question = move |history: &dyn log::History| history.hash_at(cursor.epoch, cursor.revision);
        self.log.reader().wait(question).unwrap_or_default()
    }

    /// The clusters that have an open session, and those that have listed.
    pub(super) fn listed(&self) -> &BTreeSet<ClusterId> {
        self.core.listed()
    }

    /// Objects and tombstones that are published.
    pub(super) fn view_size(&self) -> (usize, usize) {
        self.view.len()
    }

    /// Nothing waits to be written, released or handed over.
    pub(super) fn is_idle(&self) -> bool {
        let idle = |session: &HubSession| session.effects.is_empty() && session.asking.is_none();
        self.in_flight.is_empty() && self.core.pending().0 == 0 && self.sessions.values().all(idle)
    }

    /// Takes note of streams that were opened.
    pub(super) fn accept(&mut self, id: StreamId, cluster: &ClusterId, now: u64) {
        let session = HubSession {
            machine: Session::new(cluster.clone(), now),
            cluster: cluster.clone(),
            admitted: None,
            effects: VecDeque::new(),
            heard_at: now,
            request: None,
            asking: None,
        };
        self.sessions.insert(id, session);
    }

    /// Streams that have a session.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        self.sessions.keys().copied().collect()
    }

    fn close(&mut self, id: StreamId, network: &mut Network, why: &str) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        network.hub_leaves(id, why);
        self.admitting.retain(|_, stream| *stream != id);
        if let Some(admitted) = session.admitted {
            let request = Request::Closed {
                session: admitted,
                cluster: session.cluster,
                heard_at: session.heard_at,
            };
            let recorded = self.core.state().recorded_at();
            self.core.handle(request, recorded, session.heard_at);
        }
    }

    /// Reads one message of a stream, or learns that it is gone. `None`: nothing could be read; false: a heartbeat.
    pub(super) fn listen(
        &mut self,
        id: StreamId,
        network: &mut Network,
        at: Moment,
        seen: &mut Histogram,
    ) -> Option<bool> {
        let session = self.sessions.get_mut(&id)?;
        if session.asking.is_some() || (session.request.is_some() && session.admitted.is_none()) {
            // The real stream waits for the answer of the writer before it reads on.
            return None;
        }
        let Some(bytes) = network.take_for_hub(id) else {
            if network.agent_is_gone(id) {
                self.close(id, network, "the agent went away");
                return Some(true);
            }
            return None;
        };
        session.heard_at = at.now;
        let decoded = v1::AgentMessage::decode(&*bytes).map_err(|error| error.to_string());
        let message = decoded
            .and_then(|message| wire::agent_message_from_proto(message).map_err(|error| error.to_string()));
        let message: AgentMessage = match message {
            Ok(message) => message,
            Err(why) => {
                self.close(id, network, &why);
                return Some(true);
            }
        };
        let news = !matches!(message, AgentMessage::Heartbeat);
        if matches!(message, AgentMessage::InterestChanged { .. }) {
            seen.count("interest changed");
        }
        match session.machine.on_message(message, at.now) {
            Ok(effects) => self.take_effects(id, effects, at),
            Err(violation) => self.close(id, network, &format!("violation: {violation}")),
        }
        Some(news)
    }

    fn take_effects(&mut self, id: StreamId, effects: Vec<Effect>, at: Moment) {
        for effect in effects {
            match effect {
                Effect::Admit(hello) => {
                    let cursor = self.check_cursor(hello.cursor);
                    let Some(session) = self.sessions.get_mut(&id) else {
                        return;
                    };
                    session.request = Some(AdmitRequest {
                        cluster: session.cluster.clone(),
                        key: KeyFingerprint([7; 32]),
                        hello: *hello,
                        cursor,
                        silent_holder: None,
                    });
                    self.ask_for_admission(id, at);
                }
                Effect::Pong(_) => self.answered(id),
                Effect::Goodbye => {}
                Effect::Observe(_) | Effect::CompleteListing { .. } => {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.effects.push_back(effect);
                    }
                }
            }
        }
    }

    fn check_cursor(&self, cursor: Option<Cursor>) -> CursorCheck {
        let known = CursorCheck::by_view(cursor, &self.view);
        known.unwrap_or_else(|cursor| CursorCheck::of_our_epoch(cursor, self.hash_at(cursor)))
    }

    fn ask_for_admission(&mut self, id: StreamId, at: Moment) {
        let Some(request) = self.sessions.get(&id).and_then(|session| session.request.clone()) else {
            return;
        };
        self.last_token += 1;
        self.admitting.insert(self.last_token, id);
        self.core.handle(
            Request::Admit(self.last_token, Box::new(request)),
            at.wall,
            at.now,
        );
    }

    /// The session of this stream lives: whoever asked may know.
    fn answered(&mut self, id: StreamId) {
        let Some(holder) = self.sessions.get(&id).and_then(|session| session.admitted) else {
            return;
        };
        for session in self.sessions.values_mut() {
            if let Some(asking) = session.asking.as_mut().filter(|asking| asking.holder == holder) {
                asking.answered = true;
            }
        }
    }

    /// Hands one effect of a stream to the writer, unless an epoch is due or the batch is out.
    pub(super) fn hand_over(&mut self, id: StreamId, at: Moment) -> bool {
        if self.core.must_mint().is_some() {
            return false;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let Some(admitted) = session.admitted else {
            return false;
        };
        let cluster = session.cluster.clone();
        let request = match session.effects.pop_front() {
            Some(Effect::Observe(observations)) => Request::Observe {
                session: admitted,
                cluster,
                observations,
            },
            Some(Effect::CompleteListing {
                sequence,
                group,
                seen,
            }) => Request::CompleteListing {
                session: admitted,
                cluster,
                sequence,
                group,
                seen,
            },
            _ => return false,
        };
        self.core.handle(request, at.wall, at.now);
        true
    }

    /// Says one thing on a stream, if there is room and anything to say. A heartbeat does not count.
    pub(super) fn speak(
        &mut self,
        id: StreamId,
        network: &mut Network,
        now: u64,
        trace: &mut blake3::Hasher,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let Some(stream) = network
            .streams
            .get_mut(&id)
            .filter(|stream| stream.to_agent.len() < IN_FLIGHT_MAX)
        else {
            return false;
        };
        let Some(message) = session.machine.poll(&self.view, now) else {
            return false;
        };
        let idle = matches!(message, HubMessage::Heartbeat(_));
        let message = wire::hub_message_to_proto(message);
        if !idle {
            tracing::debug!(cluster = %session.cluster, ?message, "hub says");
        }
        let bytes = message.encode_to_vec();
        trace.update(&bytes);
        stream.to_agent.push_back(bytes);
        !idle
    }

    /// Looks at the clocks of sessions, of holders that were asked, and at the members' silence.
    pub(super) fn look_at_clocks(&mut self, network: &mut Network, at: Moment, seen: &mut Histogram) -> bool {
        let mut something = false;
        for id in self.streams() {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if let Err(violation) = session.machine.check_silence(at.now) {
                seen.count("silence ended a session");
                self.close(id, network, &violation.to_string());
                something = true;
                continue;
            }
            let Some(asking) = session.asking.take() else {
                continue;
            };
            something = true;
            if asking.answered {
                seen.count("second session refused");
                self.close(
                    id,
                    network,
                    "refused: the cluster is held by a session that is alive",
                );
            } else if at.now >= asking.until {
                if let Some(request) = &mut session.request {
                    request.silent_holder = Some(asking.holder);
                }
                self.ask_for_admission(id, at);
            } else {
                session.asking = Some(asking);
            }
        }
        if at.now >= self.ticked_at + TICK_MILLIS {
            self.ticked_at = at.now;
            let admitted = self
                .sessions
                .values()
                .filter(|session| session.admitted.is_some());
            let heard: Vec<_> = admitted
                .map(|session| (session.cluster.clone(), session.heard_at))
                .collect();
            self.core.tick(at.wall, at.now, heard);
        }
        something
    }
}
