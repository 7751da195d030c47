//! Owns: the names of the laws, and the count of what each of them guarded.
//! Never: judges.

use std::{collections::BTreeMap, fmt};

/// A law, by what it guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A cluster holds what users declared: counts compared imports and exports.
    Holds,
    /// What stood stays: counts imports that existed and were looked at while things broke.
    Stood,
    /// The law of deletion: objects that no agent may delete.
    Deletion,
    /// No write when nothing changed: objects over which agents restarted.
    NoWrite,
    /// Durable before ack: positions promised by hubs that were then started again, and acknowledgements.
    Durable,
    /// A session is resumed where the log's history has its cursor, and told positions of its own epoch only:
    /// positions that hubs said.
    Positions,
    /// A new epoch begins for a rewind, or for a later one that is known, and for each only once: epochs begun.
    Rewinds,
    /// A source is told as listed only if it has listed since it joined: sources that hubs said are listed.
    Sources,
    /// An export keeps the age that was recorded first: exports recorded again.
    Ages,
    /// A key of a membership that ended, or that was revoked, stays outside: admissions where there are such keys.
    Keys,
    /// A change of keys costs no membership: keys that were renewed or revoked.
    Renewals,
    /// An agent follows no epoch below one it has known: welcomes of agents that knew one.
    Epochs,
    /// Order of writes: imports that go with their slices, and Services that come before theirs.
    Order,
    /// Bounded memory: queues that were looked at while they held something.
    Bounds,
    /// Bounded requests: kinds listed or watched and objects written, by the minute.
    Requests,
    /// Nobody who lives is suspect: members of worlds at rest.
    Alive,
    /// An applied position is true: counts imports that existed when an agent reported it.
    Applied,
    /// While the disk's reserve is touched nothing is recorded that makes the state larger: works of writers meanwhile.
    Reserve,
    /// A difference makes the object that was sent, or none: objects that were restored.
    Differences,
    /// A refused export is nowhere: counts refused exports of worlds at rest, by cluster that could hold them.
    Refused,
    /// A claim to be older than the first export is an event with both sides: counts such exports.
    Contests,
    /// Nobody's export is lost by what another does, or may not do: imports and exports that were compared meanwhile.
    Untouched,
    /// A restored rule restores objects: counts exports that had been nowhere, and imports that a member had not.
    Restored,
    /// No address leads elsewhere: slices that were looked at while a member stated such addresses.
    Elsewhere,
    /// No member holds, or is sent, what the policy does not let it take: imports of worlds at rest that it has not, and
    /// objects that were sent where a rule speaks of them.
    Taken,
    /// Nobody is withdrawn who is not lost, and none of the last ready endpoints: exports of withdrawn members, by look.
    Withdrawn,
    /// Nobody is withdrawn while too many are lost at one time: members that are lost meanwhile, by look.
    Preserved,
    /// Nobody is withdrawn who was heard within the time of the policy: withdrawals.
    InTime,
    /// A member that said goodbye is neither suspect nor lost for ten minutes: counts members that are away for longer
    /// than a loss needs, by look.
    Goodbye,
    /// A withdrawn member was declared lost, and each loss has one withdrawal and one return at most: counts records of
    /// silent members.
    OneLoss,
    /// The endpoints of who is to leave stand only where no other answers, and nothing derived is of who is no member:
    /// exports of members that are to leave, by look.
    Leaving,
    /// Withdrawals of a member on hold still count: counts exports on hold, by look.
    Held,
    /// One id, one holder: strangers that came under the id of a member.
    Holders,
    /// Nothing of a replaced leader takes effect over a newer one's: writes that came from replaced ones.
    Replaced,
    /// Nothing is removed by the Lease of a source that did not stand still for a whole time in the eyes of the one who
    /// removes it, nor under retain: requests that removed something so.
    Still,
    /// Memberships and holds end when their time is over, whatever the wall clock shows: those that ended after the hub's
    /// clock had been set.
    Due,
    /// Another agent leads after its leader is gone, however slow the API server is: leaders that went.
    Led,
}

impl Law {
    /// All of them.
    pub const ALL: [Self; 37] = [
        Self::Holds,
        Self::Stood,
        Self::Deletion,
        Self::NoWrite,
        Self::Durable,
        Self::Positions,
        Self::Rewinds,
        Self::Sources,
        Self::Ages,
        Self::Keys,
        Self::Renewals,
        Self::Epochs,
        Self::Order,
        Self::Bounds,
        Self::Requests,
        Self::Alive,
        Self::Applied,
        Self::Reserve,
        Self::Differences,
        Self::Refused,
        Self::Contests,
        Self::Untouched,
        Self::Restored,
        Self::Elsewhere,
        Self::Taken,
        Self::Withdrawn,
        Self::Preserved,
        Self::InTime,
        Self::Goodbye,
        Self::OneLoss,
        Self::Leaving,
        Self::Held,
        Self::Holders,
        Self::Replaced,
        Self::Still,
        Self::Due,
        Self::Led,
    ];

