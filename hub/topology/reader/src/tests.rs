//! Tests of reading a management cluster.

use std::path::PathBuf;

use serde_json::{Value, json};
use shared::testing::api_server::{Asked, ScriptedServer};

use super::*;

const CORE: &str = "cluster.x-k8s.io/v1beta2";

fn resources(group: &str, kinds: &[(&str, &str)]) -> Value {
    let resources = kinds.iter().map(|(kind, plural)| {
        json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "get"]})
    });
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group,
        "resources": resources.collect::<Vec<_>>(),
    })
}

fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
    });
    (code, status)
}

fn list(version: &str, kind: &str, items: &[Value]) -> (u16, Value) {
    (
        200,
        json!({"apiVersion": version, "kind": format!("{kind}List"), "metadata": {}, "items": items}),
    )
}

fn class(namespace: &str, infrastructure: &str) -> Value {
    json!({
        "metadata": {"name": "k", "namespace": namespace},
        "spec": {
            "infrastructure": {"templateRef": {"apiVersion": infrastructure, "kind": "CloudTemplate", "name": "t"}},
            "controlPlane": {"templateRef": {"apiVersion": "p.x/v1", "kind": "PlaneTemplate", "name": "t"}},
        },
    })
}

fn cluster(namespace: &str) -> Value {
    json!({
        "metadata": {"name": "c", "namespace": namespace, "uid": "u"},
        "spec": {"topology": {"classRef": {"name": "k"}, "version": "v1.31.0", "controlPlane": {}}},
    })
}

fn template(kind: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "p.x/v1", "kind": kind, "metadata": {"name": "t", "namespace": namespace},
        "spec": {"template": {"spec": {}}},
    })
}

/// A server with a class that can be read, one of a group that it does not serve, and one of a group that may not be listed.
fn answer(asked: &Asked) -> (u16, Value) {
    let path = asked.path.split('?').next().unwrap_or_default();
    match path {
        "/apis" => {
            let version = json!({"groupVersion": CORE, "version": "v1beta2"});
            let group =
                json!({"name": CLUSTER_API_GROUP, "versions": [version], "preferredVersion": version});
            (
                200,
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}),
            )
        }
        "/apis/cluster.x-k8s.io/v1beta2" => (
            200,
            resources(
                CORE,
                &[
                    ("ClusterClass", "clusterclasses"),
                    ("Cluster", "clusters"),
                    ("MachineDeployment", "machinedeployments"),
                    ("MachinePool", "machinepools"),
                ],
            ),
        ),
        "/apis/p.x/v1" => {
            let kinds = [
                ("CloudTemplate", "cloudtemplates"),
                ("PlaneTemplate", "planetemplates"),
            ];
            (200, resources("p.x/v1", &kinds))
        }
        "/apis/secret.x/v1" => (
            200,
            resources("secret.x/v1", &[("CloudTemplate", "cloudtemplates")]),
        ),
        "/apis/cluster.x-k8s.io/v1beta2/clusterclasses" => list(
            CORE,
            "ClusterClass",
            &[
                class("good", "p.x/v1"),
                class("unserved", "q.x/v1"),
                class("secret", "secret.x/v1"),
            ],
        ),
        "/apis/cluster.x-k8s.io/v1beta2/clusters" => list(
            CORE,
            "Cluster",
            &[cluster("good"), cluster("unserved"), cluster("secret")],
        ),
        "/apis/cluster.x-k8s.io/v1beta2/machinedeployments" => list(CORE, "MachineDeployment", &[]),
        "/apis/cluster.x-k8s.io/v1beta2/machinepools" => list(CORE, "MachinePool", &[]),
        "/apis/p.x/v1/cloudtemplates" => {
            list("p.x/v1", "CloudTemplate", &[template("CloudTemplate", "good")])
        }
        "/apis/p.x/v1/planetemplates" => {
            let all = ["good", "unserved", "secret"].map(|namespace| template("PlaneTemplate", namespace));
            list("p.x/v1", "PlaneTemplate", &all)
        }
        "/apis/secret.x/v1/cloudtemplates" => status(403, "Forbidden", "cloudtemplates is forbidden"),
        _ => status(404, "NotFound", "not found"),
    }
}

async fn client_of(server: &ScriptedServer) -> (Client, tempfile::TempDir) {
    let _ = shared::tls::install_crypto_provider();
    let directory = tempfile::tempdir().expect("a directory");
    let file: PathBuf = directory.path().join("kubeconfig");
    std::fs::write(&file, server.kubeconfig()).expect("written");
    (client(&file, None).await.expect("a client"), directory)
}

