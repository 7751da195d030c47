//! Owns: the law of deletion for imports: the intended state of a service here, given what may be removed. An object's
//! sources are its exporting clusters and those of its slices. While one of them is not listed (nor gone), or the hub's
//! telling is incomplete, an import may gain ports and clusters and nothing else.

use std::collections::BTreeSet;

use model::{ClusterId, IpFamily, Metadata, Revision, ServiceImport, ServiceKey, ServicePort, ServiceType};

use super::{
    content::{ImportContent, Policies},
    desired::{Desired, Revised},
    port_names::imported_port,
    rules::ImportRules,
    view::{FoundDerived, FoundImport, ServiceView},
};

/// The intended end state of a service's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing is known that permits anything: all stays.
    Leave,
    /// It is not imported (any more), and that is certain.
    Remove,
    /// The import here is of another type: it goes, and comes again.
    Flip,
    /// It should look like this.
    Stand(Box<Standing>),
}

/// An import as it should stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) service_type: ServiceType,
    pub(super) ports: Vec<ServicePort>,
    pub(super) policies: Policies,
    pub(super) families: Families,
    pub(super) labels: Metadata,
    pub(super) annotations: Metadata,
    pub(super) clusters: BTreeSet<ClusterId>,
    /// The ports that this cluster's own slices may serve; absent while nobody has said.
    pub(super) own_ports: Option<Vec<ServicePort>>,
    /// The decision behind it; absent when it is read off the object itself.
    pub(super) revision: Option<Revision>,
    /// Something may be taken away.
    pub(super) may_narrow: bool,
}

/// The IP families of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Families {
    /// The hub wants these.
    Wanted(Vec<IpFamily>),
    /// Existing ones stay; a derived Service that has to be created again requests these.
    Kept(Vec<IpFamily>),
}

impl Families {
    pub(super) fn list(&self) -> &[IpFamily] {
        match self {
            Self::Wanted(families) | Self::Kept(families) => families,
        }
    }
}

impl Standing {
    /// A derived Service belongs to it.
    pub(super) fn wants_derived(&self) -> bool {
        self.service_type == ServiceType::ClusterSetIp && !self.ports.is_empty()
    }
}

/// Returns true if what the hub does not name of this service may be taken away. The sources of what is here count, and
/// those of what the hub wants: an old copy of its data may let a cluster win that exports nothing any more.
pub(super) fn may_narrow(desired: &Desired, view: &ServiceView, service: &ServiceKey) -> bool {
    let mut sources = view.sources();
    let wanted = desired.import(service);
    sources.extend(
        wanted
            .into_iter()
            .flat_map(|wanted| wanted.value.clusters.keys().cloned()),
    );
    if !desired.is_complete(&service.namespace) {
        return false;
    }
    let told = desired.sources();
    if sources.is_empty() {
        told.all_settled()
    } else {
        sources.iter().all(|cluster| told.is_settled(cluster))
    }
}

/// Returns the intended end state of the objects of `service`.
pub(super) fn target(desired: &Desired, view: &ServiceView, own: &ClusterId, service: &ServiceKey) -> Target {
    let may_narrow = may_narrow(desired, view, service);
    let rules = desired.rules();
    let found = view.import.ours().map(|ours| &ours.content);
    match (desired.import(service), found) {
        (Some(wanted), None) => match view.derived.ours().filter(|_| !may_narrow) {
            Some(derived) => beside(wanted, &derived.content, view, own, rules).map_or(Target::Leave, stand),
            None => stand(from_hub(wanted, None, view, own, (rules, may_narrow))),
        },
        (Some(wanted), Some(found)) => {
            let flips = found
                .content
                .service_type
                .is_some_and(|service_type| service_type != wanted.value.service_type);
            match (may_narrow, flips) {
                (true, true) => Target::Flip,
                (true, false) => stand(from_hub(wanted, Some(found), view, own, (rules, true))),
                (false, true) => from_found(found, view, own).map_or(Target::Leave, |standing| {
                    stand(gaining(standing, wanted, view, own))
                }),
                (false, false) => stand(widened(wanted, found, view, own)),
            }
        }
        (None, _) if may_narrow => Target::Remove,
        (None, Some(found)) => from_found(found, view, own).map_or(Target::Leave, stand),
        (None, None) => Target::Leave,
    }
}

fn stand(standing: Standing) -> Target {
    Target::Stand(Box::new(standing))
}

/// As the hub says.
fn from_hub(
    wanted: &Revised<std::sync::Arc<ServiceImport>>,
    found: Option<&FoundImport>,
    view: &ServiceView,
    own: &ClusterId,
    (rules, may_narrow): (&ImportRules, bool),
) -> Standing {
    let import = &*wanted.value;
    let (labels, annotations) = rules.carried(import);
    Standing {
        service_type: import.service_type,
        ports: import.ports.clone(),
        policies: Policies::from(&import.policies),
        families: Families::Wanted(import.ip_families.clone()),
        labels,
        annotations,
        clusters: import.clusters.keys().cloned().collect(),
        own_ports: own_ports(import, found, view, own),
        revision: Some(wanted.revision),
        may_narrow,
    }
}

