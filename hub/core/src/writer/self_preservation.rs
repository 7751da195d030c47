//! Owns: when members that stay lost are withdrawn, and when none is because too many are lost at one time: then the hub
//! itself, or its network, is the likelier fault. On values, with the time handed in.
//! Never: knows which members are lost, or says what follows from a withdrawal.

use model::{
    ClusterId,
    policy::{Loss, LossAction},
};

/// The state of self-preservation, in monotonic milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SelfPreservation {
    /// Members are withdrawn.
    #[default]
    Off,
    /// Nothing is, since then.
    Since(u64),
    /// It lasted as long as it may: members are withdrawn until fewer are lost.
    Spent,
}

/// The members that are lost and not withdrawn.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Number of lost members.
    pub(super) lost: u64,
    /// Out of so many members.
    pub(super) members: u64,
    /// The lost members that were silent for as long as the policy says.
    pub(super) due: Vec<ClusterId>,
}

/// The decision due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Too many are lost: nothing more is withdrawn.
    Enter,
    /// Members are withdrawn again.
    Leave,
    /// These are withdrawn.
    Withdraw(Vec<ClusterId>),
}

impl SelfPreservation {
    /// Looks at what is lost, and says what follows, in order. When fewer are lost than too many, nobody is withdrawn in
    /// that moment, and from then on those whose time is over that begins with it.
    pub(super) fn look(&mut self, loss: &Loss, losses: Losses, now: u64) -> Vec<Decision> {
        let mut decisions = Vec::new();
        if loss.action == LossAction::Retain || losses.lost < loss.too_many(losses.members) {
            if let Self::Since(_) = std::mem::take(self) {
                // The hub can be reached again, and the members that are still lost are coming back: they have their
                // full time again.
                return vec![Decision::Leave];
            }
        } else {
            match self {
                Self::Off if losses.due.is_empty() => {}
                Self::Off => {
                    *self = Self::Since(now);
                    return vec![Decision::Enter];
                }
                Self::Since(since) if now.saturating_sub(*since) < loss.self_preservation_millis => {
                    return Vec::new();
                }
                Self::Since(_) => {
                    *self = Self::Spent;
                    decisions.push(Decision::Leave);
                }
                Self::Spent => {}
            }
        }
        if loss.action != LossAction::Retain && !losses.due.is_empty() {
            decisions.push(Decision::Withdraw(losses.due));
        }
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn losses(lost: u64, members: u64, due: &[&str]) -> Losses {
        let due = due.iter().map(|id| ClusterId::new(id).expect("valid"));
        Losses {
            lost,
            members,
            due: due.collect(),
        }
    }

    fn withdrawn(due: &[&str]) -> Decision {
        Decision::Withdraw(losses(0, 0, due).due)
    }

    #[test]
    fn who_stays_lost_is_withdrawn_and_nobody_before() {
        let (mut off, loss) = (SelfPreservation::default(), Loss::default());
        assert_eq!(off.look(&loss, losses(1, 3, &[]), NOW), []);
        assert_eq!(
            off.look(&loss, losses(1, 3, &["east"]), NOW),
            [withdrawn(&["east"])]
        );
        assert_eq!(off, SelfPreservation::Off);
    }

    #[test]
    fn while_too_many_are_lost_nobody_is_withdrawn() {
        let (mut state, loss) = (SelfPreservation::default(), Loss::default());
        let longest = loss.self_preservation_millis;
        let many = || losses(2, 3, &["east", "west"]);
        assert_eq!(
            state.look(&loss, losses(2, 3, &[]), NOW),
            [],
            "nothing would be withdrawn"
        );
        assert_eq!(state.look(&loss, many(), NOW), [Decision::Enter]);
        assert_eq!(state.look(&loss, many(), NOW + longest - 1), []);
        assert_eq!(
            state.look(&loss, losses(1, 3, &["east"]), NOW + 2),
            [Decision::Leave],
            "one of them came back, and the other has its time"
        );
        assert_eq!(
            state.look(&loss, losses(1, 3, &["east"]), NOW + 3),
            [withdrawn(&["east"])],
            "which is over"
        );
    }

    #[test]
    fn it_ends_when_it_lasted_as_long_as_it_may_and_begins_anew_only_after_fewer_were_lost() {
        let (mut state, loss) = (SelfPreservation::default(), Loss::default());
        let longest = loss.self_preservation_millis;
        assert_eq!(state.look(&loss, losses(2, 3, &["east"]), NOW), [Decision::Enter]);
        let later = NOW + longest;
        assert_eq!(
            state.look(&loss, losses(2, 3, &["east"]), later),
            [Decision::Leave, withdrawn(&["east"])]
        );
        assert_eq!(
            state.look(&loss, losses(2, 3, &["west"]), later),
            [withdrawn(&["west"])]
        );
        assert_eq!(state.look(&loss, losses(1, 3, &[]), later), []);
        assert_eq!(
            state.look(&loss, losses(2, 3, &["west"]), later),
            [Decision::Enter]
        );
    }

    #[test]
    fn a_policy_that_retains_withdraws_nobody_and_ends_self_preservation() {
        let (mut state, loss) = (SelfPreservation::default(), Loss::default());
        assert_eq!(state.look(&loss, losses(2, 3, &["east"]), NOW), [Decision::Enter]);
        let retain = Loss {
            action: LossAction::Retain,
            ..loss
        };
        assert_eq!(
            state.look(&retain, losses(2, 3, &["east"]), NOW),
            [Decision::Leave]
        );
        assert_eq!(state.look(&retain, losses(3, 3, &["east"]), NOW), []);
    }
}
