//! One session of a hub and its stream: each step of the product's session is a turn of its own.

use event_log::{History, Log, MemoryLog};
use fold::{DerivedKey, Presented};
use hub_core::{
    clock::Moment,
    session::{Answer, Awaited, EndCode, SessionActor},
    view::View,
    writer::{HolderAnswer, NotAdmitted, SessionEvent},
};
use model::{
    ClusterId, KeyFingerprint, Signed,
    sync::{self, AgentMessage, DesiredKey, HubMessage, ItemHash},
};
use prost::Message;
use proto::v1;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot::error::TryRecvError};

use super::{BOUNDS, Hub, holders::TOOK_OVER};
use crate::{
    histogram::Histogram,
    network::{IN_FLIGHT_MAX, Network, StreamId, Told},
    time::{CERTIFICATE_LONGEST_MILLIS, certificate_end},
};

/// A session, and what its task would wait for.
pub(super) struct HubSession {
    cluster: ClusterId,
    actor: SessionActor,
    events: UnboundedReceiver<SessionEvent>,
    awaited: Option<Awaited>,
}

impl HubSession {
    pub(super) fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// Nothing waits to be heard, judged, handed over or answered.
    pub(super) fn is_idle(&self) -> bool {
        self.actor.is_idle() && self.awaited.is_none() && self.events.is_empty()
    }
}

impl Hub {
    /// Takes note of a stream that was opened.
    pub(crate) fn accept(
        &mut self,
        id: StreamId,
        (cluster, key, renewable): (&ClusterId, KeyFingerprint, bool),
        now: u64,
    ) {
        self.promises.opened(id, cluster, key);
        self.silence.opened(id, cluster, key);
        self.holders.opened(id, cluster, key);
        let (actor, events) = SessionActor::new(cluster.clone(), key, BOUNDS, Default::default(), now);
        let presented = Presented {
            renewable,
            not_after: Some(certificate_end(now)),
            ..Presented::default()
        };
        let session = HubSession {
            cluster: cluster.clone(),
            actor: actor.presenting(presented).certifying(true),
            events,
            awaited: None,
        };
        self.sessions.insert(id, session);
    }

