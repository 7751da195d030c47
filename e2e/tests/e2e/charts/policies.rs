//! Owns: the two admission policies about the agent's objects on a real API server: who is allowed what, and what the others are told.
//! Never: uses the shared clusters, whose tests play the agent without being it.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::charts::Charts;
use cluster::deploy;
use cluster::real::{Cluster, Fleet, HARNESS_USER};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::api::names::{
    AGENT_MANAGER, LABEL_MANAGED_BY, MULTICLUSTER_API_VERSION as MCS, TRIBUTARY_NAMESPACE,
};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use super::installed::fresh;
use super::objects;

/// Time for an API server to enforce a policy: it reads them from a watch of its own.
const ENFORCED_WAIT: Duration = Duration::from_secs(30);
/// Interval of trying; nothing tells from outside.
const ENFORCED_POLL: Duration = Duration::from_millis(100);
/// A namespace or an object that is not gone after this long never will be.
const GONE_WAIT: Duration = Duration::from_secs(60);
const SHOP: &str = "shop";

/// The refusal of writing an object of the agent's.
const NOT_THE_AGENT: &str = "'tributary-only-the-agent-writes' denied request: what carries the label \
    app.kubernetes.io/managed-by: tributary-agent is written by Tributary's agent alone: change the ServiceExport that it \
    follows from, or give your own object another label";
/// The refusal of the agent's writes to objects of others.
pub(super) const NOT_ITS_OWN: &str = "'tributary-agent-writes-only-its-own' denied request: this object does not carry the label \
    app.kubernetes.io/managed-by: tributary-agent, and Tributary's agent touches only what does";
/// The refusal of the agent's writes without its label.
pub(super) const UNMARKED: &str = "'tributary-agent-writes-only-its-own' denied request: what Tributary's agent writes carries the \
    label app.kubernetes.io/managed-by: tributary-agent, and this would not";

/// The refusal of an agent's Service that leads elsewhere than its slices.
const LEADS_OUT: &str = "'tributary-agent-writes-only-its-own' denied request: a Service of Tributary's agent has the type \
    ClusterIP, no selector and no externalIPs";

pub(super) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::charts::policies_keep_agent_and_others_apart",
        SCENARIO_WAIT,
        apart,
    )]
}

async fn apart() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let fleet = with_policies(&["policies"]).await?;
    let cluster = &fleet.clusters()[0];
    cluster.require_controllers()?;
    let client = cluster.client().await?;
    let agent = account(cluster, TRIBUTARY_NAMESPACE, "tributary-agent").await?;

    the_agent_writes_its_own(&agent, &client).await?;
    the_agent_leaves_others_alone(&agent, &client).await?;
    others_leave_the_agents_alone(&agent, &client).await?;
    controllers_clear_up(cluster, &agent, &client).await?;
    exempted_users_write(&charts, &client).await
}

/// Fresh clusters with both policies in force.
pub(crate) async fn with_policies(names: &[&str]) -> anyhow::Result<Fleet> {
    let fleet = fresh(names).await?;
    for cluster in fleet.clusters() {
        let client = cluster.client().await?;
        deploy::install(&client, &["crds", "agent"]).await?;
        for object in deploy::read_directory(&deploy::directory("agent"))? {
            deploy::apply(&client, &object).await?;
        }
        create_namespace(&client, SHOP).await?;
        let agent = account(cluster, TRIBUTARY_NAMESPACE, "tributary-agent").await?;
        enforced(NOT_THE_AGENT, || on_trial(&client, marked("Service", "probe"))).await?;
        enforced(UNMARKED, || on_trial(&agent, unmarked("Service", "probe"))).await?;
    }
    Ok(fleet)
}

/// An object of the agent's of this kind.
fn marked(kind: &str, name: &str) -> Value {
    let mut value = unmarked(kind, name);
    value["metadata"]["labels"] = json!({ LABEL_MANAGED_BY: AGENT_MANAGER });
    value
}

/// The same without the label.
fn unmarked(kind: &str, name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": SHOP });
    match kind {
        "Service" => json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata,
            "spec": { "ports": [{ "port": 80 }] } }),
        "EndpointSlice" => json!({ "apiVersion": "discovery.k8s.io/v1", "kind": kind, "metadata": metadata,
            "addressType": "IPv4", "endpoints": [{ "addresses": ["10.1.2.3"] }] }),
        "ServiceImport" => json!({ "apiVersion": MCS, "kind": kind, "metadata": metadata,
            "spec": { "type": "Headless", "ports": [] } }),
        _ => json!({ "apiVersion": MCS, "kind": kind, "metadata": metadata, "spec": {} }),
    }
}

const KINDS: [&str; 3] = ["Service", "EndpointSlice", "ServiceImport"];

pub(super) async fn apply(client: &Client, value: Value) -> anyhow::Result<()> {
    deploy::apply(client, &serde_json::from_value(value)?).await?;
    Ok(())
}

