//! In which clusters exports arrived: what members said last against what is published, and what of it one member is told.
//! Pure: time is an argument. It is for people: nothing is decided by it, and nothing of it is recorded.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use model::{
    Arrival, ClusterId, Epoch, Lack, Revision, ServiceKey,
    policy::Imports,
    sync::{ARRIVED_SERVICES_MAX, ArrivedServices, DesiredChange, HubMessage, Namespaces, SourceState},
};

use crate::view::{Entry, ImportRules, Room, View};
use fold::DerivedKey;

/// Interval of the comparisons of a session, in milliseconds.
const LOOK_INTERVAL_MILLIS: u64 = 1_000;
/// An export is told of again no sooner than this after the last time, in milliseconds: its member writes each word.
pub const TOLD_INTERVAL_MILLIS: u64 = 10_000;
/// Members that have not applied an export, or lack its namespace, are waited for so long before that is told, in
/// milliseconds.
pub const WAITS_TOLD_AFTER_MILLIS: u64 = 5_000;
/// Members that have not reported are waited for so long after a session began, in milliseconds: when a hub starts, all
/// come back within seconds, and what their clusters hold did not change meanwhile.
pub const UNKNOWN_TOLD_AFTER_MILLIS: u64 = 30_000;

/// The last report of a member to this hub process, in any session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The epoch of the revision.
    pub epoch: Epoch,
    /// It has applied everything up to here that was sent to it, but for what is parked.
    pub revision: Revision,
    /// Namespaces that it has.
    pub namespaces: Arc<Namespaces>,
    /// Those of them that it has had for long enough to have applied what is in them.
    pub settled: Arc<Namespaces>,
    /// Services that its agent could not write.
    pub parked: Arc<BTreeSet<ServiceKey>>,
    /// More services are parked than it named.
    pub parks_more: bool,
}

/// The last report of each member.
#[derive(Debug, Clone, Default)]
pub struct Words {
    /// By member.
    pub members: BTreeMap<ClusterId, Word>,
    /// Grows with every change.
    pub version: u64,
}

/// Returns true if a member counts: its membership has not ended.
fn counts(state: SourceState) -> bool {
    matches!(
        state,
        SourceState::Live | SourceState::Suspect | SourceState::Lost
    )
}

/// The reason why a member's cluster lacks a service, policy aside. `since`: the revision of the export's judgement.
fn lack(word: Option<&Word>, service: &ServiceKey, since: Revision, epoch: Epoch) -> Option<Lack> {
    let Some(word) = word else {
        return Some(Lack::NotKnown);
    };
    if !word.namespaces.contains(&service.namespace) {
        return Some(Lack::NoNamespace);
    }
    if word.epoch != epoch {
        return Some(Lack::NotKnown);
    }
    if word.parked.contains(service) {
        return Some(Lack::NotWritten);
    }
    if word.revision < since || !word.settled.contains(&service.namespace) {
        return Some(Lack::Waits);
    }
    word.parks_more.then_some(Lack::NotKnown)
}

/// In which clusters an export arrived that is what it is since that revision.
pub fn arrival<'a>(
    members: impl IntoIterator<Item = &'a ClusterId>,
    words: &Words,
    (service, since, epoch): (&ServiceKey, Revision, Epoch),
    admits: impl Fn(&ClusterId, &ServiceKey) -> bool,
) -> Arrival {
    let mut arrival = Arrival::default();
    for member in members {
        let lack = if admits(member, service) {
            lack(words.members.get(member), service, since, epoch)
        } else {
            Some(Lack::Withheld)
        };
        match lack {
            None => drop(arrival.clusters.insert(member.clone())),
            Some(lack) => drop(arrival.lacking.insert(member.clone(), lack)),
        }
    }
    arrival
}

/// The exports of one namespace that share an answer.
#[derive(Debug)]
struct Shared {
    namespace: Box<str>,
    arrival: Arc<Arrival>,
    /// Exports that are older arrived in the same clusters.
    up_to: Revision,
}

/// One look at everything.
struct Look<'a> {
    members: Vec<&'a ClusterId>,
    words: &'a Words,
    /// The imports that the policy allows each member; empty without rules on imports.
    imports: BTreeMap<&'a ClusterId, Imports>,
    epoch: Epoch,
    /// Every service that some member could not write.
    parked: BTreeSet<&'a ServiceKey>,
    shared: Option<Shared>,
}

impl<'a> Look<'a> {
    fn at(view: &'a View, words: &'a Words) -> Self {
        let members = view.sources().filter(|source| counts(source.state));
        let members: Vec<&ClusterId> = members.map(|source| &source.cluster).collect();
        let imports = |rules: &ImportRules| {
            let imports = members
                .iter()
                .map(|&member| (member, rules.policy.imports_of(member)));
            imports.collect()
        };
        let all = words.members.values();
        Self {
            imports: view.import_rules().map(imports).unwrap_or_default(),
            members,
            words,
            epoch: view.head().epoch,
            parked: all.flat_map(|word| word.parked.iter()).collect(),
            shared: None,
        }
    }

