//! Rebases beside an API server whose Clusters follow their class, or do not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use clap::Parser;
use clusterclass::desired::change::Changes;
use serde_json::{Value, json};
use shared::testing::api_server::{Asked, ScriptedServer};
use tokio_util::sync::CancellationToken;

use super::{RebaseArgs, live, run_until, waves::Pace};

/// The flags alone.
#[derive(Debug, Parser)]
struct Words {
    #[command(flatten)]
    args: RebaseArgs,
}

/// The objects of the API server, and its behaviour.
#[derive(Default)]
struct Estate {
    /// `v1beta2` or `v1beta1`: how Clusters are served.
    older: bool,
    clusters: BTreeMap<String, Value>,
    /// Clusters whose topology cannot be reconciled with their new class.
    failing: BTreeSet<String>,
    /// Clusters whose edit the server refuses.
    refused: BTreeSet<String>,
    /// Clusters that were edited, in their order.
    edited: Vec<String>,
    /// Most Clusters that were on their way at once.
    most: usize,
    /// After so many edits, this ends the command.
    ends: Option<(usize, CancellationToken)>,
}

impl Estate {
    fn version(&self) -> &'static str {
        if self.older {
            "cluster.x-k8s.io/v1beta1"
        } else {
            "cluster.x-k8s.io/v1beta2"
        }
    }

    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let core = format!("/apis/{}", self.version());
        if path == "/apis" {
            let (_, version) = self.version().split_once('/').expect("a version");
            let version = json!({"groupVersion": self.version(), "version": version});
            let group =
                json!({"name": "cluster.x-k8s.io", "versions": [version], "preferredVersion": version});
            return (
                200,
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}),
            );
        }
        if path == core || path == "/apis/p.x/v1" {
            return (200, resources(path));
        }
        let list = |items: Vec<Value>| (200, json!({"metadata": {}, "items": items}));
        if let Some(name) = path.strip_prefix(&format!("{core}/namespaces/ns/clusters/")) {
            return match asked.method.as_str() {
                "PATCH" => self.edit(name, &asked.body, query.contains("dryRun=All")),
                _ => self.look(name),
            };
        }
        if path == format!("{core}/clusters") {
            let selected = |one: &&Value| {
                !query.contains("labelSelector") || one["metadata"]["labels"]["team"] == "shop"
            };
            return list(self.clusters.values().filter(selected).cloned().collect());
        }
        if path == format!("{core}/clusterclasses") {
            return list(["a", "b"].map(|name| self.class(name)).to_vec());
        }
        match path {
            "/apis/p.x/v1/cloudtemplates" => list(vec![template("CloudTemplate")]),
            "/apis/p.x/v1/planetemplates" => list(vec![template("PlaneTemplate")]),
            _ => list(Vec::new()),
        }
    }

    fn class(&self, name: &str) -> Value {
        let field = if self.older { "ref" } else { "templateRef" };
        let of = |kind: &str| json!({field: {"apiVersion": "p.x/v1", "kind": kind, "name": "t"}});
        json!({
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"infrastructure": of("CloudTemplate"), "controlPlane": of("PlaneTemplate")},
        })
    }

    /// A Cluster, whose conditions follow one look after the edit.
    fn look(&mut self, name: &str) -> (u16, Value) {
        let fails = self.failing.contains(name);
        let Some(cluster) = self.clusters.get_mut(name) else {
            return (
                404,
                json!({"kind": "Status", "code": 404, "status": "Failure", "reason": "NotFound"}),
            );
        };
        let shown = cluster.clone();
        let (status, reason) = if fails {
            ("False", "ReconcileFailed")
        } else {
            ("True", "ReconcileSucceeded")
        };
        *cluster = conditioned(cluster.clone(), status, reason);
        (200, shown)
    }

    fn edit(&mut self, name: &str, edits: &Value, dry: bool) -> (u16, Value) {
        let refusal = |code: u16, message: &str| {
            (
                code,
                json!({"kind": "Status", "status": "Failure", "code": code, "message": message}),
            )
        };
        if self.refused.contains(name) {
            return refusal(422, "class b is not for this Cluster");
        }
        let mut after = self.clusters[name].clone();
        for edit in edits.as_array().expect("a JSON Patch") {
            let (path, value) = (edit["path"].as_str().expect("a path"), &edit["value"]);
            if edit["op"] == "test" {
                if after.pointer(path) != Some(value) {
                    return refusal(422, "a test failed");
                }
                continue;
            }
            let (holder, field) = path.rsplit_once('/').expect("a field");
            let holder = after
                .pointer_mut(holder)
                .and_then(Value::as_object_mut)
                .expect("an object");
            match edit["op"].as_str() {
                Some("remove") => drop(holder.remove(field)),
                _ => drop(holder.insert(field.to_owned(), value.clone())),
            }
        }
        if !dry {
            let generation = after["metadata"]["generation"].as_i64().expect("one");
            after["metadata"]["generation"] = json!(generation + 1);
            self.clusters.insert(name.to_owned(), after.clone());
            self.edited.push(name.to_owned());
            let is_old = |one: &&Value| one["metadata"]["generation"] != one["seen"];
            self.most = self.most.max(self.clusters.values().filter(is_old).count());
            if let Some((edits, ended)) = &self.ends
                && self.edited.len() >= *edits
            {
                ended.cancel();
            }
        }
        (200, after)
    }
}

