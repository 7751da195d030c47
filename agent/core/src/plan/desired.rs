//! The state that the hub wants in this cluster, in memory: fed by the link, read by the plan. A snapshot is staged and
//! replaces everything when it is complete; an interrupted one changes nothing. This module does not know what the
//! cluster holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    Arrival, ClusterId, Cursor, Epoch, ExportStatus, ImportedSlice, ImportedSliceKey, Revision,
    ServiceImport, ServiceKey,
    sync::{
        ArrivedServices, DesiredChange, DesiredItem, DesiredKey, Interest, ItemDifference, Source, Told,
        UpTo, Welcome,
    },
};
use wire::Restored;

use super::{
    arrivals::Arrivals,
    differences::{Differences, News},
    expired::Expired,
    interest::{Covered, InterestState},
    rules::{ImportRules, TurnedAway},
    sources::{Settling, Sources},
};

pub use super::touched::Touched;

/// Most recorded removals that are kept for the plan. Beyond it they are dropped: what they named then waits
/// for the completeness of its source, which is slower and never wrong.
pub const REMOVALS_MAX: usize = 100_000;

/// A value and the revision of the event that last changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised<T> {
    /// Revision that it comes from.
    pub revision: Revision,
    /// The value itself.
    pub value: T,
}

/// One complete set of derived objects, or one that is being received.
#[derive(Debug, Clone, Default)]
struct Held {
    imports: BTreeMap<ServiceKey, Revised<Arc<ServiceImport>>>,
    slices: BTreeMap<ImportedSliceKey, Revised<Arc<ImportedSlice>>>,
    statuses: BTreeMap<ServiceKey, Revised<Arc<ExportStatus>>>,
}

/// A snapshot on its way.
#[derive(Debug, Clone)]
struct Staged {
    epoch: Epoch,
    held: Held,
    /// Namespaces that came and were answered while the snapshot was under way.
    covered: BTreeSet<Box<str>>,
}

/// The desired state with all that says how far it may be trusted.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    held: Held,
    staged: Option<Staged>,
    /// Removals that the hub stated one by one, of objects that are not desired (again).
    removed: BTreeSet<DesiredKey>,
    /// Present while the last snapshot was completed and nothing newer has begun to replace it.
    complete_epoch: Option<Epoch>,
    covered: Covered,
    interest: InterestState,
    sources: Sources,
    differences: Differences,
    cursor: Option<Cursor>,
    arrivals: Arrivals,
    rules: ImportRules,
    turned_away: TurnedAway,
    /// There were more imports than are held: an unnamed one is not known to be gone.
    overflowed: bool,
    /// A session is open.
    in_session: bool,
    /// A hub said that the membership of this cluster has ended, and none has admitted it since.
    membership_ended: bool,
    expired: Expired,
}

/// The link's reports.
impl Desired {
    /// The interest that the next Hello states.
    pub fn interest(&mut self, interest: &Interest) -> Touched {
        self.interest.replace(interest);
        let state = &self.interest;
        let contains = |namespace: &str| state.contains(namespace);
        self.held.retain(contains);
        self.removed.retain(|key| contains(namespace_of(key)));
        self.covered.namespaces.retain(|namespace| contains(namespace));
        Touched::All
    }

    /// A namespace came; `generation` is the interest's new one.
    pub fn namespace_added(&mut self, generation: u64, namespace: &str) {
        self.covered.namespaces.remove(namespace);
        self.interest.add(generation, namespace.into());
    }

    /// A namespace went: what is desired in it is forgotten. The API server deletes the objects.
    pub fn namespace_removed(&mut self, namespace: &str) {
        self.interest.remove(namespace);
        if self.interest.contains(namespace) {
            return;
        }
        let others = |other: &str| other != namespace;
        self.held.retain(others);
        self.removed.retain(|key| others(namespace_of(key)));
        self.differences
            .retain(|key| is_of_an_export(key) || others(namespace_of(key)));
        self.covered.namespaces.remove(namespace);
        if let Some(staged) = &mut self.staged {
            staged.held.retain(others);
            staged.covered.remove(namespace);
        }
    }

