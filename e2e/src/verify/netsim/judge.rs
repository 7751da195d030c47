//! What every cluster must hold, worked out anew from what users declared in all of them: an independent reading
//! of the multi-cluster services standard for the small set of shapes that the stories draw. It reads objects of
//! the API only, and knows nothing of how hub and agents come to them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde_json::Value;
use shared::api::names::{
    ANNOTATION_DERIVED_SERVICE, ENDPOINT_SLICE_MANAGER, LABEL_ENDPOINT_SLICE_MANAGED_BY,
    LABEL_KUBERNETES_SERVICE_NAME, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER,
};

use super::user::NAMESPACE;
use crate::sim::SimCluster;

/// One cluster's objects at one moment.
pub(super) struct Picture {
    pub(super) cluster: String,
    namespace: Option<String>,
    services: BTreeMap<String, Value>,
    exports: BTreeMap<String, Value>,
    imports: BTreeMap<String, Value>,
    slices: Vec<Value>,
}

/// What is wrong, by cluster and object.
pub(super) type Verdicts = BTreeMap<(String, Object), Result<(), Wrong>>;

/// How something is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    /// All that must be there is there, and something besides.
    #[error("{0}")]
    TooMuch(String),
    /// Something that must be there is not there, or is another thing.
    #[error("{0}")]
    Lacking(String),
}

/// [`Wrong::TooMuch`] if everything wanted was found.
fn set_is<T: Ord + std::fmt::Debug>(
    what: &str,
    found: &BTreeSet<T>,
    wanted: &BTreeSet<T>,
) -> Result<(), Wrong> {
    let why = || format!("{what} {found:?}, not {wanted:?}");
    match (found == wanted, found.is_superset(wanted)) {
        (true, _) => Ok(()),
        (false, true) => Err(Wrong::TooMuch(why())),
        (false, false) => Err(Wrong::Lacking(why())),
    }
}

/// The worst of several; what is lacking is worse than what is too much.
fn worst(all: impl IntoIterator<Item = Result<(), Wrong>>) -> Result<(), Wrong> {
    let rank = |wrong: &Result<(), Wrong>| match wrong {
        Ok(()) => 0,
        Err(Wrong::TooMuch(_)) => 1,
        Err(Wrong::Lacking(_)) => 2,
    };
    all.into_iter().max_by_key(rank).unwrap_or(Ok(()))
}

fn lacking(error: anyhow::Error) -> Wrong {
    Wrong::Lacking(format!("{error:#}"))
}

/// What is judged apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// An import with everything that belongs to it.
    Import(String),
    /// The conditions of an export.
    Export(String),
}

/// The ports of a Service: name and number.
type Ports = BTreeSet<(String, u64)>;
/// What stands behind an import: source cluster, address, name of a port.
type Backends = BTreeSet<(String, String, String)>;

/// One valid export.
#[derive(Debug, Clone)]
struct Exporter {
    created: String,
    cluster: String,
    headless: bool,
    ports: Ports,
    /// Addresses and the names of their ports.
    backends: BTreeSet<(String, String)>,
}

impl Picture {
    pub(super) fn take(cluster: &SimCluster) -> Self {
        let by_name = |kind: &str| {
            let all = cluster.list(kind).into_iter();
            let ours = all.filter(|object| object["metadata"]["namespace"] == NAMESPACE);
            ours.map(|object| (text(&object["metadata"]["name"]), object))
                .collect()
        };
        let namespace = cluster.get("Namespace", "", NAMESPACE);
        let active = namespace.filter(|namespace| namespace["metadata"]["deletionTimestamp"].is_null());
        let slices: BTreeMap<String, Value> = by_name("EndpointSlice");
        Self {
            cluster: cluster.name().to_owned(),
            namespace: active.map(|namespace| text(&namespace["metadata"]["uid"])),
            services: by_name("Service"),
            exports: by_name("ServiceExport"),
            imports: by_name("ServiceImport"),
            slices: slices.into_values().collect(),
        }
    }

    fn exporter(&self, name: &str) -> Option<Exporter> {
        self.namespace.as_ref()?;
        let (service, export) = (self.services.get(name)?, self.exports.get(name)?);
        let backends = self
            .slices
            .iter()
            .filter(|slice| !is_imported(slice) && label(slice, LABEL_KUBERNETES_SERVICE_NAME) == name);
        Some(Exporter {
            created: text(&export["metadata"]["creationTimestamp"]),
            cluster: self.cluster.clone(),
            headless: service["spec"]["clusterIP"] == "None",
            ports: ports(&service["spec"]["ports"]),
            backends: backends.flat_map(addresses).collect(),
        })
    }

