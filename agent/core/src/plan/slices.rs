//! Imported EndpointSlices: those of other clusters as the hub tells them, and the cluster's own from its own
//! watches, hub or no hub. A slice of another cluster goes only by the law of deletion.

use std::collections::BTreeSet;

use model::{
    ClusterId, Endpoint, EndpointPort, ImportedSlice, Metadata, ServiceImport, ServiceKey, ServicePort,
    ServiceType, derived_name::imported_slice_name, served_as,
};

use super::{
    action::{Action, Kind, Plan, Report},
    content::{SliceContent, SliceEndpoint},
    desired::Desired,
    export::is_denied,
    port_names::{PortNames, derived_port_name},
    rules::may_stand,
    target::{Standing, may_narrow},
    view::{Found, LocalConfig, OwnSlice, ServiceView, Validity},
};

/// The values of trafficDistribution that are served by zone hints. PreferSameNode falls back to the zone; it gets no
/// hints for nodes, which kube-proxy heeds only when every endpoint has one, and another cluster's has no node here.
const ZONE_DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

/// The facts that slices need of the import in front of them.
pub(super) struct Front<'a> {
    pub(super) service: &'a ServiceKey,
    pub(super) standing: &'a Standing,
    pub(super) derived_name: &'a str,
    pub(super) names: PortNames,
    /// The derived Service has its IPs, or there is to be none.
    pub(super) may_create: bool,
    /// Labels of every object that is made here.
    pub(super) object_labels: &'a Metadata,
}

impl Front<'_> {
    /// The slice of `cluster` with these ports and endpoints, as it is written.
    fn content(
        &self,
        cluster: &ClusterId,
        address_type: model::IpFamily,
        ports: Vec<EndpointPort>,
        mut endpoints: Vec<SliceEndpoint>,
    ) -> SliceContent {
        let distribution = self.standing.policies.traffic_distribution.as_deref();
        let by_zone = self.standing.service_type == ServiceType::ClusterSetIp
            && distribution.is_some_and(|value| ZONE_DISTRIBUTIONS.contains(&value));
        // kube-proxy ignores all hints when one endpoint has none: all of them, or nothing
        if by_zone && endpoints.iter().all(|one| one.endpoint.zone.is_some()) {
            for one in &mut endpoints {
                one.for_zones = one.endpoint.zone.iter().cloned().collect();
            }
        }
        SliceContent {
            service: Some(self.service.name.clone()),
            source_cluster: Some(cluster.clone()),
            derived: self.standing.wants_derived().then(|| self.derived_name.into()),
            address_type: Some(address_type),
            ports: self.ports(ports),
            endpoints: endpoints.into(),
            labels: self.object_labels.clone(),
        }
    }

    fn ports(&self, ports: Vec<EndpointPort>) -> Vec<EndpointPort> {
        let mut ports = ports.into_iter().map(|port| self.port(port)).collect();
        self.names.adjust(&mut ports);
        ports
    }

    /// Behind a derived Service the port bears the name it has there.
    fn port(&self, mut port: EndpointPort) -> EndpointPort {
        let ports = &self.standing.ports;
        let same = |merged: &&ServicePort| merged.name == port.name && merged.protocol == port.protocol;
        if self.standing.wants_derived()
            && let Some(merged) = ports.iter().find(same)
        {
            port.name = derived_port_name(ports, merged);
        }
        port
    }
}

/// Slice writes and deletions of one plan.
#[derive(Default)]
pub(super) struct SliceSteps {
    pub(super) writes: Vec<Action>,
    pub(super) deletes: Vec<Action>,
}

impl SliceSteps {
    pub(super) fn append_to(self, plan: &mut Plan) {
        plan.actions.extend(self.writes);
        plan.actions.extend(self.deletes);
    }

    /// Something is to be done to this slice.
    fn has(&self, slice: &str) -> bool {
        let mut actions = self.writes.iter().chain(&self.deletes);
        actions.any(|action| match action {
            Action::ApplySlice { name, .. } | Action::Delete { name, .. } => **name == *slice,
            _ => false,
        })
    }