    /// A session began.
    pub fn welcome(&mut self, welcome: &Welcome) {
        self.staged = None;
        self.in_session = true;
        self.membership_ended = false;
        self.differences.begin();
        let same_epoch = self.cursor.is_some_and(|cursor| cursor.epoch == welcome.epoch);
        let resumes = welcome.resume && same_epoch;
        self.sources.begin(resumes);
        self.complete_epoch = resumes.then_some(welcome.epoch);
    }

    /// A snapshot begins. Until it is complete nothing is deleted: the held objects may be of an older snapshot.
    pub fn snapshot_begin(&mut self, epoch: Epoch) {
        self.complete_epoch = None;
        self.overflowed = false;
        self.differences.retain(|_| false);
        self.staged = Some(Staged {
            epoch,
            held: Held::default(),
            covered: BTreeSet::new(),
        });
    }

    /// The snapshot is complete: it replaces everything.
    pub fn snapshot_complete(&mut self, up_to: &UpTo) -> Touched {
        let Some(staged) = self.staged.take() else {
            return Touched::none();
        };
        self.held = staged.held;
        self.arrivals
            .keep(|service| self.held.statuses.contains_key(service));
        self.removed.clear();
        self.covered = self.interest.covered_by(up_to.interest_generation);
        self.covered.namespaces.extend(staged.covered);
        self.complete_epoch = Some(staged.epoch);
        self.cursor = Some(up_to.cursor);
        Touched::All
    }

    /// Derived objects that changed, computed under the interest of `generation`. [`Desired::take_news`] returns the
    /// outcome of differences among them.
    pub fn items(&mut self, generation: u64, items: impl IntoIterator<Item: Into<Told>>) -> Touched {
        let mut touched = BTreeSet::new();
        for told in items {
            let told: Told = told.into();
            let key = told.key();
            if !self.concerns(&key, generation) || self.turns_away(&key, &told) {
                continue;
            }
            let service = service_of(&key).clone();
            if self.told(key, told) {
                touched.insert(service);
            }
        }
        if self.staged.is_some() {
            return Touched::none();
        }
        Touched::Services(touched)
    }

    /// The status of this cluster's own exports is sent whatever the interest is, and sent once: it is not repeated
    /// when its namespace becomes part of the interest.
    fn concerns(&self, key: &DesiredKey, generation: u64) -> bool {
        is_of_an_export(key) || self.interest.admits(namespace_of(key), generation)
    }

    /// Takes an object from the hub; true if the object is held as it was sent.
    fn told(&mut self, key: DesiredKey, told: Told) -> bool {
        match told {
            Told::Whole(item) => {
                self.differences.told(&key, item.revision);
                self.item(key, item);
                true
            }
            Told::Difference(difference) => self.difference(key, &difference),
            Told::Unreadable { .. } => {
                self.differences.settled(&key);
                false
            }
        }
    }

    /// Restores the object that it leads to. If nothing does, the object is asked for, and what the hub says of its
    /// position is not believed until it was told: who resumed there would never hear of it again.
    fn difference(&mut self, key: DesiredKey, difference: &ItemDifference) -> bool {
        if !self.may_change(&key) {
            // An object that is not sent yet would be missing when the snapshot counts as complete.
            self.differences.refuse();
            self.cursor = None;
            return false;
        }
        match wire::restore(self.held.item(&key).as_ref(), difference) {
            Ok(Restored::Object(item)) => {
                self.differences.restored(&key, difference.revision);
                self.item(key, item);
                true
            }
            Ok(Restored::Held) => {
                self.differences.told(&key, difference.revision);
                true
            }
            Ok(Restored::Unreadable) => {
                self.differences.told(&key, difference.revision);
                false
            }
            Err(_) => {
                let is_past = |cursor: Cursor| cursor.revision >= difference.revision;
                if !self.differences.want(&key, difference.revision) || self.cursor.is_some_and(is_past) {
                    self.cursor = None;
                }
                false
            }
        }
    }

    /// Returns true if the hub has sent everything about the object.
    fn may_change(&self, key: &DesiredKey) -> bool {
        let told_once = self.staged.is_none() && self.complete_epoch.is_some();
        told_once && (is_of_an_export(key) || self.covered.contains(namespace_of(key)))
    }

