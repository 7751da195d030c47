//! Owns: installing on real, fresh clusters as people do: kubectl on the plain manifests, Helm on the charts; what is
//! refused leaves nothing behind, and what is kept stays.
//! Never: uses the shared clusters, which are not fresh.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::charts::{CHARTS, Charts, root};
use cluster::deploy;
use cluster::real::{Cluster, Error, Fleet, Options, kubectl::Kubectl};
use http::Request;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams, PostParams, ValidationDirective};
use kube::{Client, ResourceExt};
use libtest_mimic::Trial;
use serde_json::json;
use shared::api::names::{LABEL_CRD_RELEASE_VERSION, TRIBUTARY_NAMESPACE};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use super::{EVERYTHING, objects};
use crate::manifests;

/// Time for an API server to sort requests by a new FlowSchema.
const SORTED_WAIT: Duration = Duration::from_secs(30);
/// Interval of looking at that; only an answer tells.
const SORTED_POLL: Duration = Duration::from_millis(100);
const HUBS: &str = "hubs={https://hub.example.org:8443}";
/// A definition whose release the chart compares.
const EXPORTS: &str = "serviceexports.multicluster.x-k8s.io";

pub(super) fn trials() -> Vec<Trial> {
    vec![
        test_with_own_clusters(
            "real::charts::kubectl_applies_the_manifests_twice",
            SCENARIO_WAIT,
            by_kubectl,
        ),
        test_with_own_clusters(
            "real::charts::helm_installs_upgrades_and_uninstalls",
            SCENARIO_WAIT,
            by_helm,
        ),
    ]
}

/// Clusters on which nothing was ever installed.
pub(crate) async fn fresh(names: &[&str]) -> anyhow::Result<Fleet> {
    match Fleet::start(names, Options::default()).await {
        Err(Error::Unavailable(unavailable)) => Err(unavailable.into()),
        started => Ok(started?),
    }
}

async fn by_kubectl() -> anyhow::Result<()> {
    let kubectls = [Kubectl::of_today()?, Kubectl::of_2020()?];
    let fleet = fresh(&["today", "of-2020"]).await?;
    for (cluster, kubectl) in fleet.clusters().iter().zip(&kubectls) {
        let client = cluster.client().await?;
        apply_all(kubectl, cluster.kubeconfig_path()).await?;
        let first = versions(&client).await?;
        apply_all(kubectl, cluster.kubeconfig_path()).await?;
        // Not what kubectl says: it calls a StatefulSet configured whose defaults it does not know.
        for (before, after) in first.iter().zip(versions(&client).await?) {
            ensure!(
                *before == after,
                "kubectl {} changes {before:?} to {after:?} the second time",
                kubectl.version
            );
        }
        ensure!(
            first.len() >= 25,
            "the manifests hold only {} objects",
            first.len()
        );
    }
    Ok(())
}

async fn apply_all(kubectl: &Kubectl, kubeconfig: &Path) -> anyhow::Result<()> {
    for chart in CHARTS {
        apply(kubectl, kubeconfig, chart).await?;
    }
    Ok(())
}

/// Every object of the manifests with its generation, for its status may change meanwhile; what has none has a version.
async fn versions(client: &Client) -> anyhow::Result<Vec<(String, String)>> {
    let mut versions = Vec::new();
    for chart in CHARTS {
        for object in deploy::read_directory(&deploy::directory(chart))? {
            let shown = format!("{} {}", deploy::kind(&object), deploy::name(&object));
            let found = deploy::api(client, &object)?.get(deploy::name(&object)).await;
            let found = found.with_context(|| format!("{shown} is not there"))?;
            let generation = found.metadata.generation.map(|generation| generation.to_string());
            let version = generation.or(found.metadata.resource_version);
            versions.push((shown, version.context("a version")?));
        }
    }
    Ok(versions)
}

/// Applies a chart as a person types it, in the root of the repository.
async fn apply(kubectl: &Kubectl, kubeconfig: &Path, chart: &str) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let output = tokio::process::Command::new(&kubectl.path)
        .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
        .args(["apply", "-f", &format!("deploy/manifests/{chart}")])
        .current_dir(root())
        .env("HOME", home.path())
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("kubectl {} apply {chart}: {error}", kubectl.version);
    }
    Ok(())
}

/// Helm on one cluster, as words that a person types.
struct Typed<'a> {
    charts: &'a Charts,
    kubeconfig: String,
}

