//! Owns: which Leases of source clusters the leader makes, renews and deletes: one for each source with slices in the
//! cluster, renewed as long as the hub confirms the source, or while the hub is away if the settings say so. Time is an
//! argument, by one monotonic clock.
//! Never: judges whether one is over (`judge`), or asks an API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{ClusterId, policy::LossAction};

use super::judge::{SourceLease, Stamp};
use crate::plan::Situation;

/// Default duration of a source's Lease.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(15 * 60);
/// Shortest time that a renewal may hold.
pub const DURATION_MIN: Duration = Duration::from_secs(5);
/// Longest time that a renewal may hold.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Default renewal interval. At most half of the duration, so that one renewal may fail.
pub const RENEW_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// Shortest time between two renewals.
pub const RENEW_MIN: Duration = Duration::from_secs(1);
/// Looks within the time of a Lease.
const LOOKS: u32 = 15;
/// Shortest wait between two looks.
const LOOK_MIN: Duration = Duration::from_millis(500);
/// Longest wait between two looks.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Fate of the Leases while the hub is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnHubLoss {
    /// They are renewed: what came from other clusters stays for as long as an agent leads.
    #[default]
    Retain,
    /// They are not: what came from other clusters goes as the clusterset's policy says.
    Expire,
}

/// Settings of the Leases at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Duration of a renewal: [`DURATION_MIN`] to [`DURATION_MAX`].
    pub duration: Duration,
    /// Renewal interval: at least [`RENEW_MIN`], at most half of `duration`.
    pub renew: Duration,
    /// Fate of the Leases while the hub is away.
    pub on_hub_loss: OnHubLoss,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            duration: DURATION_DEFAULT,
            renew: RENEW_DEFAULT,
            on_hub_loss: OnHubLoss::default(),
        }
    }
}

impl Settings {
    /// The first problem of the settings, in a line.
    pub fn problem(&self) -> Option<String> {
        if !(DURATION_MIN..=DURATION_MAX).contains(&self.duration) {
            return Some(format!(
                "--source-lease-duration is {} s: it must be {} to {} s",
                self.duration.as_secs(),
                DURATION_MIN.as_secs(),
                DURATION_MAX.as_secs()
            ));
        }
        let most = self.duration / 2;
        (!(RENEW_MIN..=most).contains(&self.renew)).then(|| {
            format!(
                "--source-lease-renew is {} s: it must be {} s at least and half of --source-lease-duration at most, {} s \
                 here",
                self.renew.as_secs(),
                RENEW_MIN.as_secs(),
                most.as_secs()
            )
        })
    }

    /// Time to wait between two looks at the Leases.
    pub fn look_every(&self) -> Duration {
        (self.duration / LOOKS).min(self.renew).clamp(LOOK_MIN, LOOK_MAX)
    }
}

/// A step for the Lease of a source. An absent action is unknown: nothing is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// It is made.
    Create(ClusterId, LossAction),
    /// Its time begins anew.
    Renew(ClusterId, LossAction),
    /// It is not needed any more.
    Delete(ClusterId),
}

/// The leader's memory of its own renewals.
#[derive(Debug, Clone)]
pub struct Upkeep {
    settings: Settings,
    /// In which version it left each Lease, and when.
    renewed: BTreeMap<ClusterId, (Stamp, Duration)>,
}

impl Upkeep {
    /// One that has renewed nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            renewed: BTreeMap::new(),
        }
    }

    /// Returns the steps due `now` for the Leases found.
    pub fn tasks(
        &self,
        found: &BTreeMap<ClusterId, SourceLease>,
        situation: &Situation,
        now: Duration,
    ) -> Vec<Task> {
        let Situation { here, desired, .. } = situation;
        let clusters: BTreeSet<&ClusterId> = here.iter().flatten().chain(found.keys()).collect();
        let is_needed = |cluster: &ClusterId| {
            let stands = here.as_ref().is_none_or(|here| here.contains(cluster));
            stands || desired.contains(cluster)
        };
        let task = |cluster: &ClusterId| {
            let lease = found.get(cluster);
            let told = situation.policies.get(cluster).copied();
            let action = told.or(lease.and_then(|lease| lease.on_expiry));
            let action = action.unwrap_or(LossAction::Retain);
            match lease {
                None => Some(Task::Create(cluster.clone(), action)),
                // Objects that a hub sent, and that expired, stay away only as long as their Lease says so.
                Some(_) if !is_needed(cluster) => Some(Task::Delete(cluster.clone())),
                Some(lease) => {
                    let differs = told.is_some_and(|told| lease.on_expiry != Some(told));
                    let due = self.is_kept(cluster, situation) && self.is_due(cluster, lease, now);
                    (differs || due).then(|| Task::Renew(cluster.clone(), action))
                }
            }
        };
        clusters.into_iter().filter_map(task).collect()
    }

    /// The leader renews the Lease of the source: the hub confirms it, or is away and what came from it stays. Nobody
    /// confirms a source once this cluster's own membership has ended.
    pub fn is_kept(&self, cluster: &ClusterId, situation: &Situation) -> bool {
        if situation.ended {
            false
        } else if situation.confirmed {
            situation.desired.contains(cluster)
        } else {
            self.settings.on_hub_loss == OnHubLoss::Retain
        }
    }

    /// It is time again, or it is not as it was left.
    fn is_due(&self, cluster: &ClusterId, lease: &SourceLease, now: Duration) -> bool {
        let left = self.renewed.get(cluster);
        left.is_none_or(|(stamp, at)| *stamp != lease.stamp || now.saturating_sub(*at) >= self.settings.renew)
    }

    /// It was made or renewed, and is like that since then.
    pub fn wrote(&mut self, cluster: ClusterId, stamp: Stamp, now: Duration) {
        self.renewed.insert(cluster, (stamp, now));
    }

    /// It was deleted.
    pub fn deleted(&mut self, cluster: &ClusterId) {
        self.renewed.remove(cluster);
    }
}

#[cfg(test)]
mod tests;
