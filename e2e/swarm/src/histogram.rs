//! Numbers of happenings in the played worlds, by kind, and the objects that each law guarded. A kind that never
//! happened, and a law that guarded nothing, was not tested.

use std::{collections::BTreeMap, fmt};

use oracle::laws::{Guarded, Law, ManySeeds, Verdict};

/// Everything that a swarm is expected to meet. A swarm of [`WHOLE_SWARM`] seeds in which one of these never
/// happened has failed, for it proves less than it says.
pub const EXPECTED: &[&str] = &[
    "API server slow",
    "API server slow every other time",
    "admitted though the log is ahead of the clock",
    "age of exports forged",
    "agent crashed",
    "agent doubled",
    "answer lost",
    "applies refused",
    "applies unavailable",
    "asked to report again",
    "back after a goodbye",
    "certificate asked for",
    "certificate over by a wrong clock",
    "certificate renewed",
    "certificate renewed over its session",
    "clock of agents set",
    "clock of the hub set back",
    "clock of the hub set forward",
    "clock skewed",
    "conflict settled",
    "connection broken",
    "copy of a member came",
    "copy of a member held it",
    "crd removed",
    "cursor judged again",
    "cursor older than the log",
    "deletions refused",
    "difference disturbed",
    "drift",
    "disk freed",
    "disk nearly full",
    "epoch begun",
    "epoch claimed",
    "evicted member came again",
    "export removed",
    "exported metadata edited",
    "fact of another stated",
    "flood",
    "goodbye said",
    "half partition",
    "history forced out",
    "held exports let go",
    "history went",
    "hostile member banned",
    "hostile member evicted",
    "hostile member fenced",
    "hostile member forgotten",
    "hostile member squeezed",
    "hub crashed",
    "hub lost unsynced batches",
    "hub restored from a backup",
    "hub started empty",
    "hub stopped in order",
    "http 409",
    "http 410",
    "http 429",
    "http 500",
    "imports taken again",
    "imports withheld",
    "incumbents kept",
    "interest changed",
    "item refused",
    "item held back",
    "key revoked",
    "leader came back late",
    "leader cut off",
    "leader ended",
    "leader killed",
    "leadership changed hands",
    "lease of a source touched",
    "listing cut off",
    "lost member back in time",
    "member certified anew",
    "member evicted",
    "member held",
    "member is to leave",
    "member left",
    "member stays",
    "member withdrawn",
    "namespace came",
    "namespace went",
    "newcomers claimed an epoch",
    "object that cannot be decoded",
    "object wanted whole",
    "older age claimed",
    "part stalled",
    "partition",
    "policy loosened",
    "policy on losses",
    "policy on removals",
    "policy squeezed",
    "policy tightened",
    "precedence released",
    "reads of exports refused",
    "reads of slices refused",
    "removal applied",
    "reserved namespace exported",
    "resume",
    "second session refused",
    "second session took over",
    "segment sealed",
    "self-preservation entered",
    "self-preservation let go",
    "self-preservation over",
    "sequence replayed",
    "service removed",
    "session hears late",
    "silence ended a session",
    "slice removed",
    "snapshot",
    "source expired",
    "source expired for one that stands by",
    "special addresses stated",
    "stranger",
    "stranger with a former key",
    "stranger with a key of its own",
    "sync failed",
    "taken back",
    "time passed",
    "updates refused",
    "watch dropped",
    "watch history lost",
    "withdrawn after self-preservation",
    "writes of Leases refused",
    "writes of imports refused",
    "writes of slices refused",
    "writes refused",
];

/// Counted kinds that are not expected: small events share a row, so that hardly a batch of a small world has two rows
/// to be torn between. The tests of the log's damages tear batches (`hub/log/src/damage.rs`). And the base of a fact is
/// mostly in a segment before; the tests of differences have long rows of them (`hub/core/src/recall/tests`).
const RARE: [&str; 3] = ["fact stored as a difference", "torn batch", "torn batch noticed"];

/// Number of seeds after which every kind must have happened.
const WHOLE_SWARM: u64 = 1_000;

/// Number of seeds of the gate's standing run, and the number of hand-overs in that many.
const STANDING_SWARM: u64 = 10_000;
const HAND_OVERS_MIN: u64 = 1_000;
/// Name of the count of hand-overs.
const HAND_OVER: &str = "leadership changed hands";

/// The laws of the swarm.
const LAWS: [Law; 36] = [
    Law::Reserve,
    Law::Holds,
    Law::Stood,
    Law::Deletion,
    Law::NoWrite,
    Law::Durable,
    Law::Positions,
    Law::Rewinds,
    Law::Sources,
    Law::Ages,
    Law::Keys,
    Law::Renewals,
    Law::Epochs,
    Law::Order,
    Law::Bounds,
    Law::Alive,
    Law::Applied,
    Law::Differences,
    Law::Refused,
    Law::Contests,
    Law::Untouched,
    Law::Restored,
    Law::Elsewhere,
    Law::Taken,
    Law::Withdrawn,
    Law::Preserved,
    Law::InTime,
    Law::Goodbye,
    Law::OneLoss,
    Law::Leaving,
    Law::Held,
    Law::Holders,
    Law::Replaced,
    Law::Still,
    Law::Due,
    Law::Led,
];

