//! Owns: the law on what is recorded of a member's silence: who is withdrawn was declared lost, and for each loss there is one
//! withdrawal and one return at most.
//! Never: knows time.

use std::collections::BTreeMap;

use fold::{Connectivity, State};
use model::{ClusterId, Fact};

use oracle::laws::{Guarded, Law};

/// The last record of each member that is not simply there.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared(BTreeMap<ClusterId, Silent>);

/// The stage of a member's silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silent {
    Suspect,
    Lost,
    Withdrawn,
}

impl Declared {
    /// Of a disk of unknown past that has this state.
    pub(super) fn of(state: &State) -> Self {
        let members = state.members().iter().filter(|(_, member)| member.is_current());
        let silent = members.filter_map(|(cluster, member)| {
            let silent = match member.connectivity() {
                Connectivity::Live => return None,
                Connectivity::Suspect => Silent::Suspect,
                Connectivity::Lost if member.is_withdrawn() => Silent::Withdrawn,
                Connectivity::Lost => Silent::Lost,
            };
            Some((cluster.clone(), silent))
        });
        Self(silent.collect())
    }

    /// **One loss, one withdrawal**: a fact of this member is durable.
    pub(super) fn on_fact(
        &mut self,
        cluster: &ClusterId,
        fact: &Fact,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let before = self.0.get(cluster).copied();
        let (now, holds) = match fact {
            Fact::MemberSuspect => (Some(Silent::Suspect), before.is_none()),
            Fact::MemberLost => (Some(Silent::Lost), matches!(before, None | Some(Silent::Suspect))),
            Fact::MemberWithdrawn => (Some(Silent::Withdrawn), before == Some(Silent::Lost)),
            Fact::MemberLive => (None, before.is_some()),
            Fact::MemberEvicted { .. } | Fact::MemberLeft | Fact::MemberJoined { .. } => (None, true),
            _ => return Ok(()),
        };
        match now {
            Some(silent) => drop(self.0.insert(cluster.clone(), silent)),
            None => drop(self.0.remove(cluster)),
        }
        guarded.count(Law::OneLoss, u64::from(before.is_some()));
        if holds {
            return Ok(());
        }
        let (kind, was) = (fact.kind(), before.map_or("there", Silent::word));
        Err(Law::OneLoss.broken(format!("{kind} is recorded of {cluster}, which was {was}")))
    }
}

impl Silent {
    fn word(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Lost => "lost",
            Self::Withdrawn => "withdrawn",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_broken(facts: &[Fact]) -> Option<usize> {
        let (mut declared, mut guarded) = (Declared::default(), Guarded::default());
        let east = ClusterId::new("east").expect("valid");
        facts
            .iter()
            .position(|fact| declared.on_fact(&east, fact, &mut guarded).is_err())
    }

    #[test]
    fn a_loss_has_one_withdrawal_and_one_return() {
        let left = Fact::MemberLeft;
        let (suspect, lost) = (Fact::MemberSuspect, Fact::MemberLost);
        let (withdrawn, live) = (Fact::MemberWithdrawn, Fact::MemberLive);
        let whole = [&suspect, &lost, &withdrawn, &live, &suspect, &live, &lost, &live];
        assert_eq!(first_broken(&whole.map(Clone::clone)), None);
        for (facts, broken) in [
            (vec![&withdrawn], 0),
            (vec![&suspect, &withdrawn], 1),
            (vec![&lost, &withdrawn, &withdrawn], 2),
            (vec![&lost, &withdrawn, &live, &withdrawn], 3),
            (vec![&lost, &lost], 1),
            (vec![&lost, &withdrawn, &lost], 2),
            (vec![&lost, &live, &live], 2),
            (vec![&lost, &suspect], 1),
            (vec![&lost, &left, &withdrawn], 2),
        ] {
            let facts: Vec<Fact> = facts.into_iter().cloned().collect();
            assert_eq!(first_broken(&facts), Some(broken), "{facts:?}");
        }
    }
}