impl Typed<'_> {
    fn helm(&self, line: &str) -> anyhow::Result<String> {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend([
            "--namespace",
            TRIBUTARY_NAMESPACE,
            "--kubeconfig",
            &self.kubeconfig,
        ]);
        tokio::task::block_in_place(|| self.charts.helm(&words))
    }

    /// It must be refused, for this reason.
    fn refused(&self, line: &str, told: &[&str]) -> anyhow::Result<()> {
        let Err(error) = self.helm(line) else {
            bail!("helm {line}: is not refused");
        };
        let said = error.to_string();
        for words in told {
            ensure!(
                said.contains(words),
                "helm {line} says:\n{said}\nand not {words:?}"
            );
        }
        Ok(())
    }
}

async fn by_helm() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let fleet = fresh(&["helm"]).await?;
    let cluster = &fleet.clusters()[0];
    let client = cluster.client().await?;
    let typed = Typed {
        charts: &charts,
        kubeconfig: cluster.kubeconfig_path().display().to_string(),
    };
    nothing_half_installed(&typed, &client).await?;
    prepare(&client).await?;
    typed.helm("install tributary-crds deploy/charts/crds")?;
    typed.helm("install tributary-hub deploy/charts/hub --set test.operatorSecret=tributary-operator-tls")?;
    typed.helm(&format!(
        "install tributary-agent deploy/charts/agent --set {HUBS}"
    ))?;
    all_there(&charts, &client).await?;
    tests_run_restricted(&charts, &client).await?;
    queue_of_its_own(cluster, &client).await?;
    every_value_is_taken(&charts, &client).await?;
    for exposed in [
        "log.format=json,service.type=NodePort,service.nodePort=30843",
        "service.nodePort=0,service.type=ClusterIP,service.externalIPs={192.0.2.10}",
        "service.type=LoadBalancer",
    ] {
        typed.helm(&format!(
            "upgrade tributary-hub deploy/charts/hub --reuse-values --set {exposed}"
        ))?;
    }
    typed.refused(
        "upgrade tributary-hub deploy/charts/hub --reuse-values --set clientKeys.configMapName=keys,clientKeys.deniedKeys=denied",
        &[
            "the ConfigMap tributary-system/keys has no denied",
            "create configmap keys --from-file=denied=FILE",
        ],
    )?;
    typed.helm("upgrade tributary-agent deploy/charts/agent --reuse-values --set interest=all")?;
    newer_definition(&typed, &client).await?;
    for release in ["tributary-agent", "tributary-hub"] {
        let hooks = typed.helm(&format!("get hooks {release}"))?;
        ensure!(
            hooks.contains("kind: Pod"),
            "`helm test {release}` has nothing to run"
        );
    }
    for release in ["tributary-agent", "tributary-hub", "tributary-crds"] {
        typed.helm(&format!("uninstall {release}"))?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let left = definitions.list(&Default::default()).await?;
    ensure!(
        left.items.len() == 4,
        "{} of 4 definitions are kept",
        left.items.len()
    );
    for object in deploy::read_directory(&deploy::directory("agent"))? {
        let gone = deploy::api(&client, &object)?
            .get_opt(deploy::name(&object))
            .await?;
        let kept = deploy::kind(&object) == "Namespace";
        ensure!(gone.is_none() || kept, "{} is left behind", deploy::name(&object));
    }
    Ok(())
}

/// Missing parts of a cluster are reported before anything is made.
async fn nothing_half_installed(typed: &Typed<'_>, client: &Client) -> anyhow::Result<()> {
    typed.refused(
        "install tributary-hub deploy/charts/hub --create-namespace",
        &[
            "the Secret tributary-system/tributary-hub-tls has no tls.crt",
            "kubectl -n tributary-system create secret generic tributary-hub-tls",
        ],
    )?;
    typed.refused(
        &format!("install tributary-agent deploy/charts/agent --create-namespace --set {HUBS}"),
        &[
            "no ServiceImports",
            "helm install tributary-crds deploy/charts/crds",
        ],
    )?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.get_opt(TRIBUTARY_NAMESPACE).await?;
    ensure!(made.is_none(), "a refused installation made a namespace");
    let releases = typed.helm("list --short --all-namespaces")?;
    ensure!(
        releases.trim().is_empty(),
        "a refused installation is listed: {releases}"
    );
    Ok(())
}