    pub(super) fn delete(&mut self, name: &str, uid: &str) {
        self.deletes.push(Action::Delete {
            kind: Kind::Slice,
            name: name.into(),
            uid: uid.into(),
        });
    }
}

/// Ports that a cluster exports and that others' ports win over, as the hub sees it while a source is not listed: the
/// winner may be another one, so nothing is taken away for its sake. Objects that the cluster itself withdrew go.
struct Overruled<'a>(Option<&'a ServiceImport>);

impl<'a> Overruled<'a> {
    fn of(desired: &'a Desired, view: &ServiceView, service: &ServiceKey) -> Self {
        let import = desired.import(service).map(|import| import.value.as_ref());
        Self(import.filter(|_| !may_narrow(desired, view, service)))
    }

    fn has(&self, cluster: &ClusterId, port: &EndpointPort) -> bool {
        let Some(import) = self.0.filter(|import| import.clusters.contains_key(cluster)) else {
            return false;
        };
        let same = |eligible: &ServicePort| {
            let named = eligible.name == port.name || derived_port_name(&import.ports, eligible) == port.name;
            named && eligible.protocol == port.protocol
        };
        !import.eligible_ports(cluster).any(same)
    }

    /// Keeps these ports of an existing slice in the one to write.
    fn keep(&self, cluster: &ClusterId, found: Option<&Found<SliceContent>>, content: &mut SliceContent) {
        let found = found.and_then(Found::ours).into_iter();
        let stated = |port: &EndpointPort| {
            let mut ports = content.ports.iter();
            ports.any(|stated| stated.name == port.name && stated.protocol == port.protocol)
        };
        let kept = found.flat_map(|ours| ours.content.ports.iter());
        let kept = kept.filter(|port| self.has(cluster, port) && !stated(port));
        let kept: Vec<EndpointPort> = kept.cloned().collect();
        content.ports.extend(kept);
    }
}

/// The slices of other clusters.
pub(super) fn plan_foreign(
    desired: &Desired,
    view: &ServiceView,
    own: &ClusterId,
    front: Option<&Front<'_>>,
    service: &ServiceKey,
    plan: &mut Plan,
    steps: &mut SliceSteps,
) {
    let overruled = Overruled::of(desired, view, service);
    let mut wanted = BTreeSet::new();
    for slice in desired.slices(service) {
        let key = &slice.value.key;
        if key.source_cluster == *own {
            continue;
        }
        let name = foreign_name(slice.value.as_ref());
        if desired.expired().contains_key(&key.source_cluster) {
            wanted.insert(name); // as its Lease left it, until that moves again
            continue;
        }
        if let Some(front) =
            front.filter(|front| front.standing.revision >= Some(slice.value.import_revision))
        {
            let mut content = foreign_content(front, &slice.value);
            overruled.keep(&key.source_cluster, view.slices.get(&name), &mut content);
            front.names.adjust(&mut content.ports);
            let may_update = desired.sources().is_settled(&key.source_cluster);
            let revision = Some(slice.revision);
            write(
                view,
                &name,
                content,
                revision,
                front.may_create,
                may_update,
                plan,
                steps,
            );
        }
        wanted.insert(name);
    }
    let removed: BTreeSet<Box<str>> = desired
        .removed_slices(service)
        .map(|key| slice_name(service, &key.source_cluster, &key.source_slice))
        .collect();
    let complete = desired.is_complete(&service.namespace);
    for (name, slice) in view.our_slices() {
        let source = slice.content.source_cluster.as_ref();
        if wanted.contains(name) || slice.deleting || source == Some(own) {
            continue;
        }
        let has = |cluster| {
            slice
                .content
                .ports
                .iter()
                .any(|port| overruled.has(cluster, port))
        };
        if source.is_some_and(has) {
            continue;
        }
        let absent = complete && source.is_some_and(|cluster| desired.sources().is_settled(cluster));
        if absent || removed.contains(name) {
            steps.delete(name, &slice.uid);
        }
    }
}

/// This cluster as an exporter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'a> {
    cluster: &'a ClusterId,
    /// The hub does not take its export.
    denied: bool,
}

