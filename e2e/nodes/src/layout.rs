//! Owns: which clusters and nodes there are, and where their files lie.
//! Never: starts one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::{
    address::{CLUSTERS_MAX, ClusterAddresses, Families, NODES_MAX},
    cgroup,
    configuration::Proxy,
    namespace::Namespace,
};
use advice::{NODES_DOWN, NODES_UP};
use cluster::real::module::Module;

/// The file that says what was asked for.
const FILE: &str = "layout.json";
/// The directory of what all clusters share.
const CONTROL: &str = "control";
/// The zones of a cluster's nodes, in turn.
pub(super) const ZONES: [&str; NODES_MAX as usize] = ["zone-a", "zone-b"];

/// The control groups of a node.
pub(super) fn cgroup_of(node: &str) -> String {
    format!("tributary-{node}")
}

/// Directories of a node, and where its programs see them. Those places must be there outside too, and stay empty.
pub(super) const MOUNTED: [(&str, &str); 4] = [
    ("kubelet", "/var/lib/kubelet"),
    ("containers", "/var/log/containers"),
    ("pods", "/var/log/pods"),
    ("cni-state", "/var/lib/cni"),
];

/// The requested layout.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Number of clusters; the first one has two nodes, in two zones, the others one.
    pub(super) clusters: u8,
    pub(super) families: Families,
    pub(super) proxy: Proxy,
}

/// A node's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cluster: u8,
    pub(super) node: u8,
}

impl Place {
    /// The node's name.
    pub(super) fn name(self) -> String {
        format!("c{}n{}", self.cluster, self.node)
    }
}

impl Layout {
    /// All clusters, by number.
    pub(super) fn numbers(self) -> impl Iterator<Item = u8> {
        1..=self.clusters
    }

    /// The addresses of a cluster.
    pub(super) fn addresses(self, number: u8) -> ClusterAddresses {
        ClusterAddresses::of(number, self.families)
    }

    /// All nodes of all clusters.
    pub(super) fn places(self) -> impl Iterator<Item = Place> {
        self.numbers().flat_map(|cluster| {
            let nodes = if cluster == 1 { NODES_MAX } else { 1 };
            (1..=nodes).map(move |node| Place { cluster, node })
        })
    }
}

/// A cluster's name.
pub(super) fn cluster_name(number: u8) -> String {
    format!("c{number}")
}

/// The root directory.
#[derive(Debug, Clone)]
pub(super) struct Directory(PathBuf);

impl Directory {
    /// Below cargo's target directory.
    pub(super) fn of_this_workspace() -> Self {
        Self(Module::of_this_workspace().target().join("nodes"))
    }

    /// Of what all clusters share.
    pub(super) fn control(&self) -> PathBuf {
        self.0.join(CONTROL)
    }

    /// Of a cluster.
    pub(super) fn cluster(&self, number: u8) -> PathBuf {
        self.0.join(cluster_name(number))
    }

    /// Of a node.
    pub(super) fn node(&self, place: Place) -> PathBuf {
        self.0.join(place.name())
    }

    /// Makes it for these clusters; refused if there are some.
    pub(super) fn create(&self, layout: Layout) -> anyhow::Result<()> {
        if self.0.exists() {
            bail!(
                "there are clusters already, in {}; run `{NODES_DOWN}`",
                self.0.display()
            );
        }
        let nodes = layout.places().map(|place| self.node(place));
        let clusters = layout.numbers().map(|number| self.cluster(number));
        for directory in nodes.chain(clusters).chain([self.control()]) {
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        fs::write(self.0.join(FILE), serde_json::to_string(&layout)?)
            .with_context(|| format!("cannot write to {}", self.0.display()))
    }

    /// The requested layout, if there is one.
    pub(super) fn layout(&self) -> anyhow::Result<Layout> {
        let path = self.0.join(FILE);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("there are no clusters in {}; run `{NODES_UP}`", self.0.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not ours", path.display()))
    }

    /// Ends everything and removes every trace of it, whatever is still there.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        let places =
            (1..=CLUSTERS_MAX).flat_map(|cluster| (1..=NODES_MAX).map(move |node| Place { cluster, node }));
        let places: Vec<Place> = places.collect();
        let directories = places.iter().map(|place| self.node(*place));
        for directory in directories.chain([self.control()]) {
            if let Some(namespace) = Namespace::of(&directory) {
                namespace.end()?;
            }
        }
        for place in &places {
            cgroup::remove(&cgroup_of(&place.name()))?;
        }
        for (_, place) in MOUNTED {
            // Ours if it is empty; of a kubelet of this machine's own otherwise.
            let _ = fs::remove_dir(place);
        }
        if self.0.exists() {
            fs::remove_dir_all(&self.0).with_context(|| format!("cannot remove {}", self.0.display()))?;
        }
        Ok(())
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cluster_has_two_nodes() {
        let layout = Layout {
            clusters: 2,
            families: Families::Dual,
            proxy: Proxy::Nftables,
        };
        let names: Vec<String> = layout.places().map(Place::name).collect();
        assert_eq!(names, ["c1n1", "c1n2", "c2n1"]);
    }
}
