//! Owns: `tributary verify` as a process on simulated clusters: the life of its pods, its exit codes, what it says.
//! Never: runs a pod; a task stands in for the kubelets.

use std::{path::PathBuf, process::Stdio, sync::Arc};

use agent::probe::{Report, Request};
use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset, Role, child::ROLE_VARIABLE, eventually::eventually};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, WatchEvent, WatchParams},
};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sim::SimCluster;
use tokio::{
    process::{Child, Command},
    sync::watch,
    task::JoinSet,
};
use tributary_e2e::suite::sim_test;

const SHOP: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}";
/// A Service with one ready endpoint, and its export.
const CART: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart, namespace: shop}
"#;
/// The agent that the pods take their image from.
const AGENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: tributary-agent, namespace: tributary-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: "registry.example.org/tributary:1"}]
"#;
/// A pod of a run that was killed.
const LEFT_OVER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: tributary-verify-old, namespace: shop, labels: {tributary.dev/verify: old}}
spec: {containers: [{name: probe, image: i}]}
"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![sim_test(
        "sim::verify::pods_look_and_go_and_what_is_broken_is_named",
        verify,
    )]
}

async fn verify() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let mut stage = Stage::set(clusterset, dir.path().join("config.yaml")).await?;
    stage.works().await?;
    stage.is_left_nothing_when_interrupted().await?;
    stage.names_what_is_broken().await?;
    stage.clusterset.end().await
}

/// The fate of a pod at the kubelets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kubelet {
    /// Everything answers.
    Answers,
    /// No endpoint answers.
    TimesOut,
    /// The pod never ends.
    Stalls,
}

struct Stage {
    clusterset: LocalClusterset,
    config: PathBuf,
    kubelet: watch::Sender<Kubelet>,
    /// They end with it.
    _kubelets: JoinSet<()>,
}

impl Stage {
    async fn set(clusterset: LocalClusterset, config: PathBuf) -> anyhow::Result<Self> {
        let (kubelet, does) = watch::channel(Kubelet::Answers);
        let mut kubelets = JoinSet::new();
        for name in ["east", "west"] {
            let sim = clusterset.cluster(name)?.sim().context("simulated")?;
            sim.apply_yaml(SHOP)?;
            sim.apply_yaml(AGENT)?;
            let (sim, does) = (sim.clone(), does.clone());
            kubelets.spawn(async move {
                if let Err(error) = runs_pods(&sim, does).await {
                    eprintln!("the kubelet ended: {error:#}");
                }
            });
        }
        let stage = Self {
            clusterset,
            config,
            kubelet,
            _kubelets: kubelets,
        };
        stage.sim("east")?.apply_yaml(CART)?;
        let west = stage.sim("west")?;
        eventually("west imports shop/cart", || async {
            let import = west.get("ServiceImport", "shop", "cart");
            let has_ip = import.is_some_and(|import| import["spec"]["ips"][0].is_string());
            Ok((has_ip && !west.list("EndpointSlice").is_empty()).then_some(()))
        })
        .await?;
        Ok(stage)
    }

    fn sim(&self, name: &str) -> anyhow::Result<&SimCluster> {
        self.clusterset.cluster(name)?.sim().context("simulated")
    }

