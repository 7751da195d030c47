//! Owns: what happens to a cluster while it is asked: each thing by itself, until it is over.
//! Never: looks at what is asked meanwhile.

use std::fmt;

use anyhow::Context;

use crate::{
    client::Asking,
    control::wait_for,
    installed,
    layout::Place,
    lines::{Moment, now},
    node::Node,
    pair::Pair,
};

/// The pods when nothing happens to them, as the file says too.
pub(crate) const REPLICAS: usize = 4;
/// The numbers of pods that are gone through.
const SCALES: [usize; 3] = [7, 3, REPLICAS];
/// The pods that are asked for while a kubelet is away.
const REPLICAS_WITHOUT_KUBELET: usize = 6;
/// The node whose kubelet is ended: nobody who asks runs there, nor does the hub.
pub(crate) const NODE: Place = Place { cluster: 1, node: 2 };
/// kubectl's wait, as long as ours.
const KUBECTL_WAIT: &str = "--timeout=120s";
/// Readiness of a node, and its kubelet's last report.
const HEARTBEAT: &str = ".status.conditions[?(@.type==\"Ready\")]['status','lastHeartbeatTime']";

/// A kind of thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Restart,
    Scale,
    Kubelet,
    Hub,
    ExportingAgent,
    ImportingAgent,
}

impl Kind {
    /// All, in the order in which they happen.
    pub(crate) const ALL: [Self; 6] = [
        Self::Restart,
        Self::Scale,
        Self::Kubelet,
        Self::Hub,
        Self::ExportingAgent,
        Self::ImportingAgent,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restart => "restart of all pods",
            Self::Scale => "change of the number of pods",
            Self::Kubelet => "crash of a kubelet",
            Self::Hub => "new pod of the hub",
            Self::ExportingAgent => "restart of the exporting agent",
            Self::ImportingAgent => "restart of the importing agent",
        })
    }
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) kind: Kind,
    pub(crate) begin: Moment,
    pub(crate) end: Moment,
}

impl Action {
    /// As a line; `began`: when the run did.
    pub(crate) fn shown(&self, began: Moment) -> String {
        let after = self.begin.saturating_sub(began).as_secs_f64();
        let took = self.end.saturating_sub(self.begin).as_secs_f64();
        format!("{after:6.1} s  {}: {took:.1} s", self.kind)
    }
}

/// Whoever makes things happen.
pub(crate) struct Actions<'a> {
    pub(crate) pair: &'a Pair<'a>,
    /// The node whose kubelet is ended.
    pub(crate) node: &'a Node<'a>,
}

impl Actions<'_> {
    /// Does it, and waits until it is over.
    pub(crate) fn carry_out(&self, kind: Kind) -> anyhow::Result<Action> {
        let begin = now();
        match kind {
            Kind::Restart => self.restart(),
            Kind::Scale => self.scale(),
            Kind::Kubelet => self.kubelet(),
            Kind::Hub => self.hub(),
            Kind::ExportingAgent => agent(&self.pair.exporter),
            Kind::ImportingAgent => agent(&self.pair.importer),
        }
        .with_context(|| format!("the {kind} does not come to its end"))?;
        let end = now();
        Ok(Action { kind, begin, end })
    }

    /// Waits until so many pods are ready and no other one is left, not even one that ends.
    pub(crate) fn settled(&self, replicas: usize) -> anyhow::Result<()> {
        let exporter = &self.pair.exporter;
        exporter.kubectl(&["rollout", "status", "deployment/web", KUBECTL_WAIT])?;
        wait_for(
            &format!("there are {replicas} pods"),
            &exporter.plane.directory,
            || exporter.pods("web").is_ok_and(|pods| pods.len() == replicas),
        )
    }

    fn ask_for(&self, replicas: usize) -> anyhow::Result<()> {
        let replicas = format!("--replicas={replicas}");
        let exporter = &self.pair.exporter;
        exporter
            .kubectl(&["scale", "deployment/web", &replicas])
            .map(drop)
    }

    fn restart(&self) -> anyhow::Result<()> {
        let exporter = &self.pair.exporter;
        exporter.kubectl(&["rollout", "restart", "deployment/web"])?;
        self.settled(REPLICAS)
    }

    fn scale(&self) -> anyhow::Result<()> {
        for replicas in SCALES {
            self.ask_for(replicas)?;
            self.settled(replicas)?;
        }
        Ok(())
    }

    /// Ends the kubelet, asks for pods that it cannot start, and lets it come back.
    fn kubelet(&self) -> anyhow::Result<()> {
        let plane = self.pair.exporter.plane;
        let node = format!("node/{}", self.node.name);
        let before = self.pair.exporter.field(&node, HEARTBEAT)?;
        self.node.kill_kubelet()?;
        let scaled = self.ask_for(REPLICAS_WITHOUT_KUBELET);
        // Whatever became of that: a node without a kubelet is of no use to anybody.
        self.node.start_kubelet(plane)?;
        scaled?;
        // What the old one said last stands there still, so only something newer is of the new one.
        let again = || {
            let says = self.pair.exporter.field(&node, HEARTBEAT);
            says.is_ok_and(|says| says != before && says.iter().any(|word| word == "True"))
        };
        wait_for(
            &format!("{} is ready again", self.node.name),
            &self.node.directory,
            again,
        )?;
        self.settled(REPLICAS_WITHOUT_KUBELET)?;
        self.ask_for(REPLICAS)?;
        self.settled(REPLICAS)
    }

    fn hub(&self) -> anyhow::Result<()> {
        let pod = "pod/tributary-hub-0";
        let hub = system(&self.pair.exporter);
        let before = hub.field(pod, ".metadata.uid")?;
        hub.kubectl(&["delete", pod, KUBECTL_WAIT])?;
        let ready = || {
            let ready = hub.field(pod, ".status.conditions[?(@.type==\"Ready\")].status");
            let uid = hub.field(pod, ".metadata.uid");
            uid.is_ok_and(|uid| uid != before) && ready.is_ok_and(|ready| ready == ["True"])
        };
        wait_for("another pod of the hub is ready", &hub.plane.directory, ready)
    }
}

/// Tributary's namespace in a cluster.
fn system<'a>(cluster: &Asking<'a>) -> Asking<'a> {
    Asking {
        plane: cluster.plane,
        namespace: installed::NAMESPACE,
    }
}

fn agent(cluster: &Asking<'_>) -> anyhow::Result<()> {
    let system = system(cluster);
    let agent = "deployment/tributary-agent";
    system.kubectl(&["rollout", "restart", agent])?;
    system
        .kubectl(&["rollout", "status", agent, KUBECTL_WAIT])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_pods_end_as_they_began() {
        let objects = include_str!("../../churn.yaml");
        assert!(objects.contains(&format!("replicas: {REPLICAS}\n")));
        assert_eq!(SCALES.last(), Some(&REPLICAS));
    }

    #[test]
    fn an_action_is_shown_by_when_and_how_long() {
        let action = Action {
            kind: Kind::Hub,
            begin: Duration::from_millis(112_300),
            end: Duration::from_secs(120),
        };
        let shown = action.shown(Duration::from_secs(100));
        assert_eq!(shown, "  12.3 s  new pod of the hub: 7.7 s");
    }
}