#[tokio::test]
async fn a_class_that_cannot_be_read_concerns_its_own_clusters_only() {
    let server = ScriptedServer::start(answer).await;
    let (client, _directory) = client_of(&server).await;
    let listed = read(client, &[]).await.expect("the others are read");
    let unread: Vec<&str> = listed
        .unread
        .keys()
        .map(|(version, _)| version.as_str())
        .collect();
    assert_eq!(unread, ["q.x/v1", "secret.x/v1"]);
    let planned = clusterclass::desired::offline::plans_of_live(&listed);
    let namespaces: Vec<&str> = planned.plans.iter().map(|plan| plan.namespace.as_str()).collect();
    assert_eq!(namespaces, ["good"], "{:?}", planned.findings);
    let told = |object: &str| -> String {
        let about = planned.findings.iter().filter(|one| one.object == object);
        about.map(ToString::to_string).collect()
    };
    let unserved = told("ClusterClass unserved/k");
    assert!(
        unserved.contains("template-unread") && unserved.contains("q.x/v1"),
        "{unserved}"
    );
    let secret = told("ClusterClass secret/k");
    assert!(
        secret.contains("template-unread") && secret.contains("forbidden"),
        "{secret}"
    );
}

#[tokio::test]
async fn what_every_topology_needs_must_be_read() {
    let server = ScriptedServer::start(|asked| {
        if asked.path.contains("/machinedeployments") {
            status(403, "Forbidden", "machinedeployments is forbidden")
        } else {
            answer(asked)
        }
    })
    .await;
    let (client, _directory) = client_of(&server).await;
    let error = read(client, &[])
        .await
        .expect_err("a plan without them would make each anew");
    assert!(format!("{error:#}").contains("machinedeployments"), "{error:#}");
}

/// A version of the provider's API: templates and clouds of two Clusters, with the field of this version.
fn of_version(version: &str, asked: &str) -> Option<(u16, Value)> {
    let field = if version == "v1" { "size" } else { "amount" };
    let api_version = format!("p.x/{version}");
    let objects = |kind: &str, spec: Value| {
        let about = if kind == "Cloud" {
            json!({"topology.cluster.x-k8s.io/owned": "", "cluster.x-k8s.io/cluster-name": "c"})
        } else {
            json!({})
        };
        let object = |namespace: &str| {
            let name = if kind == "Cloud" { "c" } else { "t" };
            json!({"metadata": {"name": name, "namespace": namespace, "labels": about.clone()}, "spec": spec.clone()})
        };
        list(&api_version, kind, &["good", "newer"].map(object))
    };
    match asked {
        "" => {
            let kinds = [
                ("CloudTemplate", "cloudtemplates"),
                ("Cloud", "clouds"),
                ("PlaneTemplate", "planetemplates"),
            ];
            Some((200, resources(&api_version, &kinds)))
        }
        "/cloudtemplates" => Some(objects(
            "CloudTemplate",
            json!({"template": {"spec": {field: 1}}}),
        )),
        "/clouds" => Some(objects("Cloud", json!({field: 1}))),
        "/planetemplates" => Some(objects("PlaneTemplate", json!({"template": {"spec": {}}}))),
        _ => None,
    }
}

/// A server with a class of the former version, one of the current one, and one of a version that is not served.
fn answer_in_versions(asked: &Asked) -> (u16, Value) {
    let path = asked.path.split('?').next().unwrap_or_default();
    let provider = path.strip_prefix("/apis/p.x/").and_then(|path| {
        let (version, asked) = path.split_at(path.find('/').unwrap_or(path.len()));
        let is_served = ["v1", "v2"].contains(&version);
        is_served.then(|| of_version(version, asked)).flatten()
    });
    if let Some(answer) = provider {
        return answer;
    }
    let made = |namespace: &str| {
        let mut cluster = cluster(namespace);
        cluster["spec"]["infrastructureRef"] = json!({"apiGroup": "p.x", "kind": "Cloud", "name": "c"});
        cluster
    };
    match path {
        "/apis/cluster.x-k8s.io/v1beta2/clusterclasses" => list(
            CORE,
            "ClusterClass",
            &[
                class("good", "p.x/v1"),
                class("newer", "p.x/v2"),
                class("tenant", "p.x/v0"),
            ],
        ),
        "/apis/cluster.x-k8s.io/v1beta2/clusters" => list(CORE, "Cluster", &["good", "newer"].map(made)),
        _ => answer(asked),
    }
}

#[tokio::test]
async fn classes_of_several_versions_of_a_provider_each_read_their_own() {
    let server = ScriptedServer::start(answer_in_versions).await;
    let (client, _directory) = client_of(&server).await;
    let listed = read(client, &[]).await.expect("it is read");
    let planned = clusterclass::desired::offline::plans_of_live(&listed);
    let namespaces: Vec<&str> = planned.plans.iter().map(|plan| plan.namespace.as_str()).collect();
    assert_eq!(namespaces, ["good", "newer"], "{:?}", planned.findings);
    for plan in &planned.plans {
        let mut changes = plan.changes.iter();
        let cloud = changes
            .find(|change| change.place == "infrastructure-cluster")
            .expect("one");
        let fields = format!("{:?}", cloud.fields);
        assert!(
            !fields.contains("size") && !fields.contains("amount"),
            "{}: it is compared with another version: {fields}",
            plan.namespace
        );
    }
}

