//! Owns: the examples for Argo CD and Flux in `deploy/gitops`: their charts take the very values that are in them, and an API
//! server admits what comes of it.
//! Never: runs Argo CD or Flux.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use cluster::{
    charts::{Charts, root},
    deploy,
};
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use tributary_e2e::suite::{SCENARIO_WAIT, sim_test, test_with_own_clusters};

use crate::{charts::fresh, workloads::agent_run};

const NAMESPACE: &str = "tributary-system";
/// The values that the two programs fill in, for the cluster east.
const EXPANDED: [(&str, &str); 2] = [
    (r#"{{index .metadata.labels "tributary.dev/cluster-id"}}"#, "east"),
    ("${cluster_id}", "east"),
];
/// The placeholder for people's own registry.
const REGISTRY: &str = "registry.example.org/team";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("gitops::charts_take_the_values_of_the_examples", || async {
            values_are_taken()
        }),
        test_with_own_clusters(
            "real::gitops::what_the_examples_become_is_admitted",
            SCENARIO_WAIT,
            admitted,
        ),
    ]
}

/// A chart as an example installs it.
#[derive(Debug)]
struct Release {
    /// Which example.
    of: String,
    /// `crds`, `hub` or `agent`.
    chart: String,
    values: Value,
}

fn examples() -> anyhow::Result<Vec<Release>> {
    let mut releases = Vec::new();
    for tool in ["argocd", "flux"] {
        let directory = root().join("deploy/gitops").join(tool);
        let mut documents = Vec::new();
        for file in deploy::yaml_files(&directory)? {
            for object in read(&file)? {
                documents.push((file.clone(), object));
            }
        }
        let charts = oci_charts(&documents);
        for (file, object) in &documents {
            let of = format!("{}: {}", file.display(), object["metadata"]["name"]);
            let found = match object["kind"].as_str() {
                Some("ApplicationSet") => argocd(&object["spec"]["template"]["spec"]),
                Some("HelmRelease") => flux(object, &charts),
                _ => continue,
            };
            releases.push(found.with_context(|| of.clone())?.release(&of)?);
        }
    }
    Ok(releases)
}

fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let mut text = std::fs::read_to_string(file)?;
    for (word, typed) in EXPANDED {
        text = text.replace(word, typed);
    }
    let documents = serde_norway::Deserializer::from_str(&text).map(Value::deserialize);
    let documents: Result<Vec<Value>, _> = documents.collect();
    documents.with_context(|| file.display().to_string())
}

/// The part of an example that names a chart.
struct Said<'a> {
    chart: String,
    version: &'a Value,
    release: &'a Value,
    namespace: &'a Value,
    values: &'a Value,
}

impl Said<'_> {
    fn release(self, of: &str) -> anyhow::Result<Release> {
        let chart = self.chart.strip_prefix("tributary-").context("a chart of ours")?;
        let own = Path::new("deploy/charts").join(chart).join("Chart.yaml");
        let own: Value = serde_norway::from_str(&std::fs::read_to_string(root().join(own))?)?;
        ensure!(
            self.version == &own["version"],
            "{of}: version {} instead of {}",
            self.version,
            own["version"]
        );
        ensure!(
            self.release == &json!(self.chart),
            "{of}: release {}",
            self.release
        );
        ensure!(self.namespace == NAMESPACE, "{of}: namespace {}", self.namespace);
        Ok(Release {
            of: of.to_owned(),
            chart: chart.to_owned(),
            values: self.values.clone(),
        })
    }
}

fn argocd(spec: &Value) -> anyhow::Result<Said<'_>> {
    let source = &spec["source"];
    ensure!(
        source["repoURL"] == format!("{REGISTRY}/charts"),
        "repoURL {}",
        source["repoURL"]
    );
    Ok(Said {
        chart: source["chart"].as_str().context("a chart")?.to_owned(),
        version: &source["targetRevision"],
        release: &source["helm"]["releaseName"],
        namespace: &spec["destination"]["namespace"],
        values: &source["helm"]["valuesObject"],
    })
}

