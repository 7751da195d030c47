//! A wave that stops: a policy refuses the machines of one Cluster, and the other one keeps its own until that is mended.

use anyhow::{Context, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde::Deserialize;
use serde_json::json;

use super::{CLUSTERS, IMAGE, edited, seen::Seen, stage::Stage};
use cluster::{clusterset::eventually::eventually, deploy, pretend::resource};

/// The image that the policy does not let eu have.
const NEXT_IMAGE: &str = "debian-14";
/// The name of the policy and its binding.
const POLICY: &str = "approved-images";
const POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: approved-images}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [pretend.example.org], apiVersions: ["*"], operations: [CREATE], resources: [hosttemplates]}
  validations:
  - expression: >-
      object.metadata.labels['cluster.x-k8s.io/cluster-name'] != 'eu'
      || object.spec.template.spec.image != 'debian-14'
    message: debian-14 is not approved in eu yet
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: approved-images}
spec: {policyName: approved-images, validationActions: [Deny]}
"#;

/// Plays it; both Clusters have the next image then.
pub(super) async fn stopped(stage: &Stage) -> anyhow::Result<()> {
    println!(
        "\nThe next image, {NEXT_IMAGE}, is not approved in eu, and a policy says so. The class gets it all the same:"
    );
    for document in serde_norway::Deserializer::from_str(POLICIES) {
        deploy::apply(&stage.client, &DynamicObject::deserialize(document)?).await?;
    }
    eventually("the policy is in force", async || {
        Ok(is_refused(stage).await?.then_some(()))
    })
    .await?;
    let class = stage.get("ClusterClass", "edge").await?;
    stage.apply_object(edited(&class, NEXT_IMAGE)?).await?;
    let stopped = eventually("the rollout stops at eu", async || {
        let seen = Seen::look(&stage.client).await?;
        let is = |cluster: &str, reason: &str, message: &str| {
            let said = seen.said(cluster);
            said.is_some_and(|[_, why, text]| why == reason && text.contains(message))
        };
        let fails = is("eu", "ReconcileFailed", "not approved in eu yet");
        let waits = is("us", "RolloutHeld", "Cluster default/eu of its class fails");
        ensure!(fails && waits, "it is\n{}", seen.lines().join("\n"));
        Ok(Some(seen))
    });
    let stopped = stopped.await?;
    println!("{}", stopped.lines().join("\n"));
    for cluster in CLUSTERS {
        let images = stopped.images(cluster);
        ensure!(
            images.iter().all(|image| image == IMAGE),
            "{cluster} has machines of {}",
            images.join(" and ")
        );
    }
    println!("The image is approved, and the rollout goes on by itself:");
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(stage.client.clone());
    bindings.delete(POLICY, &DeleteParams::default()).await?;
    let after = eventually("the rollout goes on", async || {
        let seen = Seen::look(&stage.client).await?;
        let is_done = |cluster: &&str| {
            seen.is_ready(cluster) && seen.images(cluster).iter().all(|image| image == NEXT_IMAGE)
        };
        ensure!(CLUSTERS.iter().all(is_done), "it is\n{}", seen.lines().join("\n"));
        Ok(Some(seen))
    });
    println!("{}", after.await?.lines().join("\n"));
    Ok(())
}

/// Returns true once the API server refuses such a template.
async fn is_refused(stage: &Stage) -> anyhow::Result<bool> {
    let template: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "pretend.example.org/v1beta2",
        "kind": "HostTemplate",
        "metadata": {"name": "probe", "labels": {"cluster.x-k8s.io/cluster-name": "eu"}},
        "spec": {"template": {"spec": {"image": NEXT_IMAGE}}},
    }))?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(stage.client.clone(), "default", &resource("HostTemplate"));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&dry, &template).await {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status)) => Ok(status.message.contains("not approved")),
        Err(error) => Err(error).context("a dry run"),
    }
}
