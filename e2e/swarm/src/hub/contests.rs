//! Owns: the law on disputes over the first place: whoever states to be older than the export that stands first is an
//! event with both sides, once, whether it is recorded then or let in by another policy, and where the policy says so the
//! one that stood first is held there until it goes or an operator lets it go. An own reading of the policy's words, from what is durable and nothing else.
//! Never: folds; asks what was derived.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fold::State;
use model::{ClusterId, Export, Policy, Precedence, PrecedenceClaim, ServiceKey, UnixMillis};

use crate::reserved::RESERVED;
use oracle::laws::{Guarded, Law};

/// The uid and age of every export that is durable.
pub(super) type Ages = BTreeMap<(ClusterId, ServiceKey), (Box<str>, UnixMillis)>;

/// Durable disputes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contests {
    policy: Option<Arc<Policy>>,
    /// The first exporter of each service that keeps its place, and the uid of that export.
    holds: BTreeMap<ServiceKey, (ClusterId, Box<str>)>,
    /// Disputes that are recorded, and what they are about is to follow: the challenger's export, or another policy.
    announced: Vec<Dispute>,
}

/// The challenger of a service's first place, and whether the first keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dispute {
    service: ServiceKey,
    challenger: PrecedenceClaim,
    held: bool,
}

impl Contests {
    /// Of a disk of unknown past that has this state.
    pub(super) fn of(state: &State) -> Self {
        let services = state.members().iter().flat_map(|(_, member)| member.exports());
        let held = services.filter_map(|(_, export)| {
            let contest = state.contest(&export.service).filter(|contest| contest.held)?;
            let standing = (contest.standing.cluster.clone(), contest.standing.uid.clone());
            Some((export.service.clone(), standing))
        });
        Self {
            policy: state.policy().map(|applied| applied.policy.clone()),
            holds: held.collect(),
            announced: Vec::new(),
        }
    }

    /// Members whose export of each service keeps the first place.
    pub(super) fn kept_first(&self) -> impl Iterator<Item = (&ServiceKey, &ClusterId)> {
        let kept = self.keeps_incumbents();
        let holds = self.holds.iter().filter(move |_| kept);
        holds.map(|(service, (cluster, _))| (service, cluster))
    }

    fn keeps_incumbents(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(|policy| policy.precedence == Precedence::Incumbent)
    }

    /// Another policy is in force: a dispute was recorded before for each service of which it lets in who states to be
    /// older than the one that stood first, and stays.
    pub(super) fn policy(
        &mut self,
        policy: &Arc<Policy>,
        ages: &Ages,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let announced = std::mem::take(&mut self.announced);
        let then = Self {
            policy: Some(policy.clone()),
            ..Self::default()
        };
        let held = then.keeps_incumbents();
        let services: BTreeSet<&ServiceKey> = ages.keys().map(|(_, service)| service).collect();
        let let_in = services.into_iter().filter_map(|service| {
            let (first, _, stood) = self.first(service, ages)?;
            let of = ages.iter().filter(|((_, exported), _)| exported == service);
            let newly = of.filter(|((cluster, _), _)| {
                self.is_denied(cluster, service) && !then.is_denied(cluster, service)
            });
            let ((cluster, _), (uid, age)) = newly.min_by_key(|((cluster, _), (_, age))| (*age, cluster))?;
            let disputes = !then.is_denied(first, service) && (*age, cluster) < (stood, first);
            disputes.then(|| Dispute {
                service: service.clone(),
                challenger: PrecedenceClaim {
                    cluster: cluster.clone(),
                    uid: uid.clone(),
                    created_at: *age,
                },
                held,
            })
        });
        let let_in: Vec<Dispute> = let_in.collect();
        guarded.count(Law::Contests, let_in.len() as u64);
        self.policy = Some(policy.clone());
        if announced == let_in {
            return Ok(());
        }
        Err(Law::Contests.broken(format!(
            "another policy lets in {}, and the events before it say {}",
            told(&let_in),
            told(&announced)
        )))
    }

    /// An operator lets go.
    pub(super) fn released(&mut self, service: &ServiceKey) {
        self.holds.remove(service);
    }

