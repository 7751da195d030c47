//! Generated histories: what clusters do, a strategy for it, and a driver that does it to a folded log and keeps
//! its own books of what is true now.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use model::{ClusterId, EndpointSlice, Export, Fact, FactKey, ListingGroup, ServiceKey, SessionId, SliceKey};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    given::put,
    given::{Folded, cluster, key, observe, service},
    shapes::{Shape, endpoint_slice, health, property, shape, shaped, slice_key},
};
use crate::{Change, Command, Connectivity, Departure, DerivedContent, FIRST_FOLD_VERSION};

pub(super) const SERVICES: [&str; 3] = ["shop/cart", "shop/pay", "web/cart"];
pub(super) const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One thing that a cluster does.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// Exports, or changes what it exports; `seconds` count for a new ServiceExport only.
    Export {
        service: usize,
        seconds: u64,
        shape: Shape,
    },
    Unexport {
        service: usize,
    },
    /// Deletes the ServiceExport and creates another.
    Recreate {
        service: usize,
        seconds: u64,
        shape: Shape,
    },
    Slice {
        service: usize,
        slice: u8,
        ports: usize,
        endpoints: u8,
    },
    RemoveSlice {
        service: usize,
        slice: u8,
    },
    Property {
        name: u8,
        value: u8,
    },
    RemoveProperty {
        name: u8,
    },
    Health {
        control_plane: u8,
    },
    Heard {
        to: Connectivity,
    },
    /// Is lost and comes back.
    Lapse,
    /// Is lost, and withdrawn until it comes back.
    Withdraw,
    /// Is to leave.
    Drain,
    /// Is not to leave any more.
    Stay,
    /// Lists everything but a part, which is therefore gone.
    List {
        missing: u8,
    },
    /// Leaves or is evicted, and joins again with a new key.
    Rejoin {
        evicted: bool,
    },
    /// An operator applies a policy of the pool.
    Policy {
        index: usize,
    },
    /// Takes an export back with some of its slices, where the brake may look at it; `listed`: it listed everything before.
    TakeBack {
        service: usize,
        slices: u8,
        listed: bool,
    },
    /// An operator accepts withdrawals on hold.
    Release,
    /// Was rebuilt: an operator admits another cluster under the same id.
    Rebuild {
        fingerprint: u8,
    },
    /// The log begins a new epoch.
    Epoch,
}

/// Policies that operators apply: rules on addresses, exports, precedence and losses, and a brake that one export engages.
const POLICIES: [&str; 8] = [
    "members: []",
    "members:\n- name: pods\n  members: [\"*\"]\n  endpoints: [10.0.0.0/32]",
    "brake: {exports: 1, percent: 1}",
    "brake: {exports: 1, percent: 1}\nmembers:\n- name: pods\n  members: [\"*\"]\n  endpoints: [10.0.0.0/32]",
    "brake: {exports: 1, percent: 1, within: 2s}\nloss: {action: notReady}",
    "loss: {action: retain}",
    "precedence: incumbent",
    "members:\n- name: web\n  members: [a]\n  exports: [{namespaces: [web]}]",
];

fn operation() -> impl Strategy<Value = Operation> {
    let service = || 0..SERVICES.len();
    prop_oneof![
        8 => (service(), 0..4u64, shape())
            .prop_map(|(service, seconds, shape)| Operation::Export { service, seconds, shape }),
        2 => service().prop_map(|service| Operation::Unexport { service }),
        2 => (service(), 0..4u64, shape())
            .prop_map(|(service, seconds, shape)| Operation::Recreate { service, seconds, shape }),
        6 => (service(), 0..3u8, 0..6usize, 0..4u8)
            .prop_map(|(service, slice, ports, endpoints)| Operation::Slice { service, slice, ports, endpoints }),
        2 => (service(), 0..3u8).prop_map(|(service, slice)| Operation::RemoveSlice { service, slice }),
        1 => (0..3u8, 0..3u8).prop_map(|(name, value)| Operation::Property { name, value }),
        1 => (0..3u8).prop_map(|name| Operation::RemoveProperty { name }),
        1 => (0..3u8).prop_map(|control_plane| Operation::Health { control_plane }),
        2 => select(vec![Connectivity::Live, Connectivity::Suspect, Connectivity::Lost])
            .prop_map(|to| Operation::Heard { to }),
        1 => Just(Operation::Lapse),
        2 => Just(Operation::Withdraw),
        2 => Just(Operation::Drain),
        1 => Just(Operation::Stay),
        1 => (1..5u8).prop_map(|missing| Operation::List { missing }),
        1 => any::<bool>().prop_map(|evicted| Operation::Rejoin { evicted }),
    ]
}