impl<'a> Own<'a> {
    pub(super) fn of(
        desired: &Desired,
        view: &ServiceView,
        config: &'a LocalConfig,
        service: &ServiceKey,
    ) -> Self {
        Self {
            cluster: &config.cluster,
            denied: is_denied(desired, view, service),
        }
    }
}

/// The cluster's own slices.
pub(super) fn plan_own(
    view: &ServiceView,
    own: Own<'_>,
    front: Option<&Front<'_>>,
    revision: Option<model::Revision>,
    service: &ServiceKey,
    plan: &mut Plan,
    steps: &mut SliceSteps,
) {
    if !view.known.exports {
        return;
    }
    let Own { cluster: own, denied } = own;
    // One that waits for a finalizer is gone: the hub was told so, and nobody follows what it exported.
    let export = view.export.as_ref().filter(|export| !export.deleting);
    let validity = export.map(|export| &export.validity);
    // An object that cannot be decoded now may be a slice of this Service: its copy stays.
    let unread = view.unread_slices.iter();
    let mut wanted: BTreeSet<_> = unread.map(|name| slice_name(service, own, name)).collect();
    match validity {
        None | Some(Validity::Invalid { .. }) => {}
        Some(Validity::Unknown) => return,
        Some(Validity::Valid) if denied => {}
        Some(Validity::Valid) => {
            let filtered = front.and_then(|front| {
                Some((
                    front,
                    front.standing.own_ports.as_ref()?,
                    view.service_ports.as_ref()?,
                ))
            });
            let Some((front, eligible, exported)) = filtered else {
                return;
            };
            for slice in &view.own_slices {
                let Some(content) = own_content(front, own, slice, exported, eligible) else {
                    continue;
                };
                let name = slice_name(service, own, &slice.name);
                write(
                    view,
                    &name,
                    content,
                    revision,
                    front.may_create,
                    true,
                    plan,
                    steps,
                );
                wanted.insert(name);
            }
        }
    }
    for (name, slice) in view.our_slices() {
        let is_own = slice.content.source_cluster.as_ref() == Some(own);
        if is_own && !slice.deleting && !wanted.contains(name) {
            steps.delete(name, &slice.uid);
        }
    }
}

/// Everything of ours goes: the import is not there any more.
pub(super) fn remove_all(view: &ServiceView, steps: &mut SliceSteps) {
    for (name, slice) in view.our_slices() {
        if !slice.deleting {
            steps.delete(name, &slice.uid);
        }
    }
}

/// Takes the slices away from kube-proxy, before the Service they stand behind goes.
pub(super) fn detach_all(view: &ServiceView, steps: &mut SliceSteps) {
    for (name, slice) in view.our_slices() {
        if slice.deleting || slice.content.derived.is_none() {
            continue;
        }
        steps.writes.push(Action::ApplySlice {
            name: name.into(),
            uid: Some(slice.uid.clone()),
            content: SliceContent {
                derived: None,
                ..slice.content.clone()
            },
            revision: None,
        });
    }
}