/// OCIRepositories by name: address and tag.
fn oci_charts(documents: &[(PathBuf, Value)]) -> BTreeMap<String, Value> {
    let repositories = documents
        .iter()
        .filter(|(_, object)| object["kind"] == "OCIRepository");
    repositories
        .filter_map(|(_, object)| {
            Some((
                object["metadata"]["name"].as_str()?.to_owned(),
                object["spec"].clone(),
            ))
        })
        .collect()
}

fn flux<'a>(object: &'a Value, charts: &'a BTreeMap<String, Value>) -> anyhow::Result<Said<'a>> {
    let spec = &object["spec"];
    let name = spec["chartRef"]["name"].as_str().context("a chartRef")?;
    let source = charts
        .get(name)
        .with_context(|| format!("no OCIRepository {name}"))?;
    let url = source["url"].as_str().context("an address")?;
    let chart = url.strip_prefix(&format!("oci://{REGISTRY}/charts/"));
    Ok(Said {
        chart: chart.with_context(|| format!("the address {url}"))?.to_owned(),
        version: &source["ref"]["tag"],
        release: &spec["releaseName"],
        namespace: &object["metadata"]["namespace"],
        values: &spec["values"],
    })
}

/// As both programs render a chart, which cannot look into the cluster; the schema of the chart judges the values.
fn rendered(charts: &Charts, release: &Release) -> anyhow::Result<Vec<DynamicObject>> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    let values = match &release.values {
        Value::Null => json!({}),
        values => values.clone(),
    };
    std::fs::write(file.path(), values.to_string())?;
    let path = file.path().display().to_string();
    let text = charts
        .render(&release.chart, &["--skip-tests", "--values", &path])
        .with_context(|| release.of.clone())?;
    let documents = serde_norway::Deserializer::from_str(&text).map(DynamicObject::deserialize);
    let objects: Result<Vec<_>, _> = documents.collect();
    objects.with_context(|| release.of.clone())
}

fn values_are_taken() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let examples = examples()?;
    let each: Vec<&str> = examples.iter().map(|release| release.chart.as_str()).collect();
    ensure!(each.len() == 6, "two tools install three charts: {each:?}");
    for release in &examples {
        let objects = rendered(&charts, release)?;
        let workload = |kind: &str| {
            let found = objects.iter().find(|object| deploy::kind(object) == kind);
            let container = found.and_then(|found| found.data.pointer("/spec/template/spec/containers/0"));
            container.with_context(|| format!("{}: no {kind}", release.of))
        };
        match release.chart.as_str() {
            "agent" => {
                let container = workload("Deployment")?;
                ensure!(
                    container["image"] == format!("{REGISTRY}/tributary:0.1.0"),
                    "{container}"
                );
                let run = agent_run(container, "https://hub.example.org:8443")?;
                ensure!(
                    run.cluster_id.is_some_and(|id| id.as_str() == "east"),
                    "{}: another id",
                    release.of
                );
            }
            "hub" => {
                let arguments: Vec<OsString> = workload("StatefulSet")?["args"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|word| word.as_str().map(OsString::from))
                    .collect();
                ensure!(
                    arguments
                        .iter()
                        .any(|word| word.to_string_lossy().starts_with("--join-listen")),
                    "{}: nobody can join: {arguments:?}",
                    release.of
                );
            }
            _ => ensure!(
                objects.len() == 4,
                "{}: {} definitions",
                release.of,
                objects.len()
            ),
        }
    }
    Ok(())
}

/// Both ways, one after the other, into a namespace with the security standard that the examples give it.
async fn admitted() -> anyhow::Result<()> {
    let fleet = fresh(&["east"]).await?;
    let client = fleet.clusters()[0].client().await?;
    let charts = Charts::new()?;
    let namespace: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }))?;
    deploy::apply(&client, &namespace).await?;
    let mut examples = examples()?;
    // Argo CD and Flux try again until the definitions are there.
    examples.sort_by_key(|release| release.chart != "crds");
    for release in &examples {
        let objects = rendered(&charts, release)?;
        deploy::install_objects(&client, &objects)
            .await
            .with_context(|| release.of.clone())?;
    }
    Ok(())
}