/// The namespace with its security standard, and the certificates.
async fn prepare(client: &Client) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({ "metadata": { "name": TRIBUTARY_NAMESPACE,
        "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    namespaces
        .create(&PostParams::default(), &serde_json::from_value(namespace)?)
        .await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), TRIBUTARY_NAMESPACE);
    for name in ["tributary-hub-tls", "tributary-agent-tls"] {
        let secret = json!({ "metadata": { "name": name },
            "stringData": { "tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority" } });
        secrets
            .create(&PostParams::default(), &serde_json::from_value(secret)?)
            .await?;
    }
    Ok(())
}

async fn all_there(charts: &Charts, client: &Client) -> anyhow::Result<()> {
    for (chart, values) in [("hub", "address=hub.example.org:8443"), ("agent", HUBS)] {
        let rendered = objects(&charts.render(chart, &["--skip-tests", "--set", values])?)?;
        for object in rendered {
            let found = deploy::api(client, &object)?.get(deploy::name(&object)).await;
            found.with_context(|| format!("{} is not there", deploy::name(&object)))?;
        }
    }
    Ok(())
}

/// The values' objects have only fields that the API server knows, and content that it takes.
async fn every_value_is_taken(charts: &Charts, client: &Client) -> anyhow::Result<()> {
    let mut parameters = PatchParams::apply("a-test").force().dry_run();
    parameters.field_validation = Some(ValidationDirective::Strict);
    for (chart, arguments) in EVERYTHING {
        for object in objects(&charts.render(chart, arguments)?)? {
            let api = deploy::api(client, &object)?;
            let taken = api
                .patch(deploy::name(&object), &parameters, &Patch::Apply(&object))
                .await;
            taken.with_context(|| format!("{} {}", deploy::kind(&object), deploy::name(&object)))?;
        }
    }
    Ok(())
}

/// The pods of `helm test` are taken where the restricted standard is enforced.
async fn tests_run_restricted(charts: &Charts, client: &Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), TRIBUTARY_NAMESPACE);
    let mut seen = 0;
    for (chart, values) in [("hub", "test.operatorSecret=operator"), ("agent", HUBS)] {
        for object in objects(&charts.render(chart, &["--set", values])?)? {
            if deploy::kind(&object) == "Pod" {
                let pod: Pod = serde_json::from_value(serde_json::to_value(&object)?)?;
                manifests::taken(&pods, &pod).await?;
                seen += 1;
            }
        }
    }
    ensure!(seen == 2, "each chart has one test, not {seen} both");
    Ok(())
}

/// The API server says by which FlowSchema it sorted a request.
async fn queue_of_its_own(cluster: &Cluster, client: &Client) -> anyhow::Result<()> {
    let schemas: Api<FlowSchema> = Api::all(client.clone());
    let expected = schemas.get("tributary-agent").await?.uid().context("a uid")?;
    let agent = cluster.service_account(TRIBUTARY_NAMESPACE, "tributary-agent")?;
    let agent = agent.client().await?;
    let mut poll = tokio::time::interval(SORTED_POLL);
    let sorted = async {
        loop {
            poll.tick().await;
            let request = Request::get("/version").body(kube::client::Body::empty())?;
            let answer = agent.send(request).await?;
            let by = answer.headers().get("x-kubernetes-pf-flowschema-uid");
            if by.is_some_and(|by| by.as_bytes() == expected.as_bytes()) {
                return anyhow::Ok(());
            }
        }
    };
    let waited = tokio::time::timeout(SORTED_WAIT, sorted).await;
    waited.context("the agent's requests are not sorted by its FlowSchema")?
}

/// A definition of a newer release stays as it is, also when it is left out of the chart then.
async fn newer_definition(typed: &Typed<'_>, client: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let newer = json!({ "metadata": { "labels": { LABEL_CRD_RELEASE_VERSION: "v0.9.0" } } });
    definitions
        .patch(EXPORTS, &PatchParams::default(), &Patch::Merge(&newer))
        .await?;
    typed.refused(
        "upgrade tributary-crds deploy/charts/crds",
        &[
            EXPORTS,
            "of mcs-api v0.9.0, newer than the v0.5.2",
            "--set serviceExports=false",
        ],
    )?;
    typed.helm("upgrade tributary-crds deploy/charts/crds --set serviceExports=false")?;
    let kept = definitions.get(EXPORTS).await?;
    let release = kept.labels().get(LABEL_CRD_RELEASE_VERSION);
    ensure!(
        release.is_some_and(|release| release == "v0.9.0"),
        "it was changed: {release:?}"
    );
    Ok(())
}
