//! Programs that are not started as usual: a second agent for a cluster, a hub that is to fail or to be traced.
//! It starts them; what becomes of them is for the caller.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::ensure;

use super::{LocalClusterset, Program, Role};

/// Says in which pod an agent runs; one that is given this flag runs in another than all before.
pub const POD_UID_FLAG: &str = "--pod-uid";

/// The share of its disk that a hub keeps; without this flag none here.
pub const DISK_RESERVE_FLAG: &str = "--disk-reserve";

/// Beside what an agent is started with.
#[derive(Debug, Clone, Default)]
pub struct AgentVariant<'a> {
    /// Whose certificate it has.
    pub certificate: &'a str,
    /// Whose cluster it watches.
    pub cluster: &'a str,
    /// The name of its log.
    pub log: &'a str,
    /// Further flags.
    pub flags: &'a [&'a str],
}

impl LocalClusterset {
    /// Starts one more agent and waits for nothing.
    pub fn spawn_agent(&self, variant: &AgentVariant<'_>) -> anyhow::Result<Program> {
        let mut arguments: Vec<OsString> = vec!["run".into(), "--hub".into()];
        arguments.push(format!("https://{}", self.hub_address).into());
        let kubeconfig = self.cluster(variant.cluster)?.agent_kubeconfig.clone();
        arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
        arguments.extend(["--admin".into(), "127.0.0.1:0".into()]);
        arguments.extend(self.tls(variant.certificate));
        if !variant.flags.contains(&POD_UID_FLAG) {
            // Every start is one in the same pod, and goes on where the last one was.
            arguments.extend([
                POD_UID_FLAG.into(),
                format!("pod-of-{}", variant.certificate).into(),
            ]);
        }
        arguments.extend(variant.flags.iter().map(OsString::from));
        Program::start(Role::Agent, arguments, &self.log(variant.log))
    }

    /// Starts a hub over a data directory, under other programs if there are any, and waits for nothing.
    pub fn spawn_hub(&self, wrapper: &[OsString], data: PathBuf, flags: &[&str]) -> anyhow::Result<Program> {
        let arguments = self.hub_arguments(data, flags);
        Program::start_under(wrapper, Role::Hub, arguments, &self.log("hub"))
    }

    /// Runs `tributary-hub log WORDS` to its end; an error says what it said.
    pub async fn log_command(&self, words: &[OsString]) -> anyhow::Result<()> {
        let arguments = [&["log".into()], words].concat();
        let said = self.log("log-command");
        let (status, tail) = Program::start(Role::Hub, arguments, &said)?.ended().await?;
        ensure!(
            status.success(),
            "`tributary-hub log` ended with {status}: {tail}"
        );
        Ok(())
    }

    /// Runs `tributary-hub log backup` against the running hub.
    pub async fn back_up(&self, to: &Path) -> anyhow::Result<()> {
        let mut words: Vec<OsString> = vec!["backup".into(), to.into(), "--hub".into()];
        words.push(format!("https://{}", self.hub_address).into());
        words.extend(self.tls("operator"));
        self.log_command(&words).await
    }

    /// Makes a hub that was started with [`LocalClusterset::spawn_hub`] the clusterset's own, once it serves.
    pub async fn adopt_hub(&mut self, mut hub: Program) -> anyhow::Result<()> {
        self.hub_address = hub.serving().await?;
        self.hub = Some(hub);
        Ok(())
    }

    /// Takes the hub out of the clusterset, to wait for its end.
    pub fn take_hub(&mut self) -> Option<Program> {
        self.hub.take()
    }

    /// Takes the agent of a cluster out of the clusterset, to wait for its end.
    pub fn take_running_agent(&mut self, name: &str) -> anyhow::Result<Program> {
        self.take_agent(name)
    }

    pub(super) fn hub_arguments(&self, data: PathBuf, flags: &[&str]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--data".into(), data.into()];
        arguments.extend(["--listen".into(), self.hub_address.to_string().into()]);
        arguments.extend(["--admin".into(), "127.0.0.1:0".into()]);
        arguments.extend(self.tls("hub"));
        if !flags.contains(&DISK_RESERVE_FLAG) {
            // A developer's disk may be nearly full: only those who ask for it are to notice.
            arguments.extend([DISK_RESERVE_FLAG.into(), "0%".into()]);
        }
        arguments.extend(flags.iter().map(OsString::from));
        arguments
    }
}