pub(super) async fn on_trial(client: &Client, value: Value) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(value)?;
    let parameters = PatchParams::apply("a-test").force().dry_run();
    let api = deploy::api(client, &object)?;
    api.patch(deploy::name(&object), &parameters, &Patch::Apply(&object))
        .await?;
    Ok(())
}

async fn merge(client: &Client, kind: &str, name: &str, change: Value, status: bool) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(unmarked(kind, name))?;
    let api = deploy::api(client, &object)?;
    let (plainly, change) = (PatchParams::default(), Patch::Merge(&change));
    if status {
        api.patch_status(name, &plainly, &change).await?;
    } else {
        api.patch(name, &plainly, &change).await?;
    }
    Ok(())
}

async fn delete(client: &Client, kind: &str, name: &str) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(unmarked(kind, name))?;
    deploy::api(client, &object)?
        .delete(name, &DeleteParams::default())
        .await?;
    Ok(())
}

/// It is refused, and the person is told why.
pub(super) fn refused(result: anyhow::Result<()>, told: &str, what: &str) -> anyhow::Result<()> {
    let Err(error) = result else {
        bail!("{what} is not refused");
    };
    let said = format!("{error:#}");
    ensure!(
        said.contains(told),
        "{what} is refused with\n{said}\nand not with\n{told}"
    );
    Ok(())
}

