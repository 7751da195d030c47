//! Programs that are not started as usual: a second agent for a cluster, a hub that is to fail or to be traced.
//! It starts them; what becomes of them is for the caller.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::ensure;

use super::{LocalClusterset, Program, Role, admin, eventually::eventually, questions};

/// Says in which pod an agent runs; one that is given this flag runs in another than all before.
pub const POD_UID_FLAG: &str = "--pod-uid";

/// The share of its disk that a hub keeps; without this flag none here.
pub const DISK_RESERVE_FLAG: &str = "--disk-reserve";

/// Beside what an agent is started with.
#[derive(Debug, Clone, Default)]
pub struct AgentVariant<'a> {
    /// The certificate's name.
    pub certificate: &'a str,
    /// The cluster to watch.
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

    /// Starts one more agent of a cluster in a pod of its own, and waits until it stands by and has read everything.
    pub async fn start_standby(&self, cluster: &str, pod: &str) -> anyhow::Result<Program> {
        let mut program = self.spawn_agent(&AgentVariant {
            certificate: cluster,
            cluster,
            log: pod,
            flags: &[POD_UID_FLAG, pod],
        })?;
        questions::said(&self.log(pod), "standing by until it ends").await?;
        let address = program.admin().await?;
        eventually("the agent that stands by is ready", async || {
            Ok((admin::get(address, "/readyz").await?.0 == 200).then_some(()))
        })
        .await?;
        Ok(program)
    }

    /// Starts a hub over a data directory, under other programs if there are any, and waits for nothing.
    pub fn spawn_hub(&self, wrapper: &[OsString], data: PathBuf, flags: &[&str]) -> anyhow::Result<Program> {
        let arguments = self.hub_arguments(data, flags);
        Program::start_under(wrapper, Role::Hub, arguments, &self.log("hub"))
    }

    /// Runs `tributary-hub log WORDS` to its end; an error says what it said.
    pub async fn log_command(&self, words: &[OsString]) -> anyhow::Result<()> {
        self.command(Role::Hub, "log", words).await
    }

    /// Runs `tributary policy apply` with this document against the running hub.
    pub async fn apply_policy(&self, document: &str) -> anyhow::Result<()> {
        let file = self.log("policy").with_extension("yaml");
        std::fs::write(&file, document)?;
        let mut words: Vec<OsString> = vec!["apply".into(), file.into(), "--confirm".into()];
        words.extend(self.to_the_hub());
        self.command(Role::Client, "policy", &words).await
    }

    /// Runs `tributary member release` of a member against the running hub.
    pub async fn release_member(&self, cluster: &str) -> anyhow::Result<()> {
        let mut words: Vec<OsString> = vec!["release".into(), cluster.into(), "--confirm".into()];
        words.extend(self.to_the_hub());
        self.command(Role::Client, "member", &words).await
    }

    /// Runs `tributary member WORDS` with `--confirm` against the running hub; an error says what it said.
    pub async fn member_command(&self, words: &[&str]) -> anyhow::Result<()> {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.push("--confirm".into());
        words.extend(self.to_the_hub());
        self.command(Role::Client, "member", &words).await
    }

    /// Runs `tributary-agent leave` in a cluster, with its certificate and a person's account; an error says what it said.
    pub async fn leave(&self, cluster: &str, flags: &[&str]) -> anyhow::Result<()> {
        let mut arguments: Vec<OsString> = vec!["leave".into(), "--hub".into()];
        arguments.push(format!("https://{}", self.hub_address).into());
        let kubeconfig = self.cluster(cluster)?.kubeconfig.clone();
        arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
        arguments.extend(self.tls(cluster));
        arguments.extend(flags.iter().map(OsString::from));
        let said = self.log(&format!("{cluster}-leaves"));
        let (status, tail) = Program::start(Role::Agent, arguments, &said)?.ended().await?;
        ensure!(
            status.success(),
            "`tributary-agent leave` ended with {status}: {tail}"
        );
        Ok(())
    }

    async fn command(&self, role: Role, command: &str, words: &[OsString]) -> anyhow::Result<()> {
        let arguments = [&[command.into()], words].concat();
        let said = self.log(&format!("{command}-command"));
        let (status, tail) = Program::start(role, arguments, &said)?.ended().await?;
        ensure!(status.success(), "`{command}` ended with {status}: {tail}");
        Ok(())
    }

    /// An operator's flags: the hub's address and a certificate.
    fn to_the_hub(&self) -> Vec<OsString> {
        self.access_to_the_hub(&self.hub_address.to_string(), "operator")
    }

    /// The words with which a command finds a hub at HOST:PORT, under a certificate of this name.
    pub fn access_to_the_hub(&self, hub: &str, certificate: &str) -> Vec<OsString> {
        let address = format!("https://{hub}");
        [vec!["--hub".into(), address.into()], self.tls(certificate)].concat()
    }

    /// Runs `tributary-hub log backup` against the running hub.
    pub async fn back_up(&self, to: &Path) -> anyhow::Result<()> {
        let mut words: Vec<OsString> = vec!["backup".into(), to.into()];
        words.extend(self.to_the_hub());
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
            // And keeps its history, which would go first.
            arguments.extend(["--disk-alarm".into(), "0%".into()]);
        }
        arguments.extend(flags.iter().map(OsString::from));
        arguments
    }
}