    /// Returns the outcome of the differences since the last call.
    pub fn take_news(&mut self) -> News {
        let (turned_away, complaints) = self.turned_away.take();
        News {
            turned_away,
            complaints,
            ..self.differences.take_news()
        }
    }

    /// From now on this cluster takes what these rules admit, and nothing else.
    pub fn keep_to(&mut self, rules: ImportRules) -> Touched {
        self.rules = rules;
        Touched::All
    }

    /// Rules for the imports that this cluster accepts.
    pub(super) fn rules(&self) -> &ImportRules {
        &self.rules
    }

    /// Returns true if anything is imported into a namespace.
    pub fn admits(&self, namespace: &str) -> bool {
        self.rules.admits(namespace)
    }

    /// By this cluster's own rules it is not taken. The word on an export is about this cluster's own.
    fn turns_away(&mut self, key: &DesiredKey, told: &Told) -> bool {
        let namespace = namespace_of(key);
        if is_of_an_export(key) {
            return false;
        }
        if !self.rules.admits(namespace) {
            self.turned_away.namespace(namespace);
            return true;
        }
        let Told::Whole(item) = told else { return false };
        match &item.change {
            DesiredChange::Slice(slice) => {
                self.turned_away.slice(slice);
                false
            }
            DesiredChange::Import(import) => {
                self.turned_away.metadata(import);
                let held = self.staged.as_ref().map_or(&self.held, |staged| &staged.held);
                let has_room = held.imports.len() < self.rules.imports_max;
                if has_room || held.imports.contains_key(&import.service) {
                    return false;
                }
                self.overflowed = true;
                self.turned_away.import(self.rules.imports_max);
                true
            }
            DesiredChange::ExportStatus(_) | DesiredChange::Removed(_) => false,
        }
    }

    fn hear_of_sources(&mut self, change: &DesiredChange) {
        match change {
            DesiredChange::Slice(slice) => self.sources.heard_of(&slice.key.source_cluster),
            DesiredChange::Import(import) => {
                (import.clusters.keys()).for_each(|cluster| self.sources.heard_of(cluster));
            }
            DesiredChange::ExportStatus(_) | DesiredChange::Removed(_) => {}
        }
    }

    fn item(&mut self, key: DesiredKey, item: DesiredItem) {
        self.hear_of_sources(&item.change);
        let removal = matches!(item.change, DesiredChange::Removed(_));
        if let Some(staged) = &mut self.staged {
            staged.held.take(item);
            return;
        }
        self.held.take(item);
        if !removal {
            self.removed.remove(&key);
        } else if let DesiredKey::ExportStatus(service) = &key {
            self.arrivals.forget(service);
        } else {
            if self.removed.len() >= REMOVALS_MAX {
                self.removed.clear();
            }
            self.removed.insert(key);
        }
    }

    /// Everything of these namespaces has been received.
    pub fn namespace_complete(
        &mut self,
        generation: u64,
        namespaces: impl IntoIterator<Item = Box<str>>,
    ) -> Touched {
        let all = namespaces.into_iter();
        let admitted = all.filter(|namespace| self.interest.admits(namespace, generation));
        let admitted: BTreeSet<Box<str>> = admitted.collect();
        if let Some(staged) = &mut self.staged {
            staged.covered.extend(admitted); // everything is planned once the snapshot is complete
            return Touched::none();
        }
        self.covered.namespaces.extend(admitted.iter().cloned());
        Touched::Namespaces(admitted)
    }

    /// Some sources changed; the first time in a session these are all of them.
    pub fn sources_changed(&mut self, sources: &[Source]) -> Touched {
        match self.sources.changed(sources) {
            settling if settling.is_empty() => Touched::none(),
            settling => Touched::Sources(settling),
        }
    }

    /// In which clusters exports of this cluster arrived.
    pub fn exports_arrived(&mut self, groups: Vec<ArrivedServices>) -> Touched {
        Touched::Exports(self.arrivals.hear(groups))
    }

    /// In which clusters an export of this cluster arrived, if a hub has said so.
    pub fn arrival(&self, service: &ServiceKey) -> Option<&Arrival> {
        self.arrivals.of(service)
    }

