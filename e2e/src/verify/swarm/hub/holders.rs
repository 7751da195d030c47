//! Owns: the law on who holds a member: whoever answers in time keeps it from every other agent of its key, unless that was
//! elected since and it does not lead itself any more; and has that time.
//! Never: asks anybody; judges by what was said on the streams.

use std::collections::BTreeMap;

use hub::{fold::State, writer::SUSPECT_AFTER_MILLIS};
use shared::model::{
    ClusterId, Epoch, KeyFingerprint,
    sync::{AgentMessage, Hello, HubMessage, Pong, Welcome},
};

use crate::{
    laws::{Guarded, Law},
    verify::swarm::network::StreamId,
};

/// A holder that answers within this time of another one's Hello has answered in time, in milliseconds.
const ANSWER_MILLIS: u64 = 2_000;
/// So long after it was heard again the hub notices that it is not suspect any more.
const NOTICED_MILLIS: u64 = 1_500;

/// The streams that are open, and who was welcomed last for each member.
#[derive(Debug, Default)]
pub(super) struct Holders {
    streams: BTreeMap<StreamId, Line>,
    last: BTreeMap<ClusterId, StreamId>,
}

/// What was said on one stream.
#[derive(Debug)]
struct Line {
    cluster: ClusterId,
    key: KeyFingerprint,
    /// When its Hello was heard, of which process, and how often another one had been elected before.
    hello: Option<(u64, Box<str>, i64)>,
    epoch: Option<Epoch>,
    /// Pings that wait for their answers, and when they were said.
    pinged: BTreeMap<u64, u64>,
    /// When the last ping that was answered was said, when its answer came, and whether that one leads.
    answered: Option<(u64, u64, bool)>,
    /// When it was heard last, and until when the hub may think that it was not.
    heard_at: u64,
    suspect_until: u64,
    /// Another one came that may have taken over from it, and is gone or was not welcomed yet.
    is_doubtful: bool,
}

impl Holders {
    /// A stream is opened in the name of a member.
    pub(super) fn opened(&mut self, stream: StreamId, cluster: &ClusterId, key: KeyFingerprint) {
        let line = Line {
            cluster: cluster.clone(),
            key,
            hello: None,
            epoch: None,
            pinged: BTreeMap::new(),
            answered: None,
            heard_at: 0,
            suspect_until: 0,
            is_doubtful: false,
        };
        self.streams.insert(stream, line);
    }

    /// A stream is over.
    pub(super) fn closed(&mut self, stream: StreamId) {
        let closed = self.streams.remove(&stream);
        if let Some(line) = closed.filter(|line| line.epoch.is_none())
            && let Some(holder) = self.holder(&line.cluster)
        {
            holder.is_doubtful = true;
        }
    }

    fn holder(&mut self, cluster: &ClusterId) -> Option<&mut Line> {
        let holder = self.last.get(cluster)?;
        self.streams.get_mut(holder)
    }

    /// An agent says something.
    pub(super) fn heard(&mut self, stream: StreamId, message: &AgentMessage, now: u64) {
        let Some(line) = self.streams.get_mut(&stream) else {
            return;
        };
        if now >= line.heard_at + SUSPECT_AFTER_MILLIS {
            line.suspect_until = now + NOTICED_MILLIS;
        }
        line.heard_at = now;
        match message {
            AgentMessage::Hello(hello) => {
                let Hello {
                    instance,
                    lease_transitions,
                    ..
                } = &**hello;
                line.hello = Some((now, instance.clone(), *lease_transitions));
            }
            AgentMessage::Pong(Pong { nonce, leads }) => {
                let asked = line.pinged.remove(nonce);
                let answered = asked.map(|asked| (asked, now, *leads == Some(true)));
                line.answered = answered.or(line.answered);
            }
            _ => {}
        }
    }

    /// The hub says something.
    pub(super) fn said(
        &mut self,
        stream: StreamId,
        message: &HubMessage,
        (state, now): (&State, u64),
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        match message {
            HubMessage::Ping(nonce) => {
                if let Some(line) = self.streams.get_mut(&stream) {
                    line.pinged.insert(*nonce, now);
                }
                Ok(())
            }
            HubMessage::Welcome(welcome) => self.welcomed(stream, welcome, (state, now), guarded),
            _ => Ok(()),
        }
    }

    fn welcomed(
        &mut self,
        stream: StreamId,
        welcome: &Welcome,
        (state, now): (&State, u64),
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let Some(line) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        line.epoch = Some(welcome.epoch);
        let cluster = line.cluster.clone();
        let before = self.last.insert(cluster.clone(), stream);
        let holder = before.filter(|before| *before != stream);
        let holder = holder.and_then(|holder| self.streams.get(&holder));
        let (Some(holder), Some(next)) = (holder, self.streams.get(&stream)) else {
            return Ok(());
        };
        let (Some((came_at, instance, elected)), Some((_, held_by, then))) = (&next.hello, &holder.hello)
        else {
            return Ok(());
        };
        let in_time =
            |(asked, answered, _): &(u64, u64, bool)| asked >= came_at && *answered < came_at + ANSWER_MILLIS;
        let (is_same, is_elected) = (instance == held_by, elected > then);
        // Whose key was refused since, or who is of an epoch that is over, holds nothing any more.
        let member = state.current_member(&cluster);
        let admitted = member.is_some_and(|member| member.keys().contains_key(&holder.key));
        let holds = admitted && holder.epoch == next.epoch && !state.revoked_keys().contains_key(&holder.key);
        guarded.count(Law::Holders, 1);
        if !holds || is_same {
            return Ok(());
        }
        // Who is suspect has no time to answer to one that was elected since.
        let is_suspect = now >= holder.heard_at + SUSPECT_AFTER_MILLIS || now < holder.suspect_until;
        let why = match holder.answered.filter(in_time) {
            Some((.., true)) => "had answered that it leads",
            Some((.., false)) if !is_elected => "had answered",
            None if is_elected && is_suspect => return Ok(()),
            None if !holder.is_doubtful && now < came_at + ANSWER_MILLIS => "had no time to answer",
            _ => return Ok(()),
        };
        let who = format!("another agent of {cluster} was welcomed, and the one that holds it {why}");
        Err(Law::Holders.broken(who))
    }
}

#[cfg(test)]
mod tests;
