//! Owns: the proof that the harness gives real clusters: they serve, finalise, count, restart and end.
//! Never: tests Tributary.

use anyhow::{Context, ensure};
use cluster::clusterset::shop::unique_name;
use cluster::real::{Cluster, Counts, Fleet, ResourceVersions, resource_versions};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::runtime::conditions::{is_crd_established, is_deleted};
use kube::runtime::wait::{Condition, await_condition};
use libtest_mimic::Trial;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tributary_e2e::suite::{SCENARIO_WAIT, real_test, test_with_own_clusters};

/// Time for a cluster to do anything that is asked of it here.
const WAIT: Duration = Duration::from_secs(60);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test(
            "real::clusters::serve_allocate_and_finalise",
            serve_allocate_and_finalise,
        ),
        real_test(
            "real::clusters::serve_a_definition_installed_later",
            serve_a_definition,
        ),
        real_test("real::clusters::make_endpoint_slices", make_endpoint_slices),
        real_test(
            "real::clusters::bind_users_by_their_roles_and_count_them",
            bind_and_count_users,
        ),
        real_test("real::clusters::keep_address_and_data_over_a_restart", restart),
        test_with_own_clusters(
            "real::clusters::end_with_a_harness_that_is_killed",
            SCENARIO_WAIT,
            end_with_the_harness,
        ),
    ]
}

async fn serve_allocate_and_finalise(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    println!(
        "{} clusters ready after {:.1} s",
        fleet.clusters().len(),
        fleet.start_took().as_secs_f64()
    );
    // At the same time, for the namespace controller waits five seconds before it begins.
    let serving = fleet.clusters().iter().map(serves_allocates_and_finalises);
    let mut addresses = futures::future::try_join_all(serving).await?;
    addresses.sort();
    addresses.dedup();
    ensure!(
        addresses.len() == fleet.clusters().len(),
        "clusters share a service address: {addresses:?}"
    );
    Ok(())
}

async fn serves_allocates_and_finalises(cluster: &Cluster) -> anyhow::Result<String> {
    cluster.require_controllers()?;
    ensure!(
        cluster.git_version().starts_with("v1."),
        "version {}",
        cluster.git_version()
    );
    let client = cluster.client().await?;
    let mark = cluster.audit_log().settle(&client).await?;
    let namespace = create_namespace(&client, "serve").await?;
    let service = create_service(&client, &namespace, json!({ "ports": [{ "port": 80 }] })).await?;
    delete_namespace(cluster, &namespace).await?;
    cluster.audit_log().settle(&client).await?;
    let requests = cluster.audit_log().since(mark)?;
    let counts = Counts::of(&requests, |request| {
        request.user == cluster.harness().name() && request.namespace == namespace
    });
    ensure!(
        counts.get("create", "services") == 1,
        "the audit log counts {counts}"
    );
    ensure!(
        counts.get("delete", "namespaces") == 1,
        "the audit log counts {counts}"
    );
    service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .context("no address was allocated")
}

async fn serve_a_definition(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[0];
    let client = cluster.client().await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd: CustomResourceDefinition = from_json(json!({
        "metadata": { "name": "widgets.harness.test" },
        "spec": {
            "group": "harness.test", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "size": { "type": "integer", "maximum": 9 } }
            } } }]
        }
    }))?;
    crds.create(&PostParams::default(), &crd).await?;
    reaches(crds.clone(), "widgets.harness.test", is_crd_established()).await?;
    let kind = kube::core::GroupVersionKind::gvk("harness.test", "v1", "Widget");
    let resource = kube::core::ApiResource::from_gvk_with_plural(&kind, "widgets");
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let widget = |size: u32| {
        let mut widget = DynamicObject::new("one", &resource);
        widget.data = json!({ "size": size });
        widget
    };
    let refused = widgets.create(&PostParams::default(), &widget(10)).await;
    ensure!(refused.is_err(), "the schema allows no size above 9");
    widgets.create(&PostParams::default(), &widget(9)).await?;
    crds.delete("widgets.harness.test", &DeleteParams::default())
        .await?;
    Ok(())
}

async fn make_endpoint_slices(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[0];
    cluster.require_controllers()?;
    let client = cluster.client().await?;
    let namespace = create_namespace(&client, "slices").await?;
    create_service(
        &client,
        &namespace,
        json!({ "selector": { "app": "x" }, "ports": [{ "port": 80 }] }),
    )
    .await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &namespace);
    let ours = kube::runtime::watcher::Config::default().labels("kubernetes.io/service-name=cart");
    let mut seen = std::pin::pin!(kube::runtime::watcher(slices.clone(), ours));
    tokio::time::timeout(WAIT, async {
        use futures::TryStreamExt;
        while let Some(event) = seen.try_next().await? {
            if matches!(
                event,
                kube::runtime::watcher::Event::Apply(_) | kube::runtime::watcher::Event::InitApply(_)
            ) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    })
    .await
    .context("no EndpointSlice was made")??;
    delete_namespace(cluster, &namespace).await?;
    ensure!(
        slices.list(&ListParams::default()).await?.items.is_empty(),
        "slices outlive their namespace"
    );
    Ok(())
}

