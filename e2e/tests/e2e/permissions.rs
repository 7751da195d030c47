//! Owns: the proof that the programs' accounts may do what they must, on a real API server, and nothing more.
//! Never: installs by other means than `deploy/`.

use std::sync::Arc;
use std::time::Duration;

use agent::lease::{AgentLease, LeaseMetrics};
use anyhow::{Context, ensure};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use libtest_mimic::Trial;
use serde_json::json;
use shared::api::names::{
    ABOUT_GROUP, AGENT_LEASE, AGENT_MANAGER, CLUSTER_MANAGER, INVENTORY_NAMESPACE_PREFIX,
    LABEL_CLUSTER_MANAGER, LABEL_MANAGED_BY, MULTICLUSTER_API_VERSION, MULTICLUSTER_GROUP as MCS,
    TRIBUTARY_NAMESPACE,
};
use tributary_e2e::deploy;
use tributary_e2e::real::{Cluster, Fleet};
use tributary_e2e::suite::{real_test, unique_name};

/// How long the authorizer may take to see a binding: it reads them from a watch of its own.
const BOUND_WAIT: Duration = Duration::from_secs(30);
/// How often it is asked; nothing tells from outside when it has seen one.
const BOUND_POLL: Duration = Duration::from_millis(50);
/// A namespace that none of the manifests names.
const ANY: &str = "default";
const INVENTORY: &str = "tributary-default";
const LEASES: &str = "coordination.k8s.io";
const SLICES: &str = "discovery.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// A right: verbs, group, resource with subresource, namespace (empty: the whole cluster), name (empty: any).
type Right = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// What the agent must be able to do.
const AGENT_MAY: &[Right] = &[
    (&["list", "watch"], MCS, "serviceexports", "", ""),
    (&["patch"], MCS, "serviceexports/status", ANY, ""),
    (OWN, MCS, "serviceimports", "", ""),
    (&["patch"], MCS, "serviceimports/status", ANY, ""),
    (OWN, "", "services", "", ""),
    (OWN, SLICES, "endpointslices", "", ""),
    (&["list", "watch"], "", "namespaces", "", ""),
    (&["get"], "", "namespaces", "", "kube-system"),
    (READ, ABOUT_GROUP, "clusterproperties", "", ""),
    (&["create"], "events.k8s.io", "events", ANY, ""),
    (
        &["list", "watch"],
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "serviceimports.multicluster.x-k8s.io",
    ),
    (
        &["get", "update"],
        LEASES,
        "leases",
        TRIBUTARY_NAMESPACE,
        AGENT_LEASE,
    ),
    (&["create"], LEASES, "leases", TRIBUTARY_NAMESPACE, ""),
];

/// What the agent must not be able to do.
const AGENT_MAY_NOT: &[Right] = &[
    (
        &["get", "list", "watch", "create", "patch"],
        "",
        "secrets",
        ANY,
        "",
    ),
    (&["get", "list"], "", "secrets", TRIBUTARY_NAMESPACE, ""),
    (&["get", "list", "patch"], "", "configmaps", ANY, ""),
    (&["get", "list", "create", "delete"], "", "pods", ANY, ""),
    (&["create"], "", "pods/exec", ANY, ""),
    (&["get", "list", "patch"], "", "nodes", "", ""),
    (&["create"], "", "serviceaccounts/token", TRIBUTARY_NAMESPACE, ""),
    (&["create", "update", "patch", "delete"], "", "namespaces", "", ""),
    (&["get"], "", "namespaces", "", ANY),
    (&["update", "deletecollection"], "", "services", ANY, ""),
    (&["patch"], "", "services/status", ANY, ""),
    (&["update", "deletecollection"], SLICES, "endpointslices", ANY, ""),
    (
        &["get", "create", "update", "patch", "delete"],
        MCS,
        "serviceexports",
        ANY,
        "",
    ),
    (&["update", "deletecollection"], MCS, "serviceimports", ANY, ""),
    (&["get", "create", "patch"], MCS, "clusterprofiles", ANY, ""),
    (
        &["create", "update", "patch", "delete"],
        ABOUT_GROUP,
        "clusterproperties",
        "",
        "",
    ),
    (&["patch", "update", "delete"], "events.k8s.io", "events", ANY, ""),
    (
        &["patch", "delete"],
        LEASES,
        "leases",
        TRIBUTARY_NAMESPACE,
        AGENT_LEASE,
    ),
    (
        &["get", "update", "patch", "delete"],
        LEASES,
        "leases",
        TRIBUTARY_NAMESPACE,
        "another",
    ),
    (&["list", "delete"], LEASES, "leases", TRIBUTARY_NAMESPACE, ""),
    (&["get", "create"], LEASES, "leases", "kube-system", AGENT_LEASE),
    (
        &["get", "list", "watch", "patch", "delete"],
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "",
    ),
    (
        &["create", "bind", "escalate"],
        "rbac.authorization.k8s.io",
        "clusterroles",
        "",
        "",
    ),
    (&["impersonate"], "", "users", "", ""),
];

