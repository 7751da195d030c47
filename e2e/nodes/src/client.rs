//! Owns: asking Services from a pod, and who answered: which cluster, which pod.
//! Never: knows what the answer should be.

use std::{collections::BTreeSet, fmt, process::Command};

use anyhow::{Context, ensure};

use super::control::ControlPlane;

/// Number of requests to an address, so that every possible pod answers: of six pods one is missed in a case of a
/// million.
const QUESTIONS: usize = 80;
/// Stands for a request without an answer.
const NOBODY: &str = "no answer";
/// Seconds after which a question has no answer.
const ANSWER_WAIT: u8 = 2;

/// Transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// A pod that can answer, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Answer {
    pub(super) cluster: String,
    pub(super) pod: String,
}

/// All that answered.
pub(super) type Answers = BTreeSet<Answer>;

/// Answers as people read them.
pub(super) fn shown(answers: &Answers) -> String {
    let each = answers
        .iter()
        .map(|answer| format!("{}/{}", answer.cluster, answer.pod));
    each.collect::<Vec<_>>().join(", ")
}

/// A pod, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) node: String,
}

/// A namespace of a cluster, seen by who runs pods there.
pub(super) struct Asking<'a> {
    pub(super) plane: &'a ControlPlane<'a>,
    pub(super) namespace: &'a str,
}

impl Asking<'_> {
    /// Output of kubectl in the namespace.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let all = ["--namespace", self.namespace];
        self.plane.kubectl(&[&all, arguments].concat())
    }

    /// kubectl in the namespace, for what it prints while it runs.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut kubectl = self.plane.namespace.command(self.plane.programs.kubectl());
        kubectl
            .arg("--kubeconfig")
            .arg(self.plane.kubeconfig())
            .args(["--namespace", self.namespace])
            .args(arguments);
        kubectl
    }

    /// A field of an object, as words.
    pub(super) fn field(&self, object: &str, path: &str) -> anyhow::Result<Vec<String>> {
        let said = self.kubectl(&["get", object, "--output", &format!("jsonpath={{{path}}}")])?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }

    /// The pods with this label `app`, by name.
    pub(super) fn pods(&self, app: &str) -> anyhow::Result<Vec<Pod>> {
        let fields = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{\"\\n\"}{end}";
        let label = format!("app={app}");
        let said = self.kubectl(&["get", "pods", "--selector", &label, "--output", fields])?;
        let pod = |line: &str| {
            let (name, node) = line.split_once(' ').context("a pod without a node")?;
            Ok(Pod {
                name: name.to_owned(),
                node: node.to_owned(),
            })
        };
        said.lines().map(pod).collect()
    }

    /// The pod that asks on a node.
    pub(super) fn client(&self, node: &str) -> anyhow::Result<Pod> {
        let clients = self.pods("client")?;
        let client = clients.into_iter().find(|pod| pod.node == node);
        client.with_context(|| format!("no client runs on {node}"))
    }

    /// Output of a script in a pod.
    pub(super) fn in_pod(&self, pod: &Pod, script: &str) -> anyhow::Result<String> {
        self.kubectl(&["exec", &pod.name, "--", "sh", "-c", script])
    }

    /// Answers at an address after many requests, missing ones included.
    pub(super) fn answers(
        &self,
        client: &Pod,
        address: &str,
        port: u16,
        protocol: Protocol,
    ) -> anyhow::Result<Answers> {
        let ask = match protocol {
            Protocol::Tcp => format!("nc -w {ANSWER_WAIT} {address} {port} </dev/null"),
            // Nothing promises that a datagram arrives: whoever has no answer sends another one.
            Protocol::Udp => {
                let ask = format!("echo | nc -u -W 1 -w {ANSWER_WAIT} {address} {port}");
                format!("{ask} | grep . || {ask}")
            }
        };
        // The first one that is not answered is said, and ends it.
        let script = format!(
            "for i in $(seq {QUESTIONS}); do said=$({ask}); echo \"${{said:-{NOBODY}}}\"; [ -n \"$said\" ] || exit 0; done"
        );
        let said = self.in_pod(client, &script)?;
        ensure!(
            said.lines().count() <= QUESTIONS,
            "{address} gave more answers than it was asked"
        );
        said.lines().map(parse).collect()
    }
}

fn parse(line: &str) -> anyhow::Result<Answer> {
    let (cluster, pod) = line
        .split_once(' ')
        .with_context(|| format!("{line} is no answer of ours"))?;
    Ok(Answer {
        cluster: cluster.to_owned(),
        pod: pod.to_owned(),
    })
}

/// Exports a Service to all clusters.
pub(super) fn export(cluster: &Asking<'_>, service: &str) -> anyhow::Result<()> {
    let namespace = cluster.namespace;
    let export = format!(
        "{{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, \
         metadata: {{name: {service}, namespace: {namespace}}}}}"
    );
    cluster.plane.apply(&export, "export.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_cluster_and_pod() {
        let answer = parse("c1 echo-7").unwrap();
        assert_eq!((&*answer.cluster, &*answer.pod), ("c1", "echo-7"));
        assert!(parse("hello").is_err());
        assert_eq!(shown(&BTreeSet::from([answer])), "c1/echo-7");
        assert!(parse(NOBODY).is_ok(), "and is not who was wanted");
    }
}
