//! Owns: who of the members that are lost is withdrawn, by the clock of this process.
//! Never: says what follows from a withdrawal; that is the fold's.

use model::policy::Loss;

use super::{
    core::Core,
    self_preservation::{Decision, Losses, SelfPreservation},
};
use fold::{Command, Connectivity};

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
        if let (SelfPreservation::Since(_), None) = (remembered, self.state.self_preservation()) {
            // An operator decided that it is over, until fewer are lost.
            remembered = SelfPreservation::Spent;
        }
        let lost = u32::try_from(losses.lost).unwrap_or(u32::MAX);
        let preserved = matches!(remembered, SelfPreservation::Since(_));
        let decisions = remembered.look(&loss, losses, now);
        if preserved && remembered == SelfPreservation::Off {
            self.heard.give_time(now);
        }
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
            if self.heard.overdue(cluster, now) >= loss.after_millis {
                losses.due.push(cluster.clone());
            }
        }
        losses
    }
}