    /// Everything up to the cursor has been received, if the held objects are of its epoch and nothing waits to be sent
    /// whole.
    pub fn up_to(&mut self, up_to: &UpTo) {
        let is_whole = self.staged.is_none() && self.differences.are_settled();
        if is_whole && self.complete_epoch == Some(up_to.cursor.epoch) {
            self.cursor = Some(up_to.cursor);
        }
    }

    /// The session ended: a snapshot that was under way is discarded, everything else stays.
    pub fn session_ended(&mut self) {
        self.staged = None;
        self.in_session = false;
    }

    /// The membership of this cluster has ended. Held objects stay until the Leases of their sources expire; the hub
    /// that admits the cluster again sends everything anew.
    pub fn end_membership(&mut self) -> Touched {
        self.membership_ended = true;
        self.cursor = None;
        Touched::All
    }

    /// The Leases of these sources, and of no others, were seen to have expired.
    pub fn expire(&mut self, expired: Expired) -> Touched {
        let before = std::mem::replace(&mut self.expired, expired);
        let differ = |cluster: &&ClusterId| before.get(*cluster) != self.expired.get(*cluster);
        let clusters: BTreeSet<ClusterId> = before
            .keys()
            .chain(self.expired.keys())
            .filter(differ)
            .cloned()
            .collect();
        if clusters.is_empty() {
            Touched::none()
        } else {
            Touched::Sources(Settling { clusters, all: false })
        }
    }
}

/// Reads for the next Hello and for the plan.
impl Desired {
    /// The position to resume at: absent unless everything of the interest was received up to there.
    pub fn cursor(&self) -> Option<Cursor> {
        let is_whole = self.interest.is_covered(&self.covered) && !self.overflowed;
        self.cursor.filter(|_| is_whole)
    }

    /// Returns true if a hub said that the membership of this cluster has ended.
    pub fn is_membership_ended(&self) -> bool {
        self.membership_ended
    }

    /// Returns true if the next session may send differences.
    pub fn takes_differences(&self) -> bool {
        self.differences.are_taken()
    }

    /// Returns true if an object waits to be told whole.
    pub fn wants(&self, key: &DesiredKey) -> bool {
        self.differences.wants(key)
    }

    /// The epoch whose snapshot is complete.
    pub fn complete_epoch(&self) -> Option<Epoch> {
        self.complete_epoch
    }

    /// Returns true if the hub has told everything of `namespace`, so that what it did not name is not there.
    pub fn is_complete(&self, namespace: &str) -> bool {
        self.complete_epoch.is_some() && self.covered.contains(namespace) && !self.overflowed
    }

    /// The sources whose Leases were seen to have expired.
    pub fn expired(&self) -> &Expired {
        &self.expired
    }

    /// Returns true if a hub has sent everything and is connected: then it confirms the held objects.
    pub fn is_confirmed(&self) -> bool {
        self.in_session && self.staged.is_none() && self.complete_epoch.is_some()
    }

    /// The clusters whose slices are held, whether a hub confirms them or was last connected long ago.
    pub fn clusters_of_slices(&self) -> BTreeSet<&ClusterId> {
        self.held.slices.keys().map(|key| &key.source_cluster).collect()
    }

    /// The sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The import of a service.
    pub fn import(&self, service: &ServiceKey) -> Option<&Revised<Arc<ServiceImport>>> {
        self.held.imports.get(service)
    }

    /// The slices of a service, its own cluster's included.
    pub fn slices(&self, service: &ServiceKey) -> impl Iterator<Item = &Revised<Arc<ImportedSlice>>> {
        let first = first_slice_key(service);
        self.held
            .slices
            .range(first..)
            .take_while(move |(key, _)| key.service == *service)
            .map(|(_, slice)| slice)
    }

    /// Every service with the clusters that export it as the hub says.
    pub fn exporters(&self) -> impl Iterator<Item = (&ServiceKey, &ClusterId)> {
        let imports = self.held.imports.iter();
        imports.flat_map(|(service, import)| {
            let clusters = import.value.clusters.keys();
            clusters.map(move |cluster| (service, cluster))
        })
    }

    /// Every service with the clusters that it has slices of.
    pub fn slice_sources(&self) -> impl Iterator<Item = (&ServiceKey, &ClusterId)> {
        let keys = self.held.slices.keys();
        keys.map(|key| (&key.service, &key.source_cluster))
    }

