//! Owns: what an installation on clusters leaves for those who come later: programs, certificates, the hub's address,
//! Helm's releases.
//! Never: installs.

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde_json::Value;
use shared::wire::DEFAULT_POLICY;

use super::{
    control::{ControlPlane, wait_for},
    layout::Place,
    running::Running,
};
use cluster::real::{command::printed, helm::Helm};

/// Namespace of the charts.
pub(super) const NAMESPACE: &str = "tributary-system";
/// The hub's program, and what its objects are called.
pub(super) const HUB: &str = "tributary-hub";
/// The program of operators.
pub(super) const CLIENT: &str = "tributary";
/// The agent's program, and what its objects are called.
pub(super) const AGENT: &str = "tributary-agent";
/// The port of the hub on every node of its cluster.
pub(super) const HUB_PORT: u16 = 30843;
/// The node with the hub's volume.
pub(super) const HUB_NODE: Place = Place { cluster: 1, node: 1 };

/// Name of a chart's Helm release.
pub(super) fn release(chart: &str) -> String {
    format!("tributary-{chart}")
}

/// An installation on clusters that run.
pub(super) struct Installed<'a> {
    pub(super) running: &'a Running,
    helm: Helm,
}

impl<'a> Installed<'a> {
    /// The one of these clusters; an error says how Helm is built.
    pub(super) fn of(running: &'a Running) -> anyhow::Result<Self> {
        let helm = Helm::find()?;
        Ok(Self { running, helm })
    }

    /// Address of the hub for members and people.
    pub(super) fn hub_host(&self) -> String {
        let addresses = self.running.layout.addresses(HUB_NODE.cluster);
        addresses.node(HUB_NODE.node).v4().to_string()
    }

    /// The hub's address.
    pub(super) fn hub_url(&self) -> String {
        format!("https://{}:{HUB_PORT}", self.hub_host())
    }

    /// Directory of certificates and keys.
    pub(super) fn keys(&self) -> PathBuf {
        self.running.directory.path().join("certificates")
    }

    /// Path of the hub's volume, on its node.
    pub(super) fn volume(&self) -> PathBuf {
        self.running.directory.node(HUB_NODE).join("volume")
    }

    /// Directory of the programs that people run.
    pub(super) fn programs(&self) -> PathBuf {
        self.running.directory.path().join("programs")
    }

    /// One of them.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs().join(name)
    }

    /// Helm in a cluster, in the namespace of the charts.
    pub(super) fn helm(&self, plane: &ControlPlane<'_>, arguments: &[&str]) -> anyhow::Result<()> {
        let mut helm = plane.namespace.command(self.helm.program());
        helm.args(arguments)
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(plane.kubeconfig());
        printed(Helm::at_home(&mut helm, &plane.directory.join("helm"))).map(drop)
    }

    /// Puts the clusterset's zone into a cluster's Corefile (`add`), or takes it out (`remove`).
    pub(super) fn corefile(&self, plane: &ControlPlane<'_>, what: &str) -> anyhow::Result<()> {
        let mut corefile = plane.namespace.command(self.program(AGENT));
        corefile
            .args(["corefile", what, "--apply"])
            .env("KUBECONFIG", plane.kubeconfig());
        printed(&mut corefile).map(drop)
    }

    /// Removes what the agent wrote in a cluster that is no member any more, or whose hub is gone.
    pub(super) fn leave(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let mut leave = plane.namespace.command(self.program(AGENT));
        leave
            .args(["leave", "--without-hub", "--confirm", "--kubeconfig"])
            .arg(plane.kubeconfig());
        printed(&mut leave).map(drop)
    }

    /// Asks the hub about members, as its operator.
    pub(super) fn member(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.operate("member", arguments)
    }

    /// The hub's word on a member, as `member list` prints it.
    pub(super) fn member_named(&self, name: &str) -> anyhow::Result<Value> {
        let said: Value = serde_json::from_str(&self.member(&["list", "--output=json"])?)?;
        let members = said["members"].as_array().map_or(&[][..], Vec::as_slice);
        let member = members.iter().find(|member| member["cluster"] == name);
        member
            .cloned()
            .with_context(|| format!("the hub knows no member {name}"))
    }

    /// Does something under a policy with this specification. Afterwards the policy is what it was, whatever came of it.
    pub(super) fn under_policy(
        &self,
        spec: &str,
        does: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let write = |name: &str, text: String| {
            let path = self.running.directory.path().join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok(path.display().to_string())
        };
        let former = write("former.yaml", self.policy(&["get"])?)?;
        let policy = write("policy.yaml", DEFAULT_POLICY.replace("spec: {}\n", spec))?;
        self.policy(&["apply", &policy, "--confirm"])?;
        let outcome = does();
        let back = self.policy(&["apply", &former, "--confirm"]).map(drop);
        outcome.and(back)
    }

    /// Asks the hub about the policy, or applies one, as its operator.
    fn policy(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.operate("policy", arguments)
    }

    fn operate(&self, command: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let mut operate = self.running.control.command(self.program(CLIENT));
        let key = |file: &str| self.keys().join(file);
        operate
            .arg(command)
            .args(arguments)
            .arg(format!("--hub={}", self.hub_url()))
            .arg("--tls-ca")
            .arg(key("ca.crt"))
            .arg("--tls-cert")
            .arg(key("operator.crt"))
            .arg("--tls-key")
            .arg(key("operator.key"));
        printed(&mut operate)
    }

    /// Waits until the hub shows every cluster as live and in session, as docs/guides/upgrade.md asks.
    pub(super) fn in_session(&self) -> anyhow::Result<()> {
        let clusters = self.running.planes().len();
        let directory = self.running.directory.path();
        wait_for("every member is live and connected", directory, || {
            let said = self.member(&["list", "--output=json"]);
            said.is_ok_and(|said| connected(&said) == clusters)
        })
    }
}

/// Number of live and connected members in the JSON of `member list`.
fn connected(said: &str) -> usize {
    let Ok(said) = serde_json::from_str::<Value>(said) else {
        return 0;
    };
    let members = said["members"].as_array().map_or(&[][..], Vec::as_slice);
    let live = |member: &&Value| member["state"] == "live" && member["connected"] == true;
    members.iter().filter(live).count()
}

/// Has CoreDNS read its Corefile now; it would by itself, a minute and a half later.
pub(super) fn restart_coredns(plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    let coredns = ["--namespace", "kube-system", "rollout"];
    plane.kubectl(&[&coredns[..], &["restart", "deployment/coredns"]].concat())?;
    let status = ["status", "deployment/coredns", "--timeout=120s"];
    plane.kubectl(&[&coredns[..], &status].concat()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_live_and_connected_counts() {
        let said = r#"{"members": [{"state": "live", "connected": true}, {"state": "live", "connected": false},
                       {"state": "suspect", "connected": true}, {"state": "left"}]}"#;
        assert_eq!(connected(said), 1);
        assert_eq!(connected("{}") + connected("no document"), 0);
    }
}
