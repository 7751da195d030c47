//! Owns: one hub process under test: its certificates, its start, what it says about itself, its end.
//! Never: outlives this process, whether the child is this binary again or a program of an image.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use hub::certs::{CertificateAuthority, Subject, Validity};
use shared::{
    model::{ClusterId, Clusterset},
    tls::{Credentials, HubAddress, LiveCredentials, Pem},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, Command},
    sync::watch,
};

use cluster::{
    clusterset::{
        child::{ROLE_VARIABLE, Role},
        programs,
    },
    files::write_private,
};

use super::{
    cores::{Cores, UsedCores},
    probe::{Counters, Usage},
};

/// Days that the certificates of a run are valid.
const CERTIFICATE_DAYS: u32 = 2;
/// A hub that does not serve after this long never will, however long its log is.
const SERVING_WAIT: Duration = Duration::from_secs(600);
/// Time until counters include the last event, and the interval of reading them.
const COUNTERS_WAIT: Duration = Duration::from_secs(5);
const COUNTERS_POLL: Duration = Duration::from_millis(600);
/// Any free port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Lines of a failed hub that are shown.
const TAIL_LINES_MAX: usize = 20;

/// Common settings of all hubs of one invocation.
pub(super) struct Setup {
    /// Cores of the hub.
    pub(super) cores: Cores,
    /// Directory of this invocation.
    pub(super) directory: PathBuf,
    /// Issues every certificate.
    authority: CertificateAuthority,
    /// Each run has directories of its own.
    run: AtomicU32,
}

impl Setup {
    /// Makes an authority for this invocation and writes the hub's files.
    pub(super) fn new(cores: Cores, directory: PathBuf) -> anyhow::Result<Self> {
        let clusterset = Clusterset::new("load.tributary.internal", "load")?;
        let authority =
            CertificateAuthority::generate(&clusterset, Validity::days_from_now(CERTIFICATE_DAYS))?;
        let subject = Subject::Hub {
            name: "hub".to_owned(),
            dns_names: vec!["localhost".to_owned()],
            ips: Vec::new(),
        };
        let setup = Self {
            cores,
            directory,
            authority,
            run: AtomicU32::new(1),
        };
        let pem = setup.issue(&subject)?;
        for (name, bytes) in [("hub.crt", pem.cert), ("hub.key", pem.key), ("ca.crt", pem.ca)] {
            let path = setup.directory.join(name);
            write_private(&path, &bytes)?;
        }
        Ok(setup)
    }

    fn issue(&self, subject: &Subject) -> anyhow::Result<Pem> {
        let issued = self
            .authority
            .issue(subject, Validity::days_from_now(CERTIFICATE_DAYS))?;
        Ok(self.authority.tls(&issued))
    }

    /// The clusterset that is played.
    pub(super) fn clusterset(&self) -> &Clusterset {
        self.authority.clusterset()
    }

    /// A member's certificate.
    pub(super) fn member(&self, cluster: &ClusterId) -> anyhow::Result<Arc<LiveCredentials>> {
        let pem = self.issue(&Subject::Member(cluster.clone()))?;
        Ok(LiveCredentials::new(Credentials::from_pem(&pem)?))
    }

    /// An operator's certificate.
    pub(super) fn operator(&self, name: &str) -> anyhow::Result<Arc<LiveCredentials>> {
        let pem = self.issue(&Subject::Operator(name.to_owned()))?;
        Ok(LiveCredentials::new(Credentials::from_pem(&pem)?))
    }

    /// Writes an operator's certificate into `NAME.crt` and `NAME.key`.
    pub(super) fn write_operator(&self, name: &str) -> anyhow::Result<()> {
        let pem = self.issue(&Subject::Operator(name.to_owned()))?;
        write_private(&self.directory.join(format!("{name}.crt")), &pem.cert)?;
        write_private(&self.directory.join(format!("{name}.key")), &pem.key)
    }

    /// Begins a run of the shapes.
    pub(super) fn begin_run(&self, run: u32) {
        self.run.store(run, Ordering::Relaxed);
    }

    /// A data directory for one hub, or for another program, of this run.
    pub(super) fn data(&self, name: &str) -> anyhow::Result<PathBuf> {
        let run = self.run.load(Ordering::Relaxed);
        let path = self.directory.join(format!("run-{run}")).join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }
}

