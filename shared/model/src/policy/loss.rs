//! The policy on lost members: values only. The fold says what follows, the writer when.

use std::{fmt, str::FromStr};

/// Silence within which a member is lost, in milliseconds (docs/design.md, section 4): no withdrawal comes before it.
pub const LOSS_DETECTED_MILLIS: u64 = 10_000;
/// Longest time from the last sign of life until a member is withdrawn, and longest self-preservation, in milliseconds.
pub const LOSS_MILLIS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Fewest members whose loss at one time counts as the hub's own fault.
pub const SELF_PRESERVATION_LOST_MIN: u64 = 2;

/// The policy on lost members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The action on their endpoints.
    pub action: LossAction,
    /// After so much silence, in milliseconds: at least [`LOSS_DETECTED_MILLIS`].
    pub after_millis: u64,
    /// The share of all members, in per cent, whose loss at one time is taken for the hub's own fault; 100 and fewer than
    /// two members never are.
    pub self_preservation_percent: u8,
    /// Longest time for which self-preservation withdraws nothing, in milliseconds, however many members stay lost.
    pub self_preservation_millis: u64,
}

/// The action on the endpoints of a member that stays lost, as long as another one has a ready endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LossAction {
    /// They are withdrawn.
    #[default]
    Withdraw,
    /// They stand, and none is ready.
    NotReady,
    /// Nothing.
    Retain,
}

impl Default for Loss {
    fn default() -> Self {
        Self {
            action: LossAction::default(),
            after_millis: 60_000 + LOSS_DETECTED_MILLIS,
            self_preservation_percent: 33,
            self_preservation_millis: 30 * 60 * 1_000,
        }
    }
}

impl fmt::Display for LossAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Withdraw => "withdraw",
            Self::NotReady => "notReady",
            Self::Retain => "retain",
        })
    }
}

impl FromStr for LossAction {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Withdraw, Self::NotReady, Self::Retain];
        all.into_iter()
            .find(|action| action.to_string() == text)
            .ok_or(())
    }
}

impl Loss {
    /// Number of members, out of so many, whose loss at one time is taken for the hub's own fault.
    pub fn too_many(&self, members: u64) -> u64 {
        let share = members.saturating_mul(self.self_preservation_percent.into());
        share.div_ceil(100).max(SELF_PRESERVATION_LOST_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_read_as_it_is_said() {
        for action in [LossAction::Withdraw, LossAction::NotReady, LossAction::Retain] {
            assert_eq!(action.to_string().parse(), Ok(action));
        }
        assert_eq!("Retain".parse::<LossAction>(), Err(()));
    }

    #[test]
    fn a_third_of_a_fleet_is_too_many_and_one_member_never_is() {
        let loss = Loss::default();
        let too_many = [1, 2, 3, 6, 7, 10, 250].map(|members| loss.too_many(members));
        assert_eq!(too_many, [2, 2, 2, 2, 3, 4, 83]);
        let all = Loss {
            self_preservation_percent: 100,
            ..loss
        };
        assert_eq!(all.too_many(250), 250);
        assert_eq!(all.too_many(u64::MAX), u64::MAX.div_ceil(100));
    }
}