    /// The session is over.
    fn close(
        &mut self,
        id: StreamId,
        network: &mut Network,
        seen: &mut Histogram,
        end: (Option<EndCode>, &str),
    ) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        let (code, why) = end;
        if code == Some(EndCode::AlreadyExists) {
            seen.count("second session refused");
        }
        network.hub_leaves(id, why);
        self.promises.closed(id);
        self.holders.closed(id, why);
        self.leaving.push(session);
    }

    /// Sends the last requests of ended sessions to the writer, once they know whether it admitted them.
    pub(super) fn let_go(&mut self, at: Moment) {
        for mut session in std::mem::take(&mut self.leaving) {
            match session
                .awaited
                .take()
                .map(|awaited| answer(awaited, &self.log, at))
            {
                Some(Err(awaited)) => {
                    session.awaited = Some(awaited);
                    self.leaving.push(session);
                    continue;
                }
                // Whatever it is, the session is over.
                Some(Ok(answer)) => drop(session.actor.on_answer(answer)),
                None => {}
            }
            self.farewells.extend(session.actor.farewell());
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
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| session.actor.may_read(at.now()))?;
        let Some(bytes) = network.take_for_hub(id) else {
            if network.agent_is_gone(id) {
                self.close(id, network, seen, (None, "the agent went away"));
                return Some(true);
            }
            return None;
        };
        let decoded = v1::AgentMessage::decode(&*bytes).map_err(|error| error.to_string());
        let message = decoded
            .and_then(|message| wire::agent_message_from_proto(message).map_err(|error| error.to_string()));
        let message = message.map_err(|why| session.actor.violation(why));
        let news = !matches!(message, Ok(AgentMessage::Heartbeat(_)));
        let goodbye = matches!(message, Ok(AgentMessage::Goodbye));
        if matches!(message, Ok(AgentMessage::InterestChanged { .. })) {
            seen.count("interest changed");
        }
        if let Ok(message) = &message {
            self.promises.heard(id, message, &self.log);
            self.holders.heard(id, message, at.now());
        }
        let taken = message.and_then(|message| session.actor.on_message(message, at.now()));
        match taken {
            Err(end) => self.close(id, network, seen, (Some(end.code), &end.message)),
            // A session that does not hear the writer may have been ended by it, and what it hears counts for nothing then.
            Ok(()) if self.promises.is_welcomed(id) && self.slow.as_ref() != Some(&session.cluster) => {
                let state = self.writer.core().state();
                if self.silence.heard(id, &session.cluster, state, at.now()) && goodbye {
                    self.silence.said_goodbye(id, &session.cluster, at.now());
                }
            }
            Ok(()) => {}
        }
        Some(news)
    }

    /// Judges the cursor of a Hello by what is published now.
    pub(super) fn judge(&mut self, id: StreamId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let wanted = session.actor.wants_judgement();
        if wanted {
            session.awaited = session.actor.judge(&self.view.read());
        }
        match session.actor.sign() {
            Some(awaited) => {
                session.awaited = Some(awaited);
                true
            }
            None => wanted,
        }
    }

    /// Queues one thing at the writer, if there is room.
    pub(super) fn hand_over(&mut self, id: StreamId, at: Moment) -> bool {
        let session = self.sessions.get_mut(&id);
        let Some(session) = session.filter(|session| session.actor.wants_permit()) else {
            return false;
        };
        let Some(permit) = self.handle.try_permit() else {
            return false;
        };
        session.awaited = session
            .actor
            .hand_over(permit, at.now())
            .or(session.awaited.take());
        true
    }

    /// Hears one thing: the writer's word, or what was waited for.
    pub(super) fn hear(
        &mut self,
        id: StreamId,
        network: &mut Network,
        at: Moment,
        seen: &mut Histogram,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if self.slow.as_ref() == Some(&session.cluster) {
            return false;
        }
        let heard = match session.events.try_recv() {
            Ok(event) => {
                count_event(&event, seen);
                session.actor.on_event(event, at.now())
            }
            Err(_) => match session.awaited.take() {
                None => return false,
                Some(awaited) => match answer(awaited, &self.log, at) {
                    Ok(answer) => {
                        count_answer(&answer, seen);
                        let recorded_at = self.writer.core().state().recorded_at();
                        count_clock(&answer, recorded_at.0.saturating_sub(at.wall.0), seen);
                        session.actor.on_answer(answer)
                    }
                    Err(awaited) => {
                        session.awaited = Some(awaited);
                        return false;
                    }
                },
            },
        };
        if let Err(end) = heard {
            self.close(id, network, seen, (Some(end.code), &end.message));
        }
        true
    }

    /// Says one thing on a stream, if there is room and anything to say. A heartbeat does not count.
    pub(super) fn speak(
        &mut self,
        id: StreamId,
        network: &mut Network,
        now: u64,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
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
        let Some(message) = session.actor.poll(&self.view.read(), now) else {
            return false;
        };
        self.promises.said(id, &message, &self.log, seen);
        let state = self.writer.core().state();
        let held = self.holders.said(id, &message, (state, now), &mut seen.guarded);
        held.unwrap_or_else(|why| self.promises.breaks(why));
        if let HubMessage::RenewalAnswered(Ok(renewed)) = &message {
            let published = self.writer.present().read().ok();
            let state = published.as_ref().map(|published| &published.state);
            let key = renewed.certificates[0].as_ref().try_into().map(KeyFingerprint);
            self.promises.certified(
                &session.cluster,
                key.expect("a key of ours"),
                state,
                &mut seen.guarded,
            );
        }
        let at = self.view.read().head();
        self.promises
            .sent(&session.cluster, &message, at, &mut seen.guarded);
        note_told(&mut stream.told, &session.cluster, &message, &self.view.read());
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

    /// Looks at one session's clock.
    pub(super) fn check_silence(
        &mut self,
        id: StreamId,
        network: &mut Network,
        now: u64,
        seen: &mut Histogram,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if now < session.actor.next_deadline(true, now) {
            return false;
        }
        let silent = session.actor.check_silence(now);
        if let Err(end) = &silent {
            seen.count("silence ended a session");
            self.close(id, network, seen, (Some(end.code), &end.message));
        }
        silent.is_err()
    }
}