/// A hub's output since its start.
#[derive(Debug, Clone, Default)]
struct Said {
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    replayed: Option<Replayed>,
    serving_after: Option<Duration>,
    tail: Vec<String>,
    ended: bool,
}

/// A hub's report of its replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replayed {
    /// The head.
    pub(super) revision: u64,
    /// Duration of the replay, by the hub's clock.
    pub(super) millis: u64,
}

/// A hub that serves.
pub(super) struct HubProcess {
    child: Child,
    pid: u32,
    said: Said,
    /// Address of its admin port.
    pub(super) admin: SocketAddr,
    /// Time of its start.
    pub(super) began: Instant,
    /// Its listen address.
    pub(super) listen: SocketAddr,
    /// Address for members.
    pub(super) address: HubAddress,
}

impl HubProcess {
    /// Starts a hub over `data` and waits until it serves.
    pub(super) async fn start(setup: &Setup, data: &Path, place: UsedCores) -> anyhow::Result<Self> {
        Self::start_at(setup, data, place, ANY_PORT).await
    }

    /// The same with so many open files and no more.
    pub(super) async fn start_with_files(
        setup: &Setup,
        data: &Path,
        place: UsedCores,
        files: usize,
    ) -> anyhow::Result<Self> {
        let mut limited = setup.cores.under_test(&["sh".into()], place);
        // Both limits: a hub raises the soft one to the hard one.
        limited.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
        limited.args(programs::command_line(Role::Hub)?);
        Self::spawn(limited, setup, data, ANY_PORT).await
    }

    /// The same at an address, for a hub that comes back.
    pub(super) async fn start_at(
        setup: &Setup,
        data: &Path,
        place: UsedCores,
        listen: SocketAddr,
    ) -> anyhow::Result<Self> {
        let command = setup.cores.under_test(&programs::command_line(Role::Hub)?, place);
        Self::spawn(command, setup, data, listen).await
    }

    /// The same with an authority of its own, with which members renew.
    pub(super) async fn start_certifying(
        setup: &Setup,
        data: &Path,
        place: UsedCores,
    ) -> anyhow::Result<Self> {
        let joining = setup
            .authority
            .members_only(Validity::days_from_now(CERTIFICATE_DAYS))?;
        let file = |name: &str| setup.directory.join(name);
        write_private(&file("joining.crt"), joining.certificate_pem.as_bytes())?;
        write_private(&file("joining.key"), joining.key_pem.as_bytes())?;
        let mut command = setup.cores.under_test(&programs::command_line(Role::Hub)?, place);
        // The rest of the command line follows; a variable counts as much as a flag.
        command
            .env("TRIBUTARY_JOIN_CERT", file("joining.crt"))
            .env("TRIBUTARY_JOIN_KEY", file("joining.key"));
        Self::spawn(command, setup, data, ANY_PORT).await
    }

    async fn spawn(
        mut command: Command,
        setup: &Setup,
        data: &Path,
        listen: SocketAddr,
    ) -> anyhow::Result<Self> {
        let file = |name: &str| setup.directory.join(name);
        let ours = |name: &str| name.starts_with("TRIBUTARY_");
        let given: Vec<_> = command
            .as_std()
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_str().is_some_and(ours) && !given.contains(name)) {
            command.env_remove(name);
        }
        command.env(ROLE_VARIABLE, Role::Hub.as_str());
        command.arg("serve").arg("--data").arg(data);
        command.arg("--listen").arg(listen.to_string()).args([
            "--admin",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ]);
        command
            .arg("--tls-cert")
            .arg(file("hub.crt"))
            .arg("--tls-key")
            .arg(file("hub.key"));
        command.arg("--tls-ca").arg(file("ca.crt"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let began = Instant::now();
        let mut child = command.spawn().context("cannot start the hub")?;
        let pid = child.id().context("the hub ended at once")?;
        let stderr = child.stderr.take().context("the hub's log cannot be read")?;
        let log = data.with_extension("log");
        let log = tokio::fs::File::create(&log)
            .await
            .with_context(|| format!("cannot write {}", log.display()))?;
        let (sender, mut receiver) = watch::channel(Said::default());
        tokio::spawn(follow(stderr, log, began, sender));
        let waiting = receiver.wait_for(|said| said.ended || said.serves());
        let waited = tokio::time::timeout(SERVING_WAIT, waiting).await;
        let said = waited
            .context("the hub does not serve: is the machine overloaded?")??
            .clone();
        let (Some(listen), Some(admin), false) = (said.listen, said.admin, said.ended) else {
            bail!("the hub ended before it served:\n{}", said.tail.join("\n"));
        };
        let address = format!("https://{listen}").parse()?;
        Ok(Self {
            child,
            pid,
            said,
            admin,
            began,
            listen,
            address,
        })
    }

    /// From its start until it served.
    pub(super) fn serving_after(&self) -> Duration {
        self.said.serving_after.unwrap_or_default()
    }

    /// The report of its replay.
    pub(super) fn replayed(&self) -> anyhow::Result<Replayed> {
        self.said
            .replayed
            .context("the hub did not say how long its replay took")
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Processor time and memory.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid)
    }

