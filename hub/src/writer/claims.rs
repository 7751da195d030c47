//! What members say of epochs that this hub cannot know by itself, and how far one of them is believed: a member's
//! word may cost the others a new epoch now and then, and never their service.
//! Pure: time is an argument. It is volatile: a hub that starts anew may have been rewound, and believes again.

use std::collections::{BTreeMap, BTreeSet};

use shared::model::{ClusterId, Epoch, UnixMillis};

/// One member's word leads to one new epoch within this time: a log is rewound only while its hub is stopped, and
/// so no honest member says it twice to one that runs.
pub const MINT_INTERVAL_MILLIS: u64 = 10 * 60 * 1000;
/// Members that must know a later epoch before a hub with facts stops serving the others.
pub const LATER_EPOCH_WITNESSES: usize = 2;
/// How far the clock of the hub that minted an epoch may have been ahead of everything this hub knows of the time.
pub(super) const EPOCH_AHEAD_MAX_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Whose word it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Witness {
    /// A current member's, or anybody's while the log has no facts that could be served.
    Member(ClusterId),
    /// That of somebody with a certificate who is no member here: of those there may be any number, and all together
    /// they have one word.
    Newcomer,
}

/// What was claimed in this process's life; at most one entry per certificate of the clusterset.
#[derive(Debug, Default)]
pub(super) struct Claims {
    minted: BTreeMap<Witness, u64>,
    witnesses: BTreeSet<ClusterId>,
}

impl Claims {
    /// Whether this word of a cluster leads to a new epoch; if so, it is used up for a while. A newcomer's uses up its own
    /// too: who was believed before it joined is not believed once more as a member.
    pub(super) fn may_mint(&mut self, witness: &Witness, cluster: &ClusterId, now: u64) -> bool {
        let words = [witness.clone(), Witness::Member(cluster.clone())];
        let may = words.iter().all(|word| {
            let before = self.minted.get(word);
            before.is_none_or(|&at| now.saturating_sub(at) >= MINT_INTERVAL_MILLIS)
        });
        if may {
            self.minted.extend(words.map(|word| (word, now)));
        }
        may
    }

    /// Somebody knows a later epoch. True when that is enough to stop serving, which a newcomer's word never is;
    /// `alone`: there is no other member.
    pub(super) fn witnessed(&mut self, witness: &Witness, alone: bool) -> bool {
        let Witness::Member(cluster) = witness else {
            return false;
        };
        self.witnesses.insert(cluster.clone());
        alone || self.witnesses.len() >= LATER_EPOCH_WITNESSES
    }

    /// This member does not say so any more.
    pub(super) fn withdrawn(&mut self, cluster: &ClusterId) {
        self.witnesses.remove(cluster);
    }

    /// A later epoch has begun here: what was known before it is settled.
    pub(super) fn settled(&mut self) {
        self.witnesses.clear();
    }
}

/// Whether a hub can have minted this epoch, if the latest time that is known here is `known`. One that is believed
/// is the new floor of all epochs, so that a made-up one far ahead could never be left again.
pub(super) fn is_possible(epoch: Epoch, known: UnixMillis) -> bool {
    epoch.created_at.0 <= known.0.saturating_add(EPOCH_AHEAD_MAX_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ClusterId {
        ClusterId::new(name).expect("a cluster id")
    }

    fn member(name: &str) -> Witness {
        Witness::Member(id(name))
    }

    #[test]
    fn each_member_has_one_epoch_per_interval_and_newcomers_one_together() {
        let mut claims = Claims::default();
        for (witness, of, at) in [(member("east"), "east", 5), (Witness::Newcomer, "north", 6)] {
            assert!(claims.may_mint(&witness, &id(of), at));
            assert!(!claims.may_mint(&witness, &id(of), at - 1 + MINT_INTERVAL_MILLIS));
            assert!(
                claims.may_mint(&member("west"), &id("west"), at * MINT_INTERVAL_MILLIS),
                "another member has its own"
            );
            assert!(claims.may_mint(&witness, &id(of), at + MINT_INTERVAL_MILLIS));
            assert!(!claims.may_mint(&witness, &id(of), at + 1 + MINT_INTERVAL_MILLIS));
        }
    }

    #[test]
    fn a_newcomer_that_becomes_a_member_has_no_second_word_and_neither_has_a_member_that_ends() {
        let mut claims = Claims::default();
        assert!(claims.may_mint(&Witness::Newcomer, &id("east"), 5));
        assert!(!claims.may_mint(&member("east"), &id("east"), 6));
        assert!(claims.may_mint(&member("west"), &id("west"), 6));
        let later = 5 + MINT_INTERVAL_MILLIS;
        assert!(
            !claims.may_mint(&Witness::Newcomer, &id("west"), later),
            "it spoke as a member"
        );
        assert!(claims.may_mint(&member("east"), &id("east"), later));
    }

    #[test]
    fn an_epoch_is_at_most_a_day_ahead_of_what_is_known() {
        let at = |millis| Epoch::default().next(UnixMillis(millis), 1);
        let known = UnixMillis(1_800_000_000_000);
        assert!(is_possible(at(known.0 + EPOCH_AHEAD_MAX_MILLIS), known));
        assert!(!is_possible(at(known.0 + EPOCH_AHEAD_MAX_MILLIS + 1), known));
        assert!(is_possible(at(1), known), "an old one is no harm");
    }

    #[test]
    fn two_members_are_witnesses_and_one_is_only_when_it_is_alone() {
        let mut claims = Claims::default();
        assert!(!claims.witnessed(&member("east"), false));
        assert!(
            !claims.witnessed(&member("east"), false),
            "the same one counts once"
        );
        claims.withdrawn(&id("east"));
        assert!(!claims.witnessed(&member("west"), false));
        assert!(claims.witnessed(&member("east"), false));
        claims.settled();
        assert!(!claims.witnessed(&member("west"), false));
        assert!(claims.witnessed(&member("west"), true));
    }

    #[test]
    fn no_number_of_newcomers_is_a_witness() {
        let mut claims = Claims::default();
        for alone in [false, true, false] {
            assert!(!claims.witnessed(&Witness::Newcomer, alone));
        }
        assert!(!claims.witnessed(&member("east"), false), "the first that counts");
    }
}
