//! Users' actions: apply, change and delete objects. Never Tributary's.

use std::time::Duration;

use anyhow::{Context, bail};
use cluster::clusterset::shop::unique_name;
use jiff::Timestamp;
use kube::{
    Client,
    api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{CLUSTERS, EVENTUALLY_POLL, Story, expect, objects};

/// The field manager of users.
const USER: &str = "user";
/// Interval of reading the clock while a second passes.
const CLOCK_POLL: Duration = Duration::from_millis(10);
/// Number of attempts to create things within one second.
const SAME_SECOND_TRIES: usize = 10;

/// The kinds that stories are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Namespace,
    Service,
    EndpointSlice,
    ServiceExport,
    ServiceImport,
    Event,
    CustomResourceDefinition,
    ClusterProperty,
}

impl Kind {
    fn resource(self) -> ApiResource {
        let (group, version) = match self {
            Self::Namespace | Self::Service => ("", "v1"),
            Self::Event => ("events.k8s.io", "v1"),
            Self::EndpointSlice => ("discovery.k8s.io", "v1"),
            Self::ServiceExport | Self::ServiceImport => ("multicluster.x-k8s.io", "v1beta1"),
            Self::CustomResourceDefinition => ("apiextensions.k8s.io", "v1"),
            Self::ClusterProperty => ("about.k8s.io", "v1beta1"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &format!("{self:?}")))
    }

    fn has_namespaces(self) -> bool {
        !matches!(
            self,
            Self::Namespace | Self::CustomResourceDefinition | Self::ClusterProperty
        )
    }

    /// Its objects in `namespace`, or all of them when the kind has no namespaces.
    pub(crate) fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.has_namespaces() {
            Api::namespaced_with(client.clone(), namespace, &self.resource())
        } else {
            Api::all_with(client.clone(), &self.resource())
        }
    }

    /// The same for a kind of the multi-cluster group, in the version that CoreDNS reads.
    pub(crate) fn old_api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let mut resource = self.resource();
        resource.version = "v1alpha1".to_owned();
        resource.api_version = format!("{}/v1alpha1", resource.group);
        Api::namespaced_with(client.clone(), namespace, &resource)
    }

    /// Returns true if [`Kind::old_api`] is for it.
    pub(crate) fn has_older_version(self) -> bool {
        matches!(self, Self::ServiceExport | Self::ServiceImport)
    }

    fn of(object: &Value) -> anyhow::Result<Self> {
        Ok(match object["kind"].as_str().unwrap_or_default() {
            "Namespace" => Self::Namespace,
            "Service" => Self::Service,
            "EndpointSlice" => Self::EndpointSlice,
            "ServiceExport" => Self::ServiceExport,
            "ServiceImport" => Self::ServiceImport,
            "CustomResourceDefinition" => Self::CustomResourceDefinition,
            "ClusterProperty" => Self::ClusterProperty,
            other => bail!("stories have no {other}"),
        })
    }
}

impl Story {
    /// The API of a kind in the story's namespace of a cluster.
    pub(crate) fn api(&self, cluster: &str, kind: Kind) -> anyhow::Result<Api<DynamicObject>> {
        Ok(kind.api(&self.clusterset.cluster(cluster)?.client, &self.namespace))
    }

    /// Applies an object as a user, into the story's namespace if it names none.
    pub(crate) async fn apply(&self, cluster: &str, mut object: Value) -> anyhow::Result<Value> {
        let kind = Kind::of(&object)?;
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(named) => named.to_owned(),
            None => self.namespace.clone(),
        };
        if kind.has_namespaces() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let name = object["metadata"]["name"].as_str().context("no name")?.to_owned();
        let api = kind.api(&self.clusterset.cluster(cluster)?.client, &namespace);
        let applied = api
            .patch(&name, &PatchParams::apply(USER).force(), &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply {kind:?} {name} in {cluster}"))?;
        Ok(serde_json::to_value(applied)?)
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(
        &self,
        cluster: &str,
        kind: Kind,
        name: &str,
        patch: Value,
    ) -> anyhow::Result<Value> {
        let patched = self
            .api(cluster, kind)?
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("cannot patch {kind:?} {name} in {cluster}"))?;
        Ok(serde_json::to_value(patched)?)
    }