/// A server with a class of pools, and a Cluster that has one; what it refers to may be listed by the label of pools alone.
fn answer_with_pools(asked: &Asked) -> (u16, Value) {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "c",
        "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/pool-name": "mp",
    });
    let object = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "good", "labels": labels}, "spec": spec});
    let of_pools = query.contains("topology.cluster.x-k8s.io%2Fpool-name");
    match path {
        "/apis/cluster.x-k8s.io/v1beta2/clusterclasses" => {
            let mut class = class("good", "p.x/v1");
            let of = |kind: &str| json!({"templateRef": {"apiVersion": "p.x/v1", "kind": kind, "name": "t"}});
            class["spec"]["workers"] = json!({"machinePools": [
                {"class": "spot", "bootstrap": of("BootTemplate"), "infrastructure": of("ScaleSetTemplate")},
            ]});
            list(CORE, "ClusterClass", &[class])
        }
        "/apis/cluster.x-k8s.io/v1beta2/clusters" => {
            let mut with_pool = cluster("good");
            with_pool["spec"]["topology"]["workers"] =
                json!({"machinePools": [{"class": "spot", "name": "mp"}]});
            let mut without = cluster("good");
            without["metadata"]["name"] = json!("without");
            list(CORE, "Cluster", &[with_pool, without])
        }
        "/apis/cluster.x-k8s.io/v1beta2/machinepools" => {
            let refer = |kind: &str| json!({"apiGroup": "p.x", "kind": kind, "name": "o"});
            let machine = json!({
                "version": "v1.31.0",
                "bootstrap": {"configRef": refer("Boot")},
                "infrastructureRef": refer("ScaleSet"),
            });
            list(
                CORE,
                "MachinePool",
                &[object("mp", json!({"template": {"spec": machine}}))],
            )
        }
        "/apis/p.x/v1" => {
            let kinds = [
                ("CloudTemplate", "cloudtemplates"),
                ("PlaneTemplate", "planetemplates"),
                ("BootTemplate", "boottemplates"),
                ("ScaleSetTemplate", "scalesettemplates"),
                ("Boot", "boots"),
                ("ScaleSet", "scalesets"),
            ];
            (200, resources("p.x/v1", &kinds))
        }
        "/apis/p.x/v1/boottemplates" => list("p.x/v1", "BootTemplate", &[template("BootTemplate", "good")]),
        "/apis/p.x/v1/scalesettemplates" => list(
            "p.x/v1",
            "ScaleSetTemplate",
            &[template("ScaleSetTemplate", "good")],
        ),
        "/apis/p.x/v1/boots" if of_pools => list("p.x/v1", "Boot", &[object("o", json!({}))]),
        "/apis/p.x/v1/scalesets" if of_pools => list("p.x/v1", "ScaleSet", &[object("o", json!({}))]),
        _ => answer(asked),
    }
}

#[tokio::test]
async fn machine_pools_are_read_with_what_they_refer_to() {
    let server = ScriptedServer::start(answer_with_pools).await;
    let (client, _directory) = client_of(&server).await;
    let listed = read(client, &[]).await.expect("it is read");
    let planned = clusterclass::desired::offline::plans_of_live(&listed);
    assert_eq!(planned.findings, []);
    let of_pool = planned.plans[0].changes.iter();
    let of_pool = of_pool.filter(|change| change.place.starts_with("machine-pool/"));
    let shown: Vec<String> = of_pool
        .map(|one| format!("{} {}", one.action.name(), one.name))
        .collect();
    assert_eq!(
        shown,
        ["update o", "update o", "update mp"],
        "they are found, and not made anew"
    );
}

#[tokio::test]
async fn pools_that_may_not_be_read_concern_clusters_that_use_them() {
    let server = ScriptedServer::start(|asked| {
        if asked.path.contains("/machinepools") {
            status(403, "Forbidden", "machinepools is forbidden")
        } else {
            answer_with_pools(asked)
        }
    })
    .await;
    let (client, _directory) = client_of(&server).await;
    let listed = read(client, &[]).await.expect("the others are read");
    let planned = clusterclass::desired::offline::plans_of_live(&listed);
    let names: Vec<&str> = planned.plans.iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names, ["without"]);
    let told: Vec<String> = planned.findings.iter().map(ToString::to_string).collect();
    assert!(
        told[0].contains("current-unread") && told[0].contains("forbidden"),
        "{told:?}"
    );
}
