//! Owns: the laws on when members are withdrawn: not before they were silent for their time, not while too many are lost, and
//! else when their time is over; an own reading of what the hub heard, and when.
//! Never: says what a withdrawal comes to, or looks into what the writer remembers.

use std::collections::{BTreeMap, BTreeSet};

use fold::{Connectivity, Member, State};
use hub_core::writer::TICK_MILLIS;
use model::{
    ClusterId, KeyFingerprint,
    policy::{Loss, LossAction},
};

use oracle::laws::{Guarded, Law};

use super::goodbyes::Goodbyes;
use crate::{histogram::Histogram, network::StreamId};

/// Fewest members whose loss at one time is taken for the hub's own fault.
const TOO_MANY_MIN: u64 = 2;

/// Signs of life in one process, and the state of self-preservation in it.
#[derive(Debug, Default)]
pub(super) struct Silence {
    started_at: u64,
    /// The last stream that was opened in the name of each member, and under which key.
    streams: BTreeMap<ClusterId, (StreamId, KeyFingerprint)>,
    /// Time of each member's last sign of life, in milliseconds.
    heard: BTreeMap<ClusterId, u64>,
    /// For how long each member has had no session while the hub looked at the time, in milliseconds: a look that is late
    /// counts as one.
    alone: BTreeMap<ClusterId, u64>,
    ticked_at: Option<u64>,
    preserved_since: Option<u64>,
    /// Time from which fewer were lost than too many: from then on all have their full time again.
    preserved_until: u64,
    /// It was let go, or lasted as long as it may: members are withdrawn until fewer are lost.
    is_spent: bool,
    goodbyes: Goodbyes,
    happened: Vec<&'static str>,
    guarded: Guarded,
}

/// Lost and withdrawn members, at one moment.
#[derive(Debug)]
pub(super) struct Losses {
    /// Lost, and not withdrawn.
    lost: BTreeSet<ClusterId>,
    withdrawn: BTreeSet<ClusterId>,
    /// Suspect or lost.
    missed: BTreeSet<ClusterId>,
    is_preserved: bool,
}

impl Losses {
    pub(super) fn of(state: &State) -> Self {
        let those = |is: fn(&Member) -> bool| {
            let members = state.members().iter().filter(|(_, member)| member.is_current());
            let those = members.filter(|(_, member)| is(member));
            those.map(|(cluster, _)| cluster.clone()).collect()
        };
        Self {
            lost: those(|member| member.connectivity() == Connectivity::Lost && !member.is_withdrawn()),
            withdrawn: those(Member::is_withdrawn),
            missed: those(|member| member.connectivity() != Connectivity::Live),
            is_preserved: state.self_preservation().is_some(),
        }
    }
}

impl Silence {
    /// A process that starts gives everybody their time anew.
    pub(super) fn since(started_at: u64) -> Self {
        Self {
            started_at,
            ..Self::default()
        }
    }

    /// A stream is opened in the name of a member.
    pub(super) fn opened(&mut self, stream: StreamId, cluster: &ClusterId, key: KeyFingerprint) {
        self.streams.insert(cluster.clone(), (stream, key));
        self.alone.remove(cluster);
        self.goodbyes.opened(stream, cluster);
    }

    /// Something was heard on a stream that was welcomed; of a member only its last one counts, unless its key is refused.
    /// Whether it counts comes back.
    pub(super) fn heard(&mut self, stream: StreamId, cluster: &ClusterId, state: &State, now: u64) -> bool {
        let last = self.streams.get(cluster);
        let counts =
            |(of, key): &(StreamId, KeyFingerprint)| *of == stream && !state.revoked_keys().contains_key(key);
        let counts = last.is_some_and(counts) && state.current_member(cluster).is_some();
        if counts {
            self.heard.insert(cluster.clone(), now);
            let back = self.goodbyes.heard(cluster);
            self.happened.extend(back.then_some("back after a goodbye"));
        }
        counts
    }

    /// An agent says goodbye, in words that count.
    pub(super) fn said_goodbye(&mut self, stream: StreamId, cluster: &ClusterId, now: u64) {
        self.goodbyes.said(stream, cluster, now);
    }

    /// The writer is told that a session is over, and that its agent said goodbye.
    pub(super) fn told_of_goodbye(&mut self, cluster: &ClusterId, now: u64) {
        self.goodbyes.told(cluster, now);
        self.happened.push("goodbye said");
    }

    /// The writer has taken a work, and `before` it this was so.
    pub(super) fn took(&mut self, before: &Losses, state: &State) {
        let after = Losses::of(state);
        self.tell(before, &after, state, false);
        self.goodbyes
            .keep(|cluster| state.current_member(cluster).is_some());
        // A process that has not looked yet does not know what was let go.
        self.is_spent |= before.is_preserved && !after.is_preserved && self.preserved_since.is_some();
    }

