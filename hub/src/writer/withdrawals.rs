//! Owns: when members that stay lost are withdrawn, and when none is because too many are lost at one time: then the hub
//! itself, or its network, is the likelier fault.
//! Never: says what follows from a withdrawal; that is the fold's.

use shared::model::{
    ClusterId,
    policy::{Loss, LossAction},
};

use super::core::Core;
use crate::fold::{Command, Connectivity};

/// What is remembered of self-preservation, in monotonic milliseconds.
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
    /// How many.
    pub(super) lost: u64,
    /// Out of so many members.
    pub(super) members: u64,
    /// Those of the lost that were silent for as long as the policy says.
    pub(super) due: Vec<ClusterId>,
}

/// What is to be decided.
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
    /// Looks at what is lost, and says what follows, in order.
    pub(super) fn look(&mut self, loss: &Loss, losses: Losses, now: u64) -> Vec<Decision> {
        let mut decisions = Vec::new();
        if loss.action == LossAction::Retain || losses.lost < loss.too_many(losses.members) {
            if let Self::Since(_) = self {
                decisions.push(Decision::Leave);
            }
            *self = Self::Off;
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

impl Core {
    /// Looks at the members that are lost.
    pub(super) fn withdraw_who_stays_lost(&mut self, now: u64) {
        let loss = self.state.loss();
        let losses = self.losses(&loss, now);
        let mut remembered = self.self_preservation;
        if let (SelfPreservation::Off, Some(_)) = (remembered, self.state.self_preservation()) {
            // The log says so, and this process has not looked yet.
            remembered = SelfPreservation::Since(now);
        }
        let lost = u32::try_from(losses.lost).unwrap_or(u32::MAX);
        let decisions = remembered.look(&loss, losses, now);
        self.self_preservation = remembered;
        for decision in decisions {
            let commands = match decision {
                Decision::Enter => vec![Command::SelfPreserve { lost: Some(lost) }],
                Decision::Leave => vec![Command::SelfPreserve { lost: None }],
                Decision::Withdraw(clusters) => {
                    let withdraw = |cluster| Command::Withdraw { cluster };
                    clusters.into_iter().map(withdraw).collect()
                }
            };
            for command in &commands {
                // Current members are lost here; others are not asked for.
                let _ = self.decide_and_apply(command);
            }
        }
    }

    fn losses(&self, loss: &Loss, now: u64) -> Losses {
        let mut losses = Losses::default();
        for (cluster, member) in self
            .state
            .members()
            .iter()
            .filter(|(_, member)| member.is_current())
        {
            losses.members += 1;
            if member.connectivity() != Connectivity::Lost || member.is_withdrawn() {
                continue;
            }
            losses.lost += 1;
            if self.heard.silence(cluster, now) >= loss.after_millis {
                losses.due.push(cluster.clone());
            }
        }
        losses
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
            [Decision::Leave, withdrawn(&["east"])],
            "one of them came back"
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
