//! The doctor at a scripted API server: no fault where there is none, and planted ones found by the real questions.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use shared::{
    doctor::{Check, Report},
    testing::api_server::{Asked, ScriptedServer},
};

use super::{
    args::{GatherArgs, LookArgs},
    examine, gather,
};

/// The fault in the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    NoDefinition,
    LaterVersion,
    NoRight,
    OtherId,
    OtherHolder,
    NoZone,
    Overlap,
    DeadEndpoint,
    NotReady,
}

const COREFILE: &str = ".:53 {\n    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n        \
                        pods insecure\n        multicluster clusterset.local\n    }\n}\n";

fn list(kind: &str, items: Value) -> (u16, Value) {
    (
        200,
        json!({"apiVersion": "v1", "kind": kind, "metadata": {}, "items": items}),
    )
}

fn group(name: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn kinds(version: &str, plurals: &[&str]) -> (u16, Value) {
    let of = |plural: &&str| json!({"name": plural, "singularName": "", "namespaced": true, "kind": "K", "verbs": ["list"]});
    let resources: Vec<Value> = plurals.iter().map(of).collect();
    (
        200,
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources}),
    )
}

/// A good cluster `east` but for what is planted; slices of `west` are of `port`.
fn answer(asked: &Asked, planted: Planted, port: u16) -> (u16, Value) {
    let path = asked.path.split('?').next().unwrap_or_default();
    let imported = asked.path.contains("managed-by%3Dtributary-agent.tributary.dev");
    match path {
        "/version" => (
            200,
            json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
        ),
        "/apis" => {
            let multicluster = match planted {
                Planted::LaterVersion => group("multicluster.x-k8s.io", &["v1"]),
                _ => group("multicluster.x-k8s.io", &["v1beta1"]),
            };
            (
                200,
                json!({"kind": "APIGroupList", "groups": [multicluster, group("about.k8s.io", &["v1beta1"])]}),
            )
        }
        "/apis/multicluster.x-k8s.io/v1beta1" if planted == Planted::NoDefinition => {
            kinds("multicluster.x-k8s.io/v1beta1", &["serviceexports"])
        }
        "/apis/multicluster.x-k8s.io/v1beta1" | "/apis/multicluster.x-k8s.io/v1" => {
            kinds(&path[6..], &["serviceexports", "serviceimports"])
        }
        "/apis/about.k8s.io/v1beta1" => kinds(&path[6..], &["clusterproperties"]),
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
            let of = &asked.body["spec"]["resourceAttributes"];
            let missing = of["resource"] == "endpointslices" && of["verb"] == "delete";
            let allowed = !(missing && planted == Planted::NoRight);
            (
                201,
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": asked.body["spec"], "status": {"allowed": allowed}}),
            )
        }
        "/apis/about.k8s.io/v1beta1/clusterproperties/cluster.clusterset.k8s.io" => {
            let id = if planted == Planted::OtherId {
                "west"
            } else {
                "east"
            };
            (
                200,
                json!({"apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty",
                "metadata": {"name": "cluster.clusterset.k8s.io"}, "spec": {"value": id}}),
            )
        }
        "/apis/coordination.k8s.io/v1/namespaces/tributary-system/leases/tributary-agent" => {
            let holder = if planted == Planted::OtherHolder {
                "laptop"
            } else {
                "pod-1"
            };
            (200, lease("tributary-agent", holder))
        }
        "/apis/coordination.k8s.io/v1/namespaces/tributary-system/leases" => {
            let suffix = shared::model::derived_name::identity_lease_suffix("pod-1", "tributary-agent");
            list(
                "LeaseList",
                json!([lease(&format!("tributary-agent-{suffix}"), "x")]),
            )
        }
        "/api/v1/namespaces/kube-system/configmaps/coredns" => {
            let corefile = match planted {
                Planted::NoZone => COREFILE
                    .replace(" clusterset.local in", " in")
                    .replace("multicluster clusterset.local", ""),
                _ => COREFILE.to_owned(),
            };
            (
                200,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns"},
                "data": {"Corefile": corefile}}),
            )
        }
        "/apis/discovery.k8s.io/v1/endpointslices" if imported => {
            let address = if planted == Planted::Overlap {
                "127.0.0.10"
            } else {
                "127.0.0.1"
            };
            let labels = json!({"multicluster.kubernetes.io/source-cluster": "west"});
            list(
                "EndpointSliceList",
                json!([{"metadata": {"name": "s", "namespace": "shop", "labels": labels},
                "addressType": "IPv4", "ports": [{"port": port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": true}}]}]),
            )
        }
        "/api/v1/nodes" => list(
            "NodeList",
            json!([{"metadata": {"name": "n"}, "spec": {"podCIDR": "127.0.0.8/29"}}]),
        ),
        "/apis/multicluster.x-k8s.io/v1beta1/serviceexports" => list(
            "ServiceExportList",
            json!([{"metadata": {"name": "cart", "namespace": "shop"}, "spec": {}}]),
        ),
        "/api/v1/services" | "/apis/discovery.k8s.io/v1/endpointslices" => list("List", json!([])),
        // Somebody has put a key where none belongs.
        "/apis/multicluster.x-k8s.io/v1beta1/serviceimports" => {
            let ready = if planted == Planted::NotReady {
                "False"
            } else {
                "True"
            };
            let condition = json!({"type": "Ready", "status": ready, "reason": "Pending", "message": "range is full",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            list(
                "ServiceImportList",
                json!([{
                "metadata": {"name": "cart", "namespace": "shop", "annotations": {"note": KEY_LINE}},
                "spec": {"type": "Headless", "ports": []}, "status": {"clusters": [], "conditions": [condition]}}]),
            )
        }
        _ => (
            404,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": "not found"}),
        ),
    }
}

fn lease(name: &str, holder: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"}})
}

/// A line of the private key that is planted.
const KEY_LINE: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg";

/// The flags of a doctor at such a cluster.
async fn look(place: &tempfile::TempDir, planted: Planted) -> (LookArgs, tokio::net::TcpListener) {
    let endpoint = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let port = endpoint.local_addr().expect("an address").port();
    let dialled = if planted == Planted::DeadEndpoint { 1 } else { port };
    let server = ScriptedServer::start(move |asked| answer(asked, planted, dialled)).await;
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let key = format!("-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----\n");
    let args = LookArgs {
        hubs: vec![format!("https://127.0.0.1:{port}").parse().expect("an address")],
        tls: shared::tls::TlsFiles {
            cert: PathBuf::from("missing.crt"),
            key: write("tls.key", &key),
            ca: PathBuf::from("missing.crt"),
        },
        kubeconfig: Some(write("kubeconfig", &server.kubeconfig())),
        cluster_id: Some(shared::model::ClusterId::new("east").expect("valid")),
        dial_endpoints: true,
    };
    (args, endpoint)
}

/// Runs the doctor on such a cluster. The missing certificate, a fault of its own, is left out.
async fn said_of(planted: Planted) -> (Vec<(&'static str, String)>, Report) {
    let place = tempfile::tempdir().expect("a directory");
    let (args, _endpoint) = look(&place, planted).await;
    let report = examine(&args).await;
    let wrong = |check: &&Check| {
        check.name != "certificate-files" && !matches!(check.verdict.word(), "ok" | "note" | "skipped")
    };
    let found = report
        .checks
        .iter()
        .filter(wrong)
        .map(|check| (check.name, check.verdict.words().0));
    (found.collect(), report)
}

#[tokio::test]
async fn a_good_cluster_has_nothing_wrong() {
    let (found, report) = said_of(Planted::Nothing).await;
    assert!(found.is_empty(), "{}", report.text());
    let fine = report
        .checks
        .iter()
        .filter(|check| check.verdict.word() == "ok")
        .count();
    assert!(fine >= 9, "{}", report.text());
}

#[tokio::test]
async fn planted_faults_are_found_and_nothing_else() {
    for (planted, name, what) in [
        (Planted::NoDefinition, "definitions", "serviceimports"),
        (
            Planted::NoRight,
            "rights",
            "delete endpointslices.discovery.k8s.io",
        ),
        (Planted::OtherId, "cluster-id", "says west"),
        (Planted::OtherHolder, "agent-lease", "held by laptop"),
        (Planted::NoZone, "coredns-corefile", "zone clusterset.local"),
        (Planted::Overlap, "ranges", "127.0.0.10 is of this cluster's pods"),
        (Planted::DeadEndpoint, "source-endpoint", "west: 127.0.0.1:1"),
        (
            Planted::NotReady,
            "imports",
            "shop/cart is not ready (Pending): range is full",
        ),
    ] {
        let (mut found, report) = said_of(planted).await;
        if planted == Planted::Overlap {
            // Nothing listens at that address.
            found.retain(|(name, _)| *name != "source-endpoint");
        }
        let [(found_name, said)] = &found[..] else {
            panic!("{name}: {}", report.text())
        };
        assert_eq!(*found_name, name, "{}", report.text());
        assert!(said.contains(what), "{said}");
        assert_eq!(report.exit_code(), 1);
    }
    let (found, report) = said_of(Planted::LaterVersion).await;
    assert_eq!(found.len(), 2, "{}", report.text());
    assert!(
        found[0].1.contains("multicluster.x-k8s.io/v1 only"),
        "{}",
        report.text()
    );
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_unseen() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut args, _endpoint) = look(&place, Planted::Nothing).await;
    args.kubeconfig = Some(place.path().join("missing"));
    let report = examine(&args).await;
    let cluster = report
        .checks
        .iter()
        .find(|check| check.name == "cluster")
        .expect("a check");
    assert_eq!(cluster.verdict.word(), "unseen");
}

#[tokio::test]
async fn what_is_gathered_has_no_key_in_it() {
    let place = tempfile::tempdir().expect("a directory");
    let (look, _endpoint) = look(&place, Planted::Nothing).await;
    let out = place.path().join("gathered");
    let args = GatherArgs {
        look,
        out: out.clone(),
        service: None,
    };
    let bundle = gather::gather(&args).await.expect("gathered");
    assert!(bundle.files().len() >= 9, "{:?}", bundle.files());
    let mut imports = String::new();
    for name in bundle.files() {
        let text = fs::read_to_string(out.join(name)).expect("written");
        assert!(!text.contains(KEY_LINE), "{name}: {text}");
        assert!(!text.contains("PRIVATE KEY"), "{name}: {text}");
        if name == "serviceimport.json" {
            imports = text;
        }
    }
    assert!(imports.contains("[redacted]"), "it was planted: {imports}");
    assert!(gather::gather(&args).await.is_err(), "nothing is written over");
}
