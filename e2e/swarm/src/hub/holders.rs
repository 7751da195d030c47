//! Owns: the law on who holds a member: whoever answers in time keeps it from every other agent of its key, unless that was
//! elected since and it does not lead itself any more; and has that time.
//! Never: asks anybody; judges by what was said on the streams.

use std::collections::BTreeMap;

use fold::{Connectivity, State};
use hub_core::writer::SUSPECT_AFTER_MILLIS;
use model::{
    ClusterId, Epoch, KeyFingerprint,
    sync::{AgentMessage, Hello, HubMessage, Pong, Welcome},
};

use crate::network::StreamId;
use oracle::laws::{Guarded, Law};

/// A holder that answers within this time of another one's Hello has answered in time, in milliseconds.
const ANSWER_MILLIS: u64 = 2_000;

/// The streams that are open, and who was welcomed last for each member.
#[derive(Debug, Default)]
pub(super) struct Holders {
    streams: BTreeMap<StreamId, Line>,
    last: BTreeMap<ClusterId, StreamId>,
    /// Until when each member was suspect or lost in the writer's state; the end of time while it still is.
    suspect_until: BTreeMap<ClusterId, u64>,
}

/// Messages on one stream.
#[derive(Debug)]
struct Line {
    cluster: ClusterId,
    key: KeyFingerprint,
    /// Time, process and number of elections in its Hello.
    hello: Option<(u64, Box<str>, i64)>,
    epoch: Option<Epoch>,
    /// Pings that wait for their answers, and when they were said.
    pinged: BTreeMap<u64, u64>,
    /// Time of the last answered ping, time of its answer, and whether the holder leads.
    answered: Option<(u64, u64, bool)>,
    /// The last time it was heard.
    heard_at: u64,
    /// The end of its last silence that was long enough for a suspect.
    silent_until: u64,
    /// Another one came that may have taken over from it, and is gone or was not welcomed yet.
    is_doubtful: bool,
    /// The hub ended it because another one took over, whose Welcome is not said yet.
    is_replaced: bool,
}

/// The hub's words to a replaced holder.
pub(super) const TOOK_OVER: &str = "took over";

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
            silent_until: 0,
            is_doubtful: false,
            is_replaced: false,
        };
        self.streams.insert(stream, line);
    }

    /// A stream is over, and why. A holder that another one took over from is remembered until that one is welcomed: it
    /// hears that it is over before the other one hears that it holds the member.
    pub(super) fn closed(&mut self, stream: StreamId, why: &str) {
        let Some(mut line) = self.streams.remove(&stream) else {
            return;
        };
        if line.epoch.is_none() {
            self.doubt(&line.cluster);
        } else if why.contains(TOOK_OVER)
            && !line.is_doubtful
            && self.last.get(&line.cluster) == Some(&stream)
        {
            line.is_replaced = true;
            self.streams.insert(stream, line);
        }
    }

    /// Another one is gone that may have taken over from who holds a member.
    fn doubt(&mut self, cluster: &ClusterId) {
        let Some(holder) = self.holder(cluster) else {
            return;
        };
        holder.is_doubtful = true;
        if holder.is_replaced {
            let gone = self.last.remove(cluster);
            gone.map(|stream| self.streams.remove(&stream));
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
            line.silent_until = now;
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

    /// The writer is about to take something, or has taken it. A member that was heard again is suspect until the writer
    /// takes its next tick, however late that comes.
    pub(super) fn looked(&mut self, state: &State, now: u64) {
        for (cluster, member) in state.members().iter() {
            if member.connectivity() != Connectivity::Live {
                self.suspect_until.insert(cluster.clone(), u64::MAX);
            } else if let Some(until) = self.suspect_until.get_mut(cluster) {
                *until = now.min(*until);
            }
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
        let Some(before) = before.filter(|before| *before != stream) else {
            return Ok(());
        };
        let judged = self.judge((before, stream), &cluster, (state, now), guarded);
        if self.streams.get(&before).is_some_and(|line| line.is_replaced) {
            self.streams.remove(&before);
        }
        judged
    }

    /// Returns true if an agent of the same member that is neither of these has said Hello and waits for its Welcome: it may be the
    /// one that took over.
    fn is_another_waiting(&self, before: StreamId, stream: StreamId) -> bool {
        let cluster = self.streams.get(&before).map(|line| &line.cluster);
        let mut others = self
            .streams
            .iter()
            .filter(|(id, line)| ![before, stream].contains(id) && Some(&line.cluster) == cluster);
        others.any(|(_, line)| line.hello.is_some() && line.epoch.is_none())
    }

    /// Checks that the stream that held a member until now was to keep it from another one.
    fn judge(
        &self,
        (before, stream): (StreamId, StreamId),
        cluster: &ClusterId,
        (state, now): (&State, u64),
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let (Some(holder), Some(next)) = (self.streams.get(&before), self.streams.get(&stream)) else {
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
        let member = state.current_member(cluster);
        let admitted = member.is_some_and(|member| member.keys().contains_key(&holder.key));
        let holds = admitted && holder.epoch == next.epoch && !state.revoked_keys().contains_key(&holder.key);
        if !holds || is_same {
            return Ok(());
        }
        guarded.count(Law::Holders, 1);
        // A suspect that is silent has no time to answer to one that was elected since. One that was heard again has.
        let recorded = self.suspect_until.get(cluster);
        let is_silent = now >= holder.heard_at + SUSPECT_AFTER_MILLIS || holder.silent_until >= *came_at;
        let is_suspect = is_silent && recorded.is_some_and(|until| until >= came_at);
        let is_doubtful = holder.is_doubtful || holder.is_replaced && self.is_another_waiting(before, stream);
        let why = match holder.answered.filter(in_time) {
            Some((.., true)) => "had answered that it leads",
            Some((.., false)) if !is_elected => "had answered",
            None if is_elected && is_suspect => return Ok(()),
            None if !is_doubtful && now < came_at + ANSWER_MILLIS => "had no time to answer",
            _ => return Ok(()),
        };
        let who = format!("another agent of {cluster} was welcomed, and the one that holds it {why}");
        Err(Law::Holders.broken(who))
    }
}

#[cfg(test)]
mod tests;
