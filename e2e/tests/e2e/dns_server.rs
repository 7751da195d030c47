//! Owns: the server of names in `deploy/coredns/server`, for clusters whose own DNS cannot answer the zone: it is the
//! CoreDNS that the rig asks for names, and an API server admits it and its pods.
//! Never: asks it for a name; `cargo nodes` does.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use cluster::{charts::root, deploy};
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use tributary_e2e::suite::{SCENARIO_WAIT, plain_test, test_with_own_clusters};

use crate::charts::fresh;

const NAMESPACE: &str = "tributary-dns";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test("dns_server::it_is_the_coredns_of_the_rig", same_version),
        test_with_own_clusters(
            "real::dns_server::it_and_its_pods_are_admitted",
            SCENARIO_WAIT,
            admitted,
        ),
    ]
}

fn file() -> PathBuf {
    root().join("deploy/coredns/server/server.yaml")
}

fn objects() -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file())?;
    let documents = serde_norway::Deserializer::from_str(&text).map(Value::deserialize);
    Ok(documents.collect::<Result<_, _>>()?)
}

fn pod_template() -> anyhow::Result<Value> {
    let objects = objects()?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    Ok(deployment.context("a Deployment")?["spec"]["template"].clone())
}

fn same_version() -> anyhow::Result<()> {
    let module = std::fs::read_to_string(root().join("e2e/nodes/coredns/go.mod"))?;
    let version = module
        .lines()
        .find_map(|line| line.strip_prefix("require github.com/coredns/coredns v"));
    let image = format!(
        "coredns/coredns:{}",
        version.context("the module requires CoreDNS")?
    );
    let found = &pod_template()?["spec"]["containers"][0]["image"];
    ensure!(found == &json!(image), "{found}, and the rig has {image}");
    Ok(())
}

/// The namespace enforces the standard `restricted`, which a Deployment is only warned of: a pod is made of its template.
async fn admitted() -> anyhow::Result<()> {
    let fleet = fresh(&["east"]).await?;
    let client = fleet.clusters()[0].client().await?;
    for object in objects()? {
        let object: DynamicObject = serde_json::from_value(object)?;
        deploy::apply(&client, &object).await?;
    }
    let mut pod = pod_template()?;
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("one");
    let pods = Api::namespaced(client, NAMESPACE);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    pods.create(&dry_run, &serde_json::from_value(pod.clone())?)
        .await?;
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refused: Result<k8s_openapi::api::core::v1::Pod, _> =
        pods.create(&dry_run, &serde_json::from_value(pod)?).await;
    let refused = refused.err().context("the standard is not enforced")?;
    ensure!(
        refused.to_string().contains("allowPrivilegeEscalation"),
        "{refused}"
    );
    Ok(())
}