    /// Its counters.
    pub(super) async fn counters(&self) -> anyhow::Result<Counters> {
        Counters::scrape(self.admin).await
    }

    /// Its counters, once they include so many events: the log's own are read by the hub from time to time.
    pub(super) async fn settled_counters(&self, events: f64) -> anyhow::Result<Counters> {
        let deadline = Instant::now() + COUNTERS_WAIT;
        let mut poll = tokio::time::interval(COUNTERS_POLL);
        poll.tick().await;
        let mut before = self.counters().await?;
        loop {
            poll.tick().await;
            let now = self.counters().await?;
            // Before the hub has read its log's figures for the first time they are all zero.
            let read = now.disk_bytes > 0.0;
            let settled = read && now.events >= events && now.syncs == before.syncs;
            if settled || Instant::now() >= deadline {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Ends it as a crash would: nothing is written any more.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the hub cannot be ended")
    }
}

/// Copies the log lines to a file and picks out what we wait for.
async fn follow(stderr: ChildStderr, mut log: tokio::fs::File, began: Instant, said: watch::Sender<Said>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let kept = log.write_all(format!("{line}\n").as_bytes()).await;
        if kept.is_err() {
            // A full disk shows itself in the hub; here only the copy is lost.
            break;
        }
        said.send_modify(|said| said.hear(line, began));
    }
    said.send_modify(|said| said.ended = true);
}

impl Said {
    /// Both ports answer; which of them is told first is not defined.
    fn serves(&self) -> bool {
        self.listen.is_some() && self.admin.is_some()
    }

    fn hear(&mut self, line: String, began: Instant) {
        let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let fields = value.get("fields").unwrap_or(&value);
        let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
        let number = |name: &str| fields.get(name).and_then(|value| value.as_u64());
        let address = || text("address").and_then(|address| address.parse().ok());
        match text("message") {
            Some("serving") => {
                self.listen = address();
                self.serving_after = Some(began.elapsed());
            }
            Some("replayed the event log") => {
                let replayed = number("revision").zip(number("millis"));
                self.replayed = replayed.map(|(revision, millis)| Replayed { revision, millis });
            }
            Some(message) if message.starts_with("admin port serves") => self.admin = address(),
            _ => {}
        }
        if self.tail.len() == TAIL_LINES_MAX {
            self.tail.remove(0);
        }
        self.tail.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_understood() {
        let mut said = Said::default();
        for line in [
            r#"{"level":"INFO","fields":{"message":"admin port serves /livez","address":"127.0.0.1:2"}}"#,
            r#"{"fields":{"message":"replayed the event log","revision":7,"millis":3}}"#,
            "not json",
            r#"{"fields":{"message":"serving","address":"127.0.0.1:1"}}"#,
        ] {
            said.hear(line.to_owned(), Instant::now());
        }
        assert_eq!(said.listen.map(|address| address.port()), Some(1));
        assert_eq!(said.admin.map(|address| address.port()), Some(2));
        assert_eq!(
            said.replayed.map(|replayed| (replayed.revision, replayed.millis)),
            Some((7, 3))
        );
        assert!(said.serving_after.is_some());
    }
}
