//! Owns: what a real API server makes of the plain manifests: it takes every one, twice without a change, and the pods
//! hold to the restricted security standard.
//! Never: asks what the programs may do (`permissions` does).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use cluster::deploy;
use cluster::real::Fleet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tributary_e2e::suite::real_test;

/// Time for the API server to see a priority class.
const CLASS_WAIT: Duration = Duration::from_secs(30);
/// Interval of asking it; nothing tells from outside when it has.
const CLASS_POLL: Duration = Duration::from_millis(50);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test("real::manifests::are_taken_and_change_nothing_twice", taken_twice),
        real_test(
            "real::manifests::run_under_the_restricted_standard",
            run_restricted,
        ),
    ]
}

async fn taken_twice(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let client = fleet.clusters()[0].client().await?;
    deploy::install(&client, &deploy::DIRECTORIES).await?;
    let mut seen = 0;
    for directory in deploy::DIRECTORIES {
        for object in deploy::installed(directory)? {
            let shown = format!("{} {}", deploy::kind(&object), deploy::name(&object));
            let before = deploy::api(&client, &object)?.get(deploy::name(&object)).await;
            let before = before.with_context(|| format!("{shown} was not installed"))?;
            // One namespace stands in both hub and agent: the two texts must not fight each other.
            let after = deploy::apply(&client, &object).await?;
            ensure!(
                before.metadata.resource_version == after.metadata.resource_version,
                "applying {shown} again changed it"
            );
            seen += 1;
        }
    }
    ensure!(seen >= 30, "the manifests hold only {seen} objects");
    Ok(())
}

async fn run_restricted(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let client = fleet.clusters()[0].client().await?;
    deploy::install(&client, &deploy::DIRECTORIES).await?;
    let mut workloads = 0;
    for directory in ["hub", "agent"] {
        for object in deploy::read_directory(&deploy::directory(directory))? {
            let Some(template) = object.data.pointer("/spec/template") else {
                continue;
            };
            let namespace = object
                .metadata
                .namespace
                .as_deref()
                .context("a workload has a namespace")?;
            let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let dry_run = PostParams {
                dry_run: true,
                field_manager: None,
            };
            taken(&pods, &pod(&object, template)?)
                .await
                .with_context(|| format!("the pod of {} is refused", deploy::name(&object)))?;
            // That the standard is enforced here at all is shown by a pod that breaks it.
            let mut rooted = template.clone();
            rooted["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
            let refused = pods.create(&dry_run, &pod(&object, &rooted)?).await;
            ensure!(
                matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("PodSecurity")),
                "namespace {namespace} takes a pod that may run as root: {refused:?}"
            );
            workloads += 1;
        }
    }
    ensure!(workloads == 2, "hub and agent are two workloads, not {workloads}");
    Ok(())
}

/// Makes a pod, on trial, once the API server knows its priority class: it reads them from a watch of its own.
pub(crate) async fn taken(pods: &Api<Pod>, pod: &Pod) -> anyhow::Result<()> {
    let dry_run = PostParams {
        dry_run: true,
        field_manager: None,
    };
    let mut poll = tokio::time::interval(CLASS_POLL);
    let known = async {
        loop {
            poll.tick().await;
            match pods.create(&dry_run, pod).await {
                Err(kube::Error::Api(status)) if status.message.contains("no PriorityClass") => {}
                answer => return answer.map(|_| ()),
            }
        }
    };
    let waited = tokio::time::timeout(CLASS_WAIT, known).await;
    Ok(waited.context("the priority class is unknown")??)
}

/// The pod that the workload's controller would make: a StatefulSet adds the volumes it claims.
fn pod(workload: &kube::api::DynamicObject, template: &Value) -> anyhow::Result<Pod> {
    let mut value = json!({ "metadata": template["metadata"], "spec": template["spec"] });
    value["metadata"]["name"] = json!(deploy::name(workload));
    let volumes = value["spec"]["volumes"]
        .as_array_mut()
        .context("a template has volumes")?;
    let claims = workload
        .data
        .pointer("/spec/volumeClaimTemplates")
        .and_then(Value::as_array);
    for claim in claims.into_iter().flatten() {
        let name = &claim["metadata"]["name"];
        volumes.push(json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
    }
    Ok(serde_json::from_value(value)?)
}
