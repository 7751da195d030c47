//! Claims of members about epochs that this hub cannot know by itself, with the limits on believing one: a member's
//! claim may cost the others a new epoch now and then, and never their service. Pure: time is an argument. It is
//! volatile: a restarted hub may have been rewound, and believes again.

use std::collections::BTreeMap;

use model::{ClusterId, Epoch, KeyFingerprint, UnixMillis};

/// One member's word leads to one new epoch within this time: a log is rewound only while its hub is stopped, and
/// so no honest member says it twice to one that runs.
pub const MINT_INTERVAL_MILLIS: u64 = 10 * 60 * 1000;
/// Fewest members that must know a later epoch before a hub with facts stops serving the others, where there is more
/// than one member. More than half of the members must know it, too.
pub const LATER_EPOCH_WITNESSES: usize = 2;
/// Longest assumed lead of the clock of the hub that minted an epoch over everything this hub knows of the time.
pub(super) const EPOCH_AHEAD_MAX_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The source of a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Witness {
    /// A current member's, or anybody's while the log has no facts that could be served.
    Member(ClusterId),
    /// Somebody with a certificate who is no member here. There may be any number of them; together they have one
    /// claim.
    Newcomer,
}

/// Claims in this process's life; at most one entry per certificate of the clusterset.
#[derive(Debug, Default)]
pub(super) struct Claims {
    minted: BTreeMap<Witness, u64>,
    /// Members that know a later epoch, and the key that said so.
    witnesses: BTreeMap<ClusterId, KeyFingerprint>,
}

impl Claims {
    /// Returns true if this claim of a cluster leads to a new epoch; the claimant then has none left for a while. A
    /// newcomer also uses up its own: an identity that was believed before it joined is not believed again as a member.
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

    /// Somebody knows a later epoch. A newcomer's word counts for nothing.
    pub(super) fn witnessed(&mut self, witness: &Witness, key: KeyFingerprint) {
        if let Witness::Member(cluster) = witness {
            self.witnesses.insert(cluster.clone(), key);
        }
    }

    /// Forgets the words of those who are no members any more, or whose key is not admitted any more.
    pub(super) fn keep(&mut self, stands: impl Fn(&ClusterId, &KeyFingerprint) -> bool) {
        self.witnesses.retain(|cluster, key| stands(cluster, key));
    }

    /// Returns true if enough of so many members know a later epoch for the hub to stop serving: more than half of them, and at
    /// least [`LATER_EPOCH_WITNESSES`] unless there is only one.
    pub(super) fn are_enough(&self, members: usize) -> bool {
        let needed = match members {
            0 | 1 => 1,
            more => (more / 2 + 1).max(LATER_EPOCH_WITNESSES),
        };
        self.witnesses.len() >= needed
    }

    /// The members that know a later epoch.
    pub(super) fn witnesses(&self) -> impl Iterator<Item = &ClusterId> {
        self.witnesses.keys()
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

/// Returns true if a hub can have minted this epoch, given the latest time known here. A believed epoch becomes the
/// floor of all later epochs, so an invented one far ahead could never be left again.
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

    const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

    #[test]
    fn more_than_half_of_the_members_and_at_least_two_stop_a_hub_that_has_others() {
        for (members, needed) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 6)] {
            let mut claims = Claims::default();
            for said in 1..=needed {
                assert!(!claims.are_enough(members), "{said} of {members}");
                for _ in 0..2 {
                    let name = format!("c{said}");
                    claims.witnessed(&member(&name), KEY);
                }
            }
            assert!(claims.are_enough(members), "{needed} of {members}");
            claims.withdrawn(&id("c1"));
            assert!(!claims.are_enough(members), "one of {members} says so no more");
        }
    }

    #[test]
    fn a_word_ends_with_its_key_and_when_another_epoch_begins() {
        let mut claims = Claims::default();
        for name in ["east", "west", "north"] {
            claims.witnessed(&member(name), KEY);
        }
        claims.keep(|cluster, key| *cluster != id("west") && *key == KEY);
        assert!(claims.witnesses().eq(&[id("east"), id("north")]));
        claims.settled();
        assert!(!claims.are_enough(1));
    }

    #[test]
    fn no_number_of_newcomers_is_a_witness() {
        let mut claims = Claims::default();
        claims.witnessed(&Witness::Newcomer, KEY);
        assert!(!claims.are_enough(0) && !claims.are_enough(1));
    }
}