    fn names(&self) -> BTreeSet<String> {
        let imported = self.slices.iter().filter(|slice| is_imported(slice));
        let imported = imported.map(|slice| label(slice, LABEL_SERVICE_NAME).to_owned());
        let exports = self.exports.keys().chain(self.imports.keys()).cloned();
        exports.chain(imported).collect()
    }
}

/// Judges every service in every cluster.
pub(super) fn judge(pictures: &[Picture]) -> Verdicts {
    let names: BTreeSet<String> = pictures.iter().flat_map(Picture::names).collect();
    let mut verdicts = Verdicts::new();
    for name in names {
        let exporters = exporters(pictures, &name);
        for picture in pictures {
            let verdict = import_is_right(picture, &name, &exporters);
            verdicts.insert((picture.cluster.clone(), Object::Import(name.clone())), verdict);
            if let Some(export) = picture.exports.get(&name) {
                let verdict = export_is_right(picture, export, &exporters).map_err(lacking);
                verdicts.insert((picture.cluster.clone(), Object::Export(name.clone())), verdict);
            }
        }
    }
    verdicts
}

/// What users declared of a service, as text: while it stays the same, what has come right must stay right.
pub(super) fn declared(pictures: &[Picture], name: &str) -> String {
    let namespaces: Vec<_> = pictures.iter().map(|picture| &picture.namespace).collect();
    let exports: Vec<_> = pictures
        .iter()
        .map(|picture| picture.exports.get(name).map(|export| &export["metadata"]["uid"]))
        .collect();
    format!("{:?} {exports:?} {namespaces:?}", exporters(pictures, name))
}

/// The valid exports, the oldest first.
fn exporters(pictures: &[Picture], name: &str) -> Vec<Exporter> {
    let mut exporters: Vec<Exporter> = pictures
        .iter()
        .filter_map(|picture| picture.exporter(name))
        .collect();
    exporters.sort_by(|a, b| (&a.created, &a.cluster).cmp(&(&b.created, &b.cluster)));
    exporters
}

/// The union, by name first, then by number; the older one wins.
fn merged(exporters: &[Exporter]) -> Ports {
    let mut merged = Ports::new();
    for (name, number) in exporters.iter().flat_map(|exporter| &exporter.ports) {
        let taken = |(named, numbered): &(String, u64)| named == name || numbered == number;
        if !merged.iter().any(taken) {
            merged.insert((name.clone(), *number));
        }
    }
    merged
}

fn wanted_backends(exporters: &[Exporter], merged: &Ports) -> Backends {
    let mut wanted = Backends::new();
    for exporter in exporters {
        let eligible: BTreeSet<&String> = exporter
            .ports
            .intersection(merged)
            .map(|(name, _)| name)
            .collect();
        let served = exporter
            .backends
            .iter()
            .filter(|(_, port)| eligible.contains(port));
        wanted
            .extend(served.map(|(address, port)| (exporter.cluster.clone(), address.clone(), port.clone())));
    }
    wanted
}

fn found_backends(picture: &Picture, name: &str) -> Backends {
    let imported = picture.slices.iter().filter(|slice| is_imported(slice));
    let behind = imported.filter(|slice| label(slice, LABEL_SERVICE_NAME) == name);
    let found = behind.flat_map(|slice| {
        let source = label(slice, LABEL_SOURCE_CLUSTER);
        addresses(slice).map(move |(address, port)| (source.to_owned(), address, port))
    });
    found.collect()
}

fn import_is_right(picture: &Picture, name: &str, exporters: &[Exporter]) -> Result<(), Wrong> {
    let found = found_backends(picture, name);
    let import = picture.imports.get(name);
    let Some(oldest) = exporters.first().filter(|_| picture.namespace.is_some()) else {
        return match import {
            Some(_) => Err(Wrong::TooMuch("an import that nobody exports".into())),
            None => set_is("behind no import stand", &found, &Backends::new()),
        };
    };
    let import = import.context("the import is missing").map_err(lacking)?;
    let merged = merged(exporters);
    let from = import["status"]["clusters"].as_array().into_iter().flatten();
    let from = from.map(|one| text(&one["cluster"])).collect();
    let wanted = exporters
        .iter()
        .map(|exporter| exporter.cluster.clone())
        .collect();
    worst([
        kind_is_right(picture, import, oldest.headless).map_err(lacking),
        set_is("the ports are", &ports(&import["spec"]["ports"]), &merged),
        set_is("it comes from", &from, &wanted),
        set_is("behind it stand", &found, &wanted_backends(exporters, &merged)),
        derived_is_right(picture, import, oldest.headless, &merged),
    ])
}

