//! The versions of the fold's rules: which of them this program has, and what it says of a log that needs another.
//! It folds nothing; `decide` records that other rules take a log over, and the replay asks here before each event.

use std::fmt;

use model::policy::special;

/// The version of these rules. It grows when the same events would give other derived content.
pub const FOLD_VERSION: u32 = 3;

/// The version from which on derivation leaves out what no cluster serves to others: exports from namespaces of
/// Kubernetes itself, and endpoints whose addresses lead elsewhere in every network.
const HYGIENE_SINCE: u32 = 2;

/// The version from which on a port is served by its protocol and number, whatever its name is, and a port that lost keeps
/// its name from nobody.
pub(super) const PORTS_BY_NUMBER_SINCE: u32 = 3;

/// The version from which on the namespaces of Kubernetes itself are three names, and no prefix.
const EXACT_NAMESPACES_SINCE: u32 = 3;

/// The version from which on two names of one traffic distribution are no conflict.
const ALIASES_SINCE: u32 = 3;

/// The version from which on endpoints of exports on hold yield to ready ones of other members.
pub(super) const HELD_YIELD_SINCE: u32 = 3;

/// The version from which on text of members in messages has no characters that cannot be seen.
const VISIBLE_SINCE: u32 = 3;

/// The version that folds a log which never recorded another.
pub const FIRST_FOLD_VERSION: u32 = 1;

/// The versions that a program folds: its own, and the one before, so that a hub can be replaced by the next release.
/// A fact whose meaning changed between the two is applied by what [`super::State::fold_version`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The oldest.
    pub oldest: u32,
    /// The program's own.
    pub newest: u32,
}

/// The rules by which this program folds.
pub const RULES: Rules = Rules::of(FOLD_VERSION);

impl Rules {
    /// The rules of a program of this version.
    pub const fn of(newest: u32) -> Self {
        let oldest = match newest {
            FIRST_FOLD_VERSION => FIRST_FOLD_VERSION,
            later => later - 1,
        };
        Self { oldest, newest }
    }

    /// Checks that this program can continue a log that was folded by `version`.
    pub fn fold(self, version: u32) -> Result<(), ForeignRules> {
        if version > self.newest {
            return Err(ForeignRules::Newer(version, self));
        }
        if version < self.oldest {
            return Err(ForeignRules::Older(version, self));
        }
        Ok(())
    }
}

/// The version of the rules by which a state is folded: of derivation, what changed from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InForce(pub(super) u32);

impl InForce {
    /// Derivation leaves out what no cluster serves to others.
    pub(super) fn hygiene(self) -> bool {
        self.0 >= HYGIENE_SINCE
    }

    /// Two names of one traffic distribution are no conflict.
    pub(super) fn knows_aliases(self) -> bool {
        self.0 >= ALIASES_SINCE
    }

    /// Why nothing is exported from a namespace; absent when something may be.
    pub(super) fn reserves(self, namespace: &str) -> Option<&'static str> {
        if !self.hygiene() {
            return None;
        }
        if self.0 < EXACT_NAMESPACES_SINCE {
            return namespace
                .starts_with("kube-")
                .then_some("it begins with \u{22}kube-\u{22}");
        }
        special::is_reserved_namespace(namespace).then_some("Kubernetes keeps it for itself")
    }

    /// Text of members in messages has no characters that cannot be seen.
    pub(super) fn shows_only_visible(self) -> bool {
        self.0 >= VISIBLE_SINCE
    }

    /// Ports are served by protocol and number.
    pub(super) fn ports_by_number(self) -> bool {
        self.0 >= PORTS_BY_NUMBER_SINCE
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "versions {} to {}", self.oldest, self.newest)
    }
}

/// A log of rules that this program does not have. Nothing of it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForeignRules {
    /// A later release took it over.
    #[error(
        "it was folded by version {0} of the rules, and this program has {1}: start the release that wrote it, or \
         a later one"
    )]
    Newer(u32, Rules),
    /// Releases were left out.
    #[error(
        "it was folded by version {0} of the rules, and this program has {1}: start and stop each release in \
         between first, the oldest one first"
    )]
    Older(u32, Rules),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_folds_its_own_version_and_the_one_before() {
        assert_eq!(RULES.newest, FOLD_VERSION);
        let first = Rules::of(FIRST_FOLD_VERSION);
        assert_eq!((first.oldest, first.newest), (1, 1));
        let third = Rules::of(3);
        assert_eq!(third.fold(1), Err(ForeignRules::Older(1, third)));
        assert_eq!((third.fold(2), third.fold(3)), (Ok(()), Ok(())));
        assert_eq!(third.fold(4), Err(ForeignRules::Newer(4, third)));
    }

    #[test]
    fn a_refusal_is_one_line_and_says_what_to_start() {
        let third = Rules::of(3);
        for (refusal, words) in [
            (
                ForeignRules::Newer(4, third),
                "version 4 of the rules, and this program has versions 2 to 3: start the release",
            ),
            (
                ForeignRules::Older(1, third),
                "start and stop each release in between",
            ),
        ] {
            let text = refusal.to_string();
            assert!(text.contains(words) && !text.contains('\n'), "{text}");
        }
    }
}
