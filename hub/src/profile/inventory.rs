//! The inventory: what is wanted beside what is there, and what follows from the two, object by object. Pure: time is
//! an argument. It writes nothing when nothing differs, never touches what is not ours, and deletes only the profile of
//! a cluster that is certainly no member any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::{ResourceExt, runtime::watcher::Event};
use shared::{
    api::cluster_profile::{AccessProvider, ClusterProfile},
    model::ClusterId,
    process::Backoff,
};

use super::{
    access::AccessProviders,
    budget::{Budget, Urgency},
    object::{Difference, Heading, difference, is_ours, told_of_topology},
    wanted::{Wanted, with_properties},
};
use crate::fold::Profile;

/// Most actions that are handed out at once.
pub(super) const ACTIONS_MAX: usize = 64;
/// Waits after a failed write of one object.
const RETRY: Backoff = Backoff::new(
    std::time::Duration::from_secs(1),
    std::time::Duration::from_secs(60),
);

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Write an object.
    Apply {
        profile: Arc<Profile>,
        /// The ways to reach the member.
        access: Arc<[AccessProvider]>,
        /// The version of the existing object; absent: it is created.
        uid: Option<String>,
        /// Returns the patch of everything but the status, if one is needed.
        heading: Option<Heading>,
        status: bool,
    },
    /// Delete an object of ours.
    Delete { cluster: ClusterId, uid: String },
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The object as it is now.
    Written(Box<ClusterProfile>),
    /// It is gone.
    Deleted,
    /// Somebody else made the object at the same moment; we took our fields back.
    NotOurs(Box<ClusterProfile>),
    /// It failed; `random` spreads the next try.
    Failed { random: u64 },
}

/// The wanted objects, the existing ones, and the budget of each.
pub(super) struct Inventory {
    wanted: Wanted,
    access: AccessProviders,
    /// The cluster manager of objects that are made.
    manager: String,
    /// Nothing is known of topologies yet: what profiles say of them stays.
    topologies_unknown: bool,
    there: BTreeMap<String, ClusterProfile>,
    /// Objects shown by the listing under way.
    listing: Option<BTreeMap<String, ClusterProfile>>,
    /// True if what is there is known at all.
    listed: bool,
    /// Clusters whose object may differ from what is wanted.
    pending: BTreeSet<ClusterId>,
    not_ours: BTreeSet<ClusterId>,
    tracks: BTreeMap<ClusterId, Track>,
}

struct Track {
    budget: Budget,
    backoff: Backoff,
    retry_at: u64,
    under_way: bool,
}

impl Track {
    fn new(now: u64) -> Self {
        Self {
            budget: Budget::full(now),
            backoff: RETRY,
            retry_at: 0,
            under_way: false,
        }
    }
}

/// Actions that are due, and those that wait.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Due {
    pub actions: Vec<Action>,
    /// Time to ask again, if nothing else happens.
    pub wake_at: Option<u64>,
    /// Changes that wait for their budget or the next try.
    pub waiting: usize,
}

impl Inventory {
    pub(super) fn new(access: AccessProviders, manager: String) -> Self {
        Self {
            wanted: Wanted::new(),
            access,
            manager,
            topologies_unknown: false,
            there: BTreeMap::new(),
            listing: None,
            listed: false,
            pending: BTreeSet::new(),
            not_ours: BTreeSet::new(),
            tracks: BTreeMap::new(),
        }
    }

    /// Objects that are made from now on have this cluster manager.
    pub(super) fn manage_as(&mut self, manager: String) {
        self.manager = manager;
    }

    /// States what is wanted from now on.
    pub(super) fn want(&mut self, wanted: Wanted) {
        for (cluster, profile) in &wanted {
            if self.wanted.get(cluster) != Some(profile) {
                self.pending.insert(cluster.clone());
            }
        }
        self.tracks
            .retain(|cluster, track| track.under_way || wanted.contains_key(cluster));
        self.wanted = wanted;
    }

    /// From now on what profiles say of topologies stays as it is, or is as it is wanted.
    pub(super) fn topologies_unknown(&mut self, unknown: bool) {
        if self.topologies_unknown != unknown {
            self.topologies_unknown = unknown;
            self.pending.extend(self.wanted.keys().cloned());
        }
    }

    /// Clusters whose object somebody else made.
    pub(super) fn not_ours(&self) -> &BTreeSet<ClusterId> {
        &self.not_ours
    }