fn kind_is_right(picture: &Picture, import: &Value, headless: bool) -> anyhow::Result<()> {
    let spec = &import["spec"];
    let wanted = if headless { "Headless" } else { "ClusterSetIP" };
    ensure!(spec["type"] == wanted, "the type is {}", spec["type"]);
    condition_is(import, "Ready", "True")?;
    let derived = &import["metadata"]["annotations"][ANNOTATION_DERIVED_SERVICE];
    if headless {
        ensure!(
            derived.is_null(),
            "a headless import has the derived Service {derived}"
        );
        ensure!(spec["ips"].is_null(), "a headless import has IPs");
        return Ok(());
    }
    let derived = picture.services.get(derived.as_str().unwrap_or_default());
    let ips = &derived.context("the derived Service is missing")?["spec"]["clusterIPs"];
    ensure!(
        spec["ips"] == *ips,
        "the import's IPs are {}, not {ips}",
        spec["ips"]
    );
    Ok(())
}

fn derived_is_right(picture: &Picture, import: &Value, headless: bool, merged: &Ports) -> Result<(), Wrong> {
    let derived = &import["metadata"]["annotations"][ANNOTATION_DERIVED_SERVICE];
    let derived = picture.services.get(derived.as_str().unwrap_or_default());
    match derived {
        Some(derived) => set_is(
            "the derived Service has",
            &ports(&derived["spec"]["ports"]),
            merged,
        ),
        None if headless => Ok(()),
        None => Err(Wrong::Lacking("the derived Service is missing".into())),
    }
}

fn export_is_right(picture: &Picture, export: &Value, exporters: &[Exporter]) -> anyhow::Result<()> {
    let valid = exporters
        .iter()
        .any(|exporter| exporter.cluster == picture.cluster);
    if !valid {
        condition_is(export, "Valid", "False")?;
        condition_is(export, "Ready", "False")?;
        let conflict = condition(export, "Conflict");
        ensure!(conflict.is_none(), "an export that is not valid has a Conflict");
        return Ok(());
    }
    condition_is(export, "Valid", "True")?;
    condition_is(export, "Ready", "True")?;
    let differs = |differ: fn(&Exporter, &Exporter) -> bool| {
        exporters.windows(2).any(|pair| differ(&pair[0], &pair[1]))
    };
    let mut reasons = Vec::new();
    if differs(|a, b| a.ports != b.ports) {
        reasons.push("PortConflict");
    }
    if differs(|a, b| a.headless != b.headless) {
        reasons.push("TypeConflict");
    }
    condition_is(
        export,
        "Conflict",
        if reasons.is_empty() { "False" } else { "True" },
    )?;
    let said = condition(export, "Conflict").map(|condition| text(&condition["reason"]));
    let said = said.unwrap_or_default();
    let said: BTreeSet<&str> = said
        .split(',')
        .filter(|reason| *reason != "NoConflicts")
        .collect();
    ensure!(
        said == reasons.iter().copied().collect(),
        "it has {said:?}, not {reasons:?}"
    );
    Ok(())
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind)
}

fn condition_is(object: &Value, kind: &str, status: &str) -> anyhow::Result<()> {
    let found = condition(object, kind).with_context(|| format!("there is no condition {kind}"))?;
    ensure!(found["status"] == status, "{kind} is {found}, not {status}");
    Ok(())
}

fn is_imported(slice: &Value) -> bool {
    label(slice, LABEL_ENDPOINT_SLICE_MANAGED_BY) == ENDPOINT_SLICE_MANAGER
}

fn label<'a>(object: &'a Value, label: &str) -> &'a str {
    object["metadata"]["labels"][label].as_str().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn ports(ports: &Value) -> Ports {
    let ports = ports.as_array().into_iter().flatten();
    ports
        .map(|port| (text(&port["name"]), port["port"].as_u64().unwrap_or_default()))
        .collect()
}

/// Every address of a slice with every port.
fn addresses(slice: &Value) -> impl Iterator<Item = (String, String)> + '_ {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let addresses = endpoints.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
    addresses.flat_map(move |address| {
        let served = ports(&slice["ports"]).into_iter();
        served.map(move |(port, _)| (text(address), port))
    })
}