    /// Its name, with which every failure begins.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "what a cluster holds",
            Self::Stood => "what stood stays",
            Self::Deletion => "law of deletion",
            Self::NoWrite => "no write when nothing changed",
            Self::Durable => "durable before ack",
            Self::Positions => "positions are of one history",
            Self::Rewinds => "one rewind, one epoch",
            Self::Sources => "listed is who has listed",
            Self::Ages => "an export keeps its age",
            Self::Keys => "a refused key stays outside",
            Self::Renewals => "a change of keys costs no membership",
            Self::Epochs => "no epoch below a known one",
            Self::Order => "order of writes",
            Self::Bounds => "bounded memory",
            Self::Requests => "bounded requests",
            Self::Alive => "who lives is not suspect",
            Self::Applied => "what is said to be applied stands",
            Self::Reserve => "nothing grows in the reserve",
            Self::Differences => "a difference makes the object that was sent",
            Self::Refused => "what is refused is nowhere",
            Self::Contests => "who claims to be older is contested",
            Self::Untouched => "nobody's export is lost by another",
            Self::Restored => "a loosened rule restores",
            Self::Elsewhere => "no address leads elsewhere",
            Self::Taken => "nobody holds what it may not take",
            Self::Withdrawn => "the last endpoints stay",
            Self::Preserved => "half of the fleet is not withdrawn",
            Self::InTime => "nobody is withdrawn before its time",
            Self::Goodbye => "who says goodbye is not lost",
            Self::OneLoss => "one loss, one withdrawal",
            Self::Leaving => "who leaves leaves no ghost",
            Self::Held => "what is held stays",
            Self::Holders => "one id, one holder",
            Self::Replaced => "nothing of a replaced leader takes effect over a newer one's",
            Self::Still => "only a Lease that stood still lets go",
            Self::Due => "what ends after a time ends then",
            Self::Led => "a slow API server has a leader",
        }
    }

    /// The counted things.
    fn what(self) -> &'static str {
        match self {
            Self::Holds | Self::Untouched | Self::Restored => "imports and exports",
            Self::Stood | Self::Applied | Self::Taken => "imports",
            Self::Deletion | Self::NoWrite | Self::Differences => "objects",
            Self::Durable => "promises",
            Self::Positions => "positions",
            Self::Rewinds => "epochs",
            Self::Sources => "sources",
            Self::Ages | Self::Refused | Self::Contests | Self::Withdrawn | Self::Leaving | Self::Held => {
                "exports"
            }
            Self::Elsewhere => "slices",
            Self::Holders => "strangers",
            Self::Replaced => "late writes",
            Self::Still => "removals",
            Self::Due => "ends behind a clock that was set",
            Self::Led => "leaders that went",
            Self::Keys => "admissions",
            Self::Renewals => "keys",
            Self::Epochs => "welcomes",
            Self::Order => "pieces of work",
            Self::Bounds => "queues",
            Self::Requests => "kinds, objects and minutes",
            Self::Alive | Self::Preserved | Self::Goodbye => "members",
            Self::InTime => "withdrawals",
            Self::OneLoss => "facts",
            Self::Reserve => "works",
        }
    }

    /// A failure of this law.
    pub fn broken(self, why: impl fmt::Display) -> String {
        format!("{}: {why}", self.name())
    }
}

/// Number of objects that each law guarded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarded(BTreeMap<Law, u64>);

impl Guarded {
    /// A law guarded so many more.
    pub fn count(&mut self, law: Law, objects: u64) {
        *self.0.entry(law).or_default() += objects;
    }

    /// Number of guarded objects.
    pub fn of(&self, law: Law) -> u64 {
        self.0.get(&law).copied().unwrap_or(0)
    }

    /// Adds what was guarded elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (law, objects) in &other.0 {
            self.count(*law, *objects);
        }
    }

    /// The laws of `these` that guarded nothing.
    pub fn idle(&self, these: &[Law]) -> Vec<&'static str> {
        let idle = these.iter().filter(|law| self.of(**law) == 0);
        idle.map(|law| law.name()).collect()
    }

    /// One line for each law of `these`.
    pub fn lines(&self, these: &[Law]) -> Vec<String> {
        let line = |law: &Law| format!("{:>12}  {} guarded by: {}", self.of(*law), law.what(), law.name());
        these.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_that_guarded_nothing_is_named() {
        let mut guarded = Guarded::default();
        guarded.count(Law::Stood, 2);
        guarded.count(Law::Holds, 0);
        let mut all = guarded.clone();
        all.add(&guarded);
        assert_eq!(all.of(Law::Stood), 4);
        assert_eq!(
            all.idle(&[Law::Stood, Law::Holds, Law::Durable]),
            ["what a cluster holds", "durable before ack"]
        );
        let lines = all.lines(&[Law::Stood]);
        assert_eq!(lines, ["           4  imports guarded by: what stood stays"]);
    }
}