    /// Takes what the watch says. A listing that is cut off leaves the last complete one in force.
    pub(super) fn observe(&mut self, event: Event<ClusterProfile>) {
        match event {
            Event::Init => self.listing = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(object.name_any(), object);
                }
            }
            Event::InitDone => {
                if let Some(listing) = self.listing.take() {
                    self.there = listing;
                    self.listed = true;
                    self.pending.extend(self.wanted.keys().cloned());
                }
            }
            Event::Apply(object) => self.saw(object),
            Event::Delete(object) => {
                let name = object.name_any();
                if self
                    .there
                    .get(&name)
                    .is_some_and(|known| known.uid() == object.uid())
                {
                    self.there.remove(&name);
                    self.look_again(&name);
                }
            }
        }
    }

    /// Keeps the newer of two sights of one object: an answer to a write comes before its watch event.
    fn saw(&mut self, object: ClusterProfile) {
        let name = object.name_any();
        let older = self.there.get(&name).is_some_and(|known| {
            known.uid() == object.uid() && version(known).zip(version(&object)).is_some_and(|(k, o)| o < k)
        });
        if !older {
            self.look_again(&name);
            self.there.insert(name, object);
        }
    }

    fn look_again(&mut self, name: &str) {
        if let Ok(cluster) = ClusterId::new(name)
            && self.wanted.contains_key(&cluster)
        {
            self.pending.insert(cluster);
        }
    }

    /// The actions due at `now`. Each counts as under way until it is [`Inventory::done`].
    pub(super) fn due(&mut self, now: u64) -> Due {
        let mut due = Due::default();
        if !self.listed {
            return due;
        }
        let pending = std::mem::take(&mut self.pending);
        for cluster in pending {
            let mut wanted = self.wanted.get(&cluster).cloned().flatten();
            let there = self.there.get(cluster.as_str());
            if let (true, Some(profile), Some(object)) = (self.topologies_unknown, &mut wanted, there) {
                with_properties(profile, told_of_topology(object));
            }
            let named = (&cluster, &*self.manager);
            let need = need(named, wanted.as_ref(), || self.access.of(&cluster), there);
            match need {
                Need::NotOurs => self.not_ours.insert(cluster.clone()),
                Need::Nothing | Need::Act(..) => self.not_ours.remove(&cluster),
            };
            if let Need::Act(action, urgency) = need {
                self.take(cluster, action, urgency, now, &mut due);
            }
        }
        due
    }

    /// Lets an action out, or keeps its cluster pending.
    fn take(&mut self, cluster: ClusterId, action: Action, urgency: Urgency, now: u64, due: &mut Due) {
        let track = self
            .tracks
            .entry(cluster.clone())
            .or_insert_with(|| Track::new(now));
        if track.under_way {
            // It is looked at again when that is done.
            return;
        }
        let ready_at = track
            .budget
            .ready_at(urgency, now)
            .unwrap_or(now)
            .max(track.retry_at);
        if ready_at > now || due.actions.len() == ACTIONS_MAX {
            due.waiting += 1;
            due.wake_at = Some(due.wake_at.map_or(ready_at, |at| at.min(ready_at)));
            self.pending.insert(cluster);
            return;
        }
        track.budget.spend(now);
        track.under_way = true;
        due.actions.push(action);
    }

    /// Takes how an action ended.
    pub(super) fn done(&mut self, cluster: &ClusterId, outcome: Outcome, now: u64) {
        if self.wanted.contains_key(cluster) {
            self.pending.insert(cluster.clone());
        }
        let track = self
            .tracks
            .entry(cluster.clone())
            .or_insert_with(|| Track::new(now));
        track.under_way = false;
        match outcome {
            Outcome::Failed { random } => {
                let wait = track.backoff.failed(random).as_millis();
                track.retry_at = now + u64::try_from(wait).unwrap_or(u64::MAX);
                return;
            }
            Outcome::Written(_) | Outcome::Deleted | Outcome::NotOurs(_) => {
                track.backoff.succeeded();
                track.retry_at = 0;
            }
        }
        match outcome {
            Outcome::Written(object) | Outcome::NotOurs(object) => self.saw(*object),
            Outcome::Deleted => {
                self.there.remove(cluster.as_str());
            }
            Outcome::Failed { .. } => {}
        }
    }
}

/// The need of one object.
enum Need {
    Nothing,
    NotOurs,
    Act(Action, Urgency),
}

fn need(
    (cluster, manager): (&ClusterId, &str),
    wanted: Option<&Arc<Profile>>,
    access: impl FnOnce() -> Arc<[AccessProvider]>,
    there: Option<&ClusterProfile>,
) -> Need {
    match (wanted, there) {
        (None, Some(object)) => match object.uid().filter(|_| is_ours(object)) {
            Some(uid) => Need::Act(
                Action::Delete {
                    cluster: cluster.clone(),
                    uid,
                },
                Urgency::Flip,
            ),
            None => Need::Nothing,
        },
        (None, None) => Need::Nothing,
        (Some(profile), None) => {
            let action = Action::Apply {
                profile: profile.clone(),
                access: access(),
                uid: None,
                heading: Some(Heading::new(profile, manager)),
                status: true,
            };
            Need::Act(action, Urgency::Flip)
        }
        (Some(profile), Some(object)) => {
            let access = access();
            match difference(object, profile, &access) {
                Difference::None => Need::Nothing,
                Difference::NotOurs => Need::NotOurs,
                Difference::Write { metadata, status } => {
                    let action = Action::Apply {
                        profile: profile.clone(),
                        access,
                        uid: object.uid(),
                        heading: metadata.then(|| Heading::of(object)),
                        status: status.is_some(),
                    };
                    Need::Act(action, status.unwrap_or(Urgency::Ordinary))
                }
            }
        }
    }
}

fn version(object: &ClusterProfile) -> Option<u64> {
    object.resource_version()?.parse().ok()
}
