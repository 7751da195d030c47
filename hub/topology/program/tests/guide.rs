//! docs/guides/preview-in-ci.md does what it says: its commands are typed into a shell, with this program and git.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use serde_json::{Value, json};
use shared::testing::api_server::ScriptedServer;

const ESTATE: &str = include_str!("../../../../e2e/fixtures/cluster-api/estate.yaml");

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guides/preview-in-ci.md");
    fs::read_to_string(page).expect("the guide")
}

/// The listings of this language below a heading.
fn listing(heading: &str, language: &str) -> String {
    let page = page();
    let (_, section) = page
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading:?}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let (_, listing) = section
        .split_once(&format!("```{language}\n"))
        .unwrap_or_else(|| panic!("no listing in {heading:?}"));
    let (listing, _) = listing.split_once("\n```").expect("its end");
    listing.to_owned()
}

/// A checkout of a pull request that gives machines another image, and where the main branch is.
struct Checkout {
    directory: tempfile::TempDir,
}

impl Checkout {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let checkout = Self { directory };
        let origin = checkout.at("origin");
        fs::create_dir_all(origin.join("fleet")).expect("made");
        fs::write(origin.join("fleet/estate.yaml"), ESTATE).expect("written");
        checkout.done(
            &origin,
            "git init -q -b main . && git add . && git commit -q -m one",
        );
        checkout.done(
            &checkout.at(""),
            "git clone -q origin clone && cd clone && git checkout -q -b edit",
        );
        let edited = ESTATE.replace("debian-12", "debian-13");
        assert_ne!(edited, ESTATE);
        fs::write(checkout.at("clone/fleet/estate.yaml"), edited).expect("written");
        checkout
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Types a script into a shell as CI has it.
    fn typed(&self, at: &Path, script: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_clusterclass"));
        let place = program.parent().expect("its directory");
        let path = env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(at)
            .env("PATH", format!("{}:{path}", place.display()))
            .env("GITHUB_BASE_REF", "main")
            .env("GITHUB_STEP_SUMMARY", self.at("summary.md"));
        for who in ["AUTHOR", "COMMITTER"] {
            shell
                .env(format!("GIT_{who}_NAME"), "a")
                .env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        shell.output().expect("a shell")
    }

    fn done(&self, at: &Path, script: &str) {
        let output = self.typed(at, script);
        assert!(output.status.success(), "{script}: {output:?}");
    }

    fn preview(&self) -> String {
        fs::read_to_string(self.at("clone/preview.txt")).expect("a preview")
    }
}

#[test]
fn a_pull_request_gets_the_table_that_the_guide_shows() {
    let checkout = Checkout::new();
    checkout.done(&checkout.at("clone"), &listing("From files", "sh"));
    let shown = listing("From files", "text");
    assert_eq!(checkout.preview().trim_end(), shown);
    assert!(shown.contains("4 rotated"), "{shown}");
}

#[test]
fn the_workflow_makes_the_table_its_summary() {
    let workflow: Value = serde_norway::from_str(&listing("As a workflow", "yaml")).expect("a workflow");
    let steps = workflow["jobs"]["preview"]["steps"].as_array().expect("steps");
    let script = steps
        .last()
        .and_then(|step| step["run"].as_str())
        .expect("a script");
    let checkout = Checkout::new();
    checkout.done(&checkout.at("clone"), script);
    let summary = fs::read_to_string(checkout.at("summary.md")).expect("a summary");
    assert_eq!(summary, format!("```\n{}```\n", checkout.preview()));
}

#[test]
fn an_edit_that_is_wrong_fails_the_job() {
    let checkout = Checkout::new();
    let wrong = ESTATE.replace("value: eu-central", "value: [1]");
    fs::write(checkout.at("clone/fleet/estate.yaml"), wrong).expect("written");
    let output = checkout.typed(&checkout.at("clone"), &listing("From files", "sh"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("variable-value"), "{said}");
    // The shell ends at `validate`, so that nobody reads a preview of it.
    assert!(!checkout.at("clone/preview.txt").exists());
}

#[test]
fn a_directory_without_documents_is_told() {
    let checkout = Checkout::new();
    fs::create_dir(checkout.at("empty")).expect("made");
    let output = checkout.typed(&checkout.at(""), "clusterclass validate -f empty");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*said),
        (
            Some(1),
            "error: empty has no .yaml, .yml or .json file: name another directory, or files\n"
        )
    );
}