/// Slices that otherwise stay as they are (their source is not listed, nobody has judged their export) follow the
/// derived Service when it gives a name to a port: it is Tributary's own way of writing them that changes.
pub(super) fn rename_ports(view: &ServiceView, front: &Front<'_>, steps: &mut SliceSteps) {
    for (name, slice) in view.our_slices() {
        let behind = slice.content.derived.as_deref() == Some(front.derived_name);
        if slice.deleting || !behind || steps.has(name) {
            continue;
        }
        let mut content = slice.content.clone();
        front.names.adjust(&mut content.ports);
        if content != slice.content {
            steps.writes.push(Action::ApplySlice {
                name: name.into(),
                uid: Some(slice.uid.clone()),
                content,
                revision: None,
            });
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one decision with all it depends on")]
fn write(
    view: &ServiceView,
    name: &str,
    content: SliceContent,
    revision: Option<model::Revision>,
    may_create: bool,
    may_update: bool,
    plan: &mut Plan,
    steps: &mut SliceSteps,
) {
    let uid = match view.slices.get(name) {
        Some(Found::Stranger) => {
            plan.reports.push(Report::Stranger {
                kind: Kind::Slice,
                name: name.into(),
            });
            return;
        }
        Some(Found::Ours(ours)) => {
            let same = ours.intact && ours.content == content;
            let too_early = !may_create && content.derived != ours.content.derived;
            if same || ours.deleting || too_early || !may_update {
                return;
            }
            if is_of_another_family(&ours.content, &content) {
                // The API server lets nobody change it: the next plan creates it again.
                steps.delete(name, &ours.uid);
                return;
            }
            Some(ours.uid.clone())
        }
        None | Some(Found::Absent) if !may_create => return,
        None | Some(Found::Absent) => None,
    };
    steps.writes.push(Action::ApplySlice {
        name: name.into(),
        uid,
        content,
        revision,
    });
}

fn is_of_another_family(found: &SliceContent, wanted: &SliceContent) -> bool {
    found.address_type.is_some() && found.address_type != wanted.address_type
}

fn foreign_content(front: &Front<'_>, slice: &ImportedSlice) -> SliceContent {
    let bare = |endpoint: Endpoint| SliceEndpoint {
        endpoint,
        node_name: None,
        target_ref: None,
        for_zones: Vec::new(),
    };
    let endpoints = slice.endpoints.values().filter(may_stand);
    let endpoints = endpoints.map(bare).collect();
    let cluster = &slice.key.source_cluster;
    front.content(cluster, slice.address_type, slice.ports.clone(), endpoints)
}

/// The slice through the filter; absent when none of its ports passes.
fn own_content(
    front: &Front<'_>,
    own: &ClusterId,
    slice: &OwnSlice,
    exported: &[ServicePort],
    eligible: &[ServicePort],
) -> Option<SliceContent> {
    let ports = own_ports(&slice.ports, exported, eligible);
    if ports.is_empty() && !slice.ports.is_empty() {
        return None;
    }
    Some(front.content(own, slice.address_type, ports, slice.endpoints.clone()))
}

/// The ports of an own slice under the names of the import, by the numbers that the local Service gives them. One whose
/// number changed since the hub judged it is served as before, by its name: a hub that is away must not cost a cluster
/// its own endpoints. A port that the Service does not have is nobody's.
fn own_ports(
    ports: &[EndpointPort],
    exported: &[ServicePort],
    eligible: &[ServicePort],
) -> Vec<EndpointPort> {
    let by_number = |port: &EndpointPort| served_as(port, exported, eligible);
    let taken: Vec<&ServicePort> = ports.iter().filter_map(by_number).collect();
    let by_name = |port: &EndpointPort| {
        let same = |other: &&ServicePort| other.name == port.name && other.protocol == port.protocol;
        exported.iter().find(same)?;
        let merged = eligible.iter().find(same)?;
        (!taken.contains(&merged)).then_some(merged)
    };
    let as_imported = |port: &EndpointPort| {
        let merged = by_number(port).or_else(|| by_name(port))?;
        Some(EndpointPort {
            name: merged.name.clone(),
            ..port.clone()
        })
    };
    ports.iter().filter_map(as_imported).collect()
}

fn foreign_name(slice: &ImportedSlice) -> Box<str> {
    let key = &slice.key;
    slice_name(&key.service, &key.source_cluster, &key.source_slice)
}

fn slice_name(service: &ServiceKey, cluster: &ClusterId, source_slice: &str) -> Box<str> {
    imported_slice_name(&service.namespace, &service.name, cluster.as_str(), source_slice).into()
}

/// The names under which a plan may write slices of `service`: a view has to show the objects of these names, whatever
/// their labels are.
pub fn slice_names<'a>(
    desired: &Desired,
    own: &ClusterId,
    own_slices: impl Iterator<Item = &'a str>,
    service: &ServiceKey,
) -> BTreeSet<Box<str>> {
    let foreign = desired
        .slices(service)
        .filter(|slice| slice.value.key.source_cluster != *own)
        .map(|slice| foreign_name(&slice.value));
    let removed = desired
        .removed_slices(service)
        .map(|key| slice_name(service, &key.source_cluster, &key.source_slice));
    let own_names = own_slices.map(|name| slice_name(service, own, name));
    foreign.chain(removed).chain(own_names).collect()
}
