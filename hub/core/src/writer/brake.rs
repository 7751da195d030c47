//! Owns: when a member that withdraws too much at once is put on hold, and when a hold ends by itself (`departures`
//! counts its time).
//! Never: says how much is too much, or what follows; that is the fold's.

use std::collections::BTreeSet;

use model::{
    ClusterId, Fact, FactKey, ListingGroup, ServiceKey, SessionId,
    sync::{Observation, ObservedItem},
};

use super::core::Core;
use fold::Command;

/// The services whose exports these observations withdraw.
pub fn taken_back(observations: &[Observation]) -> BTreeSet<ServiceKey> {
    let removed = observations
        .iter()
        .filter_map(|observation| match &observation.item {
            ObservedItem::Fact(fact) => match &fact.fact {
                Fact::ExportRemoved(service) => Some(service.clone()),
                _ => None,
            },
            _ => None,
        });
    removed.collect()
}

impl Core {
    /// Before a message with removals of exports is taken: all of them count, so that none is derived before the next.
    pub(super) fn brake_before(&mut self, cluster: &ClusterId, observations: &[Observation]) {
        self.brake(cluster, taken_back(observations));
    }

    /// Before the first share of a message is taken: all withdrawals of the message count.
    pub(super) fn brake_before_shares(
        &mut self,
        session: SessionId,
        cluster: &ClusterId,
        taking_back: BTreeSet<ServiceKey>,
    ) {
        if self.admits(session, cluster) {
            self.brake(cluster, taking_back);
        }
    }

    /// Before a listing is complete: missing exports are withdrawn. The first one of an incarnation says what there is.
    pub(super) fn brake_before_listing(
        &mut self,
        cluster: &ClusterId,
        group: ListingGroup,
        seen: &BTreeSet<FactKey>,
    ) {
        let member = self.state.current_member(cluster);
        let Some(member) = member.filter(|member| member.listing_completed(group).is_some()) else {
            return;
        };
        let unseen = member.exports().filter_map(|(_, export)| {
            let key = FactKey::Export(export.service.clone());
            (group == ListingGroup::Exports && !seen.contains(&key)).then(|| export.service.clone())
        });
        let unseen = unseen.collect();
        self.brake(cluster, unseen);
    }

    fn brake(&mut self, cluster: &ClusterId, taking_back: BTreeSet<ServiceKey>) {
        if taking_back.is_empty() {
            return;
        }
        let brake = Command::Brake {
            cluster: cluster.clone(),
            taking_back,
            at: self.recorded_at(),
        };
        // Only a current member is asked for.
        let _ = self.decide_and_apply(&brake);
    }

    /// Ends holds that are older than the policy allows, and all if the policy has none any more. Releases the hold on
    /// a member once none of its exports are held: its withdrawals may have been undone.
    pub(super) fn release_spent_brakes(&mut self, now: u64) {
        let policy = self.state.brake();
        let held_for = self.holds.look(&self.state, self.clock, now);
        let members = self.state.members().iter().filter_map(|(cluster, member)| {
            member.taken_back().brake()?;
            let held_for = held_for.get(cluster).copied().zip(policy.longest_millis);
            let spent = held_for.is_some_and(|(held_for, longest)| held_for >= longest);
            let empty = member.taken_back().held_exports().next().is_none();
            (spent || empty || !policy.enabled).then(|| cluster.clone())
        });
        let members: Vec<ClusterId> = members.collect();
        for cluster in members {
            let release = Command::ReleaseBrake {
                cluster,
                operator: "".into(),
            };
            // It is on hold, and so it is a member.
            let _ = self.decide_and_apply(&release);
        }
    }

    /// Number of members on hold, and of their exports.
    pub fn held(&self) -> (usize, usize) {
        let members = self.state.members().values();
        let held = members.filter(|member| member.taken_back().brake().is_some());
        held.fold((0, 0), |(members, exports), member| {
            (members + 1, exports + member.taken_back().held_exports().count())
        })
    }
}
