//! Clusters in which another implementation of Multi-Cluster Services is at work already: what it made is reported and
//! left byte for byte as it is, everything else is served, and its names are taken once they are free.

use anyhow::{Context, ensure};
use cluster::clusterset::admin;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use shared::model::derived_name::derived_service_name;

use super::{
    ownership::reported,
    story::{
        Kind, Story,
        expect::{backends_are, complete},
        objects::{address, plain, service, slice_ports, with},
    },
};

/// The cluster in which it is at work.
const TAKEN: &str = "west";

/// One object as such a product writes it.
struct Made {
    manager: &'static str,
    kind: Kind,
    object: Value,
}

/// Submariner: its agent writes import and slices, and has no derived Service.
fn of_submariner(service: &str) -> Vec<Made> {
    let labels = json!({
        "lighthouse.submariner.io/sourceNamespace": "shop",
        "multicluster.kubernetes.io/service-name": service,
    });
    let import = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": service, "labels": labels},
        "spec": {"type": "ClusterSetIP", "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
            "ips": ["243.0.0.1"]},
        "status": {"clusters": [{"cluster": "cluster1"}]},
    });
    let slice = slice_of("lighthouse-agent.submariner.io", service, None);
    let made = |kind, object| Made {
        manager: "lighthouse-agent",
        kind,
        object,
    };
    vec![
        made(Kind::ServiceImport, import),
        made(Kind::EndpointSlice, slice),
    ]
}

/// Cilium: its operator writes import, derived Service and slices, and the derived Service has the very name that
/// Tributary would give it, for both take it from upstream.
fn of_cilium(namespace: &str, service_name: &str) -> Vec<Made> {
    let derived_name = derived_service_name(namespace, service_name);
    let import = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": service_name,
            "annotations": {"multicluster.kubernetes.io/derived-service": derived_name}},
        "spec": {"type": "ClusterSetIP", "ports": [{"name": "http", "protocol": "TCP", "port": 80}]},
        "status": {"clusters": [{"cluster": "cluster1"}]},
    });
    let mut derived = service(
        &derived_name,
        &with(plain(), json!({"internalTrafficPolicy": "Cluster"})),
    );
    derived["metadata"]["annotations"] = json!({"service.cilium.io/global": "true"});
    let slice = slice_of(
        "endpointslice-local-mcsapi-controller.cilium.io",
        service_name,
        Some(&derived_name),
    );
    let made = |kind, object| Made {
        manager: "cilium-operator",
        kind,
        object,
    };
    vec![
        made(Kind::ServiceImport, import),
        made(Kind::Service, derived),
        made(Kind::EndpointSlice, slice),
    ]
}

/// A slice of another clusterset, for its import and perhaps its derived Service.
fn slice_of(manager: &str, service: &str, derived: Option<&str>) -> Value {
    let mut labels = json!({
        "endpointslice.kubernetes.io/managed-by": manager,
        "multicluster.kubernetes.io/service-name": service,
        "multicluster.kubernetes.io/source-cluster": "cluster1",
    });
    if let Some(derived) = derived {
        labels["kubernetes.io/service-name"] = json!(derived);
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-cluster1"), "labels": labels},
        "addressType": "IPv4", "ports": slice_ports(&plain()),
        "endpoints": [{"addresses": ["198.51.100.9"]}],
    })
}

/// Writes it as the product would, status included.
async fn write(story: &Story, made: &Made) -> anyhow::Result<()> {
    let api = story.api(TAKEN, made.kind)?;
    let name = made.object["metadata"]["name"].as_str().context("a name")?;
    let params = PatchParams::apply(made.manager).force();
    let mut object = made.object.clone();
    let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
    api.patch(name, &params, &Patch::Apply(&object)).await?;
    if let Some(status) = status {
        object["status"] = status;
        let fields = object.as_object_mut().context("an object")?;
        fields.remove("spec");
        api.patch_status(name, &params, &Patch::Apply(&object)).await?;
    }
    Ok(())
}

/// Every object of the products as it stands, managedFields and all.
async fn as_they_stand(story: &Story, all: &[Made]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for made in all {
        let name = made.object["metadata"]["name"].as_str().context("a name")?;
        found.push(story.get(TAKEN, made.kind, name).await?);
    }
    Ok(found)
}

/// Submariner has `cart`, Cilium has `till`, and `free` is nobody's.
pub(super) async fn imports_of_others_are_left_alone(story: &mut Story) -> anyhow::Result<()> {
    for cluster in super::story::CLUSTERS {
        story.create_namespace(cluster, &story.namespace).await?;
    }
    let mut all = of_submariner("cart");
    all.extend(of_cilium(&story.namespace, "till"));
    for made in &all {
        write(story, made).await?;
    }
    let before = as_they_stand(story, &all).await?;
    story.start_agents().await?;
    let names = ["cart", "till", "free"];
    for name in names {
        story.export("east", name, &plain()).await?;
    }
    let endpoint = address("east", 1);
    let arrived = |seen: &_, name: &str| {
        complete(seen, name)?;
        backends_are(seen, name, &[("east", &endpoint)])
    };
    for cluster in ["east", "north"] {
        let all_of_them = |seen: &_| names.iter().try_for_each(|name| arrived(seen, name));
        story.until(cluster, all_of_them).await?;
    }
    story.until(TAKEN, |seen| arrived(seen, "free")).await?;
    story.pass("east").await?;
    for name in ["cart", "till"] {
        reported(story, "NameTaken", name).await?;
    }
    let agent = story.clusterset.agent(TAKEN)?;
    let strangers = admin::metric(agent, "tributary_agent_apply_strangers", "").await?;
    ensure!(strangers >= 2.0, "{strangers} strangers are counted");
    let after = as_they_stand(story, &all).await?;
    for (before, after) in before.iter().zip(&after) {
        ensure!(before == after, "{before} has become {after}");
    }
    let seen = story.look(TAKEN).await?;
    for name in ["cart", "till"] {
        let beside = seen
            .imported(name)
            .filter(|slice| slice["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tributary-agent");
        ensure!(
            beside.count() == 0,
            "slices of {name} stand beside those of the other product"
        );
    }
    for made in &all {
        let name = made.object["metadata"]["name"].as_str().context("a name")?;
        story.delete(TAKEN, made.kind, name).await?;
    }
    story
        .until(TAKEN, |seen| {
            names.iter().try_for_each(|name| arrived(seen, name))
        })
        .await
}
