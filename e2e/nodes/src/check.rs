//! Owns: whether clusters with nodes do what clusters do: pods, Services of each family, names, readiness, and pods of
//! other clusters. Each check prints a line.
//! Never: knows Tributary: what it writes is looked at elsewhere.

use std::collections::BTreeSet;

use anyhow::ensure;

use super::{
    configuration::TOOLS_IMAGE,
    control::{ControlPlane, wait_for},
    layout::Directory,
    running::Running,
};

/// The tested objects.
const WEB: &str = include_str!("../web.yaml");
/// Their namespace.
const NAMESPACE: &str = "nodes-check";
/// Number of requests to a Service, so that both of its pods answer: it chooses by chance.
const QUESTIONS: usize = 16;

/// A cluster that is looked at.
struct Checked<'a> {
    plane: ControlPlane<'a>,
    passed: usize,
}

/// Looks at all clusters; the first thing that is wrong ends it.
pub(super) fn check(directory: &Directory) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let clusters = running
        .planes()
        .into_iter()
        .map(|plane| Checked { plane, passed: 0 });
    let mut clusters: Vec<Checked<'_>> = clusters.collect();
    for cluster in &mut clusters {
        cluster.start()?;
        cluster.pods()?;
        cluster.services()?;
        cluster.names()?;
        cluster.readiness()?;
    }
    let mut passed: usize = clusters.iter().map(|cluster| cluster.passed).sum();
    for from in &clusters {
        for to in clusters.iter().filter(|to| to.plane.name != from.plane.name) {
            passed += from.reaches(to)?;
        }
    }
    for cluster in &clusters {
        cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"])?;
    }
    println!("{passed} checks passed on {} clusters", clusters.len());
    Ok(())
}

impl Checked<'_> {
    fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let all = ["--namespace", NAMESPACE];
        self.plane.kubectl(&[&all, arguments].concat())
    }

    fn in_pod(&self, pod: &str, script: &str) -> anyhow::Result<String> {
        let said = self.kubectl(&["exec", pod, "--", "sh", "-c", script])?;
        Ok(said.trim().to_owned())
    }

    /// The pod that answers at an address.
    fn ask(&self, address: &str, port: u16) -> anyhow::Result<String> {
        self.in_pod("client", &format!("nc -w 2 {address} {port} </dev/null"))
    }

    fn passes(&mut self, what: &str) {
        self.passed += 1;
        println!("{}: {what}", self.plane.name);
    }

    fn start(&mut self) -> anyhow::Result<()> {
        self.plane
            .apply(&WEB.replace("@IMAGE@", TOOLS_IMAGE), "web.yaml")?;
        for wanted in ["deployment/web", "pod/client"] {
            let condition = match wanted {
                "pod/client" => "--for=condition=Ready",
                _ => "--for=condition=Available",
            };
            self.kubectl(&["wait", wanted, condition, "--timeout=120s"])?;
        }
        self.passes("a Deployment of two pods and a client are ready");
        Ok(())
    }

    /// Names of the pods of the Deployment.
    fn web_pods(&self) -> anyhow::Result<Vec<String>> {
        let names = "jsonpath={.items[*].metadata.name}";
        let said = self.kubectl(&["get", "pods", "--selector", "app=web", "--output", names])?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }

    fn cluster_ips(&self) -> anyhow::Result<Vec<String>> {
        let said = self.kubectl(&[
            "get",
            "service",
            "web",
            "--output",
            "jsonpath={.spec.clusterIPs[*]}",
        ])?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }

    fn pods(&mut self) -> anyhow::Result<()> {
        let pods = self.web_pods()?;
        ensure!(
            pods.len() == 2,
            "{} pods of two run in {}",
            pods.len(),
            self.plane.name
        );
        for pod in &pods {
            let log = self.kubectl(&["logs", pod])?;
            ensure!(
                log.trim() == format!("started {pod}"),
                "the log of {pod} says {log}"
            );
        }
        let said = self.in_pod("client", "echo from the client")?;
        ensure!(said == "from the client", "a command in a pod says {said}");
        self.passes("logs are read, and commands run in pods");
        Ok(())
    }

    fn answering(&self, address: &str) -> anyhow::Result<BTreeSet<String>> {
        (0..QUESTIONS).map(|_| self.ask(address, 8080)).collect()
    }

    fn services(&mut self) -> anyhow::Result<()> {
        let pods: BTreeSet<String> = self.web_pods()?.into_iter().collect();
        for address in self.cluster_ips()? {
            // That pods are ready arrives at kube-proxy after it arrives here.
            wait_for(
                &format!("{} answer at {address}", listed(&pods)),
                &self.plane.directory,
                || self.answering(&address).is_ok_and(|answered| answered == pods),
            )?;
            self.passes(&format!("the Service answers at {address}, from both pods"));
        }
        Ok(())
    }

    fn names(&mut self) -> anyhow::Result<()> {
        let name = format!("web.{NAMESPACE}.svc.cluster.local");
        let said = self.in_pod("client", &format!("dig +short {name} A; dig +short {name} AAAA"))?;
        let found: BTreeSet<String> = said.lines().map(str::to_owned).collect();
        let wanted: BTreeSet<String> = self.cluster_ips()?.into_iter().collect();
        ensure!(
            found == wanted,
            "{name} is {}, and the Service has {}",
            listed(&found),
            listed(&wanted)
        );
        let answered = self.ask("web", 8080)?;
        ensure!(!answered.is_empty(), "the short name is not answered");
        self.passes(&format!(
            "{name} has {} addresses, and the short name is found",
            found.len()
        ));
        Ok(())
    }

    /// A pod that is not ready gets nothing any more.
    fn readiness(&mut self) -> anyhow::Result<()> {
        let pods = self.web_pods()?;
        let (ill, well) = (&pods[0], BTreeSet::from([pods[1].clone()]));
        self.in_pod(ill, "rm /tmp/ready")?;
        for address in self.cluster_ips()? {
            wait_for(
                &format!("only {} answers at {address}", pods[1]),
                &self.plane.directory,
                || self.answering(&address).is_ok_and(|answered| answered == well),
            )?;
        }
        self.in_pod(ill, "touch /tmp/ready")?;
        self.passes("a pod that is not ready is not asked");
        Ok(())
    }

    /// Checks that the client reaches pods of another cluster by their addresses; how many it reached.
    fn reaches(&self, other: &Checked<'_>) -> anyhow::Result<usize> {
        let pod = other.web_pods()?.remove(0);
        let said = other.kubectl(&["get", "pod", &pod, "--output", "jsonpath={.status.podIPs[*].ip}"])?;
        for address in said.split_whitespace() {
            let answered = self.ask(address, 80)?;
            ensure!(
                answered == pod,
                "{address} in {} is answered by {answered}",
                other.plane.name
            );
            println!(
                "{}: a pod of {} answers at {address}",
                self.plane.name, other.plane.name
            );
        }
        Ok(said.split_whitespace().count())
    }
}

fn listed(all: &BTreeSet<String>) -> String {
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    all.join(", ")
}