/// Counts by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    happened: BTreeMap<&'static str, u64>,
    /// Objects that each law guarded.
    pub guarded: Guarded,
}

impl Histogram {
    /// It happened once more.
    pub fn count(&mut self, kind: &'static str) {
        let known = EXPECTED.contains(&kind) || RARE.contains(&kind);
        debug_assert!(
            known,
            "{kind} is not among what is expected, nor among what is rare"
        );
        *self.happened.entry(kind).or_default() += 1;
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.happened {
            *self.happened.entry(kind).or_default() += count;
        }
        self.guarded.add(&other.guarded);
    }

    /// The verdict over a swarm of `count` seeds in which this happened, and so many worlds were broken.
    pub fn verdict(&self, count: u64, broken: usize) -> Verdict {
        let mut missing = self.missing();
        if count >= STANDING_SWARM && self.hand_overs() < HAND_OVERS_MIN {
            missing.push("a thousand hand-overs");
        }
        ManySeeds {
            count,
            enough: WHOLE_SWARM,
            broken,
            missing: &missing,
            idle: &self.idle(),
        }
        .verdict()
    }

    /// Number of times that another agent took over in a cluster.
    pub fn hand_overs(&self) -> u64 {
        self.happened.get(HAND_OVER).copied().unwrap_or(0)
    }

    /// Expected kinds that never happened.
    fn missing(&self) -> Vec<&'static str> {
        let never = |kind: &&&str| !self.happened.contains_key(**kind);
        EXPECTED.iter().filter(never).copied().collect()
    }

    /// The laws that guarded nothing.
    fn idle(&self) -> Vec<&'static str> {
        self.guarded.idle(&LAWS)
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in EXPECTED.iter().chain(&RARE) {
            writeln!(f, "{:>12}  {kind}", self.happened.get(kind).copied().unwrap_or(0))?;
        }
        for line in self.guarded.lines(&LAWS) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Histogram {
        let mut seen = Histogram::default();
        EXPECTED.iter().for_each(|kind| seen.count(kind));
        LAWS.iter().for_each(|law| seen.guarded.count(*law, 1));
        seen
    }

    #[test]
    fn a_whole_swarm_fails_for_anything_that_never_happened_and_any_law_that_guarded_nothing() {
        assert_eq!(everything().verdict(WHOLE_SWARM, 0), Verdict::Passed);
        assert_eq!(everything().verdict(WHOLE_SWARM, 1), Verdict::Broken);
        for kind in EXPECTED {
            let mut seen = everything();
            seen.happened.remove(kind);
            let verdict = seen.verdict(WHOLE_SWARM, 0);
            assert!(
                matches!(&verdict, Verdict::Vacuous(why) if why.contains(kind)),
                "{verdict:?}"
            );
            assert_eq!(seen.verdict(WHOLE_SWARM - 1, 0), Verdict::Passed);
        }
        for idle in LAWS {
            let mut seen = everything();
            seen.guarded = Guarded::default();
            let guarding = LAWS.iter().filter(|law| **law != idle);
            guarding.for_each(|law| seen.guarded.count(*law, 1));
            let verdict = seen.verdict(WHOLE_SWARM, 0);
            assert!(
                matches!(&verdict, Verdict::Vacuous(why) if why.contains(idle.name())),
                "{verdict:?}"
            );
            let few = seen.verdict(WHOLE_SWARM - 1, 0);
            assert!(few.passed() && few.doubt().is_some(), "{few:?}");
        }
    }

    #[test]
    fn the_standing_run_has_a_thousand_hand_overs() {
        let mut seen = everything();
        assert_eq!(seen.verdict(STANDING_SWARM - 1, 0), Verdict::Passed);
        let verdict = seen.verdict(STANDING_SWARM, 0);
        assert!(!verdict.passed(), "{verdict:?}");
        (1..HAND_OVERS_MIN).for_each(|_| seen.count(HAND_OVER));
        assert_eq!(seen.verdict(STANDING_SWARM, 0), Verdict::Passed);
    }

    #[test]
    fn a_law_that_guarded_nothing_is_told_like_a_kind_that_never_happened() {
        let mut seen = Histogram::default();
        EXPECTED.iter().for_each(|kind| seen.count(kind));
        let guarding = LAWS.iter().filter(|law| **law != Law::Stood);
        guarding.for_each(|law| seen.guarded.count(*law, 1));
        assert!(seen.missing().is_empty());
        assert_eq!(seen.idle(), ["what stood stays"]);
        let mut all = seen.clone();
        all.add(&seen);
        assert_eq!(all.idle(), ["what stood stays"]);
        assert!(
            all.to_string()
                .contains("           0  imports guarded by: what stood stays")
        );
    }
}