async fn bind_and_count_users(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[1];
    let client = cluster.client().await?;
    let namespace = create_namespace(&client, "users").await?;
    let agent = cluster.service_account(&namespace, "reader")?;
    let configs: Api<ConfigMap> = Api::namespaced(agent.client().await?, &namespace);
    let mark = cluster.audit_log().settle(&client).await?;
    let refused = configs.list(&ListParams::default()).await;
    ensure!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403),
        "{refused:?}"
    );
    let roles: Api<k8s_openapi::api::rbac::v1::Role> = Api::namespaced(client.clone(), &namespace);
    let role = from_json(json!({ "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }] }))?;
    roles.create(&PostParams::default(), &role).await?;
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> = Api::namespaced(client.clone(), &namespace);
    let binding = from_json(json!({ "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": namespace }] }))?;
    bindings.create(&PostParams::default(), &binding).await?;
    // The authorizer reads the binding from its own watch: it takes effect shortly after the answer.
    let mut poll = tokio::time::interval(Duration::from_millis(20));
    let mut lists = 1;
    tokio::time::timeout(WAIT, async {
        loop {
            poll.tick().await;
            lists += 1;
            if configs.list(&ListParams::default()).await.is_ok() {
                return;
            }
        }
    })
    .await
    .context("the role never took effect")?;
    cluster.audit_log().settle(&client).await?;
    let counts = Counts::of_the_tested(&cluster.audit_log().since(mark)?);
    ensure!(
        counts.get("list", "configmaps") == lists,
        "{lists} lists, but the audit log counts {counts}"
    );
    ensure!(
        counts.total() == lists,
        "only the agent is tested, but the audit log counts {counts}"
    );
    Ok(())
}

async fn restart(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[2];
    let client = cluster.client().await?;
    let namespace = create_namespace(&client, "restart").await?;
    create_service(&client, &namespace, json!({ "ports": [{ "port": 80 }] })).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
    let before = versions_in(&client, &namespace).await?;
    ensure!(
        before.keys().any(|key| key.starts_with("services.")),
        "no Service among {before:?}"
    );
    cluster.stop_apiserver();
    services
        .get("cart")
        .await
        .err()
        .context("a stopped API server answered")?;
    cluster.start_apiserver().await?;
    let after = versions_in(&client, &namespace).await?;
    ensure!(before == after, "the restart turned {before:?} into {after:?}");
    services.delete("cart", &DeleteParams::default()).await?;
    let without = versions_in(&client, &namespace).await?;
    ensure!(after != without, "a deletion does not show in {without:?}");
    Ok(())
}

/// Objects of earlier tests in other namespaces may still be going.
async fn versions_in(client: &kube::Client, namespace: &str) -> anyhow::Result<ResourceVersions> {
    let mut versions = resource_versions(client).await?;
    versions.retain(|key, _| key.contains(&format!(" {namespace}/")));
    Ok(versions)
}

/// Kills a process that runs a cluster and looks whether its children are gone.
async fn end_with_the_harness() -> anyhow::Result<()> {
    // What is killed cannot remove its files: they go into a directory that we remove.
    let files = tempfile::tempdir()?;
    let mut harness = Command::new(env!("CARGO_BIN_EXE_control_plane"))
        .args(["run", "alone"])
        .env("TMPDIR", files.path())
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    let output = BufReader::new(harness.stdout.take().context("its output is piped")?);
    let ready = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line.starts_with("ready after"));
    let children = children_of(harness.id());
    harness.kill()?;
    harness.wait()?;
    ensure!(ready, "the cluster never became ready");
    ensure!(
        children.len() >= 2,
        "etcd and an API server at least, not {children:?}"
    );
    let mut poll = tokio::time::interval(Duration::from_millis(20));
    let gone = tokio::time::timeout(WAIT, async {
        while children.iter().any(|child| child.exists()) {
            poll.tick().await;
        }
    });
    gone.await.context("children outlive the harness that was killed")
}

/// The processes below `parent`, as their directories in /proc.
fn children_of(parent: u32) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<String> = lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    ids.iter().map(|id| Path::new("/proc").join(id)).collect()
}

async fn create_namespace(client: &kube::Client, prefix: &str) -> anyhow::Result<String> {
    let name = unique_name(prefix);
    let namespace = from_json(json!({ "metadata": { "name": name } }))?;
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await?;
    Ok(name)
}

async fn create_service(
    client: &kube::Client,
    namespace: &str,
    spec: serde_json::Value,
) -> anyhow::Result<Service> {
    let service = from_json(json!({ "metadata": { "name": "cart" }, "spec": spec }))?;
    Ok(Api::<Service>::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &service)
        .await?)
}

/// Deletes the namespace and waits until it is finalised.
async fn delete_namespace(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(cluster.client().await?);
    let uid = namespaces
        .get(name)
        .await?
        .metadata
        .uid
        .context("objects have a uid")?;
    namespaces.delete(name, &DeleteParams::default()).await?;
    reaches(namespaces, name, is_deleted(&uid)).await
}

async fn reaches<K>(api: Api<K>, name: &str, condition: impl Condition<K>) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + DeserializeOwned + 'static,
{
    let waiting = tokio::time::timeout(WAIT, await_condition(api, name, condition));
    waiting
        .await
        .with_context(|| format!("{name} never got there"))??;
    Ok(())
}

fn from_json<T: DeserializeOwned>(value: serde_json::Value) -> anyhow::Result<T> {
    Ok(serde_json::from_value(value)?)
}
