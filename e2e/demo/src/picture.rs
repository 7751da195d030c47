//! Joins the clusters' APIs into a picture: exporters, winners, arrivals and their delays.
//! Pure: it is told observations and answers questions; it watches nothing and prints nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use shared::api::{Condition, ServiceExport, ServiceImport, conditions, names};

use super::{
    kept::{Kept, Name},
    observe::{Change, Observation},
};

/// The words before the winner's name in the message of a Conflict condition: KEP-1645's own.
const BEFORE_WINNER: &str = "oldest service export in \"";

/// The state of one cluster's API.
#[derive(Debug, Default)]
pub(super) struct ClusterPicture {
    pub(super) namespaces: Kept<Namespace>,
    pub(super) services: Kept<Service>,
    pub(super) exports: Kept<ServiceExport>,
    pub(super) imports: Kept<ServiceImport>,
    pub(super) slices: Kept<EndpointSlice>,
}

/// The way of one export to one cluster. A new export has another uid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    service: Name,
    source: String,
    uid: String,
    destination: String,
}

/// All clusters.
#[derive(Debug)]
pub(super) struct Picture {
    views: BTreeMap<String, ClusterPicture>,
    arrivals: BTreeMap<Way, Duration>,
}

/// One export, as the table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) service: Name,
    pub(super) source: String,
    /// Why it is not exported: reason and message of a false Valid.
    pub(super) refused: Option<(String, String)>,
    /// Disagreement of the service's exports, and the winner.
    pub(super) conflict: Option<Conflict>,
    /// In each cluster.
    pub(super) cells: BTreeMap<String, Cell>,
}

/// The content of a Conflict condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) reason: String,
    pub(super) winner: String,
}

/// One export in one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// The cluster lacks the namespace: nothing is imported there.
    NoNamespace,
    /// Not there yet.
    Waiting,
    /// There.
    Arrived {
        /// From the moment everything it needs was seen to the moment the import was.
        after: Duration,
        /// Number of its endpoints that exist.
        endpoints: usize,
    },
}

