//! Owns: a namespace of two clusters with a Service that both export and one that each exports alone; and which clusters
//! answer for them.
//! Never: knows which clusters should answer, or why.

use std::collections::BTreeSet;

use anyhow::Context;

use super::{
    client::{Asking, Protocol, export, shown},
    configuration::TOOLS_IMAGE,
    control::{ControlPlane, wait_for},
    pair::{Asker, Pair},
    row::Asked,
};

/// Pods and Services.
const OBJECTS: &str = include_str!("../served.yaml");
/// The Service of both clusters.
pub(super) const WEB: &str = "web";
/// Its port, and that of the others.
const PORT: u16 = 80;

/// The Service that one cluster exports alone.
pub(super) fn only(cluster: &str) -> String {
    format!("only-{cluster}")
}

/// The Services of these rows.
pub(super) struct Served<'a> {
    pub(super) pair: Pair<'a>,
}

impl<'a> Served<'a> {
    /// Puts pods and Services into both clusters, and exports them.
    pub(super) fn start(planes: &'a [ControlPlane<'a>], namespace: &'a str) -> anyhow::Result<Self> {
        let pair = Pair::of(planes, namespace)?;
        pair.start_clients()?;
        for cluster in [&pair.exporter, &pair.importer] {
            let objects = OBJECTS
                .replace("@NAMESPACE@", namespace)
                .replace("@IMAGE@", TOOLS_IMAGE)
                .replace("@CLUSTER@", &cluster.plane.name);
            cluster.plane.apply(&objects, "served.yaml")?;
        }
        for cluster in [&pair.exporter, &pair.importer] {
            cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"])?;
            export(cluster, WEB)?;
            export(cluster, &only(&cluster.plane.name))?;
        }
        Ok(Self { pair })
    }

    /// Deletes the namespace in both clusters.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        for Asking { plane, namespace } in [&self.pair.exporter, &self.pair.importer] {
            plane.kubectl(&["delete", "namespace", namespace, "--timeout=120s"])?;
        }
        Ok(())
    }
}

/// The clusterset IP of a service in the cluster of the asking pod.
pub(super) fn address(asker: &Asker<'_>, service: &str) -> anyhow::Result<String> {
    let import = format!("serviceimport/{service}");
    let addresses = || asker.cluster.field(&import, ".spec.ips[*]").unwrap_or_default();
    let plane = asker.cluster.plane;
    wait_for(
        &format!("{service} has a clusterset IP in {}", plane.name),
        &plane.directory,
        || !addresses().is_empty(),
    )?;
    addresses().into_iter().next().context("it has an address")
}

/// Waits until pods of these clusters answer, and of no other.
pub(super) fn answered_by(
    asker: &Asker<'_>,
    service: &str,
    address: &str,
    clusters: &[&str],
) -> anyhow::Result<()> {
    let plane = asker.cluster.plane;
    let wanted = clusters.join(" and ");
    let what = format!("pods of {wanted} answer for {service} in {}", plane.name);
    Asked::all(None).until(&what, &plane.directory, || {
        let answers = asker
            .cluster
            .answers(&asker.client, address, PORT, Protocol::Tcp)?;
        let who: BTreeSet<&str> = answers.iter().map(|answer| &*answer.cluster).collect();
        if who == BTreeSet::from_iter(clusters.iter().copied()) {
            Ok(Ok(()))
        } else {
            Ok(Err(format!("{} answered", shown(&answers))))
        }
    })?;
    println!("{what}");
    Ok(())
}

/// Waits until a cluster has no import of a service any more.
pub(super) fn is_not_imported(cluster: &Asking<'_>, service: &str) -> anyhow::Result<()> {
    let get = [
        "get",
        "serviceimport",
        service,
        "--ignore-not-found",
        "--output=name",
    ];
    let what = format!("{} imports no {service}", cluster.plane.name);
    wait_for(&what, &cluster.plane.directory, || {
        cluster.kubectl(&get).is_ok_and(|said| said.trim().is_empty())
    })?;
    println!("{what}");
    Ok(())
}
