//! Owns: a consumer that knows only KEP-4322 and uses our inventory: it finds it by the label of its namespace, takes the
//! healthy, and dials them by their access providers with credentials of its own. In v1alpha2, which is the stricter one.
//! Never: knows Tributary, or a hub; upstream's file of v1alpha2 was not at hand, so that its rules are written down here
//! as its release notes have them.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use cluster::{clusterset::eventually::eventually, deploy, real::Cluster};
use hub::profile::AccessProviders;
use k8s_openapi::{ByteString, api::core::v1::Namespace};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::{
    api::names::{HUB_MANAGER, LABEL_CLUSTERSET},
    api_client::{ApiMetrics, api_client},
    model::{Clusterset, ControlPlane},
};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use crate::{
    charts::fresh,
    profiles::{ProfiledHub, health},
};

/// The definition of ClusterProfile.
const PROFILES: &str = "clusterprofiles.multicluster.x-k8s.io";
/// The provider that the consumer is configured for.
const PROVIDER: &str = "direct";

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::inventory::is_used_by_who_knows_the_kep_alone",
        SCENARIO_WAIT,
        used,
    )]
}

async fn used() -> anyhow::Result<()> {
    let fleet = fresh(&["inventory"]).await?;
    let cluster = &fleet.clusters()[0];
    let client = cluster.client().await?;
    deploy::install(&client, &["crds"]).await?;
    deploy::install_objects(&client, &[in_both_versions()?]).await?;
    let consumer = Consumer::beside(cluster).await?;

    let clusterset = Clusterset::new("example.org", "default")?;
    let mut profiled = ProfiledHub::start(client.clone(), client.clone(), clusterset)?;
    profiled.access = AccessProviders::parse(&access(cluster)?.to_string())?;
    let writing = profiled.write();
    let mut members = Vec::new();
    for (name, control_plane) in [
        ("east", ControlPlane::Ready),
        ("west", ControlPlane::NotReady),
        ("north", ControlPlane::Ready),
    ] {
        let mut member = profiled.join(name).await?;
        member.report(vec![health(control_plane)]).await?;
        members.push(member);
    }
    let reached = async || {
        let reached = consumer.reach().await?;
        Ok((reached.len() == 2).then_some(reached))
    };
    let reached = eventually("two healthy members are found", reached).await?;
    let wanted = BTreeMap::from([
        ("east".to_owned(), Some(cluster.git_version().to_owned())),
        ("north".to_owned(), None),
    ]);
    ensure!(reached == wanted, "the consumer reaches {reached:?}");
    written_in_the_newer_version(&profiled).await?;

    let [east, ..] = &mut members[..] else {
        anyhow::bail!("there are members")
    };
    east.report(vec![health(ControlPlane::Unreachable)]).await?;
    let left = async || {
        let reached = consumer.reach().await?;
        Ok((reached.len() == 1 && reached.contains_key("north")).then_some(()))
    };
    eventually("one whose control plane is unknown is taken by nobody", left).await?;
    profiled.evict("east").await?;
    let gone = async || Ok(profiled.profiles.get_opt("east").await?.is_none().then_some(()));
    eventually("the profile goes with the member", gone).await?;
    writing.end().await
}

/// managedFields say in which version an apply was made.
async fn written_in_the_newer_version(profiled: &ProfiledHub) -> anyhow::Result<()> {
    let profile = profiled.profiles.get("east").await?;
    let entries = profile.metadata.managed_fields.unwrap_or_default();
    let ours: Vec<_> = entries
        .iter()
        .filter(|entry| entry.manager.as_deref() == Some(HUB_MANAGER))
        .map(|entry| entry.api_version.as_deref().unwrap_or_default())
        .collect();
    ensure!(
        ours == ["multicluster.x-k8s.io/v1alpha2"; 2],
        "written in {ours:?}"
    );
    Ok(())
}

/// East is reached as this cluster is; of the others nothing is said that the consumer knows.
fn access(cluster: &Cluster) -> anyhow::Result<Value> {
    let read = Kubeconfig::read_from(cluster.kubeconfig_path())?;
    let named = read.clusters.into_iter().next().and_then(|named| named.cluster);
    let named = named.context("a cluster")?;
    let authority = match (named.certificate_authority_data, named.certificate_authority) {
        (Some(data), _) => data,
        (None, Some(path)) => {
            let encoded = serde_json::to_value(ByteString(std::fs::read(path)?))?;
            encoded.as_str().context("base64")?.to_owned()
        }
        (None, None) => anyhow::bail!("the cluster has no authority"),
    };
    let direct = json!({"name": PROVIDER, "cluster": {
        "server": cluster.url(), "certificate-authority-data": authority,
    }});
    let other = json!({"name": "other", "cluster": {"server": "https://gateway.example.org"}});
    Ok(json!({"clusters": [
        {"ids": ["east"], "accessProviders": [other, direct]},
        {"ids": ["*"], "accessProviders": [other]},
    ]}))
}

/// Somebody with a place to look at, and credentials of their own for the clusters that are found there.
struct Consumer {
    client: Client,
    user: Value,
}

