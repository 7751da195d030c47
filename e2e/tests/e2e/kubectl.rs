//! People's kubectl commands, on simulated clusters as on real ones: the kubectl of today and one of five years ago.
//! The snapshot has the output on a simulated cluster; another test compares it with a real one's.

use std::{path::Path, process::Stdio, sync::Arc};

use anyhow::{Context, ensure};
use cluster::{
    deploy,
    real::{Fleet, Unavailable, kubectl::Kubectl},
};
use libtest_mimic::Trial;
use regex::Regex;
use sim::{SimCluster, SimConfig};
use tributary_e2e::suite::{real_test, sim_test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::kubectl::of_today", || {
            simulated("kubectl-today", Kubectl::of_today())
        }),
        sim_test("sim::kubectl::of_2020", || {
            simulated("kubectl-2020", Kubectl::of_2020())
        }),
        real_test(
            "real::kubectl::prints_what_it_prints_on_simulated_clusters",
            as_on_real_clusters,
        ),
    ]
}

const NAMESPACE: &str = "kubectl-test";

/// The commands; a word that ends in .yaml is one of the files below.
const COMMANDS: &[&str] = &[
    "create namespace kubectl-test",
    "create namespace kubectl-test",
    "create namespace Shop_1",
    "get namespace kubectl-test",
    "label namespace kubectl-test team=a",
    "label namespace kubectl-test team=b",
    "label namespace kubectl-test --overwrite team=b",
    "annotate namespace kubectl-test note=hello",
    "get namespaces -l team=b --show-labels",
    "create deployment web --image=nginx --replicas=2",
    "get deployments",
    "scale deployment web --replicas=5",
    "scale deployment web --current-replicas=1 --replicas=3",
    "get deployment web -o wide",
    "get deployment web -o jsonpath={.spec.replicas}",
    "create service clusterip pay --tcp=80:8080",
    "get service pay -o wide",
    "create configmap settings --from-literal=a=b --from-literal=c=d",
    "get configmap settings",
    "apply -f cart.yaml",
    "apply -f cart.yaml",
    "apply -f cart-changed.yaml",
    "get services",
    "get serviceexports",
    "get endpointslice cart-1",
    "apply --server-side -f web.yaml",
    "apply --server-side -f web.yaml",
    "apply -f unnamed.yaml",
    "label service cart tier=gold",
    "annotate service cart note-",
    "get service cart -o jsonpath={.metadata.labels}",
    "delete service pay",
    "delete service pay",
    "delete -f cart.yaml",
    "delete deployment web",
    "get deployments",
    "delete namespace kubectl-test",
    "get namespace kubectl-test",
];

const FILES: &[(&str, &str)] = &[
    ("cart.yaml", CART),
    ("cart-changed.yaml", CART),
    (
        "web.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{name: http, port: 80}]}\n",
    ),
    (
        "unnamed.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 80}, {port: 81}]}\n",
    ),
];

const CART: &str = "
apiVersion: v1
kind: Service
metadata: {name: cart, labels: {app: cart}, annotations: {note: one}}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2]}]
ports: [{name: http, port: 8080}]
";

/// Types everything, and returns what was printed and how it ended.
async fn transcript(kubectl: &Kubectl, kubeconfig: &Path) -> anyhow::Result<String> {
    let home = tempfile::tempdir()?;
    for (name, content) in FILES {
        let content = match *name {
            "cart-changed.yaml" => content.replace("port: 80}", "port: 8000}"),
            _ => (*content).to_owned(),
        };
        std::fs::write(home.path().join(name), content)?;
    }
    let mut said = String::new();
    for typed in COMMANDS {
        let output = tokio::process::Command::new(&kubectl.path)
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .args(["--namespace", NAMESPACE])
            .args(typed.split(' '))
            .current_dir(home.path())
            .env("HOME", home.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("cannot run {}", kubectl.path.display()))?;
        let shown = [output.stdout, output.stderr].concat();
        let shown = plain(&String::from_utf8_lossy(&shown))?;
        let code = output.status.code().unwrap_or(-1);
        said.push_str(&format!("$ kubectl {typed}\n{shown}"));
        if code != 0 {
            said.push_str(&format!("(ended with {code})\n"));
        }
    }
    Ok(said)
}

/// Without what differs on every run: ages, addresses, and the width of columns that follows from them.
fn plain(said: &str) -> anyhow::Result<String> {
    let (spaces, age) = (
        Regex::new(r" {2,}")?,
        Regex::new(r"(^|   )\d+[smh](\d+s)?(   |$)")?,
    );
    let address = Regex::new(r"\b10\.(96|0)\.\d+\.\d+\b")?;
    let mut lines = String::new();
    for line in said.lines() {
        let line = spaces.replace_all(line.trim_end(), "   ");
        let line = address.replace_all(&line, "CLUSTER-IP");
        let line = age.replace_all(&line, "${1}AGE${3}");
        lines.push_str(&format!("{line}\n"));
    }
    Ok(lines)
}

async fn on_simulated(kubectl: &Kubectl) -> anyhow::Result<String> {
    let cluster = SimCluster::new(SimConfig::default())?;
    let served = cluster.serve("127.0.0.1:0".parse()?).await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: east\ncontexts: [{{name: east, context: {{cluster: east}}}}]\n\
         clusters: [{{name: east, cluster: {{server: 'http://{}'}}}}]\n",
        served.address
    );
    std::fs::write(&kubeconfig, text)?;
    transcript(kubectl, &kubeconfig).await
}

async fn simulated(name: &str, kubectl: Result<Kubectl, Unavailable>) -> anyhow::Result<()> {
    insta::assert_snapshot!(name, on_simulated(&kubectl?).await?);
    Ok(())
}

async fn as_on_real_clusters(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[0];
    cluster.require_controllers()?;
    deploy::install(&cluster.client().await?, &["crds"]).await?;
    for kubectl in [Kubectl::of_today()?, Kubectl::of_2020()?] {
        let simulated = on_simulated(&kubectl).await?;
        let real = transcript(&kubectl, cluster.kubeconfig_path()).await?;
        ensure!(
            simulated == real,
            "kubectl {} prints on a simulated cluster:\n{simulated}\nand on a real one:\n{real}",
            kubectl.version
        );
    }
    Ok(())
}