/// What the hub must be able to do.
const HUB_MAY: &[Right] = &[
    (OWN, MCS, "clusterprofiles", INVENTORY, ""),
    (&["patch"], MCS, "clusterprofiles/status", INVENTORY, ""),
];

/// What the hub must not be able to do.
const HUB_MAY_NOT: &[Right] = &[
    (
        &["get", "list", "create", "patch"],
        MCS,
        "clusterprofiles",
        ANY,
        "",
    ),
    (&["list"], MCS, "clusterprofiles", "", ""),
    (
        &["update", "deletecollection"],
        MCS,
        "clusterprofiles",
        INVENTORY,
        "",
    ),
    (&["get", "list", "patch"], MCS, "serviceimports", ANY, ""),
    (&["get", "list"], "", "services", ANY, ""),
    (&["get", "list"], "", "secrets", TRIBUTARY_NAMESPACE, ""),
    (
        &["get", "list", "create", "patch", "delete"],
        "",
        "namespaces",
        "",
        "",
    ),
    (&["get", "create"], LEASES, "leases", TRIBUTARY_NAMESPACE, ""),
];

/// What the agent may get beside resources, and what not.
const AGENT_PATHS: [(&str, bool); 7] = [
    ("/readyz", true),
    ("/readyz/etcd", false),
    ("/version", true),
    ("/openapi/v3", true),
    ("/openapi/v3/apis/multicluster.x-k8s.io/v1beta1", true),
    ("/metrics", false),
    ("/logs", false),
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test("real::permissions::of_the_agent_are_what_it_needs", of_the_agent),
        real_test("real::permissions::of_the_hub_are_what_it_needs", of_the_hub),
        real_test("real::permissions::let_the_agent_write", writes_of_the_agent),
        real_test("real::permissions::let_the_hub_write", writes_of_the_hub),
    ]
}

async fn of_the_agent(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let agent = account(&fleet.clusters()[0], "tributary-agent").await?;
    check(&agent, AGENT_MAY, AGENT_MAY_NOT).await?;
    for (path, expected) in AGENT_PATHS {
        let attributes = NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some("get".to_owned()),
        };
        let spec = SelfSubjectAccessReviewSpec {
            non_resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let is_allowed = allowed(&agent, spec).await?;
        ensure!(
            is_allowed == expected,
            "get {path} is allowed: {is_allowed}, and should be: {expected}"
        );
    }
    Ok(())
}

async fn of_the_hub(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    ensure!(
        INVENTORY.starts_with(INVENTORY_NAMESPACE_PREFIX),
        "the default inventory has another name"
    );
    let hub = account(&fleet.clusters()[0], "tributary-hub").await?;
    check(&hub, HUB_MAY, HUB_MAY_NOT).await
}

