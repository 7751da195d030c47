//! Owns: what a real API server makes of our CRDs: it takes every good sample and refuses the bad ones for the
//! reason each names.
//! Never: compares schemas with upstream's (`shared/tests/crds.rs` does).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::clusterset::shop::unique_name;
use cluster::deploy;
use cluster::real::{Cluster, Fleet};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use libtest_mimic::Trial;
use serde_json::json;
use tributary_e2e::suite::real_test;

/// Least number of bad samples.
const BAD_SAMPLES_MIN: usize = 10;
/// A namespace that is not gone after this long never will be.
const DELETED_WAIT: Duration = Duration::from_secs(60);
/// Prefix of the expected answer in a bad sample.
const EXPECTED: &str = "# expected: ";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test("real::crds::take_every_good_sample", take_good_samples),
        real_test("real::crds::refuse_every_bad_sample_by_name", refuse_bad_samples),
    ]
}

async fn take_good_samples(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::prepare(&fleet.clusters()[0]).await?;
    let result = place.take_all(&deploy::fixture("samples/good")).await;
    place.clear(&deploy::fixture("samples/good")).await?;
    result
}

async fn refuse_bad_samples(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::prepare(&fleet.clusters()[0]).await?;
    let result = place.refuse_all(&deploy::fixture("samples/bad")).await;
    place.clear(&deploy::fixture("samples/bad")).await?;
    result
}

/// A namespace of the test's own, in a cluster that has our CRDs.
struct Place<'a> {
    cluster: &'a Cluster,
    client: Client,
    namespace: String,
}

impl<'a> Place<'a> {
    async fn prepare(cluster: &'a Cluster) -> anyhow::Result<Self> {
        let client = cluster.client().await?;
        deploy::install(&client, &["crds"]).await?;
        let namespace = unique_name("samples");
        let object: Namespace = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await?;
        Ok(Self {
            cluster,
            client,
            namespace,
        })
    }

    /// The objects of a sample, moved into the test's namespace.
    fn read(&self, path: &Path) -> anyhow::Result<Vec<DynamicObject>> {
        let mut objects = deploy::read_file(path)?;
        for object in &mut objects {
            if let Some(namespace) = &mut object.metadata.namespace {
                namespace.clone_from(&self.namespace);
            }
        }
        Ok(objects)
    }

    async fn take_all(&self, directory: &Path) -> anyhow::Result<()> {
        for path in deploy::yaml_files(directory)? {
            for object in self.read(&path)? {
                let taken = deploy::apply(&self.client, &object).await;
                let taken = taken.with_context(|| format!("{} is refused", path.display()))?;
                for part in ["spec", "status"] {
                    let Some(sent) = object.data.get(part).filter(|_| ours(&object)) else {
                        continue;
                    };
                    ensure!(
                        taken.data.get(part) == Some(sent),
                        "{}: the {part} came back as {}, not as {sent}",
                        path.display(),
                        taken.data
                    );
                }
            }
        }
        Ok(())
    }

    async fn refuse_all(&self, directory: &Path) -> anyhow::Result<()> {
        let paths = deploy::yaml_files(directory)?;
        ensure!(paths.len() >= BAD_SAMPLES_MIN, "only {} bad samples", paths.len());
        for path in paths {
            let shown = path.display();
            let text = std::fs::read_to_string(&path)?;
            let expected = text.lines().find_map(|line| line.strip_prefix(EXPECTED));
            let expected = expected.with_context(|| format!("{shown} has no line `{EXPECTED}…`"))?;
            let objects = self.read(&path)?;
            let (last, before) = objects
                .split_last()
                .with_context(|| format!("{shown} is empty"))?;
            for object in before {
                self.send(object)
                    .await
                    .with_context(|| format!("{shown} fails before its end"))?;
            }
            let Err(refusal) = self.send(last).await else {
                bail!("{shown} is accepted")
            };
            let kube::Error::Api(status) = &refusal else {
                return Err(refusal.into());
            };
            ensure!(
                status.code == 422 && status.message.contains(expected),
                "{shown} is refused with {}: {:?}, not with {expected:?}",
                status.code,
                status.message
            );
        }
        Ok(())
    }

    /// Creates an object, or changes the one there is; then its status. Not by server-side apply, which refuses some
    /// lists before the schema is asked.
    async fn send(&self, object: &DynamicObject) -> Result<(), kube::Error> {
        let api = deploy::api(&self.client, object).map_err(|error| kube::Error::Service(error.into()))?;
        let mut body = object.clone();
        let status = body.data.as_object_mut().and_then(|data| data.remove("status"));
        match api.create(&PostParams::default(), &body).await {
            Err(kube::Error::Api(answer)) if answer.code == 409 => {
                let change = Patch::Merge(&body);
                api.patch(deploy::name(object), &PatchParams::default(), &change)
                    .await?;
            }
            created => drop(created?),
        }
        if let Some(status) = status {
            let change = Patch::Merge(json!({ "status": status }));
            api.patch_status(deploy::name(object), &PatchParams::default(), &change)
                .await?;
        }
        Ok(())
    }

    /// Removes everything, whatever the test found: a property left behind would rename the cluster for the next.
    async fn clear(&self, directory: &Path) -> anyhow::Result<()> {
        for object in deploy::read_directory(directory)? {
            if object.metadata.namespace.is_none() {
                let api = deploy::api(&self.client, &object)?;
                match api.delete(deploy::name(&object), &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    other => drop(other?),
                }
            }
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let uid = namespaces
            .get(&self.namespace)
            .await?
            .metadata
            .uid
            .context("objects have a uid")?;
        namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await?;
        if self.cluster.has_controllers() {
            let gone = await_condition(namespaces, &self.namespace, is_deleted(&uid));
            tokio::time::timeout(DELETED_WAIT, gone)
                .await
                .context("the namespace stays")??;
        }
        Ok(())
    }
}

/// Kubernetes' own kinds come back with defaults; ours exactly as sent.
fn ours(object: &DynamicObject) -> bool {
    let version = object
        .types
        .as_ref()
        .map_or("", |types| types.api_version.as_str());
    version.starts_with("multicluster.x-k8s.io/") || version.starts_with("about.k8s.io/")
}