/// As it is found, with what the hub's import adds.
fn widened(
    wanted: &Revised<std::sync::Arc<ServiceImport>>,
    found: &FoundImport,
    view: &ServiceView,
    own: &ClusterId,
) -> Standing {
    let import = &*wanted.value;
    let content = &found.content;
    let ports = union(&content.ports, &import.ports);
    let mut clusters = clusters_of(found);
    clusters.extend(import.clusters.keys().cloned());
    Standing {
        service_type: import.service_type,
        policies: standing_policies(content, view),
        families: kept_families(content, import),
        labels: content.labels.clone(),
        annotations: content.annotations.clone(),
        // The hub's word is about its own ports: while a source is missing, another cluster's may have won there.
        own_ports: clusters
            .contains(own)
            .then(|| common_ports(&ports, view))
            .flatten(),
        clusters,
        revision: Some(wanted.revision),
        may_narrow: false,
        ports,
    }
}

/// The import is gone and its derived Service exists: the Service remembers the import's content, and the sources that
/// must list first. Absent when the hub wants another type.
fn beside(
    wanted: &Revised<std::sync::Arc<ServiceImport>>,
    derived: &FoundDerived,
    view: &ServiceView,
    own: &ClusterId,
    rules: &ImportRules,
) -> Option<Standing> {
    let import = &*wanted.value;
    if import.service_type != ServiceType::ClusterSetIp {
        return None;
    }
    let found = &derived.content;
    let before: Vec<ServicePort> = found.ports.iter().map(imported_port).collect();
    let ports = union(&before, &import.ports);
    let mut clusters = found.sources.clone();
    clusters.extend(import.clusters.keys().cloned());
    let (labels, annotations) = rules.carried(import);
    Some(Standing {
        service_type: import.service_type,
        policies: found.policies.clone().or(Policies::from(&import.policies)),
        families: Families::Kept(found.ip_families.clone()),
        labels,
        annotations,
        own_ports: clusters
            .contains(own)
            .then(|| common_ports(&ports, view))
            .flatten(),
        clusters,
        revision: Some(wanted.revision),
        may_narrow: false,
        ports,
    })
}

/// As it is found; absent when somebody took its type away.
fn from_found(found: &FoundImport, view: &ServiceView, own: &ClusterId) -> Option<Standing> {
    let content = &found.content;
    Some(Standing {
        service_type: content.service_type?,
        ports: content.ports.clone(),
        policies: standing_policies(content, view),
        families: Families::Kept(content.ip_families.clone()),
        labels: content.labels.clone(),
        annotations: content.annotations.clone(),
        clusters: clusters_of(found),
        own_ports: clusters_of(found)
            .contains(own)
            .then(|| common_ports(&content.ports, view))
            .flatten(),
        revision: None,
        may_narrow: false,
    })
}

/// Returns the content of an import that waits to change its type. It gains ports and clusters meanwhile, and slices
/// follow their clusters. Otherwise a member that never lists could block everybody's exports and endpoints by stating
/// an older export of another type.
fn gaining(
    mut standing: Standing,
    wanted: &Revised<std::sync::Arc<ServiceImport>>,
    view: &ServiceView,
    own: &ClusterId,
) -> Standing {
    standing.ports = union(&standing.ports, &wanted.value.ports);
    standing.clusters.extend(wanted.value.clusters.keys().cloned());
    // Slices that were decided with it need not wait for it.
    standing.revision = Some(wanted.revision);
    standing.own_ports = standing
        .clusters
        .contains(own)
        .then(|| common_ports(&standing.ports, view))
        .flatten();
    standing
}

/// Policies of the existing import, or of the derived Service where the import's schema cannot hold them.
fn standing_policies(content: &ImportContent, view: &ServiceView) -> Policies {
    let derived = view.derived.ours().map(|ours| &ours.content.content.policies);
    let policies = content.policies.clone();
    match derived {
        Some(derived) => policies.or(derived.clone()),
        None => policies,
    }
}

/// An import that has no families yet takes the hub's.
fn kept_families(content: &ImportContent, import: &ServiceImport) -> Families {
    if content.ip_families.is_empty() {
        Families::Wanted(import.ip_families.clone())
    } else {
        Families::Kept(content.ip_families.clone())
    }
}

fn clusters_of(found: &FoundImport) -> BTreeSet<ClusterId> {
    let status = found.status.clusters.iter();
    status.chain(&found.content.sources).cloned().collect()
}

/// The filter for this cluster's own slices: the hub's last word, else what the import found here and the local
/// Service have in common.
fn own_ports(
    import: &ServiceImport,
    found: Option<&FoundImport>,
    view: &ServiceView,
    own: &ClusterId,
) -> Option<Vec<ServicePort>> {
    if import.clusters.contains_key(own) {
        return Some(import.eligible_ports(own).cloned().collect());
    }
    let exported_before = found.is_some_and(|found| clusters_of(found).contains(own));
    exported_before
        .then(|| common_ports(&import.ports, view))
        .flatten()
}

/// The ones of `ports` that the local Service has, by protocol and number; absent while the Service is unknown.
fn common_ports(ports: &[ServicePort], view: &ServiceView) -> Option<Vec<ServicePort>> {
    let service_ports = view.service_ports.as_ref()?;
    let same =
        |one: &ServicePort, other: &ServicePort| one.protocol == other.protocol && one.port == other.port;
    let eligible = ports
        .iter()
        .filter(|port| service_ports.iter().any(|service_port| same(port, service_port)));
    Some(eligible.cloned().collect())
}

/// `first`, and of `second` what collides with none of them by name or by protocol and port.
pub(super) fn union(first: &[ServicePort], second: &[ServicePort]) -> Vec<ServicePort> {
    let collides = |one: &ServicePort, other: &ServicePort| {
        one.name == other.name || (one.protocol == other.protocol && one.port == other.port)
    };
    let mut all = first.to_vec();
    let more = second
        .iter()
        .filter(|port| !first.iter().any(|one| collides(one, port)));
    all.extend(more.cloned());
    all
}