    /// The same for its status.
    pub(crate) async fn patch_status(
        &self,
        cluster: &str,
        kind: Kind,
        name: &str,
        patch: Value,
    ) -> anyhow::Result<Value> {
        let patched = self
            .api(cluster, kind)?
            .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("cannot patch the status of {kind:?} {name} in {cluster}"))?;
        Ok(serde_json::to_value(patched)?)
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, cluster: &str, kind: Kind, name: &str) -> anyhow::Result<()> {
        self.api(cluster, kind)?
            .delete(name, &DeleteParams::default())
            .await
            .with_context(|| format!("cannot delete {kind:?} {name} in {cluster}"))?;
        Ok(())
    }

    /// An object that is there.
    pub(crate) async fn get(&self, cluster: &str, kind: Kind, name: &str) -> anyhow::Result<Value> {
        let found = self.api(cluster, kind)?.get(name).await;
        let found = found.with_context(|| format!("cannot read {kind:?} {name} in {cluster}"))?;
        Ok(serde_json::to_value(found)?)
    }

    /// A Service with this spec, one endpoint behind it, and its ServiceExport.
    pub(crate) async fn export(&self, cluster: &str, name: &str, service_spec: &Value) -> anyhow::Result<()> {
        self.back(cluster, name, service_spec).await?;
        self.apply(cluster, objects::export(name)).await.map(drop)
    }

    /// A Service with this spec and one endpoint behind it.
    pub(crate) async fn back(&self, cluster: &str, name: &str, service_spec: &Value) -> anyhow::Result<()> {
        self.apply(cluster, objects::service(name, service_spec)).await?;
        let address = objects::address(cluster, 1);
        let slice = objects::slice(
            name,
            "1",
            objects::slice_ports(service_spec),
            json!([{"addresses": [address]}]),
        );
        self.apply(cluster, slice).await.map(drop)
    }

    /// Exports in this order, so that each export is younger than the one before.
    pub(crate) async fn export_in_order(
        &self,
        clusters: &[&str],
        name: &str,
        service_spec: &Value,
    ) -> anyhow::Result<()> {
        for (index, cluster) in clusters.iter().enumerate() {
            if index > 0 {
                next_second().await;
            }
            self.export(cluster, name, service_spec).await?;
        }
        Ok(())
    }

    /// Creates exports of a Service that have one creationTimestamp in all these clusters.
    pub(crate) async fn export_in_one_second(&self, clusters: &[&str], name: &str) -> anyhow::Result<()> {
        for _ in 0..SAME_SECOND_TRIES {
            next_second().await;
            let created = clusters
                .iter()
                .map(|cluster| self.apply(cluster, objects::export(name)));
            let created = futures::future::try_join_all(created).await?;
            let first = &created[0]["metadata"]["creationTimestamp"];
            if created
                .iter()
                .all(|export| export["metadata"]["creationTimestamp"] == *first)
            {
                return Ok(());
            }
            for cluster in clusters {
                self.delete(cluster, Kind::ServiceExport, name).await?;
            }
        }
        bail!("{SAME_SECOND_TRIES} times the exports of {name} were not created within one second")
    }

    /// Something exported after everything before, and imported everywhere: by then the programs have had every
    /// occasion to act on what came earlier. The fence for what must not happen; it stands in a namespace apart.
    pub(crate) async fn pass(&self, from: &str) -> anyhow::Result<()> {
        let name = unique_name("fence");
        for mut object in [objects::service(&name, &objects::plain()), objects::export(&name)] {
            object["metadata"]["namespace"] = json!(self.fence);
            self.apply(from, object).await?;
        }
        for cluster in CLUSTERS {
            let arrived = |seen: &_| expect::complete(seen, &name).map(drop);
            self.until_in(cluster, &self.fence, arrived).await?;
        }
        Ok(())
    }
}

/// Waits until the clock shows another second: what is created from now on is younger than what was created
/// before, for timestamps count whole seconds.
pub(crate) async fn next_second() {
    let now = Timestamp::now().as_second();
    let mut poll = tokio::time::interval(CLOCK_POLL.min(EVENTUALLY_POLL));
    while Timestamp::now().as_second() == now {
        poll.tick().await;
    }
}