/// The same among what operators decide, and what the brake holds.
fn decided() -> impl Strategy<Value = Operation> {
    let service = || 0..SERVICES.len();
    prop_oneof![
        12 => operation(),
        2 => (0..POLICIES.len()).prop_map(|index| Operation::Policy { index }),
        4 => (service(), 0..3u8, prop::bool::weighted(0.8))
            .prop_map(|(service, slices, listed)| Operation::TakeBack { service, slices, listed }),
        1 => Just(Operation::Release),
        1 => (0..3u8).prop_map(|fingerprint| Operation::Rebuild { fingerprint }),
    ]
}

/// The steps of three to five clusters, and the decisions about them, in their own order. `epochs`: epochs begin.
pub(crate) fn decided_histories(epochs: bool) -> impl Strategy<Value = Vec<Vec<Operation>>> {
    let weight = u32::from(epochs);
    let operation = move || {
        prop_oneof![
            20 => decided(),
            weight => Just(Operation::Epoch),
        ]
    };
    vec(vec(operation(), 4..20), 3..=CLUSTERS.len())
}

/// The operations of each of three to five clusters, in its own order.
pub(super) fn histories() -> impl Strategy<Value = Vec<Vec<Operation>>> {
    vec(vec(operation(), 4..16), 3..=CLUSTERS.len())
}

/// One order of all operations that keeps each cluster's own. `picks` chooses the next one.
pub(crate) fn interleaved(histories: &[Vec<Operation>], picks: &[u8]) -> Vec<(usize, Operation)> {
    let mut left: Vec<_> = histories.iter().map(|operations| operations.iter()).collect();
    let mut order = Vec::new();
    let mut picks = picks.iter().cycle();
    loop {
        let busy: Vec<usize> = (0..left.len()).filter(|&index| left[index].len() > 0).collect();
        let (Some(pick), false) = (picks.next(), busy.is_empty()) else {
            return order;
        };
        let index = busy[usize::from(*pick) % busy.len()];
        order.extend(left[index].next().map(|operation| (index, operation.clone())));
    }
}

/// The test's own knowledge of the truth, kept without the fold.
#[derive(Debug, Clone, Default)]
pub(super) struct Books {
    pub(super) exports: BTreeMap<(ServiceKey, ClusterId), Export>,
    pub(super) slices: BTreeMap<(ClusterId, SliceKey), EndpointSlice>,
    /// Members that are withdrawn.
    pub(super) withdrawn: BTreeSet<ClusterId>,
    /// Members that are to leave.
    pub(super) leaving: BTreeSet<ClusterId>,
    pub(super) recreated: u32,
    pub(super) lost_and_returned: u32,
    pub(super) conflicts: u32,
    pub(super) equal_timestamps: u32,
}

/// A folded log that operations are done to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Driver {
    pub(crate) folded: Folded,
    pub(super) books: Books,
    pub(super) changes: Vec<Change>,
    /// For each cluster: the number of keys and uids it has had, and whether it is lost.
    clusters: BTreeMap<usize, (u8, u32, bool)>,
    /// The number of events before each epoch that began.
    pub(crate) epochs: Vec<usize>,
    /// Exports that were on hold after a step, and exports with endpoints left out.
    pub(super) held: u32,
    pub(super) left_out: u32,
}

impl Driver {
    /// All of `order` done to clusters that have joined in it.
    pub(super) fn run(order: &[(usize, Operation)]) -> Self {
        let mut driver = Self::default();
        for (index, operation) in order {
            driver.step(*index, operation);
        }
        driver
    }

    /// The same under the newest rules, which leave out more and let more yield, and a policy under which one export engages
    /// the brake.
    pub(crate) fn run_by_newest_rules(order: &[(usize, Operation)]) -> Self {
        let mut driver = Self::default();
        driver.carry_out(&Command::AdoptFoldVersion {
            from: FIRST_FOLD_VERSION,
        });
        driver.carry_out(&put(POLICIES[3]));
        for (index, operation) in order {
            driver.step(*index, operation);
        }
        driver
    }

