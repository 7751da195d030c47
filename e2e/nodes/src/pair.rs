//! Owns: two clusters of which the first exports and the second imports, with who asks in each.
//! Never: knows what is asked.

use std::net::IpAddr;

use anyhow::{Context, ensure};

use super::{
    client::{Asking, Pod},
    configuration::TOOLS_IMAGE,
    control::{ControlPlane, wait_for},
    layout::Place,
};
use advice::{NODES_DOWN, NODES_UP};

/// The asking pod.
const CLIENT: &str = include_str!("../client.yaml");
/// Place of the asking pod in the first cluster: on a node that is never disturbed.
const HERE: Place = Place { cluster: 1, node: 1 };
/// And in the second one.
const THERE: Place = Place { cluster: 2, node: 1 };

/// A namespace of both clusters.
pub(super) struct Pair<'a> {
    pub(super) exporter: Asking<'a>,
    pub(super) importer: Asking<'a>,
}

/// The asking pod and its place.
pub(super) struct Asker<'a> {
    pub(super) cluster: &'a Asking<'a>,
    pub(super) client: Pod,
}

/// Addresses of the exporter's service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Its clusterset IP in the importing cluster.
    pub(super) across: String,
    /// The cluster IP of its Service in its own cluster, of the same family.
    pub(super) local: String,
}

impl<'a> Pair<'a> {
    /// The first two of the clusters that run.
    pub(super) fn of(planes: &'a [ControlPlane<'a>], namespace: &'a str) -> anyhow::Result<Self> {
        let asking = |plane| Asking { plane, namespace };
        let [exporter, importer] = planes.first_chunk().with_context(|| {
            format!("one cluster asks nobody else; run `{NODES_DOWN}` and `{NODES_UP}`, which starts two")
        })?;
        Ok(Self {
            exporter: asking(exporter),
            importer: asking(importer),
        })
    }

    /// Puts who asks into both clusters.
    pub(super) fn start_clients(&self) -> anyhow::Result<()> {
        for cluster in [&self.exporter, &self.importer] {
            let objects = CLIENT
                .replace("@NAMESPACE@", cluster.namespace)
                .replace("@IMAGE@", TOOLS_IMAGE);
            cluster.plane.apply(&objects, "client.yaml")?;
        }
        for cluster in [&self.exporter, &self.importer] {
            cluster.kubectl(&["rollout", "status", "daemonset/client", "--timeout=120s"])?;
        }
        Ok(())
    }

    /// The asking pod in the exporting cluster.
    pub(super) fn here(&self) -> anyhow::Result<Asker<'_>> {
        asker(&self.exporter, HERE)
    }

    /// The asking pod in the importing cluster.
    pub(super) fn there(&self) -> anyhow::Result<Asker<'_>> {
        asker(&self.importer, THERE)
    }

    /// Waits for the clusterset IP of a service.
    pub(super) fn addresses(&self, service: &str) -> anyhow::Result<Addresses> {
        let import = format!("serviceimport/{service}");
        let imported = || self.importer.field(&import, ".spec.ips[*]").unwrap_or_default();
        wait_for(
            &format!("{service} has a clusterset IP in {}", self.importer.plane.name),
            &self.importer.plane.directory,
            || !imported().is_empty(),
        )?;
        let local = self
            .exporter
            .field(&format!("service/{service}"), ".spec.clusterIPs[*]")?;
        of_one_family(&imported(), &local)
            .with_context(|| format!("{service} has no addresses of one family in both clusters"))
    }
}

fn asker<'a>(cluster: &'a Asking<'a>, place: Place) -> anyhow::Result<Asker<'a>> {
    let client = cluster.client(&place.name())?;
    Ok(Asker { cluster, client })
}

/// The first clusterset IP, and the cluster IP of its family.
fn of_one_family(across: &[String], local: &[String]) -> Option<Addresses> {
    let is_v4 = |text: &String| text.parse::<IpAddr>().ok().map(|address| address.is_ipv4());
    let across = across.first()?;
    let family = is_v4(across)?;
    let local = local.iter().find(|local| is_v4(local) == Some(family))?;
    Some(Addresses {
        across: across.clone(),
        local: local.clone(),
    })
}

/// Refuses what would measure nothing.
pub(super) fn at_least_one(number: u32, what: &str) -> anyhow::Result<()> {
    ensure!(number > 0, "no {what} show nothing; ask for at least one");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_asked_by_one_family() {
        let [v4, v6] = [["10.1.0.1", "10.2.0.1"], ["fd91::1", "fd92::1"]].map(|pair| pair.map(str::to_owned));
        let local = [v6[0].clone(), v4[0].clone()];
        let found = of_one_family(&[v4[1].clone(), v6[1].clone()], &local).unwrap();
        assert_eq!((found.across, found.local), (v4[1].clone(), v4[0].clone()));
        assert_eq!(of_one_family(&v6[1..], &v4[..1]), None);
        assert_eq!(of_one_family(&[], &local), None);
    }
}