    /// Exports come in the order of their namespaces, and most of one arrived in the same clusters.
    fn arrival(&mut self, service: &ServiceKey, since: Revision) -> Arc<Arrival> {
        let is_special = !self.imports.is_empty() || self.parked.contains(service);
        let shared = self
            .shared
            .as_ref()
            .filter(|shared| !is_special && shared.namespace == service.namespace && since <= shared.up_to);
        if let Some(shared) = shared {
            return shared.arrival.clone();
        }
        let imports = &self.imports;
        let admits = |member: &ClusterId, service: &ServiceKey| {
            imports.get(member).is_none_or(|imports| imports.allow(service))
        };
        let what = (service, since, self.epoch);
        let arrival = Arc::new(arrival(self.members.iter().copied(), self.words, what, admits));
        if !is_special && !arrival.has(Lack::Waits) {
            let applied = arrival.clusters.iter();
            let applied = applied.filter_map(|cluster| self.words.members.get(cluster));
            self.shared = Some(Shared {
                namespace: service.namespace.clone(),
                arrival: arrival.clone(),
                up_to: applied.map(|word| word.revision).min().unwrap_or_default(),
            });
        }
        arrival
    }
}

/// The last message to a member about one export.
#[derive(Debug)]
struct Told {
    arrival: Arc<Arrival>,
    at: u64,
}

/// The messages to one session's member. Times are monotonic milliseconds.
#[derive(Debug)]
pub struct Arrivals {
    member: ClusterId,
    /// Absent before the first look.
    began: Option<u64>,
    next_look: u64,
    /// The state at the last look: revision of the head, version of the sources, version of the words.
    seen: Option<(Revision, u64, u64)>,
    told: BTreeMap<ServiceKey, Told>,
    /// Exports of which something else is to be told, and since when.
    differing: BTreeMap<ServiceKey, u64>,
    waiting: VecDeque<HubMessage>,
}

impl Arrivals {
    /// For a member whose session begins.
    pub fn new(member: ClusterId) -> Self {
        Self {
            member,
            began: None,
            next_look: 0,
            seen: None,
            told: BTreeMap::new(),
            differing: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Returns true if it is time to look again.
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.next_look && self.waiting.is_empty()
    }

    /// The next thing to tell.
    pub fn take(&mut self) -> Option<HubMessage> {
        self.waiting.pop_front()
    }

    /// Compares, if anything changed or something waits to be told.
    pub fn look(&mut self, view: &View, words: &Words, now: u64) {
        self.next_look = now + LOOK_INTERVAL_MILLIS;
        self.began.get_or_insert(now);
        let seen = (view.head().revision, view.sources_version(), words.version);
        if self.differing.is_empty() && self.seen == Some(seen) {
            return;
        }
        self.seen = Some(seen);
        let mut look = Look::at(view, words);
        let room = Room::Member(self.member.clone());
        let mut named = BTreeSet::new();
        let mut news: Vec<(ServiceKey, Arc<Arrival>)> = Vec::new();
        for (key, entry) in view.objects(&room, None) {
            let Some(service) = taken_export(key, entry) else {
                continue;
            };
            named.insert(service);
            let arrival = look.arrival(service, entry.revision);
            if self.is_to_be_told(service, &arrival, now) {
                news.push((service.clone(), arrival));
            }
        }
        self.told.retain(|service, _| named.contains(service));
        self.differing.retain(|service, _| named.contains(service));
        self.tell(news, now);
    }

    fn is_to_be_told(&mut self, service: &ServiceKey, arrival: &Arc<Arrival>, now: u64) -> bool {
        let told = self.told.get(service);
        if told.is_some_and(|told| Arc::ptr_eq(&told.arrival, arrival) || told.arrival == *arrival) {
            self.differing.remove(service);
            return false;
        }
        let differs_since = *self.differing.entry(service.clone()).or_insert(now);
        let unknown = told.is_none() && arrival.has(Lack::NotKnown);
        let waits = arrival.has(Lack::Waits) || arrival.has(Lack::NoNamespace);
        let too_soon = told.is_some_and(|told| now < told.at + TOLD_INTERVAL_MILLIS);
        !(too_soon
            || unknown && now < self.began.unwrap_or(now) + UNKNOWN_TOLD_AFTER_MILLIS
            || waits && now < differs_since + WAITS_TOLD_AFTER_MILLIS)
    }

    fn tell(&mut self, news: Vec<(ServiceKey, Arc<Arrival>)>, now: u64) {
        let mut groups: Vec<ArrivedServices> = Vec::new();
        for (service, arrival) in news {
            self.differing.remove(&service);
            let told = Told {
                arrival: arrival.clone(),
                at: now,
            };
            self.told.insert(service.clone(), told);
            let last = groups
                .last_mut()
                .filter(|group| group.services.len() < ARRIVED_SERVICES_MAX && group.arrival == arrival);
            match last {
                Some(group) => drop(group.services.insert(service)),
                None => groups.push(ArrivedServices {
                    services: BTreeSet::from([service]),
                    arrival,
                }),
            }
        }
        let messages = groups
            .into_iter()
            .map(|group| HubMessage::ExportsArrived(vec![group]));
        self.waiting.extend(messages);
    }
}

/// The service of an export of the member, if the hub takes it.
fn taken_export<'a>(key: &'a DerivedKey, entry: &Entry) -> Option<&'a ServiceKey> {
    let DerivedKey::ExportStatus(_, service) = key else {
        return None;
    };
    let DesiredChange::ExportStatus(status) = &entry.item.content().change else {
        return None;
    };
    status.denial.is_none().then_some(service)
}

#[cfg(test)]
mod tests;