    /// A cluster takes an export back.
    pub(super) fn removed(&mut self, cluster: &ClusterId, service: &ServiceKey) {
        if self
            .holds
            .get(service)
            .is_some_and(|(holder, _)| holder == cluster)
        {
            self.holds.remove(service);
        }
    }

    /// A membership is over.
    pub(super) fn ended(&mut self, cluster: &ClusterId) {
        self.holds.retain(|_, (holder, _)| holder != cluster);
    }

    /// A dispute is recorded.
    pub(super) fn contested(
        &mut self,
        service: &ServiceKey,
        (standing, challenger, held): (&PrecedenceClaim, &PrecedenceClaim, bool),
        ages: &Ages,
    ) -> Result<(), String> {
        let broken = |why: &str| {
            let (one, other) = (&standing.cluster, &challenger.cluster);
            Err(Law::Contests.broken(format!("{service}, between {one} and {other}: {why}")))
        };
        match self.first(service, ages) {
            Some((first, uid, age))
                if (first, uid, age) == (&standing.cluster, &*standing.uid, standing.created_at) => {}
            _ => return broken("the one that is said to stand first does not"),
        }
        if held {
            let holder = (standing.cluster.clone(), standing.uid.clone());
            self.holds.insert(service.clone(), holder);
        } else {
            self.holds.remove(service);
        }
        self.announced.push(Dispute {
            service: service.clone(),
            challenger: challenger.clone(),
            held,
        });
        Ok(())
    }

    /// A cluster's export is recorded, while these are the ages without it: a dispute was recorded before, if it is one.
    pub(super) fn exported(
        &mut self,
        cluster: &ClusterId,
        export: &Export,
        ages: &Ages,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let service = &export.service;
        let announced = std::mem::take(&mut self.announced);
        let known = ages.get(&(cluster.clone(), service.clone()));
        let disputes = !self.is_denied(cluster, service)
            && known.is_none_or(|(uid, _)| *uid != export.uid)
            && self.first(service, ages).is_some_and(|(first, _, age)| {
                first != cluster && (export.created_at, cluster) < (age, first)
            });
        if self
            .holds
            .get(service)
            .is_some_and(|(holder, uid)| holder == cluster && *uid != export.uid)
        {
            self.holds.remove(service);
        }
        if !disputes {
            return Ok(());
        }
        guarded.count(Law::Contests, 1);
        let dispute = Dispute {
            service: service.clone(),
            challenger: PrecedenceClaim {
                cluster: cluster.clone(),
                uid: export.uid.clone(),
                created_at: export.created_at,
            },
            held: self.keeps_incumbents(),
        };
        if announced == [dispute] {
            Ok(())
        } else {
            Err(Law::Contests.broken(format!(
                "{cluster} states to have exported {service} before all others, and the events before it say {}",
                told(&announced)
            )))
        }
    }

    fn is_denied(&self, cluster: &ClusterId, service: &ServiceKey) -> bool {
        let denies = |policy: &Arc<Policy>| policy.denies_export(cluster, service).is_some();
        RESERVED.contains(&&*service.namespace) || self.policy.as_ref().is_some_and(denies)
    }

    /// The first export of a service.
    fn first<'a>(
        &self,
        service: &ServiceKey,
        ages: &'a Ages,
    ) -> Option<(&'a ClusterId, &'a str, UnixMillis)> {
        let candidates = || {
            let of = ages.iter().filter(|((_, exported), _)| exported == service);
            let allowed = of.filter(|((cluster, _), _)| !self.is_denied(cluster, service));
            allowed.map(|((cluster, _), (uid, age))| (cluster, &**uid, *age))
        };
        let oldest = candidates().min_by_key(|(cluster, _, age)| (*age, *cluster));
        let holder = self.holds.get(service).filter(|_| self.keeps_incumbents());
        let held = holder.and_then(|(holder, held)| {
            candidates().find(|(cluster, uid, _)| *cluster == holder && **uid == **held)
        });
        held.or(oldest)
    }
}

fn told(disputes: &[Dispute]) -> String {
    let words = disputes.iter().map(|dispute| {
        let (challenger, service) = (&dispute.challenger.cluster, &dispute.service);
        let held = if dispute.held { "held against" } else { "lost to" };
        format!("{service} {held} {challenger}")
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(", ")
    }
}

#[cfg(test)]
mod tests;