impl Consumer {
    async fn beside(cluster: &Cluster) -> anyhow::Result<Self> {
        let read = Kubeconfig::read_from(cluster.kubeconfig_path())?;
        let user = read
            .auth_infos
            .into_iter()
            .next()
            .and_then(|named| named.auth_info);
        Ok(Self {
            client: cluster.client().await?,
            user: serde_json::to_value(user.context("a user")?)?,
        })
    }

    /// The healthy clusters of all inventories of clustersets, each with the version that its API server told, or
    /// nothing if no provider is known.
    async fn reach(&self) -> anyhow::Result<BTreeMap<String, Option<String>>> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let inventories = namespaces
            .list(&ListParams::default().labels(LABEL_CLUSTERSET))
            .await?;
        let kind = GroupVersionKind::gvk("multicluster.x-k8s.io", "v1alpha2", "ClusterProfile");
        let resource = ApiResource::from_gvk(&kind);
        let mut reached = BTreeMap::new();
        for inventory in inventories {
            let namespace = inventory.metadata.name.context("a name")?;
            let profiles: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &namespace, &resource);
            for profile in profiles.list(&ListParams::default()).await? {
                let status = &profile.data["status"];
                if !is_healthy(status) {
                    continue;
                }
                let version = match provider(status) {
                    Some(cluster) => Some(self.dial(cluster).await?),
                    None => None,
                };
                reached.insert(profile.metadata.name.context("a name")?, version);
            }
        }
        Ok(reached)
    }

    /// The cluster as it stands in the profile, the user as the consumer has it.
    async fn dial(&self, cluster: &Value) -> anyhow::Result<String> {
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "clusters": [{"name": "found", "cluster": cluster}],
            "users": [{"name": "own", "user": self.user}],
            "contexts": [{"name": "found", "context": {"cluster": "found", "user": "own"}}],
            "current-context": "found",
        }))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = api_client(config, ApiMetrics::default())?;
        Ok(client.apiserver_version().await?.git_version)
    }
}

fn is_healthy(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "ControlPlaneHealthy" && one["status"] == "True")
}

fn provider(status: &Value) -> Option<&Value> {
    let providers = status["accessProviders"].as_array();
    let mut providers = providers.into_iter().flatten();
    let known = providers.find(|provider| provider["name"] == PROVIDER)?;
    known.get("cluster")
}

/// The definition as cluster-inventory-api v0.2.0 serves it: v1alpha1 stored, v1alpha2 stricter.
fn in_both_versions() -> anyhow::Result<DynamicObject> {
    let objects = deploy::read_directory(&deploy::directory("crds"))?;
    let definition = objects
        .into_iter()
        .find(|object| deploy::name(object) == PROFILES);
    let mut definition = definition.context("the definition of ClusterProfile")?;
    let versions = definition.data["spec"]["versions"]
        .as_array_mut()
        .context("versions")?;
    let mut later = versions.first().context("a version")?.clone();
    later["name"] = json!("v1alpha2");
    later["storage"] = json!(false);
    let columns = [
        ("Display Name", ".spec.displayName"),
        ("Manager", ".spec.clusterManager.name"),
        ("Version", ".status.version.kubernetes"),
        (
            "Healthy",
            ".status.conditions[?(@.type=='ControlPlaneHealthy')].status",
        ),
    ];
    later["additionalPrinterColumns"] = columns
        .iter()
        .map(|(name, path)| json!({"name": name, "type": "string", "jsonPath": path}))
        .collect();
    let schema = &mut later["schema"]["openAPIV3Schema"]["properties"];
    let manager = &mut schema["spec"]["properties"]["clusterManager"]["properties"]["name"];
    bound(manager, 1, 63);
    manager["pattern"] = json!("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$");
    let status = &mut schema["status"]["properties"];
    status
        .as_object_mut()
        .context("fields")?
        .remove("credentialProviders");
    let providers = &mut status["accessProviders"];
    providers["maxItems"] = json!(64);
    let provider = &mut providers["items"];
    provider["required"] = json!(["name", "cluster"]);
    bound(&mut provider["properties"]["name"], 1, 253);
    let cluster = &mut provider["properties"]["cluster"]["properties"];
    cluster
        .as_object_mut()
        .context("fields")?
        .remove("certificate-authority");
    bound(&mut cluster["server"], 1, 2_048);
    cluster["server"]["x-kubernetes-validations"] =
        json!([{"rule": "isURL(self) && url(self).getHost() != ''", "message": "a URL with a host"}]);
    bound(&mut cluster["tls-server-name"], 1, 253);
    bound(&mut cluster["proxy-url"], 1, 2_048);
    let extensions = &mut cluster["extensions"];
    extensions["x-kubernetes-list-type"] = json!("map");
    extensions["x-kubernetes-list-map-keys"] = json!(["name"]);
    bound(&mut extensions["items"]["properties"]["name"], 1, 253);
    versions.push(later);
    Ok(definition)
}

fn bound(field: &mut Value, shortest: u32, longest: u32) {
    field["minLength"] = json!(shortest);
    field["maxLength"] = json!(longest);
}