    pub(super) fn step(&mut self, index: usize, operation: &Operation) {
        if let Entry::Vacant(unknown) = self.clusters.entry(index) {
            unknown.insert((0, 0, false));
            self.join(index);
        }
        let name = cluster(CLUSTERS[index]);
        match operation {
            Operation::Export {
                service,
                seconds,
                shape,
            } => self.export(index, *service, *seconds, shape),
            Operation::Unexport { service } => self.unexport(&name, *service),
            Operation::Recreate {
                service,
                seconds,
                shape,
            } => {
                let key = (self::service(SERVICES[*service]), name.clone());
                self.books.recreated += u32::from(self.books.exports.contains_key(&key));
                self.unexport(&name, *service);
                self.export(index, *service, *seconds, shape);
            }
            Operation::Slice {
                service,
                slice,
                ports,
                endpoints,
            } => {
                let slice = endpoint_slice(*service, *slice, *ports, *endpoints);
                self.books
                    .slices
                    .insert((name.clone(), slice.key.clone()), slice.clone());
                self.report(&name, Fact::EndpointSliceUpserted(Arc::new(slice)));
            }
            Operation::RemoveSlice { service, slice } => {
                let key = slice_key(*service, *slice);
                self.books.slices.remove(&(name.clone(), key.clone()));
                self.report(&name, Fact::EndpointSliceRemoved(key));
            }
            Operation::Property {
                name: property,
                value,
            } => self.report(&name, self::property(*property, *value)),
            Operation::RemoveProperty { name: property } => {
                self.report(&name, Fact::ClusterPropertyRemoved(format!("p{property}").into()));
            }
            Operation::Health { control_plane } => self.report(&name, health(*control_plane)),
            Operation::Heard { to } => self.heard(index, &name, *to),
            Operation::Lapse => {
                self.heard(index, &name, Connectivity::Lost);
                self.heard(index, &name, Connectivity::Live);
            }
            Operation::Withdraw => {
                self.heard(index, &name, Connectivity::Lost);
                self.carry_out(&Command::Withdraw {
                    cluster: name.clone(),
                });
                self.books.withdrawn.insert(name);
            }
            Operation::Drain => {
                self.carry_out(&Command::Depart {
                    cluster: name.clone(),
                    departure: Departure::Ordered {
                        operator: "ann".into(),
                        at: model::UnixMillis(1_000),
                        after_millis: 3_600_000,
                        evicts: false,
                    },
                });
                self.books.leaving.insert(name);
            }
            Operation::Stay => {
                self.carry_out(&Command::Depart {
                    cluster: name.clone(),
                    departure: Departure::TakenBack {
                        operator: "ann".into(),
                    },
                });
                self.books.leaving.remove(&name);
            }
            Operation::List { missing } => self.list(&name, *missing),
            Operation::Rejoin { evicted } => self.rejoin(index, &name, *evicted),
            decision => self.decide(index, &name, decision),
        }
        self.count();
    }

    /// A decision about a cluster, or about all of them.
    fn decide(&mut self, index: usize, name: &ClusterId, decision: &Operation) {
        match decision {
            Operation::Policy { index } => self.carry_out(&put(POLICIES[*index])),
            Operation::TakeBack {
                service,
                slices,
                listed,
            } => {
                if *listed {
                    // Nothing is missing: no name is so long.
                    self.list(name, u8::MAX);
                }
                self.carry_out(&Command::Brake {
                    cluster: name.clone(),
                    taking_back: BTreeSet::from([self::service(SERVICES[*service])]),
                    at: self.folded.state.recorded_at(),
                });
                self.unexport(name, *service);
                for slice in 0..*slices {
                    let key = slice_key(*service, slice);
                    self.books.slices.remove(&(name.clone(), key.clone()));
                    self.report(name, Fact::EndpointSliceRemoved(key));
                }
            }
            Operation::Release => self.carry_out(&Command::ReleaseBrake {
                cluster: name.clone(),
                operator: "ann".into(),
            }),
            Operation::Rebuild { fingerprint } => self.rebuild(index, name, *fingerprint),
            Operation::Epoch => {
                self.epochs.push(self.folded.events.len());
                self.folded.state.begin_epoch();
            }
            observed => unreachable!("{observed:?} is no decision"),
        }
    }

    fn rebuild(&mut self, index: usize, name: &ClusterId, fingerprint: u8) {
        let fingerprint: Box<str> = format!("rebuilt-{fingerprint}").into();
        self.carry_out(&Command::Rekey {
            cluster: name.clone(),
            operator: "ann".into(),
            key: None,
            cluster_fingerprint: Some(fingerprint.clone()),
        });
        let (keys, ..) = self.clusters[&index];
        self.carry_out(&Command::Admit {
            cluster: name.clone(),
            key: key(keys),
            cluster_fingerprint: fingerprint,
            presented: Default::default(),
        });
        self.books.withdrawn.remove(name);
    }

    fn carry_out(&mut self, command: &Command) {
        self.changes.extend(self.folded.carry_out(command).unwrap());
    }

    fn report(&mut self, name: &ClusterId, fact: Fact) {
        self.carry_out(&observe(name.as_str(), fact));
    }

