//! The management cluster's view of its Clusters, as lines and as a table.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
};
use shared::{
    api::{cluster_profile::ClusterProfile, names::PROPERTY_TOPOLOGY_PREFIX},
    columns::columns,
};

use cluster::pretend::resource;

/// The label with a cluster's name.
const CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
/// Kinds of objects that belong to Clusters.
const KINDS: [&str; 7] = [
    "Cloud",
    "Plane",
    "MachineDeployment",
    "MachineSet",
    "MachineHealthCheck",
    "HostTemplate",
    "BootTemplate",
];

/// One look.
pub(super) struct Seen {
    /// Each Cluster's condition of its topology: a status, a reason, a message.
    conditions: BTreeMap<String, [String; 3]>,
    /// Objects of each Cluster by kind.
    objects: BTreeMap<(String, &'static str), Vec<DynamicObject>>,
}

impl Seen {
    pub(super) async fn look(client: &Client) -> anyhow::Result<Self> {
        let mut conditions = BTreeMap::new();
        for cluster in all(client, "Cluster").await? {
            let said = cluster.data["status"]["conditions"].as_array();
            let mut said = said.into_iter().flatten();
            let said = said.find(|one| one["type"] == "TopologyReconciled");
            let of = |name: &str| {
                let text = said.and_then(|said| said[name].as_str());
                text.unwrap_or_default().to_owned()
            };
            conditions.insert(cluster.name_any(), ["status", "reason", "message"].map(of));
        }
        let mut objects: BTreeMap<_, Vec<DynamicObject>> = BTreeMap::new();
        for kind in KINDS {
            for object in all(client, kind).await? {
                if let Some(cluster) = object.labels().get(CLUSTER) {
                    objects.entry((cluster.clone(), kind)).or_default().push(object);
                }
            }
        }
        Ok(Self { conditions, objects })
    }

    fn of(&self, cluster: &str, kind: &'static str) -> &[DynamicObject] {
        self.objects
            .get(&(cluster.to_owned(), kind))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns true if a Cluster says that all is as it should be.
    pub(super) fn is_ready(&self, cluster: &str) -> bool {
        self.conditions
            .get(cluster)
            .is_some_and(|[status, ..]| status == "True")
    }

    /// A Cluster's condition: a status, a reason, a message.
    pub(super) fn said(&self, cluster: &str) -> Option<&[String; 3]> {
        self.conditions.get(cluster)
    }

    /// Clusters that wait for another's rollout.
    pub(super) fn held(&self) -> Vec<String> {
        let all = self.conditions.iter();
        all.filter(|(_, [_, reason, _])| reason == "RolloutHeld")
            .map(|(cluster, _)| cluster.clone())
            .collect()
    }

    /// Clusters whose machines are of two kinds.
    pub(super) fn moving(&self) -> Vec<String> {
        let clusters = self.conditions.keys();
        clusters
            .filter(|cluster| self.of(cluster, "MachineSet").len() > 1)
            .cloned()
            .collect()
    }

    /// The images of a Cluster's machines.
    pub(super) fn images(&self, cluster: &str) -> Vec<String> {
        let templates = self.of(cluster, "HostTemplate").iter();
        let images = templates.map(|one| one.data["spec"]["template"]["spec"]["image"].as_str());
        images.map(|image| image.unwrap_or_default().to_owned()).collect()
    }

    /// The names of the templates of a Cluster's machines.
    pub(super) fn templates(&self, cluster: &str) -> BTreeSet<String> {
        self.of(cluster, "HostTemplate")
            .iter()
            .map(ResourceExt::name_any)
            .collect()
    }

    /// The present conditions of Clusters, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let all = self.conditions.iter();
        all.map(|(cluster, [_, reason, message])| {
            let why = if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            let images: BTreeSet<String> = self.images(cluster).into_iter().collect();
            let images: Vec<String> = images.into_iter().collect();
            format!("  {cluster}: {reason}{why} ({})", images.join(" and "))
        })
        .collect()
    }

    /// The objects of each Cluster.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![
            ["CLUSTER", "RECONCILED", "OBJECTS", "IMAGE"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for (cluster, [status, reason, _]) in &self.conditions {
            let counts = KINDS.iter().filter_map(|kind| {
                let count = self.of(cluster, kind).len();
                (count > 0).then(|| format!("{count} {kind}"))
            });
            let reconciled = if status == "True" { status } else { reason };
            rows.push(vec![
                cluster.clone(),
                reconciled.clone(),
                counts.collect::<Vec<_>>().join(", "),
                self.images(cluster).first().cloned().unwrap_or_default(),
            ]);
        }
        columns(&rows).join("\n") + "\n"
    }
}

async fn all(client: &Client, kind: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
    Ok(api.list(&ListParams::default()).await?.items)
}

/// Topology properties in members' profiles, as a table: member, class, version, region, reconciled.
pub(super) async fn profiles(client: &Client) -> anyhow::Result<Vec<Vec<String>>> {
    let api: Api<ClusterProfile> = Api::all(client.clone());
    let header = ["CLUSTERPROFILE", "CLASS", "VERSION", "REGION", "RECONCILED"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for profile in api.list(&ListParams::default()).await?.items {
        let name = profile.name_any();
        let properties = profile.status.map(|status| status.properties).unwrap_or_default();
        let of = |name: &str| {
            let named = format!("{PROPERTY_TOPOLOGY_PREFIX}{name}");
            let found = properties.iter().find(|property| property.name == named);
            found.map_or_else(|| "-".to_owned(), |property| property.value.clone())
        };
        let [class, version, region, reconciled] =
            ["class", "version", "variables.region", "reconciled"].map(of);
        rows.push(vec![name, class, version, region, reconciled]);
    }
    Ok(rows)
}