/// Waits until something is refused for this reason.
pub(super) async fn enforced<Run>(told: &str, attempt: impl Fn() -> Run) -> anyhow::Result<()>
where
    Run: Future<Output = anyhow::Result<()>>,
{
    let mut poll = tokio::time::interval(ENFORCED_POLL);
    let until = async {
        loop {
            poll.tick().await;
            if attempt()
                .await
                .is_err_and(|error| format!("{error:#}").contains(told))
            {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(ENFORCED_WAIT, until).await;
    waited.with_context(|| format!("nothing is refused with: {told}"))
}

async fn the_agent_writes_its_own(agent: &Client, client: &Client) -> anyhow::Result<()> {
    for kind in KINDS {
        apply(agent, marked(kind, "own")).await?;
        let note = json!({ "metadata": { "annotations": { "note": "changed" } } });
        merge(agent, kind, "own", note, false).await?;
    }
    let status = json!({ "status": { "clusters": [{ "cluster": "east" }] } });
    merge(agent, "ServiceImport", "own", status, true).await?;
    // Its words about an export stand in the status of an object that is the user's.
    apply(client, unmarked("ServiceExport", "cart")).await?;
    let status = json!({ "status": { "conditions": [] } });
    merge(agent, "ServiceExport", "cart", status, true).await?;
    for (field, value) in [
        ("type", json!("LoadBalancer")),
        ("type", json!("NodePort")),
        ("selector", json!({ "app": "theirs" })),
        ("externalIPs", json!(["192.0.2.1"])),
    ] {
        for name in ["own", "another"] {
            let mut service = marked("Service", name);
            service["spec"][field] = value.clone();
            refused(apply(agent, service).await, LEADS_OUT, field)?;
        }
    }
    for kind in KINDS {
        delete(agent, kind, "own").await?;
    }
    Ok(())
}

async fn the_agent_leaves_others_alone(agent: &Client, client: &Client) -> anyhow::Result<()> {
    for kind in KINDS {
        refused(
            apply(agent, unmarked(kind, "new")).await,
            UNMARKED,
            "an unmarked object of the agent's",
        )?;
        apply(client, unmarked(kind, "theirs")).await?;
        let taken = apply(agent, marked(kind, "theirs")).await;
        refused(taken, NOT_ITS_OWN, "the label put on a stranger's object")?;
        let note = json!({ "metadata": { "annotations": { "note": "changed" } } });
        refused(
            merge(agent, kind, "theirs", note, false).await,
            NOT_ITS_OWN,
            "a change of a stranger's",
        )?;
        refused(
            delete(agent, kind, "theirs").await,
            NOT_ITS_OWN,
            "the end of a stranger's",
        )?;
        apply(agent, marked(kind, "own")).await?;
        refused(
            apply(agent, unmarked(kind, "own")).await,
            UNMARKED,
            "taking the label off",
        )?;
    }
    Ok(())
}

/// On what the step before left: `own` is the agent's, `theirs` the user's.
async fn others_leave_the_agents_alone(agent: &Client, client: &Client) -> anyhow::Result<()> {
    let note = || json!({ "metadata": { "annotations": { "note": "changed" } } });
    let label = |value: Value| json!({ "metadata": { "labels": { LABEL_MANAGED_BY: value } } });
    for kind in KINDS {
        refused(
            apply(client, marked(kind, "new")).await,
            NOT_THE_AGENT,
            "a marked object of a user's",
        )?;
        refused(
            merge(client, kind, "own", note(), false).await,
            NOT_THE_AGENT,
            "a change of the agent's",
        )?;
        let off = merge(client, kind, "own", label(Value::Null), false).await;
        refused(off, NOT_THE_AGENT, "taking the label off")?;
        let on = merge(client, kind, "theirs", label(json!(AGENT_MANAGER)), false).await;
        refused(on, NOT_THE_AGENT, "putting the label on")?;
        refused(
            delete(client, kind, "own").await,
            NOT_THE_AGENT,
            "the end of the agent's",
        )?;
        merge(client, kind, "theirs", note(), false).await?;
        merge(client, kind, "theirs", label(json!("Helm")), false).await?;
        delete(client, kind, "theirs").await?;
    }
    let status = json!({ "status": { "clusters": [] } });
    let changed = merge(client, "ServiceImport", "own", status, true).await;
    refused(changed, NOT_THE_AGENT, "the status of an import")?;
    for kind in KINDS {
        delete(agent, kind, "own").await?;
    }
    Ok(())
}

/// By the accounts that controllers have in most clusters, and by the one of this cluster's controller manager.
async fn controllers_clear_up(cluster: &Cluster, agent: &Client, client: &Client) -> anyhow::Result<()> {
    for name in ["namespace-controller", "generic-garbage-collector"] {
        let controller = account(cluster, "kube-system", name).await?;
        apply(agent, marked("Service", "left")).await?;
        delete(&controller, "Service", "left")
            .await
            .with_context(|| name.to_owned())?;
    }
    // It writes each object as it is, so that it is stored in the newest version. Where the API server does not run it,
    // it has no rights of its own.
    let (place, name) = ("kube-system", "storage-version-migrator-controller");
    let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": place });
    let role =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" });
    let rights = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name }, "roleRef": role, "subjects": [subject] });
    apply(client, rights).await?;
    let migrator = account(cluster, place, name).await?;
    for kind in KINDS {
        apply(agent, marked(kind, "stored")).await?;
        let others = merge(client, kind, "stored", json!({}), false).await;
        refused(others, NOT_THE_AGENT, "a change without a difference")?;
        merge(&migrator, kind, "stored", json!({}), false)
            .await
            .with_context(|| format!("{kind} cannot be stored anew"))?;
        delete(agent, kind, "stored").await?;
    }
    let owners: Api<ConfigMap> = Api::namespaced(client.clone(), SHOP);
    let owner = json!({ "metadata": { "name": "owner" } });
    let owner = owners
        .create(&PostParams::default(), &serde_json::from_value(owner)?)
        .await?;
    let mut owned = marked("Service", "owned");
    owned["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.uid().context("a uid")? }]);
    apply(agent, owned.clone()).await?;
    owners.delete("owner", &DeleteParams::default()).await?;
    gone(client, owned).await?;
    for kind in KINDS {
        apply(agent, marked(kind, "left")).await?;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let uid = namespaces.get(SHOP).await?.uid().context("a uid")?;
    namespaces.delete(SHOP, &DeleteParams::default()).await?;
    let ended = await_condition(namespaces, SHOP, is_deleted(&uid));
    tokio::time::timeout(GONE_WAIT, ended)
        .await
        .context("the namespace does not end")??;
    Ok(())
}

async fn gone(client: &Client, value: Value) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(value)?;
    let api = deploy::api(client, &object)?;
    let name = deploy::name(&object);
    let Some(found) = api.get_opt(name).await? else {
        return Ok(());
    };
    let uid = found.uid().context("a uid")?;
    let ended = await_condition(api, name, is_deleted(&uid));
    let waited = tokio::time::timeout(GONE_WAIT, ended).await;
    waited.with_context(|| format!("{name} is not collected"))??;
    Ok(())
}

/// A backup tool that the values name may bring back what carries the label.
async fn exempted_users_write(charts: &Charts, client: &Client) -> anyhow::Result<()> {
    create_namespace(client, "restored").await?;
    let exempt = format!("hubConfigMap=tributary-agent,policies.exemptUsers={{{HARNESS_USER}}}");
    for object in objects(&charts.render("agent", &["--skip-tests", "--set", &exempt])?)? {
        deploy::apply(client, &object).await?;
    }
    let mut probe = marked("Service", "restored");
    probe["metadata"]["namespace"] = json!("restored");
    let mut poll = tokio::time::interval(ENFORCED_POLL);
    let allowed = async {
        loop {
            poll.tick().await;
            if on_trial(client, probe.clone()).await.is_ok() {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(ENFORCED_WAIT, allowed).await;
    waited.context("an exempted user is refused")?;
    apply(client, probe).await
}

async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await?;
    Ok(())
}

pub(super) async fn account(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Client> {
    Ok(cluster.service_account(namespace, name)?.client().await?)
}
