//! A service exported in one cluster arrives in the others, and goes again.

use anyhow::Context;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde_json::json;
use shared::api::{ServiceExport, ServiceImport};
use std::time::Duration;
use tributary_e2e::world::{Backend, World};

/// One export: from a cluster through the hub and its log to every cluster that has the namespace.
pub(super) async fn arrives_everywhere(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut world = World::start(dir.path(), &backend, &["east", "west", "north"]).await?;
    let namespace = tributary_e2e::suite::unique_name("arrives");
    for cluster in world.clusters.values() {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client.clone());
        let user = PatchParams::apply("user").force();
        api.patch(&namespace, &user, &Patch::Apply(&object)).await?;
    }
    let east = world.cluster("east")?.client.clone();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart"},
        "spec": {"ports": [{"name": "http", "port": 80}]}
    });
    let user = PatchParams::apply("user").force();
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::namespaced(east.clone(), &namespace);
    services.patch("cart", &user, &Patch::Apply(&service)).await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "cart-1", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.0.0.1"]}]
    });
    let slices: Api<k8s_openapi::api::discovery::v1::EndpointSlice> =
        Api::namespaced(east.clone(), &namespace);
    slices.patch("cart-1", &user, &Patch::Apply(&slice)).await?;
    let export = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": "cart"}
    });
    let exports: Api<ServiceExport> = Api::namespaced(east.clone(), &namespace);
    exports.patch("cart", &user, &Patch::Apply(&export)).await?;
    for (name, cluster) in &world.clusters {
        let imports: Api<ServiceImport> = Api::namespaced(cluster.client.clone(), &namespace);
        let has_ips =
            |import: Option<&ServiceImport>| import.is_some_and(|import| !import.spec.ips.is_empty());
        let arrived = await_condition(imports, "cart", has_ips);
        tokio::time::timeout(Duration::from_secs(20), arrived)
            .await
            .with_context(|| format!("no import with IPs in {name}"))??;
    }
    let _ = &mut world;
    world.end().await
}
