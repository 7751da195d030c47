//! The state of one service in this cluster: the plain values that a plan is made from. Unknown is never empty: a kind
//! that has not been listed is marked, and its absence leads to no plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use model::{ClusterId, EndpointPort, IpFamily, ServicePort};

use super::{
    action::Kind,
    content::{Condition, DerivedContent, ImportContent, ImportStatus, SliceContent, SliceEndpoint},
};

/// The object found under a name that the agent writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Found<T> {
    /// Nothing.
    #[default]
    Absent,
    /// An object that is not the agent's: it is reported and never touched.
    Stranger,
    /// The agent's own.
    Ours(Ours<T>),
}

impl<T> Found<T> {
    /// The object, if it is the agent's.
    pub fn ours(&self) -> Option<&Ours<T>> {
        match self {
            Self::Ours(ours) => Some(ours),
            Self::Absent | Self::Stranger => None,
        }
    }
}

/// An object of the agent's. `content` holds only fields that the agent still owns: what somebody else took
/// over or removed is missing in it, so that it differs from what is wanted and is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours<T> {
    /// Its uid.
    pub uid: Box<str>,
    /// It is being deleted.
    pub deleting: bool,
    /// The constant labels and annotations are as they were written, and nothing outdated is left.
    pub intact: bool,
    /// The compared content.
    pub content: T,
}

/// A namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NamespaceState {
    /// Namespaces have not been listed.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// There is one.
    Active,
    /// It is going away: nothing can be created in it, and the API server empties it.
    Terminating,
}

/// The kinds that have been listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// ServiceImports.
    pub imports: bool,
    /// Services.
    pub services: bool,
    /// EndpointSlices.
    pub slices: bool,
    /// ServiceExports.
    pub exports: bool,
}

/// A ServiceImport as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundImport {
    /// All but its status.
    pub content: ImportContent,
    /// Its status.
    pub status: ImportStatus,
}

/// A derived Service as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDerived {
    /// The compared content, with the families that the Service got.
    pub content: DerivedContent,
    /// The IPs it got.
    pub cluster_ips: Vec<IpAddr>,
}

/// Why an export is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InvalidReason {
    /// There is no Service of that name.
    NoService,
    /// An ExternalName Service, or one that Tributary made.
    InvalidServiceType,
    /// Labels, annotations or the Service break a rule.
    InvalidExport,
    /// Nothing is exported from that namespace.
    NamespaceDenied,
}

impl InvalidReason {
    /// The reason, as in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoService => "NoService",
            Self::InvalidServiceType => "InvalidServiceType",
            Self::InvalidExport => "InvalidExport",
            Self::NamespaceDenied => "NamespaceDenied",
        }
    }
}

/// Validity of an export: the agent's own verdict, or the hub's refusal of the fact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Validity {
    /// Not judged yet: its conditions stay as they are.
    #[default]
    Unknown,
    /// It can.
    Valid,
    /// It cannot.
    Invalid {
        /// Why, in one word.
        reason: InvalidReason,
        /// Problem and next step, as a message.
        message: Box<str>,
    },
}

/// A ServiceExport as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundExport {
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation.
    pub generation: i64,
    /// It is being deleted.
    pub deleting: bool,
    /// The verdict on this generation.
    pub validity: Validity,
    /// Names exported labels and annotations that do not reach imports, though the export is valid.
    pub metadata_left_out: Box<str>,
    /// Its conditions of the types that the agent writes.
    pub conditions: Vec<Condition>,
}

/// An EndpointSlice of the local Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSlice {
    /// Its name.
    pub name: Box<str>,
    /// The family of its addresses.
    pub address_type: IpFamily,
    /// Its ports, named as in the Service.
    pub ports: Vec<EndpointPort>,
    /// Its endpoints, with node names and target references; no hints.
    pub endpoints: Vec<SliceEndpoint>,
}

/// Fields of the derived Service that the local API server refused, so that the agent does not ask for them again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusals {
    /// Lists of families that it does not offer.
    pub families: BTreeSet<Vec<IpFamily>>,
    /// The former IPs: somebody else has them.
    pub cluster_ips: bool,
    /// This value of trafficDistribution.
    pub traffic_distribution: Option<Box<str>>,
    /// This value of internalTrafficPolicy.
    pub internal_traffic_policy: Option<Box<str>>,
    /// This value of the affinity's timeout.
    pub session_affinity_timeout_seconds: Option<i32>,
    /// The derived Service altogether, with the API server's words.
    pub derived: Option<Box<str>>,
}

