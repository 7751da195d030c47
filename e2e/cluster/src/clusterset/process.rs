//! One running program: its log, the addresses it serves, how it is ended.
//! It knows nothing of what the program does.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::watch,
};

use super::{
    child::{ROLE_VARIABLE, Role},
    programs,
};
use crate::cost::{Meter, Spender, await_end};

/// Time for a program to start. A debug build beside seven other kinds of crashes has taken 29 s on two cores to read a
/// log that filled its disk.
const START_WAIT: Duration = Duration::from_secs(60);
/// Time for a program to drain.
const STOP_WAIT: Duration = Duration::from_secs(30);
/// Lines of the log that an error shows.
const TAIL_LINES: usize = 20;

/// A running program. Dropping it ends it at once.
#[derive(Debug)]
pub struct Program {
    child: Child,
    meter: Meter,
    /// Kept open: the child ends when it closes.
    _stdin: ChildStdin,
    log: PathBuf,
    seen: watch::Receiver<Seen>,
}

/// The program's output so far.
#[derive(Debug, Clone, Default)]
struct Seen {
    serving: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    joining: Option<SocketAddr>,
    webhook: Option<SocketAddr>,
    ended: bool,
}

/// The client writes no log.
fn logs_as_json(role: Role) -> &'static [&'static str] {
    match role {
        Role::Hub | Role::Agent => &["--log-format", "json"],
        Role::Client => &[],
    }
}

impl Program {
    /// Starts a program; its log is appended to `log`.
    pub fn start(role: Role, arguments: Vec<OsString>, log: &Path) -> anyhow::Result<Self> {
        Self::start_under(&[], role, arguments, log)
    }

    /// The same as the child of other programs: `wrapper` is put before the command line and must become the
    /// program (or trace it) with standard input and output as they are.
    pub fn start_under(
        wrapper: &[OsString],
        role: Role,
        arguments: Vec<OsString>,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let mut line = [wrapper, &programs::command_line(role)?].concat();
        let mut command = Command::new(line.remove(0));
        command
            .args(line)
            .args(logs_as_json(role))
            .args(arguments)
            .env(ROLE_VARIABLE, role.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A Ctrl-C in the terminal is for whoever started it, who then lets it drain.
            .process_group(0)
            .kill_on_drop(true);
        for (name, _) in env::vars_os() {
            // What the caller's environment would configure; a bug that is chosen there is the child's too.
            let ours = name.to_str().is_some_and(|name| {
                name.starts_with("TRIBUTARY_") && ![ROLE_VARIABLE, variants::VARIABLE].contains(&name)
            });
            if ours {
                command.env_remove(name);
            }
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start the {}", role.as_str()))?;
        let meter = Meter::of(child.id(), Spender::Programs);
        let stdin = child.stdin.take().context("no standard input")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let file = File::options().create(true).append(true).open(log)?;
        let (sender, seen) = watch::channel(Seen::default());
        tokio::spawn(follow(BufReader::new(stderr), file, sender));
        Ok(Self {
            child,
            meter,
            _stdin: stdin,
            log: log.to_owned(),
            seen,
        })
    }

    /// Waits until the program serves its gRPC port.
    pub async fn serving(&mut self) -> anyhow::Result<SocketAddr> {
        self.until(|seen| seen.serving).await
    }

    /// Waits until the admin port is open.
    pub async fn admin(&mut self) -> anyhow::Result<SocketAddr> {
        self.until(|seen| seen.admin).await
    }

    /// Waits until the hub lets clusters join.
    pub async fn joining(&mut self) -> anyhow::Result<SocketAddr> {
        self.until(|seen| seen.joining).await
    }

    /// Waits until the hub answers API servers.
    pub async fn webhook(&mut self) -> anyhow::Result<SocketAddr> {
        self.until(|seen| seen.webhook).await
    }

    async fn until<T>(&mut self, wanted: impl Fn(&Seen) -> Option<T>) -> anyhow::Result<T> {
        let waited = tokio::time::timeout(START_WAIT, async {
            let seen = self
                .seen
                .wait_for(|seen| seen.ended || wanted(seen).is_some())
                .await
                .ok()?;
            wanted(&seen)
        });
        match waited.await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => bail!(
                "the program ended early; its log {} ends with\n{}",
                self.log.display(),
                self.tail()
            ),
            Err(_) => bail!(
                "not serving after {START_WAIT:?}; its log ends with\n{}",
                self.tail()
            ),
        }
    }

    /// The end of the log.
    pub fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns true if it has not ended by itself.
    pub fn is_running(&mut self) -> bool {
        self.meter.count();
        let running = matches!(self.child.try_wait(), Ok(None));
        if !running {
            self.meter.reaped();
        }
        running
    }

    /// Waits for its end, and counts what it spent before the kernel forgets it.
    async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(id) = self.child.id() {
            // A thread that waits for a program that never ends is gone with the program.
            let ended = tokio::task::spawn_blocking(move || await_end(id));
            if ended.await.is_ok() {
                self.meter.count();
            }
        }
        let status = self.child.wait().await;
        self.meter.reaped();
        status
    }

