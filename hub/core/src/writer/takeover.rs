//! Owns: what a hub begins with that takes the lead from another: its term, the ends of memberships that it saw while it
//! followed, and more time for members to come; and who is known to have ended.
//! Never: decides who leads.

use std::collections::BTreeSet;

use model::{ClusterId, Event, Fact, UnixMillis};

use super::core::Core;
use fold::{Command, RULES};

/// A takeover of the lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// The name of the hub that leads now.
    pub replica: Box<str>,
    /// Members whose end was recorded while this hub was level with the log, and that did not join again.
    pub ended: BTreeSet<ClusterId>,
}

impl Core {
    /// Says this term from now on.
    pub fn in_term(mut self, term: u64) -> Self {
        self.term = term;
        self
    }

    /// Takes the lead over at this time, in monotonic milliseconds.
    pub fn taking_over(mut self, takeover: Takeover, now: u64) -> Self {
        self.ended = takeover.ended;
        self.replica = Some(takeover.replica);
        self.heard.takes_over(now);
        self
    }

    /// Records who leads and that these rules and bounds take over the log, as far as that changes anything.
    pub fn begin(&mut self, clock: UnixMillis) {
        self.clock = clock;
        // The rules of a new log are recorded before anything else.
        if RULES.fold(self.state.fold_version()).is_ok() {
            self.begin_term();
        }
        self.adopt_rules(clock);
        self.begin_term();
    }

    fn begin_term(&mut self) {
        if let Some(replica) = self.replica.clone() {
            let term = self.term;
            // The fold takes every later term.
            let _ = self.decide_and_apply(&Command::BeginTerm { term, replica });
        }
    }

    /// Returns true if this process can vouch for the objects from there: the cluster will list, or was seen to end.
    pub(super) fn vouches_for(&self, cluster: &ClusterId) -> bool {
        self.ended.contains(cluster) || self.state.current_member(cluster).is_some()
    }

    /// Updates the ended members.
    pub(super) fn note_end(&mut self, event: &Event) {
        note_end(&mut self.ended, event);
    }
}

/// Updates the ended members: one that joins has not ended.
pub fn note_end(ended: &mut BTreeSet<ClusterId>, event: &Event) {
    let Some(cluster) = &event.cluster else { return };
    match event.fact.fact {
        Fact::MemberJoined { .. } => drop(ended.remove(cluster)),
        Fact::MemberLeft | Fact::MemberEvicted { .. } | Fact::MemberForgotten { .. } => {
            ended.insert(cluster.clone());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
