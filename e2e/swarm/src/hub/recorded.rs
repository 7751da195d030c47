//! Owns: the laws on what becomes durable, event by event: an export keeps the age that was recorded first, a key of a
//! membership that was ended stays outside, and one that was revoked too, and no change of keys costs a membership.
//! Never: folds; looks at what was said of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fold::State;
use model::{ClusterId, Cursor, Epoch, Event, Export, Fact, KeyAcceptance, KeyFingerprint, Policy, Revision};

use oracle::laws::{Guarded, Law};

use super::{
    contests::{Ages, Contests},
    counted::TakenBack,
    declared::Declared,
};

/// The durable state on one disk, as far as these laws need it. It outlives the hub's process, as the disk does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded {
    ages: Ages,
    /// Exports that were taken back, and those of them that count.
    taken_back: TakenBack,
    /// Members that are silent.
    declared: Declared,
    /// Disputes over the first place.
    pub(super) contests: Contests,
    keys: BTreeSet<(ClusterId, KeyFingerprint)>,
    ended: BTreeSet<(ClusterId, KeyFingerprint)>,
    revoked: BTreeSet<KeyFingerprint>,
    members: BTreeSet<ClusterId>,
    /// Every policy, by the event that put it in force.
    policies: BTreeMap<(Epoch, Revision), Arc<Policy>>,
    /// The last event that was looked at.
    looked_to: (Epoch, Revision),
}

impl Recorded {
    /// The record of a disk of unknown past, whose state up to `head` is this.
    pub(crate) fn of(state: &State, head: Cursor) -> Self {
        let mut recorded = Self {
            looked_to: (head.epoch, head.revision),
            revoked: state.revoked_keys().keys().copied().collect(),
            contests: Contests::of(state),
            taken_back: TakenBack::of(state),
            declared: Declared::of(state),
            policies: state
                .policy()
                .map(|applied| ((head.epoch, applied.revision), applied.policy.clone()))
                .into_iter()
                .collect(),
            ..Self::default()
        };
        for (cluster, member) in state.members().iter() {
            let own = |key: &KeyFingerprint| (cluster.clone(), *key);
            recorded
                .members
                .extend(member.is_current().then(|| cluster.clone()));
            recorded.keys.extend(member.keys().keys().map(own));
            recorded.ended.extend(member.refused_keys().iter().map(own));
            for (_, export) in member.exports() {
                let age = (export.uid.clone(), export.created_at);
                recorded
                    .ages
                    .insert((cluster.clone(), export.service.clone()), age);
            }
        }
        recorded
    }

    /// The policy that was in force at a position.
    pub(super) fn policy_at(&self, at: Cursor) -> Option<&Policy> {
        let until = self.policies.range(..=(at.epoch, at.revision));
        until.map(|(_, policy)| &**policy).next_back()
    }

    /// An event of this epoch is on the disk: it may have been looked at, or have outlived its hub unsynced.
    pub(super) fn found(&mut self, epoch: Epoch, event: &Event, guarded: &mut Guarded) -> Result<(), String> {
        let at = (epoch, event.revision);
        if at > self.looked_to {
            if let Fact::PolicyApplied { policy, .. } = &event.fact.fact {
                self.policies.insert(at, policy.clone());
            }
            self.on_event(event, guarded).map(|()| self.looked_to = at)
        } else {
            Ok(())
        }
    }

