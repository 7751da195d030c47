//! A class whose patches an extension makes, previewed with and without it. The extension does what the one of Cluster API's
//! own tests does.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use data_encoding::BASE64;
use serde_json::{Value, json};
use shared::testing::api_server::{Asked, ScriptedServer};

const CLASS: &str = "
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick-start-runtimesdk}
spec:
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DockerClusterTemplate, name: t}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: t}
  patches:
  - name: test-patch
    external:
      generatePatchesExtension: generate-patches.test-extension
      validateTopologyExtension: validate-topology.test-extension
      discoverVariablesExtension: discover-variables.test-extension
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerClusterTemplate
metadata: {name: t}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: t}
spec: {template: {spec: {kubeadmConfigSpec: {}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: shop}
spec:
  topology:
    classRef: {name: quick-start-runtimesdk}
    version: v1.34.1
    variables: [{name: kubeadmControlPlaneMaxSurge, value: '1'}]
";

fn value<'a>(variables: &'a Value, name: &str) -> Option<&'a Value> {
    let all = variables.as_array().into_iter().flatten();
    all.filter(|one| one["name"] == name)
        .map(|one| &one["value"])
        .next()
}

/// Patches as the extension of Cluster API's tests makes them.
fn patches(request: &Value) -> Value {
    let surge = value(&request["variables"], "kubeadmControlPlaneMaxSurge").and_then(Value::as_str);
    let mut items = Vec::new();
    for item in request["items"].as_array().into_iter().flatten() {
        let spec = match item["object"]["kind"].as_str() {
            Some("DockerClusterTemplate") => {
                let repository = value(&request["variables"], "imageRepository");
                json!({"loadBalancer": {"imageRepository": repository}})
            }
            _ => {
                let builtin = value(&item["variables"], "builtin").expect("builtin variables");
                let version = builtin["controlPlane"]["version"].as_str().expect("a version");
                let label = json!({"name": "node-labels", "value": format!("kubernetesVersion={version}")});
                json!({
                    "kubeadmConfigSpec": {"initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [label]}}},
                    "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}},
                })
            }
        };
        let patch = json!({"spec": {"template": {"spec": spec}}}).to_string();
        items.push(json!({"uid": item["uid"], "patchType": "JSONMergePatch", "patch": BASE64.encode(patch.as_bytes())}));
    }
    json!({"status": "Success", "items": items})
}

fn answer(asked: &Asked) -> (u16, Value) {
    let text = |default: &str| json!({"openAPIV3Schema": {"type": "string", "default": default}});
    let path = asked.path.split('?').next().unwrap_or_default();
    let hook = path
        .strip_prefix("/hooks.runtime.cluster.x-k8s.io/v1alpha1/")
        .expect("a hook");
    let body = match hook {
        "discovervariables/discover-variables" => json!({"status": "Success", "variables": [
            {"name": "kubeadmControlPlaneMaxSurge", "required": false, "schema": text("")},
            {"name": "imageRepository", "required": true, "schema": text("registry.example.org")},
        ]}),
        "generatepatches/generate-patches" => patches(&asked.body),
        "validatetopology/validate-topology" => {
            let items = asked.body["items"].as_array().expect("items");
            let surge =
                items[1]["object"].pointer("/spec/template/spec/rollout/strategy/rollingUpdate/maxSurge");
            if surge == Some(&json!("3")) {
                json!({"status": "Failure", "message": "maxSurge must be 0 or 1"})
            } else {
                json!({"status": "Success"})
            }
        }
        _ => return (404, json!({"message": "no such handler"})),
    };
    (200, body)
}

fn clusterclass(at: &Path, words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_clusterclass");
    Command::new(program)
        .current_dir(at)
        .args(words)
        .output()
        .expect("run")
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn without_its_extension_the_preview_says_what_it_lacks() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("all.yaml"), CLASS).expect("written");
    let missing = "patch test-patch is not applied: extension generate-patches.test-extension was not asked; give \
                   --extension test-extension=URL\n";
    for command in ["plan", "diff", "explain"] {
        let (code, out, err) = said(&clusterclass(directory.path(), &[command, "-f", "all.yaml"]));
        assert_eq!(code, Some(2), "{command}: {out}{err}");
        assert!(out.contains(missing), "{command}: {out}");
        assert!(
            out.contains("carried as they are: kubeadmControlPlaneMaxSurge"),
            "{command}: {out}"
        );
        assert!(
            err.starts_with("warning: extension test-extension was not asked for 1 Cluster: "),
            "{err}"
        );
    }
    let (code, out, err) = said(&clusterclass(directory.path(), &["validate", "-f", "all.yaml"]));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let (code, out, err) = said(&clusterclass(directory.path(), &["patch", "-f", "all.yaml"]));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("# not applied: patch test-patch of extension generate-patches.test-extension"),
        "{out}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_extension_the_preview_is_whole() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let paths = asked.clone();
    let server = ScriptedServer::start(move |request| {
        paths.lock().expect("no panic").push(request.path.clone());
        answer(request)
    })
    .await;
    let played = tokio::task::spawn_blocking(move || {
        let directory = tempfile::tempdir().expect("a directory");
        let given = format!("test-extension={}", server.uri);
        let run = |class: &str, words: &[&str]| {
            fs::write(directory.path().join("all.yaml"), class).expect("written");
            let all = [words, &["-f", "all.yaml", "--extension", &given]].concat();
            said(&clusterclass(directory.path(), &all))
        };
        let (code, out, err) = run(CLASS, &["plan"]);
        assert_eq!((code, err.as_str()), (Some(2), ""), "{out}");
        for line in [
            "imageRepository: registry.example.org",
            "maxSurge: \"1\"",
            "value: \"kubernetesVersion=v1.34.1\"",
        ] {
            assert!(out.contains(line), "{line}: {out}");
        }
        assert!(!out.contains("not applied"), "{out}");
        let (code, out, _) = run(&CLASS.replace("value: '1'", "value: 1"), &["diff"]);
        assert_eq!(code, Some(1));
        assert!(out.contains("variable-value: must be of type string"), "{out}");
        let (code, out, _) = run(&CLASS.replace("value: '1'", "value: '3'"), &["diff"]);
        assert_eq!(code, Some(1));
        let refusal =
            "extension validate-topology.test-extension: it answered Failure: maxSurge must be 0 or 1";
        assert!(out.contains(refusal), "{out}");
        let (code, out, _) = run(&CLASS.replace("generate-patches.", "gone."), &["diff"]);
        assert_eq!(code, Some(1));
        assert!(
            out.contains("extension gone.test-extension: it answered with HTTP 404"),
            "{out}"
        );
    });
    played.await.expect("played");
    let asked = asked.lock().expect("no panic");
    let path = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/generate-patches?timeout=10s";
    assert!(asked.iter().any(|one| one == path), "{asked:?}");
}
