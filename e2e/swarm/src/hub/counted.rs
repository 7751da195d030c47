//! Owns: whose exports count for the place of others though they were taken back: an own reading of what is said of the
//! removal brake, from what is durable and nothing else.
//! Never: folds; says who is to be held.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use fold::State;
use model::{ClusterId, FactKey, Policy, ServiceKey, UnixMillis, policy::Brake};

use super::contests::Ages;

/// Exports that were taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct TakenBack {
    /// Members that are held, and their exports.
    held: BTreeMap<ClusterId, Ages>,
    /// Recent withdrawals of others, with their times.
    lately: BTreeMap<(ClusterId, ServiceKey), (UnixMillis, Box<str>, UnixMillis)>,
    /// The policy in force on mass withdrawals.
    brake: Brake,
}

impl TakenBack {
    /// Of a disk of unknown past that has this state.
    pub(super) fn of(state: &State) -> Self {
        let mut taken_back = Self {
            brake: state.brake(),
            ..Self::default()
        };
        for (cluster, member) in state.members().iter() {
            let of_member = member.taken_back();
            let engaged = of_member.brake().is_some();
            if engaged {
                taken_back.held.entry(cluster.clone()).or_default();
            }
            for (key, removed) in of_member.facts().iter() {
                let (FactKey::Export(service), Some(export)) = (key, removed.recorded.export()) else {
                    continue;
                };
                let (of, uid, age) = (
                    (cluster.clone(), service.clone()),
                    export.uid.clone(),
                    export.created_at,
                );
                match taken_back.held.get_mut(cluster) {
                    Some(held) => drop(held.insert(of, (uid, age))),
                    None => drop(taken_back.lately.insert(of, (removed.at, uid, age))),
                }
            }
        }
        taken_back
    }

    /// Another policy is in force.
    pub(super) fn policy(&mut self, policy: &Policy) {
        self.brake = policy.brake;
    }

    /// An export is taken back; whether it counts all the same.
    pub(super) fn removed(
        &mut self,
        of: (ClusterId, ServiceKey),
        (uid, age): (Box<str>, UnixMillis),
        at: UnixMillis,
    ) -> bool {
        match self.held.get_mut(&of.0) {
            Some(held) => {
                held.insert(of, (uid, age));
                true
            }
            None => {
                if self.brake.enabled {
                    self.lately.insert(of, (at, uid, age));
                }
                false
            }
        }
    }

    /// An export is there.
    pub(super) fn exported(&mut self, of: &(ClusterId, ServiceKey)) {
        self.lately.remove(of);
        if let Some(held) = self.held.get_mut(&of.0) {
            held.remove(of);
        }
    }

    /// A member is held, with what it took back lately.
    pub(super) fn engaged(&mut self, cluster: &ClusterId, at: UnixMillis) {
        let within = self.brake.within_millis;
        let held = self.held.entry(cluster.clone()).or_default();
        let of_cluster = self.lately.extract_if(.., |(of, _), _| of == cluster);
        for (of, (removed_at, uid, age)) in of_cluster {
            if removed_at.0 + within > at.0 {
                held.insert(of, (uid, age));
            }
        }
    }

    /// Nothing of a member is held any more: the services that go.
    pub(super) fn released(&mut self, cluster: &ClusterId) -> BTreeSet<ServiceKey> {
        self.lately.retain(|(of, _), _| of != cluster);
        let held = self.held.remove(cluster).unwrap_or_default();
        held.into_keys().map(|(_, service)| service).collect()
    }

    /// The exports that count, with these that are there.
    pub(super) fn with<'a>(&self, there: &'a Ages) -> Cow<'a, Ages> {
        if self.held.values().all(Ages::is_empty) {
            return Cow::Borrowed(there);
        }
        let held = self.held.values().flatten();
        let held = held.map(|(of, age)| (of.clone(), age.clone()));
        Cow::Owned(held.chain(there.clone()).collect())
    }
}