/// In a world a key is its own signing request, and its own certificate.
fn signed(request: &[u8], now: u64) -> Result<Box<Signed>, Box<str>> {
    let key = request.try_into().map(KeyFingerprint);
    let key = key.map_err(|_| "this is no key")?;
    Ok(Box::new(Signed {
        key,
        issuer: "CN=joining".into(),
        not_after: certificate_end(now),
        certificates: vec![request.to_vec().into()],
        authorities: Vec::new(),
    }))
}

/// The result, if there is one by now.
fn answer(awaited: Awaited, log: &MemoryLog, at: Moment) -> Result<Answer, Awaited> {
    match awaited {
        Awaited::Hash(cursor) => {
            let question = move |history: &dyn History| history.hash_at(cursor.epoch, cursor.revision);
            Ok(Answer::Hash(log.reader().wait(question).unwrap_or_default()))
        }
        Awaited::Signature(request) => Ok(Answer::Signature(signed(&request, at.now()))),
        Awaited::Certified(mut answer) => match answer.try_recv() {
            Ok(outcome) => Ok(Answer::Certified(Some(outcome))),
            Err(TryRecvError::Closed) => Ok(Answer::Certified(None)),
            Err(TryRecvError::Empty) => Err(Awaited::Certified(answer)),
        },
        Awaited::Admission(mut answer) => match answer.try_recv() {
            Ok(admission) => Ok(Answer::Admission(Some(admission))),
            Err(TryRecvError::Closed) => Ok(Answer::Admission(None)),
            Err(TryRecvError::Empty) => Err(Awaited::Admission(answer)),
        },
        Awaited::Holder(mut answer, until) => match answer.try_recv() {
            Ok(answer) => Ok(Answer::Holder(answer)),
            Err(TryRecvError::Empty) if at.now() < until => Err(Awaited::Holder(answer, until)),
            Err(_) => Ok(Answer::Holder(HolderAnswer::Silent)),
        },
    }
}

/// Notes the objects of a message, each whole.
fn note_told(noted: &mut Told, member: &ClusterId, message: &HubMessage, view: &View) {
    let HubMessage::Desired { items, .. } = message else {
        return;
    };
    for item in items {
        let (revision, key) = match wire::decode_told(item.clone()).expect("a hub encoded it") {
            sync::Told::Difference(difference) => (difference.revision, difference.key),
            sync::Told::Whole(item) => (item.revision, item.change.key()),
            sync::Told::Unreadable { why, .. } => unreachable!("a hub encoded it: {why}"),
        };
        let derived = match key.clone() {
            DesiredKey::Import(service) => DerivedKey::Import(service),
            DesiredKey::Slice(slice) => DerivedKey::Slice(slice),
            DesiredKey::ExportStatus(service) => DerivedKey::ExportStatus(member.clone(), service),
        };
        if let Some(entry) = view.entry(&derived) {
            noted.insert((key, revision), ItemHash::of(&entry.item.bytes()));
        }
    }
}

fn count_event(event: &SessionEvent, seen: &mut Histogram) {
    match event {
        SessionEvent::Refused(refused) if refused.reason.is_for_now() => {
            seen.count("item held back");
        }
        SessionEvent::ReportAgain => seen.count("asked to report again"),
        SessionEvent::Refused(_) => seen.count("item refused"),
        SessionEvent::Close(why) if why.contains(TOOK_OVER) => seen.count("second session took over"),
        _ => {}
    }
}

fn count_answer(answer: &Answer, seen: &mut Histogram) {
    match answer {
        Answer::Admission(Some(Ok(admission))) if admission.welcome.resume => seen.count("resume"),
        Answer::Admission(Some(Ok(_))) => seen.count("snapshot"),
        Answer::Admission(Some(Err(NotAdmitted::JudgedBefore))) => seen.count("cursor judged again"),
        _ => {}
    }
}

/// Counts what a clock that is wrong, or was, has to do with: `log_ahead` is by how much the log's last time is ahead of it.
fn count_clock(answer: &Answer, log_ahead: u64, seen: &mut Histogram) {
    match answer {
        Answer::Admission(Some(Ok(_))) if log_ahead > CERTIFICATE_LONGEST_MILLIS => {
            seen.count("admitted though the log is ahead of the clock");
        }
        Answer::Admission(Some(Err(NotAdmitted::Refused(why)))) if why.contains("by this hub's clock") => {
            seen.count("certificate over by a wrong clock");
        }
        _ => {}
    }
}