    fn start(&self, words: &[&str]) -> anyhow::Result<Child> {
        let kubeconfigs: Vec<String> = ["east", "west"]
            .iter()
            .map(|name| Ok(self.clusterset.cluster(name)?.kubeconfig.display().to_string()))
            .collect::<anyhow::Result<_>>()?;
        let hub = self.clusterset.hub_address.to_string();
        let child = Command::new(std::env::current_exe()?)
            .args(["verify", "shop/cart", "--cluster", "east=east,west=west"])
            .args(words)
            .args(self.clusterset.access_to_the_hub(&hub, "operator"))
            .env(ROLE_VARIABLE, Role::Client.as_str())
            .env("TRIBUTARY_CONFIG", &self.config)
            .env("KUBECONFIG", kubeconfigs.join(":"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(child)
    }

    /// Types the command, and returns what it printed.
    async fn types(&self, words: &[&str], code: i32) -> anyhow::Result<String> {
        let mut child = self.start(words)?;
        // The child ends when it closes.
        let _stdin = child.stdin.take();
        let output = child.wait_with_output().await?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, progress) = (said(&output.stdout), said(&output.stderr));
        println!("$ tributary verify {}\n{progress}{printed}", words.join(" "));
        ensure!(
            output.status.code() == Some(code),
            "{:?} instead of {code}: {progress}{printed}",
            output.status
        );
        Ok(printed + &progress)
    }

    fn pods(&self) -> anyhow::Result<Vec<Arc<Value>>> {
        let mut pods = self.sim("east")?.objects("Pod");
        pods.extend(self.sim("west")?.objects("Pod"));
        Ok(pods)
    }

    fn has_no_pod(&self) -> anyhow::Result<()> {
        let pods = self.pods()?;
        ensure!(pods.is_empty(), "pods are left: {pods:?}");
        Ok(())
    }

    /// A pod of a killed run goes too.
    async fn works(&self) -> anyhow::Result<()> {
        let west = self.sim("west")?;
        west.apply_yaml(LEFT_OVER)?;
        let ended = json!({"status": {"containerStatuses": [container(
            &json!({"terminated": {"exitCode": 0, "message": "{}", "finishedAt": "2026-01-01T00:00:00Z"}}),
        )]}});
        let pods: Api<Pod> = Api::namespaced(west.client(), "shop");
        let merge = Patch::Merge(&ended);
        pods.patch_status("tributary-verify-old", &PatchParams::default(), &merge)
            .await?;
        let said = self.types(&[], 0).await?;
        for words in [
            "shop/cart  east  east  IPv4    ok    ok  ok         0.7 ms",
            "shop/cart  west  east  IPv4    ok    ok  ok         0.7 ms",
            "Everything that was checked works.",
            "west: removed pod shop/tributary-verify-old, which an earlier run left",
        ] {
            ensure!(said.contains(words), "no {words}: {said}");
        }
        self.has_no_pod()?;
        let json = self.types(&["--from", "west", "-o", "json"], 0).await?;
        ensure!(
            json.contains(r#""result": "ok""#) && !json.contains(r#""from": "east""#),
            "{json}"
        );
        let unknown = self.types(&["--from", "north"], 2).await?;
        ensure!(unknown.contains("--cluster north=CONTEXT"), "{unknown}");
        Ok(())
    }

    async fn is_left_nothing_when_interrupted(&self) -> anyhow::Result<()> {
        self.kubelet.send_replace(Kubelet::Stalls);
        let given_up = self.types(&["--timeout", "1s"], 2).await?;
        ensure!(given_up.contains("gave up after 1 s"), "{given_up}");
        self.has_no_pod()?;
        let mut child = self.start(&[])?;
        let _stdin = child.stdin.take();
        eventually("a pod in each cluster", || async {
            Ok((self.pods()?.len() == 2).then_some(()))
        })
        .await?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(Pid::from_raw).context("it runs")?;
        kill_process(id, Signal::INT)?;
        let output = child.wait_with_output().await?;
        ensure!(output.status.code() == Some(2), "{output:?}");
        self.has_no_pod()?;
        self.kubelet.send_replace(Kubelet::Answers);
        Ok(())
    }

    async fn names_what_is_broken(&mut self) -> anyhow::Result<()> {
        self.kubelet.send_replace(Kubelet::TimesOut);
        let said = self.types(&["--from", "west"], 1).await?;
        ensure!(
            said.contains("10.0.0.1:8080 does not answer: no answer")
                && said.contains("next: route between the pods of west and those of east"),
            "{said}"
        );
        self.kubelet.send_replace(Kubelet::Answers);
        let said = self.types(&["--to", "west"], 1).await?;
        ensure!(said.contains("west does not export it"), "{said}");
        self.sim("east")?.delete("EndpointSlice", "shop", "cart-1")?;
        eventually("an export without an endpoint", || async {
            let said = self.types(&[], 1).await.ok();
            Ok(said.filter(|said| said.contains("east exports it without an endpoint")))
        })
        .await?;
        self.has_no_pod()
    }
}

fn container(state: &Value) -> Value {
    json!({"name": "probe", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

/// Ends each pod as the kubelets do now.
async fn runs_pods(cluster: &SimCluster, does: watch::Receiver<Kubelet>) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "shop");
    let mut events = Box::pin(pods.watch(&WatchParams::default(), "0").await?);
    while let Some(event) = events.try_next().await? {
        let WatchEvent::Added(pod) = event else { continue };
        let does = *does.borrow();
        if does == Kubelet::Stalls || pod.name_any() == "tributary-verify-old" {
            continue;
        }
        is_restricted(&pod)?;
        let report = serde_json::to_string(&report(cluster, &pod, does)?)?;
        let ended = container(&json!({"terminated": {"exitCode": 0, "message": report}}));
        let status = json!({"status": {"podIP": "10.9.0.1", "containerStatuses": [ended]}});
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&status))
            .await?;
    }
    Ok(())
}

/// A namespace with the restricted Pod Security Standard admits it, and it ends by itself.
fn is_restricted(pod: &Pod) -> anyhow::Result<()> {
    let spec = serde_json::to_value(&pod.spec)?;
    let container = &spec["containers"][0];
    ensure!(
        spec["securityContext"]["runAsNonRoot"] == true
            && spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
            && container["securityContext"]["allowPrivilegeEscalation"] == false
            && container["securityContext"]["capabilities"]["drop"] == json!(["ALL"])
            && container["image"] == "registry.example.org/tributary:1"
            && spec["automountServiceAccountToken"] == false
            && spec["activeDeadlineSeconds"].is_number(),
        "{spec}"
    );
    Ok(())
}

/// The report of a pod in a cluster whose network works.
fn report(cluster: &SimCluster, pod: &Pod, does: Kubelet) -> anyhow::Result<Report> {
    let args = pod.spec.as_ref().and_then(|spec| spec.containers[0].args.clone());
    let args = args.unwrap_or_default();
    let request: Request = serde_json::from_str(args.last().context("a request")?)?;
    let import = cluster
        .get("ServiceImport", "shop", "cart")
        .context("an import")?;
    let ips: Vec<std::net::IpAddr> = serde_json::from_value(import["spec"]["ips"].clone())?;
    let name = |name: &String| match name.as_str() {
        "cart.shop.svc.clusterset.local." => Ok(ips.clone()),
        _ => Err("Name does not resolve".to_owned()),
    };
    let dial = |at: &std::net::SocketAddr| {
        if does == Kubelet::TimesOut && at.port() == 8080 {
            Err("no answer".to_owned())
        } else {
            Ok(640)
        }
    };
    Ok(Report {
        names: request.names.iter().map(name).collect(),
        dials: request.dials.iter().map(dial).collect(),
    })
}