/// The Cluster with conditions about its `spec` as it is now; `seen` is for the test.
fn conditioned(mut cluster: Value, status: &str, reason: &str) -> Value {
    let generation = cluster["metadata"]["generation"].clone();
    cluster["seen"] = generation.clone();
    let of = |name: &str, status: &str| json!({"type": name, "status": status, "reason": reason, "message": "", "observedGeneration": generation});
    cluster["status"]["conditions"] = json!([
        of("TopologyReconciled", status),
        of("RollingOut", "False"),
        of("Available", "True"),
    ]);
    cluster
}

fn resources(path: &str) -> Value {
    let group = path.trim_start_matches("/apis/");
    let kinds: &[(&str, &str)] = if group == "p.x/v1" {
        &[
            ("CloudTemplate", "cloudtemplates"),
            ("PlaneTemplate", "planetemplates"),
        ]
    } else {
        &[
            ("ClusterClass", "clusterclasses"),
            ("Cluster", "clusters"),
            ("MachineDeployment", "machinedeployments"),
        ]
    };
    let resource = |(kind, plural): &(&str, &str)| json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "get", "patch"]});
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources})
}

fn template(kind: &str) -> Value {
    json!({"metadata": {"name": "t", "namespace": "ns"}, "kind": kind, "spec": {"template": {"spec": {}}}})
}

/// Clusters of class `a` of one team, and one of another team.
fn estate(older: bool, names: &[&str]) -> Estate {
    let class = if older {
        json!({"class": "a"})
    } else {
        json!({"classRef": {"name": "a"}})
    };
    let cluster = |name: &str, team: &str| {
        let mut topology = class.clone();
        topology["version"] = json!("v1.31.0");
        topology["controlPlane"] = json!({});
        let about =
            json!({"name": name, "namespace": "ns", "uid": name, "generation": 1, "labels": {"team": team}});
        let cluster = json!({"metadata": about, "spec": {"topology": topology}});
        (
            name.to_owned(),
            conditioned(cluster, "True", "ReconcileSucceeded"),
        )
    };
    let mut clusters: BTreeMap<String, Value> = names.iter().map(|name| cluster(name, "shop")).collect();
    clusters.extend([cluster("other", "data")]);
    Estate {
        older,
        clusters,
        ..Estate::default()
    }
}

struct Played(Arc<Mutex<Estate>>);

impl Played {
    fn of(estate: Estate) -> Self {
        Self(Arc::new(Mutex::new(estate)))
    }

    fn estate(&self) -> MutexGuard<'_, Estate> {
        self.0.lock().expect("no panic")
    }

    /// Runs the command: what it says in the end or its error, and the steps that it tells.
    async fn run(&self, words: &[&str]) -> (Result<(String, Changes), String>, Vec<String>) {
        let _ = shared::tls::install_crypto_provider();
        let estate = self.0.clone();
        let server = ScriptedServer::start(move |asked| estate.lock().expect("no panic").answer(asked)).await;
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("kubeconfig");
        std::fs::write(&file, server.kubeconfig()).expect("written");
        let client = live::client(&file, None).await.expect("a client");
        let mut given = vec!["rebase", "--clusters", "team=shop", "--kubeconfig", "k"];
        for (flag, class) in [("--from", "a"), ("--to", "b")] {
            if !words.contains(&flag) {
                given.extend([flag, class]);
            }
        }
        let words = Words::try_parse_from(given.iter().chain(words)).expect("its words");
        let pace = Pace {
            look: Duration::from_millis(5),
            settle: Duration::from_millis(10),
            patience: Duration::from_millis(50),
            wait: Duration::from_secs(20),
        };
        let ended = CancellationToken::new();
        if let Some((_, ends)) = &mut self.estate().ends {
            *ends = ended.clone();
        }
        let mut told = Vec::new();
        let said = run_until(&words.args, client, pace, ended, &mut |line| told.push(line)).await;
        (said.map_err(|error| format!("{error:#}")), told)
    }

    fn classes(&self) -> Vec<String> {
        let estate = self.estate();
        let of = |(name, one): (&String, &Value)| {
            let topology = &one["spec"]["topology"];
            let class = topology["classRef"]["name"]
                .as_str()
                .or_else(|| topology["class"].as_str());
            format!("{name} {}", class.unwrap_or("-"))
        };
        estate.clusters.iter().map(of).collect()
    }
}