    /// Waits until it ends by itself, and says how and what its log ends with.
    pub async fn ended(mut self) -> anyhow::Result<(ExitStatus, String)> {
        let status = tokio::time::timeout(START_WAIT, self.wait()).await;
        let status =
            status.with_context(|| format!("still running after {START_WAIT:?}\n{}", self.tail()))??;
        // The last lines may still be on their way into the file; a reader that is gone has read them all.
        let _ = tokio::time::timeout(START_WAIT, self.seen.wait_for(|seen| seen.ended)).await;
        Ok((status, self.tail()))
    }

    /// Resolves when it has ended; it borrows nothing, so that many can be awaited at once.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut seen = self.seen.clone();
        // Whoever follows the log is gone only with the log.
        async move { drop(seen.wait_for(|seen| seen.ended).await) }
    }

    /// Kills it: SIGKILL, no chance to say goodbye.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill().context("cannot kill the program")?;
        self.wait().await.context("cannot await the program")?;
        Ok(())
    }

    /// Asks it to drain (SIGTERM) and waits for that; an exit code other than 0 is an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let Some(id) = self.child.id() else { return Ok(()) };
        signal(id, "TERM").await?;
        let ended = tokio::time::timeout(STOP_WAIT, self.wait()).await;
        let status = ended.with_context(|| format!("not drained after {STOP_WAIT:?}\n{}", self.tail()))??;
        if !status.success() {
            bail!("ended with {status}; its log ends with\n{}", self.tail());
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.meter.count();
    }
}

/// Sends a signal by name.
pub async fn signal(process: u32, name: &str) -> anyhow::Result<()> {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(process.to_string())
        .status()
        .await?;
    if !sent.success() {
        bail!("cannot send SIG{name} to process {process}");
    }
    Ok(())
}

/// Copies the log to its file and notes what the program says of its ports.
async fn follow(lines: BufReader<tokio::process::ChildStderr>, mut file: File, seen: watch::Sender<Seen>) {
    let mut lines = lines.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A log that cannot be written must not stop the program.
        let _ = writeln!(file, "{line}");
        let Ok(entry) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let text = |name: &str| entry["fields"][name].as_str().or_else(|| entry[name].as_str());
        let address = text("address").and_then(|address| address.parse().ok());
        match text("message") {
            Some("letting clusters join") => seen.send_modify(|seen| seen.joining = address),
            Some("serving") => seen.send_modify(|seen| seen.serving = address),
            Some(message) if message.starts_with("admin port serves") => {
                seen.send_modify(|seen| seen.admin = address);
            }
            Some(message) if message.starts_with("answering what API servers ask") => {
                seen.send_modify(|seen| seen.webhook = address);
            }
            _ => {}
        }
    }
    seen.send_modify(|seen| seen.ended = true);
}