/// The verbs above are enough for what is really sent: applies that create, applies of a status, deletions.
async fn writes_of_the_agent(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[0];
    let agent = account(cluster, "tributary-agent").await?;
    wait_until_allowed(&agent, &(&["delete"], MCS, "serviceimports", ANY, ""), "delete").await?;
    wait_until_allowed(
        &agent,
        &(&["create"], LEASES, "leases", TRIBUTARY_NAMESPACE, ""),
        "create",
    )
    .await?;
    let name = unique_name("rights");
    let marked = |kind: &str, version: &str| {
        json!({ "apiVersion": version, "kind": kind,
            "metadata": { "name": name, "namespace": ANY, "labels": { LABEL_MANAGED_BY: AGENT_MANAGER } } })
    };
    let mut import = marked("ServiceImport", MULTICLUSTER_API_VERSION);
    import["spec"] = json!({ "type": "Headless", "ports": [] });
    import["status"] = json!({ "clusters": [{ "cluster": "east" }] });
    let mut service = marked("Service", "v1");
    service["spec"] = json!({ "ports": [{ "port": 80 }] });
    let mut slice = marked("EndpointSlice", "discovery.k8s.io/v1");
    slice["addressType"] = json!("IPv4");
    slice["endpoints"] = json!([{ "addresses": ["10.1.2.3"] }]);
    for value in [import, service, slice] {
        let object = serde_json::from_value(value)?;
        deploy::apply(&agent, &object).await?;
        deploy::api(&agent, &object)?
            .delete(&name, &DeleteParams::default())
            .await?;
    }
    let metrics = LeaseMetrics::default();
    for _ in 0..2 {
        // Taken, renewed and given back as the agent does it; the second time it is there.
        let lease = AgentLease::take(
            agent.clone(),
            TRIBUTARY_NAMESPACE,
            "a test of rights",
            &metrics,
            || {},
        )
        .await?;
        lease.renew().await?;
        lease.release().await;
    }
    let leases: Api<Lease> = Api::namespaced(cluster.client().await?, TRIBUTARY_NAMESPACE);
    let spec = leases.get(AGENT_LEASE).await?.spec.unwrap_or_default();
    ensure!(
        spec.holder_identity.as_deref() == Some(""),
        "not released: {spec:?}"
    );
    // Its own account may not delete it, and the next test's agent counts its starts in it.
    leases.delete(AGENT_LEASE, &DeleteParams::default()).await?;
    for path in ["/readyz?verbose", "/version", "/openapi/v3"] {
        agent
            .request_text(http::Request::get(path).body(Vec::new())?)
            .await
            .context(path)?;
    }
    Ok(())
}

/// The same for the hub, with a profile.
async fn writes_of_the_hub(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let hub = account(&fleet.clusters()[0], "tributary-hub").await?;
    wait_until_allowed(
        &hub,
        &(&["delete"], MCS, "clusterprofiles", INVENTORY, ""),
        "delete",
    )
    .await?;
    let profile = json!({ "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": { "name": unique_name("rights"), "namespace": INVENTORY,
            "labels": { LABEL_CLUSTER_MANAGER: CLUSTER_MANAGER } },
        "spec": { "clusterManager": { "name": CLUSTER_MANAGER } },
        "status": { "version": { "kubernetes": "v1.36.3" } } });
    let profile = serde_json::from_value(profile)?;
    deploy::apply(&hub, &profile).await?;
    deploy::api(&hub, &profile)?
        .delete(deploy::name(&profile), &DeleteParams::default())
        .await?;
    Ok(())
}

/// A client with the rights that the manifests give to an account.
async fn account(cluster: &Cluster, name: &str) -> anyhow::Result<Client> {
    deploy::install(&cluster.client().await?, &deploy::DIRECTORIES).await?;
    Ok(cluster
        .service_account(TRIBUTARY_NAMESPACE, name)?
        .client()
        .await?)
}

async fn check(client: &Client, may: &[Right], may_not: &[Right]) -> anyhow::Result<()> {
    for (right, verb) in each(may) {
        wait_until_allowed(client, right, verb).await?;
    }
    for (right, verb) in each(may_not) {
        let too_much = allowed(client, asked(right, verb)).await?;
        ensure!(!too_much, "may {verb} {}: too much", shown(right));
    }
    Ok(())
}

fn each(rights: &[Right]) -> impl Iterator<Item = (&Right, &'static str)> {
    rights
        .iter()
        .flat_map(|right| right.0.iter().map(move |verb| (right, *verb)))
}

fn shown((_, group, resource, namespace, name): &Right) -> String {
    format!("{resource} of group {group:?} in namespace {namespace:?} of name {name:?}")
}

async fn wait_until_allowed(client: &Client, right: &Right, verb: &str) -> anyhow::Result<()> {
    let mut poll = tokio::time::interval(BOUND_POLL);
    let granted = async {
        loop {
            poll.tick().await;
            if allowed(client, asked(right, verb)).await? {
                return Ok::<_, anyhow::Error>(());
            }
        }
    };
    let waited = tokio::time::timeout(BOUND_WAIT, granted).await;
    waited.with_context(|| format!("may not {verb} {}: too little", shown(right)))?
}

fn asked(right: &Right, verb: &str) -> SelfSubjectAccessReviewSpec {
    let (_, group, resource, namespace, name) = *right;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: some(subresource),
        namespace: some(namespace),
        name: some(name),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    }
}

async fn allowed(client: &Client, spec: SelfSubjectAccessReviewSpec) -> anyhow::Result<bool> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = SelfSubjectAccessReview {
        spec,
        ..SelfSubjectAccessReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("a review is answered")?.allowed)
}