impl Picture {
    /// A picture of clusters of which nothing is known.
    pub(super) fn new<'a>(clusters: impl IntoIterator<Item = &'a String>) -> Self {
        let views = clusters
            .into_iter()
            .map(|name| (name.clone(), ClusterPicture::default()));
        Self {
            views: views.collect(),
            arrivals: BTreeMap::new(),
        }
    }

    /// Takes in what a cluster said.
    pub(super) fn observe(&mut self, observation: Observation) {
        let Observation { cluster, at, change } = observation;
        let Some(view) = self.views.get_mut(&*cluster) else {
            return;
        };
        match change {
            Change::Namespace(delta) => view.namespaces.take(delta, at),
            Change::Service(delta) => view.services.take(delta, at),
            Change::Export(delta) => view.exports.take(delta, at),
            Change::Import(delta) => view.imports.take(delta, at),
            Change::Slice(delta) => view.slices.take(delta, at),
        }
        self.note_arrivals(at);
    }

    /// Returns true if every watch has finished its first list.
    pub(super) fn is_complete(&self) -> bool {
        self.views.values().all(|view| {
            let ClusterPicture {
                namespaces,
                services,
                exports,
                imports,
                slices,
            } = view;
            namespaces.is_listed()
                && services.is_listed()
                && exports.is_listed()
                && imports.is_listed()
                && slices.is_listed()
        })
    }

    /// The clusters' names.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &String> {
        self.views.keys()
    }

    /// One cluster.
    pub(super) fn view(&self, cluster: &str) -> Option<&ClusterPicture> {
        self.views.get(cluster)
    }

    /// The import of a service in a cluster.
    pub(super) fn import(&self, cluster: &str, service: &Name) -> Option<&ServiceImport> {
        let seen = self.views.get(cluster)?.imports.get(service);
        seen.map(|seen| &seen.object)
    }

    /// The export of a service by a cluster.
    pub(super) fn export(&self, cluster: &str, service: &Name) -> Option<&ServiceExport> {
        let seen = self.views.get(cluster)?.exports.get(service);
        seen.map(|seen| &seen.object)
    }

    /// The imported slices of a service in a cluster, those of one source if one is named.
    pub(super) fn imported<'a>(
        &'a self,
        cluster: &str,
        service: &'a Name,
        source: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Name, &'a EndpointSlice)> {
        let slices = self
            .views
            .get(cluster)
            .into_iter()
            .flat_map(|view| view.slices.iter());
        slices.filter(move |(name, slice)| {
            let label = |key: &str| slice.labels().get(key).map(String::as_str);
            name.namespace == service.namespace
                && label(names::LABEL_SERVICE_NAME) == Some(&service.name)
                && source.is_none_or(|source| label(names::LABEL_SOURCE_CLUSTER) == Some(source))
        })
    }

    /// The clusters that an import names.
    pub(super) fn sources(&self, cluster: &str, service: &Name) -> BTreeSet<&str> {
        let status = self
            .import(cluster, service)
            .and_then(|import| import.status.as_ref());
        let clusters = status.into_iter().flat_map(|status| &status.clusters);
        clusters.map(|status| status.cluster.as_str()).collect()
    }

    /// Returns true if an export is in all the clusters that have its namespace.
    pub(super) fn is_everywhere(&self, source: &str, service: &Name) -> bool {
        self.rows().iter().any(|row| {
            row.service == *service
                && row.source == source
                && row.cells.values().all(|cell| !matches!(cell, Cell::Waiting))
        })
    }

    /// One row for each export, ordered by service and cluster.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (source, view) in &self.views {
            for (service, export) in view.exports.iter() {
                let refused = condition(export, conditions::service_export::VALID)
                    .filter(|valid| valid.status == conditions::STATUS_FALSE)
                    .map(|valid| (valid.reason.clone(), valid.message.clone()));
                let cells = self.views.keys().map(|destination| {
                    let cell = self.cell(source, service, export, destination);
                    (destination.clone(), cell)
                });
                rows.push(Row {
                    service: service.clone(),
                    source: source.clone(),
                    refused,
                    conflict: conflict(export),
                    cells: cells.collect(),
                });
            }
        }
        rows.sort_by(|a, b| (&a.service, &a.source).cmp(&(&b.service, &b.source)));
        rows
    }

    fn cell(&self, source: &str, service: &Name, export: &ServiceExport, destination: &str) -> Cell {
        if self.namespace_since(destination, &service.namespace).is_none() {
            return Cell::NoNamespace;
        }
        match self.arrivals.get(&way(source, service, export, destination)) {
            Some(after) => Cell::Arrived {
                after: *after,
                endpoints: self.endpoints(destination, service, source),
            },
            None => Cell::Waiting,
        }
    }

    /// Endpoints of a service from one source that are in a cluster.
    fn endpoints(&self, cluster: &str, service: &Name, source: &str) -> usize {
        let slices = self.imported(cluster, service, Some(source));
        slices.map(|(_, slice)| slice.endpoints.len()).sum()
    }

    /// Returns true if the service has endpoints in its own cluster.
    fn has_endpoints(&self, source: &str, service: &Name) -> bool {
        let slices = self
            .views
            .get(source)
            .into_iter()
            .flat_map(|view| view.slices.iter());
        slices
            .filter(|(name, slice)| {
                name.namespace == service.namespace
                    && slice.labels().get(names::LABEL_KUBERNETES_SERVICE_NAME) == Some(&service.name)
            })
            .any(|(_, slice)| !slice.endpoints.is_empty())
    }

    fn namespace_since(&self, cluster: &str, namespace: &str) -> Option<Instant> {
        let seen = self
            .views
            .get(cluster)?
            .namespaces
            .get(&Name::new("", namespace))?;
        Some(seen.since)
    }

    /// Time at which all that an arrival needs existed: the export, its Service, the namespace at the destination.
    fn began(&self, source: &str, service: &Name, destination: &str) -> Option<Instant> {
        let view = self.views.get(source)?;
        let export = view.exports.get(service)?.since;
        let behind = view.services.get(service)?.since;
        let namespace = self.namespace_since(destination, &service.namespace)?;
        Some(export.max(behind).max(namespace))
    }

    /// Notes what has arrived by now, and forgets what is there no more.
    fn note_arrivals(&mut self, at: Instant) {
        let mut arrivals = BTreeMap::new();
        for (source, view) in &self.views {
            for (service, export) in view.exports.iter() {
                for destination in self.views.keys() {
                    let way = way(source, service, export, destination);
                    let known = self.arrivals.get(&way);
                    let named = self.sources(destination, service).contains(source.as_str());
                    let complete = known.is_some()
                        || self.endpoints(destination, service, source) > 0
                        || !self.has_endpoints(source, service);
                    let Some(began) = self.began(source, service, destination) else {
                        continue;
                    };
                    if named && complete {
                        let after = known.copied().unwrap_or(at.saturating_duration_since(began));
                        arrivals.insert(way, after);
                    }
                }
            }
        }
        self.arrivals = arrivals;
    }
}

fn way(source: &str, service: &Name, export: &ServiceExport, destination: &str) -> Way {
    Way {
        service: service.clone(),
        source: source.to_owned(),
        uid: export.uid().unwrap_or_default(),
        destination: destination.to_owned(),
    }
}

/// A condition of an export.
pub(super) fn condition<'a>(export: &'a ServiceExport, kind: &str) -> Option<&'a Condition> {
    let status = export.status.as_ref()?;
    status.conditions.iter().find(|condition| condition.type_ == kind)
}

fn conflict(export: &ServiceExport) -> Option<Conflict> {
    let condition = condition(export, conditions::service_export::CONFLICT)?;
    if condition.status != conditions::STATUS_TRUE {
        return None;
    }
    let (_, after) = condition.message.split_once(BEFORE_WINNER)?;
    let (winner, _) = after.split_once('"')?;
    Some(Conflict {
        reason: condition.reason.clone(),
        winner: winner.to_owned(),
    })
}