/// The objects of the files, as an API server lists and discovers them.
fn answer(objects: &[Value], path: &str) -> (u16, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let of = |version: &str, kind: &str| {
        let is = |one: &&Value| one["apiVersion"] == version && one["kind"] == kind;
        objects.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    let kinds = [
        ("cluster.x-k8s.io/v1beta2", "ClusterClass"),
        ("cluster.x-k8s.io/v1beta2", "Cluster"),
        ("cluster.x-k8s.io/v1beta2", "MachineDeployment"),
        ("cluster.x-k8s.io/v1beta2", "MachineHealthCheck"),
        ("pretend.example.org/v1beta2", "Cloud"),
        ("pretend.example.org/v1beta2", "Plane"),
        ("pretend.example.org/v1beta2", "CloudTemplate"),
        ("pretend.example.org/v1beta2", "PlaneTemplate"),
        ("pretend.example.org/v1beta2", "HostTemplate"),
        ("pretend.example.org/v1beta2", "BootTemplate"),
    ];
    let plural = |kind: &str| match kind {
        "ClusterClass" => "clusterclasses".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    if path == "/apis" {
        let version = json!({"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"});
        let group = json!({"name": "cluster.x-k8s.io", "versions": [version], "preferredVersion": version});
        return (
            200,
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}),
        );
    }
    let Some(path) = path.strip_prefix("/apis/") else {
        return (404, json!({"kind": "Status", "apiVersion": "v1", "code": 404}));
    };
    for (version, kind) in kinds {
        if path == format!("{version}/{}", plural(kind)) {
            let items = of(version, kind);
            let list =
                json!({"apiVersion": version, "kind": format!("{kind}List"), "metadata": {}, "items": items});
            return (200, list);
        }
    }
    let resources: Vec<Value> = kinds
        .iter()
        .filter(|(version, _)| *version == path)
        .map(|(_, kind)| {
            json!({"name": plural(kind), "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "get"]})
        })
        .collect();
    let list =
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": path, "resources": resources});
    (200, list)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_management_cluster_is_read_and_not_written() {
    let documents = serde_norway::Deserializer::from_str(ESTATE);
    let objects: Vec<Value> = documents
        .map(|one| Value::deserialize(one).expect("an object"))
        .collect();
    let methods = Arc::new(Mutex::new(BTreeSet::new()));
    let asked = methods.clone();
    let server = ScriptedServer::start(move |request| {
        let method = request.method.clone();
        if method == "PATCH" {
            assert!(request.path.contains("dryRun=All"), "{}", request.path);
        }
        asked.lock().expect("no panic").insert(method.clone());
        match method.as_str() {
            "GET" => answer(&objects, &request.path),
            // The role of the guide has no right to it.
            _ => {
                let message = "forbidden: User \"ci\" cannot patch resource \"clouds\"";
                (403, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": message}))
            }
        }
    })
    .await;
    let checkout = Checkout::new();
    fs::write(checkout.at("clone/management.kubeconfig"), server.kubeconfig()).expect("written");
    let checkout = tokio::task::spawn_blocking(move || {
        checkout.done(
            &checkout.at("clone"),
            &listing("With the management cluster", "sh"),
        );
        checkout
    });
    let preview = checkout.await.expect("played").preview();
    assert!(
        preview.contains("debian-13") || preview.contains("create"),
        "{preview}"
    );
    let methods = methods.lock().expect("no panic").clone();
    assert_eq!(
        methods,
        BTreeSet::from(["GET".to_owned(), "PATCH".to_owned()]),
        "dry runs alone"
    );
}
