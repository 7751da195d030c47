//! Rows of a snapshot for mass-withdrawal holds, and for members' withdrawals.

use std::{collections::BTreeMap, sync::Arc};

use model::{ClusterId, EncodedFact, FactKey, Revision, UnixMillis};

use super::{
    super::{EngagedBrake, Map, Member, RecordedFact, RemovedFact, TakenBack},
    RestoreError, SnapshotRow,
};

/// A set of members, which a state shares with its copies.
type Members = Map<ClusterId, ()>;

/// Number of rows: of holds, and of withdrawals.
pub(super) fn counts(members: &Map<ClusterId, Arc<Member>>) -> (u64, u64) {
    let members = members.values().map(|member| &member.taken_back);
    members.fold((0, 0), |(brakes, facts), taken_back| {
        let engaged = u64::from(taken_back.brake().is_some());
        (brakes + engaged, facts + taken_back.facts().len() as u64)
    })
}

/// The rows, by member, its brake first.
pub(super) fn rows(members: Map<ClusterId, Arc<Member>>) -> impl Iterator<Item = SnapshotRow> + Send {
    members.into_iter().flat_map(|(cluster, member)| {
        let taken_back = member.taken_back.clone();
        let brake = taken_back.brake();
        let brake = brake.map(|brake| SnapshotRow::Brake(cluster.clone(), brake));
        let facts = taken_back.facts().clone().into_iter();
        let facts = facts.map(move |(_, removed)| SnapshotRow::TakenBack {
            cluster: cluster.clone(),
            revision: removed.recorded.revision,
            at: removed.at,
            fact: removed.recorded.encoded(),
        });
        brake.into_iter().chain(facts)
    })
}

/// The part read so far.
#[derive(Default)]
pub(super) struct Restoring {
    brakes: BTreeMap<ClusterId, EngagedBrake>,
    facts: BTreeMap<ClusterId, Map<FactKey, RemovedFact>>,
}

impl Restoring {
    pub(super) fn brake(&mut self, cluster: ClusterId, brake: EngagedBrake) {
        self.brakes.insert(cluster, brake);
    }

    pub(super) fn fact(
        &mut self,
        cluster: ClusterId,
        revision: Revision,
        at: UnixMillis,
        fact: &EncodedFact,
    ) -> Result<(), RestoreError> {
        let known = fact.fact.key().zip(RecordedFact::new(fact, revision));
        let (key, recorded) = known.ok_or_else(|| misplaced(&cluster, "that is none of its facts"))?;
        let facts = self.facts.entry(cluster).or_default();
        facts.insert(key, RemovedFact { recorded, at });
        Ok(())
    }

    /// Number of rows read.
    pub(super) fn counts(&self) -> (u64, u64) {
        let facts: usize = self.facts.values().map(Map::len).sum();
        (self.brakes.len() as u64, facts as u64)
    }

    /// Gives each member what is its own. Returns the members on hold, and the others with remembered withdrawals.
    pub(super) fn give(
        mut self,
        members: &mut BTreeMap<ClusterId, Member>,
    ) -> Result<(Members, Members), RestoreError> {
        let (mut held, mut taking_back) = (Map::new(), Map::new());
        let named: Vec<ClusterId> = self.brakes.keys().chain(self.facts.keys()).cloned().collect();
        for cluster in named {
            let member = members.get_mut(&cluster);
            let member = member.ok_or_else(|| misplaced(&cluster, "which is no member"))?;
            let (brake, facts) = (self.brakes.remove(&cluster), self.facts.remove(&cluster));
            if brake.is_none() && facts.is_none() {
                // It was both held and named for its facts.
                continue;
            }
            let index = if brake.is_some() {
                &mut held
            } else {
                &mut taking_back
            };
            index.insert(cluster, ());
            member.taken_back = TakenBack::restored(brake, facts.unwrap_or_default());
        }
        Ok((held, taking_back))
    }
}

fn misplaced(cluster: &ClusterId, why: &str) -> RestoreError {
    RestoreError::Misplaced(format!("what {cluster} took back, {why}"))
}