    /// An event is durable.
    fn on_event(&mut self, event: &Event, guarded: &mut Guarded) -> Result<(), String> {
        let Some(cluster) = &event.cluster else {
            return match &event.fact.fact {
                Fact::PolicyApplied { policy, .. } => {
                    self.taken_back.policy(policy);
                    let counted = self.taken_back.with(&self.ages);
                    self.contests.policy(policy, &counted, guarded)
                }
                Fact::PrecedenceReleased { service, .. } => {
                    self.contests.released(service);
                    Ok(())
                }
                _ => Ok(()),
            };
        };
        self.declared.on_fact(cluster, &event.fact.fact, guarded)?;
        match &event.fact.fact {
            Fact::PrecedenceContested {
                service,
                standing,
                challenger,
                held,
            } => self.contests.contested(
                service,
                (standing, challenger, *held),
                &self.taken_back.with(&self.ages),
            ),
            Fact::ExportUpserted(export) => self.exported(cluster, export, guarded),
            Fact::ExportRemoved(_) | Fact::BrakeEngaged { .. } | Fact::BrakeReleased { .. } => {
                self.taken_back(cluster, event);
                Ok(())
            }
            Fact::MemberJoined { key, .. } => {
                self.joined(cluster)?;
                self.admitted(cluster, *key, guarded)
            }
            Fact::MemberRekeyed {
                key: Some(key),
                terms,
                ..
            } => {
                let renewed = terms.accepted == Some(KeyAcceptance::Renewed);
                guarded.count(Law::Renewals, u64::from(renewed));
                self.admitted(cluster, *key, guarded)
            }
            Fact::MemberKeyCertified { key, by, .. } => {
                guarded.count(Law::Renewals, 1);
                if !self.keys.contains(&(cluster.clone(), *by)) {
                    let why = format!("{by} of {cluster} certified {key}, and was not admitted");
                    return Err(Law::Renewals.broken(why));
                }
                self.admitted(cluster, *key, guarded)
            }
            Fact::MemberKeyRevoked { key, .. } => {
                guarded.count(Law::Renewals, 1);
                self.revoked.insert(*key);
                Ok(())
            }
            Fact::MemberEvicted { .. } | Fact::MemberLeft => {
                self.members.remove(cluster);
                self.ages.retain(|(of, _), _| of != cluster);
                self.taken_back.released(cluster);
                self.contests.ended(cluster);
                let ended = self.keys.extract_if(.., |(of, _)| of == cluster);
                self.ended.extend(ended);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An export is there, of the age that it had before if it was.
    fn exported(
        &mut self,
        cluster: &ClusterId,
        export: &Export,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let of = (cluster.clone(), export.service.clone());
        let counted = self.taken_back.with(&self.ages);
        self.contests.exported(cluster, export, &counted, guarded)?;
        self.taken_back.exported(&of);
        let before = self.ages.insert(of, (export.uid.clone(), export.created_at));
        guarded.count(Law::Ages, u64::from(before.is_some()));
        match before {
            Some((uid, created_at)) if uid == export.uid && created_at != export.created_at => Err(Law::Ages
                .broken(format!(
                    "{} of {cluster} was of {}, and the same export is of {} now",
                    export.service, created_at.0, export.created_at.0
                ))),
            _ => Ok(()),
        }
    }

    /// An export is taken back, or what becomes of those that are.
    fn taken_back(&mut self, cluster: &ClusterId, event: &Event) {
        match &event.fact.fact {
            Fact::ExportRemoved(service) => {
                let of = (cluster.clone(), service.clone());
                let counts = match self.ages.remove(&of) {
                    Some(age) => self.taken_back.removed(of, age, event.recorded_at),
                    None => false,
                };
                if !counts {
                    self.contests.removed(cluster, service);
                }
            }
            Fact::BrakeEngaged { .. } => self.taken_back.engaged(cluster, event.recorded_at),
            Fact::BrakeReleased { .. } => {
                for service in self.taken_back.released(cluster) {
                    self.contests.removed(cluster, &service);
                }
            }
            _ => {}
        }
    }

    /// A current member does not join again: it would have to list everything again.
    fn joined(&mut self, cluster: &ClusterId) -> Result<(), String> {
        if self.members.insert(cluster.clone()) {
            Ok(())
        } else {
            Err(Law::Renewals.broken(format!("{cluster} was a member and joined again")))
        }
    }

    /// Returns true if an operator refused this key for ever.
    pub(super) fn is_revoked(&self, key: KeyFingerprint) -> bool {
        self.revoked.contains(&key)
    }

    /// Returns true if this key is refused for ever, by an operator or with the membership that it was of.
    pub(super) fn is_refused(&self, cluster: &ClusterId, key: KeyFingerprint) -> bool {
        self.is_revoked(key) || self.ended.contains(&(cluster.clone(), key))
    }

    fn admitted(
        &mut self,
        cluster: &ClusterId,
        key: KeyFingerprint,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let revoked = self.is_revoked(key);
        let key = (cluster.clone(), key);
        let known_to_be_ended = self.ended.iter().any(|(of, _)| of == cluster);
        let guards = known_to_be_ended || !self.revoked.is_empty();
        guarded.count(Law::Keys, u64::from(guards));
        let refused = self.ended.contains(&key);
        self.keys.insert(key);
        if revoked {
            Err(Law::Keys.broken(format!("{cluster} was admitted with a key that was revoked")))
        } else if refused {
            Err(Law::Keys.broken(format!(
                "{cluster} was admitted with a key of a membership that ended"
            )))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{
        IpFamily, KeyTerms, Metadata, ServiceKey, ServicePolicies, ServiceType, SessionAffinity, SessionId,
        UnixMillis,
    };

    use super::*;

    fn event(fact: Fact) -> Event {
        Event {
            revision: Revision(1),
            recorded_at: UnixMillis(1),
            cluster: Some(ClusterId::new("east").expect("valid")),
            incarnation: Revision(0),
            session: SessionId(0),
            member_sequence: 0,
            fact: wire::encode_fact(&fact),
            changed_by: None,
        }
    }

    fn broken(facts: Vec<Fact>) -> Option<String> {
        let (mut recorded, mut guarded) = (Recorded::default(), Guarded::default());
        let events = facts.into_iter().map(event);
        let mut outcomes = events.map(|event| recorded.on_event(&event, &mut guarded));
        outcomes.find_map(Result::err)
    }

    fn joined(key: u8) -> Fact {
        Fact::MemberJoined {
            key: KeyFingerprint([key; 32]),
            cluster_fingerprint: "uid".into(),
            terms: KeyTerms::default(),
        }
    }

    fn evicted() -> Fact {
        Fact::MemberEvicted {
            operator: "alice".into(),
        }
    }

    fn export(uid: &str, created_at: u64) -> Fact {
        let export = Export {
            service: ServiceKey::new("shop", "cart").expect("valid"),
            created_at: UnixMillis(created_at),
            uid: uid.into(),
            generation: 1,
            service_type: ServiceType::Headless,
            ports: Vec::new(),
            policies: ServicePolicies {
                session_affinity: SessionAffinity::None,
                session_affinity_timeout_seconds: None,
                internal_traffic_policy: None,
                traffic_distribution: None,
            },
            ip_families: vec![IpFamily::V4],
            labels: Metadata::default(),
            annotations: Metadata::default(),
        };
        Fact::ExportUpserted(export.into())
    }

    #[test]
    fn an_event_is_looked_at_once_and_one_that_outlived_its_hub_too() {
        let (mut recorded, mut guarded) = (Recorded::default(), Guarded::default());
        let epoch = Epoch::default().next(UnixMillis(1), 1);
        let mut found = |revision, fact| {
            let event = Event {
                revision: Revision(revision),
                ..event(fact)
            };
            recorded.found(epoch, &event, &mut guarded).is_err()
        };
        let gone = Fact::ExportRemoved(ServiceKey::new("shop", "cart").expect("valid"));
        assert!(!found(1, export("a", 5)));
        assert!(!found(2, gone), "synced by no hub that lived to say so");
        assert!(!found(1, export("a", 4)), "that is over");
        assert!(!found(3, export("a", 6)), "a new one");
        assert!(found(4, export("a", 7)));
    }

    #[test]
    fn a_key_of_an_ended_membership_stays_outside() {
        assert_eq!(broken(vec![joined(1), evicted(), joined(2)]), None);
        assert!(broken(vec![joined(1), evicted(), joined(1)]).is_some());
    }

    fn rekeyed(key: u8) -> Fact {
        Fact::MemberRekeyed {
            operator: "".into(),
            key: Some(KeyFingerprint([key; 32])),
            cluster_fingerprint: None,
            terms: KeyTerms::default(),
        }
    }

    fn revoked(key: u8) -> Fact {
        Fact::MemberKeyRevoked {
            operator: "alice".into(),
            key: KeyFingerprint([key; 32]),
        }
    }

    #[test]
    fn a_revoked_key_stays_outside_whether_the_membership_ended_or_not() {
        assert_eq!(broken(vec![joined(1), rekeyed(2), revoked(1), rekeyed(3)]), None);
        assert!(broken(vec![joined(1), revoked(1), rekeyed(1)]).is_some());
        assert!(broken(vec![joined(1), revoked(2), evicted(), joined(2)]).is_some());
    }

    #[test]
    fn a_change_of_keys_costs_no_membership() {
        assert_eq!(broken(vec![joined(1), rekeyed(2), evicted(), joined(3)]), None);
        assert!(broken(vec![joined(1), rekeyed(2), joined(2)]).is_some());
        assert!(broken(vec![joined(1), revoked(1), joined(2)]).is_some());
    }

    #[test]
    fn an_export_keeps_its_age_and_another_one_has_its_own() {
        assert_eq!(broken(vec![export("a", 5), export("a", 5), export("b", 6)]), None);
        let gone = Fact::ExportRemoved(ServiceKey::new("shop", "cart").expect("valid"));
        assert_eq!(broken(vec![export("a", 5), gone, export("a", 4)]), None);
        assert!(broken(vec![export("a", 5), export("a", 4)]).is_some());
    }
}