/// A write of one of a service's objects that has failed for so long that people are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten {
    /// The kind of the object; absent for the ServiceExport.
    pub kind: Option<Kind>,
    /// Its name.
    pub name: Box<str>,
    /// It is to be deleted.
    pub deletes: bool,
    /// Why it fails, in the API server's words.
    pub words: Box<str>,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            deletes,
            words,
        } = self;
        let verb = if *deletes { "delete" } else { "write" };
        let kind = kind.map_or("ServiceExport", Kind::as_str);
        write!(formatter, "cannot {verb} the {kind} {name}: {words}")
    }
}

impl Refusals {
    /// Returns true if values of policies are left out because of it.
    pub fn leave_out_values(&self) -> bool {
        self.traffic_distribution.is_some()
            || self.internal_traffic_policy.is_some()
            || self.session_affinity_timeout_seconds.is_some()
    }

    /// Values of policies are no longer left out. A later write shows whether the rest still holds.
    pub fn forget_values(&mut self) {
        self.traffic_distribution = None;
        self.internal_traffic_policy = None;
        self.session_affinity_timeout_seconds = None;
    }
}

/// One service in this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceView {
    /// Its namespace.
    pub namespace: NamespaceState,
    /// The kinds that are known at all.
    pub known: Known,
    /// Its ServiceImport.
    pub import: Found<FoundImport>,
    /// Its derived Service.
    pub derived: Found<FoundDerived>,
    /// Its imported slices by name, and any object under a name that a wanted slice would have (see
    /// [`super::slice_names`]).
    pub slices: BTreeMap<Box<str>, Found<SliceContent>>,
    /// This cluster's own export of it.
    pub export: Option<FoundExport>,
    /// The hub may answer about that export any moment: what its answer will replace is not written.
    pub hub_may_answer: bool,
    /// The ports of the local Service, if there is one.
    pub service_ports: Option<Vec<ServicePort>>,
    /// The slices of the local Service.
    pub own_slices: Vec<OwnSlice>,
    /// Slices of the namespace that cannot be decoded, and were never known before.
    pub unread_slices: Vec<Box<str>>,
    /// Slices of the local Service that cannot be exported, and why.
    pub unexported_slices: BTreeMap<Box<str>, Box<str>>,
    /// Why the hub does not record the export for now.
    pub held_back: Option<Box<str>>,
    /// Refusals by the API server.
    pub refusals: Refusals,
    /// The write that fails.
    pub unwritten: Option<Unwritten>,
    /// The hub takes the import away with too many others at once: it stays for now.
    pub withdrawal_held: bool,
}

impl ServiceView {
    /// Our imported slices by name.
    pub fn our_slices(&self) -> impl Iterator<Item = (&str, &Ours<SliceContent>)> {
        self.slices
            .iter()
            .filter_map(|(name, found)| Some((&**name, found.ours()?)))
    }

    /// Every cluster that something found here comes from: the import's, the derived Service's and the slices'.
    pub fn sources(&self) -> BTreeSet<ClusterId> {
        let mut sources = BTreeSet::new();
        if let Some(import) = self.import.ours() {
            sources.extend(import.content.status.clusters.iter().cloned());
            sources.extend(import.content.content.sources.iter().cloned());
        } else if let Some(derived) = self.derived.ours() {
            sources.extend(derived.content.content.sources.iter().cloned());
        }
        sources.extend(
            self.our_slices()
                .filter_map(|(_, slice)| slice.content.source_cluster.clone()),
        );
        sources
    }
}

/// Fields that the served schemas of ServiceImport and ServiceExport may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedFields {
    /// spec.ipFamilies.
    pub ip_families: bool,
    /// spec.internalTrafficPolicy.
    pub internal_traffic_policy: bool,
    /// spec.trafficDistribution.
    pub traffic_distribution: bool,
    /// status.conditions.
    pub conditions: bool,
    /// status.endpointSliceObjects.
    pub endpoint_slice_objects: bool,
    /// A second one of spec.ips.
    pub second_ip: bool,
    /// observedGeneration of a ServiceExport's conditions.
    pub export_generation: bool,
}

impl ServedFields {
    /// Everything that Tributary's own CRD declares.
    pub const ALL: Self = Self {
        ip_families: true,
        internal_traffic_policy: true,
        traffic_distribution: true,
        conditions: true,
        endpoint_slice_objects: true,
        second_ip: true,
        export_generation: true,
    };
}

/// Further input to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalConfig {
    /// This cluster.
    pub cluster: ClusterId,
    /// Fields that the cluster's ServiceImports can hold.
    pub served: ServedFields,
}