    /// The hub's word on this cluster's own export of a service.
    pub fn export_status(&self, service: &ServiceKey) -> Option<&Revised<Arc<ExportStatus>>> {
        self.held.statuses.get(service)
    }

    /// The slices of a service that the hub removed one by one.
    pub fn removed_slices(&self, service: &ServiceKey) -> impl Iterator<Item = &ImportedSliceKey> {
        let first = DesiredKey::Slice(first_slice_key(service));
        self.removed.range(first..).map_while(move |key| match key {
            DesiredKey::Slice(slice) if slice.service == *service => Some(slice),
            _ => None,
        })
    }

    /// Every service with a desired or removed object.
    pub fn services(&self) -> BTreeSet<ServiceKey> {
        let imports = self.held.imports.keys();
        let slices = self.held.slices.keys().map(|key| &key.service);
        let statuses = self.held.statuses.keys();
        let removed = self.removed.iter().map(service_of);
        let all = imports.chain(slices).chain(statuses).chain(removed);
        all.cloned().collect()
    }

    /// The cluster holds nothing any more that a removal of this service names: the removals have done their work.
    pub fn removals_done(&mut self, service: &ServiceKey) {
        let done: Vec<ImportedSliceKey> = self.removed_slices(service).cloned().collect();
        for key in done {
            self.removed.remove(&DesiredKey::Slice(key));
        }
        self.removed.remove(&DesiredKey::Import(service.clone()));
    }
}

impl Held {
    /// An object as it was told.
    fn item(&self, key: &DesiredKey) -> Option<DesiredItem> {
        let (revision, change) = match key {
            DesiredKey::Import(key) => {
                let held = self.imports.get(key)?;
                (held.revision, DesiredChange::Import(held.value.clone()))
            }
            DesiredKey::Slice(key) => {
                let held = self.slices.get(key)?;
                (held.revision, DesiredChange::Slice(held.value.clone()))
            }
            DesiredKey::ExportStatus(key) => {
                let held = self.statuses.get(key)?;
                (held.revision, DesiredChange::ExportStatus(held.value.clone()))
            }
        };
        Some(DesiredItem { revision, change })
    }

    fn take(&mut self, item: DesiredItem) {
        let revision = item.revision;
        match item.change {
            DesiredChange::Import(value) => {
                let key = value.service.clone();
                self.imports.insert(key, Revised { revision, value });
            }
            DesiredChange::Slice(value) => {
                let key = value.key.clone();
                self.slices.insert(key, Revised { revision, value });
            }
            DesiredChange::ExportStatus(value) => {
                let key = value.service.clone();
                self.statuses.insert(key, Revised { revision, value });
            }
            DesiredChange::Removed(DesiredKey::Import(key)) => drop(self.imports.remove(&key)),
            DesiredChange::Removed(DesiredKey::Slice(key)) => drop(self.slices.remove(&key)),
            DesiredChange::Removed(DesiredKey::ExportStatus(key)) => drop(self.statuses.remove(&key)),
        }
    }

    /// Forgets what the interest does not cover any more. The words on this cluster's exports are no part of it.
    fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.imports.retain(|key, _| keep(&key.namespace));
        self.slices.retain(|key, _| keep(&key.service.namespace));
    }
}

/// The service that a derived object belongs to.
fn service_of(key: &DesiredKey) -> &ServiceKey {
    match key {
        DesiredKey::Import(service) | DesiredKey::ExportStatus(service) => service,
        DesiredKey::Slice(slice) => &slice.service,
    }
}

/// The status of this cluster's own export is sent whatever the interest is.
fn is_of_an_export(key: &DesiredKey) -> bool {
    matches!(key, DesiredKey::ExportStatus(_))
}

/// No key of a slice of the service sorts below this one.
fn first_slice_key(service: &ServiceKey) -> ImportedSliceKey {
    ImportedSliceKey {
        service: service.clone(),
        source_cluster: ClusterId::new("0").expect("a digit is a DNS label, and no label sorts below it"),
        source_slice: "".into(),
    }
}

fn namespace_of(key: &DesiredKey) -> &str {
    &service_of(key).namespace
}
