//! The control channel: another process asks the running demo to kill or start a program.
//! A Unix socket that only its owner may use; one line asks, one line answers, everything is bounded.

use std::{
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::Path,
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{mpsc, oneshot},
};

use super::directory::DemoDirectory;
use advice::DEMO;

/// Longest line, question or answer, in bytes.
const LINE_BYTES_MAX: u64 = 4096;
/// Time for a caller to send a request.
const QUESTION_WAIT: Duration = Duration::from_secs(5);
/// Time for a program to end or start, with room.
const ANSWER_WAIT: Duration = Duration::from_secs(90);
/// Name of the hub; every other name is a cluster's, for its agent.
pub(super) const HUB: &str = "hub";

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// Kill the hub, or the agent of a cluster.
    Kill(String),
    /// Start it again.
    Start(String),
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kill(name) => write!(f, "kill {name}"),
            Self::Start(name) => write!(f, "start {name}"),
        }
    }
}

impl FromStr for Order {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        match line.trim_end().split_once(' ') {
            Some(("kill", name)) => Ok(Self::Kill(name.to_owned())),
            Some(("start", name)) => Ok(Self::Start(name.to_owned())),
            _ => bail!("a request is `kill NAME` or `start NAME`"),
        }
    }
}

/// An order and where its outcome is told.
pub(super) struct Request {
    pub(super) order: Order,
    pub(super) outcome: oneshot::Sender<anyhow::Result<String>>,
}

/// Opens the channel of a demo.
pub(super) fn listen(place: &DemoDirectory) -> anyhow::Result<UnixListener> {
    let path = place.control();
    // The directory is private already: nobody can reach the socket before its mode is set.
    let listener = UnixListener::bind(&path).with_context(|| {
        format!(
            "cannot open {}; a socket's path has to be short: try --directory with a shorter one",
            path.display()
        )
    })?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers callers, one after the other, until whoever performs the orders is gone.
pub(super) async fn serve(listener: UnixListener, orders: mpsc::Sender<Request>) -> anyhow::Result<()> {
    loop {
        let (socket, _) = listener.accept().await.context("the control channel")?;
        let mut socket = BufReader::new(socket);
        let answer = match tokio::time::timeout(QUESTION_WAIT, line(&mut socket)).await {
            Ok(Ok(question)) if question.is_empty() => continue,
            Ok(Ok(question)) => answer(&question, &orders).await,
            Ok(Err(_)) | Err(_) => continue,
        };
        let text = match answer {
            Ok(done) => format!("ok {done}\n"),
            Err(error) => format!("error {}\n", format!("{error:#}").replace('\n', "; ")),
        };
        // A caller that does not wait for its answer has no use for it.
        let _ = socket.get_mut().write_all(text.as_bytes()).await;
    }
}

async fn answer(question: &str, orders: &mpsc::Sender<Request>) -> anyhow::Result<String> {
    let (outcome, told) = oneshot::channel();
    let order = question.parse()?;
    let stopping = || anyhow!("the demo is stopping");
    let sent = orders.send(Request { order, outcome }).await;
    sent.map_err(|_| stopping())?;
    told.await.map_err(|_| stopping())?
}

async fn line(socket: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut line = String::new();
    socket.take(LINE_BYTES_MAX).read_line(&mut line).await?;
    Ok(line)
}

/// Says so when no demo runs there.
pub(super) async fn require_running(place: &DemoDirectory) -> anyhow::Result<UnixStream> {
    let connected = UnixStream::connect(place.control()).await;
    connected.map_err(|error| absent(&error, place.path()))
}

fn absent(error: &io::Error, path: &Path) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => {
            anyhow!("no demo runs in {path}: start one with `{DEMO}` in another terminal")
        }
        // Reset: it ended, and a process that begins just now still holds what it had open.
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => anyhow!(
            "the demo in {path} was killed; what it left there is of no use, and the next `{DEMO}` removes it"
        ),
        _ => anyhow!("the demo in {path} cannot be reached: {error}"),
    }
}

/// Asks the running demo; what it did.
pub(super) async fn ask(place: &DemoDirectory, order: &Order) -> anyhow::Result<String> {
    let mut socket = require_running(place).await?;
    let answer = tokio::time::timeout(ANSWER_WAIT, async {
        socket.write_all(format!("{order}\n").as_bytes()).await?;
        line(&mut BufReader::new(socket)).await
    });
    let answer = answer.await.context("the demo does not answer")?;
    let answer = answer.map_err(|error| absent(&error, place.path()))?;
    match answer.trim_end().split_once(' ') {
        Some(("ok", done)) => Ok(done.to_owned()),
        Some(("error", why)) => bail!("{why}"),
        _ => bail!("the demo ended while it was asked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, DemoDirectory) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = DemoDirectory::new(directory.path().to_owned());
        (directory, place)
    }

    #[tokio::test]
    async fn an_order_is_performed_and_its_outcome_told() {
        let (_directory, place) = place();
        let (sender, mut orders) = mpsc::channel::<Request>(1);
        let serving = tokio::spawn(serve(listen(&place).expect("listens"), sender));
        let performing = tokio::spawn(async move {
            while let Some(Request { order, outcome }) = orders.recv().await {
                let done = match order {
                    Order::Kill(name) => Ok(format!("{name} is dead")),
                    Order::Start(name) => Err(anyhow!("{name}\nruns")),
                };
                outcome.send(done).expect("awaited");
            }
        });
        let mode = std::fs::metadata(place.control())
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let killed = ask(&place, &Order::Kill("west".into())).await;
        assert_eq!(killed.expect("performed"), "west is dead");
        let refused = ask(&place, &Order::Start(HUB.into())).await.expect_err("refused");
        assert_eq!(refused.to_string(), "hub; runs");
        // A caller that says nothing, or nonsense, does not end the channel.
        drop(require_running(&place).await.expect("connects"));
        let mut caller = require_running(&place).await.expect("connects");
        caller.write_all(b"dance\n").await.expect("sent");
        let told = line(&mut BufReader::new(caller)).await.expect("answered");
        assert!(told.starts_with("error "), "{told}");
        serving.abort();
        assert!(serving.await.expect_err("aborted").is_cancelled());
        performing.await.expect("ends with the channel");
        let gone = ask(&place, &Order::Kill(HUB.into()))
            .await
            .expect_err("nobody listens");
        assert!(gone.to_string().contains("was killed"), "{gone}");
    }

    #[tokio::test]
    async fn no_demo_is_said_in_words() {
        let (_directory, place) = place();
        let none = require_running(&place).await.expect_err("nothing there");
        assert!(none.to_string().contains("start one with `cargo demo`"), "{none}");
    }
}