    fn join(&mut self, index: usize) {
        let (keys, _, lost) = self.clusters.get_mut(&index).unwrap();
        (*keys, *lost) = (*keys + 1, false);
        let command = Command::Admit {
            cluster: cluster(CLUSTERS[index]),
            key: key(*keys),
            cluster_fingerprint: "kube-system".into(),
            presented: Default::default(),
        };
        self.carry_out(&command);
    }

    fn export(&mut self, index: usize, service_index: usize, seconds: u64, shape: &Shape) {
        let name = cluster(CLUSTERS[index]);
        let key = (service(SERVICES[service_index]), name.clone());
        let mut new = shaped(service_index, seconds, shape);
        match self.books.exports.get(&key) {
            Some(known) => {
                (new.uid, new.created_at) = (known.uid.clone(), known.created_at);
                new.generation = known.generation + 1;
            }
            None => {
                let (_, uids, _) = self.clusters.get_mut(&index).unwrap();
                *uids += 1;
                new.uid = format!("uid-{uids}").into();
            }
        }
        self.books.exports.insert(key, new.clone());
        self.report(&name, Fact::ExportUpserted(Arc::new(new)));
    }

    fn unexport(&mut self, name: &ClusterId, service_index: usize) {
        let service = service(SERVICES[service_index]);
        self.books.exports.remove(&(service.clone(), name.clone()));
        self.report(name, Fact::ExportRemoved(service));
    }

    fn heard(&mut self, index: usize, name: &ClusterId, to: Connectivity) {
        let (_, _, lost) = self.clusters.get_mut(&index).unwrap();
        self.books.lost_and_returned += u32::from(*lost && to == Connectivity::Live);
        *lost = (*lost && to != Connectivity::Live) || to == Connectivity::Lost;
        if to == Connectivity::Live {
            self.books.withdrawn.remove(name);
        }
        self.carry_out(&Command::Connectivity {
            cluster: name.clone(),
            to,
        });
    }

    /// Services whose name's length is a multiple of `missing` are not seen.
    fn list(&mut self, name: &ClusterId, missing: u8) {
        let seen = |service: &ServiceKey| !service.name.len().is_multiple_of(usize::from(missing));
        let mut keys: BTreeSet<FactKey> = BTreeSet::new();
        self.books
            .exports
            .retain(|(service, exporter), _| exporter != name || seen(service));
        self.books
            .slices
            .retain(|(owner, key), _| owner != name || seen(&key.service));
        let exports = self.books.exports.keys().filter(|(_, exporter)| exporter == name);
        keys.extend(exports.map(|(service, _)| FactKey::Export(service.clone())));
        let slices = self.books.slices.keys().filter(|(owner, _)| owner == name);
        keys.extend(slices.map(|(_, key)| FactKey::EndpointSlice(key.clone())));
        self.carry_out(&Command::CompleteListing {
            cluster: name.clone(),
            session: SessionId(7),
            sequence: 2,
            group: ListingGroup::Exports,
            seen: Arc::new(keys),
        });
    }

    fn rejoin(&mut self, index: usize, name: &ClusterId, evicted: bool) {
        self.books.exports.retain(|(_, exporter), _| exporter != name);
        self.books.slices.retain(|(owner, _), _| owner != name);
        self.books.withdrawn.remove(name);
        self.books.leaving.remove(name);
        let end = if evicted { Folded::evicted } else { Folded::left };
        self.changes.extend(end(&mut self.folded, name.as_str()));
        if evicted {
            let (keys, ..) = self.clusters[&index];
            self.carry_out(&Command::Rekey {
                cluster: name.clone(),
                operator: "ann".into(),
                key: Some(key(keys + 1)),
                cluster_fingerprint: None,
            });
        }
        self.join(index);
    }

    /// Counts what a good generator must bring about.
    fn count(&mut self) {
        let members = self.folded.state.members().values();
        let held = members.flat_map(|member| member.taken_back().held_exports());
        self.held += held.count() as u32;
        let statuses = self.folded.state.all_derived();
        let left_out = statuses.filter(|(_, derived)| match &derived.content {
            DerivedContent::ExportStatus(status) => !status.left_out.is_empty(),
            _ => false,
        });
        self.left_out += left_out.count() as u32;
        let exports: Vec<_> = self.books.exports.iter().collect();
        for ((service, one), export) in &exports {
            for ((_, other), rival) in exports.iter().filter(|((s, c), _)| s == service && c > one) {
                self.books.equal_timestamps += u32::from(export.created_at == rival.created_at);
                let status = self.folded.state.export_status(other, service);
                self.books.conflicts += u32::from(status.is_some_and(|status| !status.conflicts.is_empty()));
            }
        }
    }
}