    /// The writer has looked at the time, while these had sessions, and `before` that this was so.
    pub(super) fn ticked(
        &mut self,
        before: &Losses,
        state: &State,
        present: &BTreeSet<ClusterId>,
        now: u64,
    ) -> Result<(), String> {
        let after = Losses::of(state);
        self.tell(before, &after, state, true);
        let missed = after.missed.difference(&before.missed);
        self.goodbyes.look(missed, present, now, &mut self.guarded)?;
        self.look_who_is_alone(state, present, now);
        let withdrawn: Vec<&ClusterId> = after.withdrawn.difference(&before.withdrawn).collect();
        let (loss, members) = (state.loss(), state.current_member_count() as u64);
        let lost = (after.lost.len() + withdrawn.len()) as u64;
        let too_many = loss.action != LossAction::Retain && lost >= too_many(&loss, members);
        if !too_many {
            if (before.is_preserved || self.preserved_since.is_some()) && !self.is_spent {
                self.preserved_until = now;
                self.alone.clear();
            }
            (self.preserved_since, self.is_spent) = (None, false);
        } else if before.is_preserved || after.is_preserved {
            let since = *self.preserved_since.get_or_insert(now);
            self.is_spent |= now - since >= loss.self_preservation_millis;
            let guarded = if after.is_preserved { lost } else { 0 };
            self.guarded.count(Law::Preserved, guarded);
        }
        if let Some(cluster) = withdrawn.first().filter(|_| too_many && !self.is_spent) {
            let why = format!("{cluster} is withdrawn while {lost} of {members} are lost");
            return Err(Law::Preserved.broken(why));
        }
        for cluster in withdrawn {
            if before.is_preserved || self.is_spent {
                self.happened.push("withdrawn after self-preservation");
            }
            self.withdrawn(cluster, &loss, now)?;
        }
        let is_due = loss.action != LossAction::Retain && (!too_many || self.is_spent);
        let stays = |(cluster, alone): &(&ClusterId, &u64)| {
            **alone >= loss.after_millis && !after.withdrawn.contains(*cluster)
        };
        match self.alone.iter().find(stays).filter(|_| is_due) {
            None => Ok(()),
            Some((cluster, alone)) => Err(Law::InTime.broken(format!(
                "{cluster} has been alone for {alone} ms, and is not withdrawn"
            ))),
        }
    }

    fn look_who_is_alone(&mut self, state: &State, present: &BTreeSet<ClusterId>, now: u64) {
        let passed = now - self.ticked_at.replace(now).unwrap_or(now);
        let before = std::mem::take(&mut self.alone);
        let members = state.members().iter().filter(|(_, member)| member.is_current());
        let is_alone = |cluster| !present.contains(cluster) && !self.goodbyes.excuse(cluster);
        let alone = members.filter(|(cluster, _)| is_alone(cluster));
        self.alone = alone
            .map(|(cluster, _)| {
                let so_far = before.get(cluster).map(|so_far| so_far + passed.min(TICK_MILLIS));
                (cluster.clone(), so_far.unwrap_or_default())
            })
            .collect();
    }

    /// It is withdrawn by this look at the time.
    fn withdrawn(&mut self, cluster: &ClusterId, loss: &Loss, now: u64) -> Result<(), String> {
        self.guarded.count(Law::InTime, 1);
        let heard = self.heard.get(cluster).copied().unwrap_or(self.started_at);
        let silence = now.saturating_sub(heard.max(self.started_at).max(self.preserved_until));
        let broken = |why: String| Err(Law::InTime.broken(format!("{cluster} is withdrawn {why}")));
        if loss.action == LossAction::Retain {
            return broken("though the policy retains".into());
        }
        if silence < loss.after_millis {
            let after = loss.after_millis;
            return broken(format!(
                "after {silence} ms of silence, and the policy says {after}"
            ));
        }
        Ok(())
    }

    fn tell(&mut self, before: &Losses, after: &Losses, state: &State, ticked: bool) {
        let is_there = |cluster: &&ClusterId| {
            let member = state.current_member(cluster);
            member.is_some_and(|member| member.connectivity() == Connectivity::Live)
        };
        let back = before.lost.iter().filter(is_there);
        self.happened.extend(back.map(|_| "lost member back in time"));
        let told = match (before.is_preserved, after.is_preserved) {
            (false, true) => "self-preservation entered",
            (true, false) if ticked => "self-preservation over",
            (true, false) => "self-preservation let go",
            _ => return,
        };
        self.happened.push(told);
    }

    /// Happenings and guarded objects since the last call.
    pub(super) fn count(&mut self, seen: &mut Histogram) {
        self.happened.drain(..).for_each(|kind| seen.count(kind));
        seen.guarded.add(&std::mem::take(&mut self.guarded));
    }
}

/// Number of lost members that are too many, of so many.
fn too_many(loss: &Loss, members: u64) -> u64 {
    let share = members * u64::from(loss.self_preservation_percent);
    let share = share / 100 + u64::from(!share.is_multiple_of(100));
    share.max(TOO_MANY_MIN)
}

#[cfg(test)]
mod tests;