#[tokio::test]
async fn a_preview_writes_nothing() {
    let world = Played::of(estate(false, &["c1", "c2", "c3"]));
    let (said, told) = world.run(&["--at-once", "2"]).await;
    let (text, changes) = said.expect("all is well");
    assert_eq!((changes, told.len()), (Changes::Something, 0));
    assert!(text.contains("ns/c1") && !text.contains("ns/other"), "{text}");
    let end =
        "wave 1 of 2: ns/c1, ns/c2\nwave 2 of 2: ns/c3\nnothing was written; --confirm carries it out\n";
    assert!(text.ends_with(end), "{text}");
    assert!(world.estate().edited.is_empty());
}

#[tokio::test]
async fn waves_follow_each_other_and_nobody_else_is_touched() {
    for older in [false, true] {
        let world = Played::of(estate(older, &["c1", "c2", "c3"]));
        let (said, told) = world.run(&["--at-once", "2", "--confirm"]).await;
        assert_eq!(
            said,
            Ok((
                "3 Clusters have class b and are healthy\n".to_owned(),
                Changes::Nothing
            ))
        );
        assert_eq!(world.classes(), ["c1 b", "c2 b", "c3 b", "other a"]);
        assert_eq!(world.estate().edited, ["c1", "c2", "c3"]);
        assert_eq!(world.estate().most, 2, "the second wave waits for the first");
        let waves: Vec<&String> = told
            .iter()
            .filter(|line| line.starts_with("wave 2 of 2: ns/c3"))
            .collect();
        assert_eq!(waves.len(), 1);
    }
}

#[tokio::test]
async fn a_failing_cluster_ends_it_and_the_same_command_goes_on_once_it_is_mended() {
    let mut failing = estate(false, &["c1", "c2", "c3"]);
    failing.failing.insert("c1".to_owned());
    let world = Played::of(failing);
    let (said, _) = world.run(&["--at-once", "1", "--confirm"]).await;
    let error = said.expect_err("c1 fails");
    assert!(
        error.contains("1 of 3 Clusters have the class now: Cluster ns/c1 fails"),
        "{error}"
    );
    assert!(
        error.contains("ReconcileFailed") && error.contains("run the same command again"),
        "{error}"
    );
    assert_eq!(world.classes(), ["c1 b", "c2 a", "c3 a", "other a"]);
    // Not mended, it is still in the way.
    let (said, _) = world.run(&["--at-once", "1", "--confirm"]).await;
    assert!(said.is_err_and(|error| error.contains("ns/c1 fails")));
    assert_eq!(world.classes(), ["c1 b", "c2 a", "c3 a", "other a"]);
    world.estate().failing.clear();
    let (said, _) = world.run(&["--at-once", "1", "--confirm"]).await;
    assert_eq!(
        said,
        Ok((
            "3 Clusters have class b and are healthy\n".to_owned(),
            Changes::Nothing
        ))
    );
    assert_eq!(world.estate().edited, ["c1", "c2", "c3"], "none is written twice");
}

#[tokio::test]
async fn an_end_comes_after_the_write_that_goes_on() {
    let mut ending = estate(false, &["c1", "c2", "c3"]);
    ending.ends = Some((2, CancellationToken::new()));
    let world = Played::of(ending);
    let (said, _) = world.run(&["--at-once", "3", "--confirm"]).await;
    let error = said.expect_err("it is ended");
    assert!(error.contains("Ctrl-C") && error.contains("2 of 3"), "{error}");
    assert_eq!(world.classes(), ["c1 b", "c2 b", "c3 a", "other a"]);
    world.estate().ends = None;
    let (said, told) = world.run(&["--at-once", "3", "--confirm"]).await;
    assert!(said.is_ok(), "{said:?}");
    assert!(told[1].starts_with("2 have the class already"), "{told:?}");
}

#[tokio::test]
async fn what_the_server_or_the_rules_refuse_is_seen_before_anything_is_written() {
    let mut refusing = estate(false, &["c1", "c2"]);
    refusing.refused.insert("c2".to_owned());
    let world = Played::of(refusing);
    let (said, _) = world.run(&["--confirm"]).await;
    let error = said.expect_err("c2 is refused");
    assert!(
        error.contains("ns/c2") && error.contains("not for this Cluster"),
        "{error}"
    );
    let (said, _) = world.run(&["--to", "nothing", "--confirm"]).await;
    assert!(said.is_err_and(|error| error.contains("class-exists")));
    world.estate().refused.clear();
    let paused = json!(true);
    world.estate().clusters.get_mut("c1").expect("it")["spec"]["paused"] = paused;
    let (said, _) = world.run(&["--confirm"]).await;
    assert!(said.is_err_and(|error| error.starts_with("paused: ns/c1")));
    assert!(world.estate().edited.is_empty());
    let (said, _) = world.run(&["--from", "nothing", "--to", "neither"]).await;
    assert!(said.is_err_and(|error| error.contains("none has class nothing")));
}
