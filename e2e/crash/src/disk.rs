//! Owns: a volume that fills up under the hub's log, and has room again later.
//! Never: fills a disk of this machine: the volume is a small tmpfs in a mount namespace of its own, which goes with
//! the process that holds it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

use super::{
    Rounds,
    acknowledged::Reporters,
    clusterset::{ChangingClusterset, REPORTERS, verify},
    facts,
};
use oracle::laws::Law;

/// Size of the volume at first: the log's file grows by 8 MiB at a time.
const SMALL: &str = "24m";
/// Its size when it has room again.
const LARGE: &str = "512m";
/// Time to mount.
const MOUNT_WAIT: Duration = Duration::from_secs(10);
/// The hub's words when its log fails.
const FAILURE: &str = "event log failed";

/// A tmpfs that only those see who enter its namespace.
pub(super) struct Volume {
    holder: Child,
    /// The holder, and so the volume, ends when this closes.
    _stdin: ChildStdin,
    enter: Vec<OsString>,
    /// Mount point, in its namespace.
    pub(super) directory: PathBuf,
}

impl Volume {
    /// Mounts one. The error says why that is not possible here.
    pub(super) async fn mount(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let as_root = Self::mount_with(directory, &["--mount"], &[]).await;
        match as_root {
            Ok(volume) => Ok(volume),
            // Without rights of our own: as root of a user namespace.
            Err(error) => Self::mount_with(
                directory,
                &["--mount", "--user", "--map-root-user"],
                &["--user", "--preserve-credentials"],
            )
            .await
            .map_err(|_| error),
        }
    }

    async fn mount_with(directory: &Path, unshare: &[&str], nsenter: &[&str]) -> anyhow::Result<Self> {
        let script = format!("mount -t tmpfs -o size={SMALL} tmpfs \"$0\" && echo mounted && exec cat");
        let mut holder = Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", &script])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("unshare is missing: install util-linux")?;
        let stdin = holder.stdin.take().context("no standard input")?;
        let mut said = BufReader::new(holder.stdout.take().context("no standard output")?).lines();
        let first = tokio::time::timeout(MOUNT_WAIT, said.next_line())
            .await
            .context("mounting takes too long")??;
        if first.as_deref() != Some("mounted") {
            let output = holder.wait_with_output().await?;
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            anyhow::bail!("no volume can be mounted in a namespace of its own: {why}");
        }
        let process = holder.id().context("the holder runs")?;
        let mut enter: Vec<OsString> = vec!["nsenter".into(), "--target".into()];
        enter.extend([process.to_string().into(), "--mount".into()]);
        enter.extend(nsenter.iter().map(OsString::from));
        Ok(Self {
            holder,
            _stdin: stdin,
            enter,
            directory: directory.to_owned(),
        })
    }

    /// Words before a command so that it sees the volume.
    pub(super) fn enter(&self) -> &[OsString] {
        &self.enter
    }

    /// The volume as the rest of the machine can reach it.
    pub(super) fn seen_from_outside(&self) -> anyhow::Result<PathBuf> {
        let process = self.holder.id().context("the holder runs")?;
        let inside = self
            .directory
            .strip_prefix("/")
            .context("the directory is absolute")?;
        Ok(Path::new("/proc")
            .join(process.to_string())
            .join("root")
            .join(inside))
    }

    pub(super) async fn grow(&self) -> anyhow::Result<()> {
        let (enter, rest) = self.enter.split_first().context("a command to enter")?;
        let remounted = Command::new(enter)
            .args(rest)
            .args(["mount", "-o", &format!("remount,size={LARGE}")])
            .arg(&self.directory)
            .status()
            .await?;
        ensure!(
            remounted.success(),
            "the volume cannot be made larger: {remounted}"
        );
        Ok(())
    }
}

/// Fills the volume until the hub gives up, makes room, starts it again; each round with a volume of its own.
pub(super) async fn full(
    mut changing: ChangingClusterset,
    dir: &Path,
    rounds: &mut Rounds,
) -> anyhow::Result<()> {
    changing.clusterset.stop_hub().await?;
    while let Some(round) = rounds.next() {
        let volume = Volume::mount(&dir.join(format!("volume-{round}"))).await?;
        let data = volume.directory.clone();
        let hub = changing.clusterset.spawn_hub(volume.enter(), data.clone(), &[])?;
        changing.clusterset.adopt_hub(hub).await?;
        changing.settled().await?;
        let mut reporters = Reporters::new(&REPORTERS, facts::bulky_change);
        let reporting = reporters.start(&changing.clusterset).await?;
        changing.change().await?;
        // It ends because the hub does: nobody kills it.
        let acknowledged = reporting.ended().await?;
        let hub = changing.clusterset.take_hub().context("the hub was started")?;
        let (status, tail) = hub.ended().await?;
        ensure!(
            status.code().is_some_and(|code| code != 0) && tail.contains(FAILURE),
            "a hub whose disk is full ends by itself and says why; it ended with {status} and\n{tail}"
        );
        ensure!(
            acknowledged.values().sum::<u64>() > 0,
            "the disk was full before anything was acknowledged"
        );
        changing.change().await?;

        volume.grow().await?;
        let began = Instant::now();
        let hub = changing.clusterset.spawn_hub(volume.enter(), data, &[])?;
        changing.clusterset.adopt_hub(hub).await?;
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        let found = reporters.check(&changing.clusterset, &acknowledged).await?;
        rounds.guarded.count(Law::Durable, found);
        rounds.counted = format!(
            "{} acknowledged facts found again on volumes of {SMALL}",
            rounds.guarded.of(Law::Durable)
        );
        changing.clusterset.stop_hub().await?;
        verify(&volume.seen_from_outside()?)?;
    }
    changing.clusterset.start_hub().await?;
    changing.settled().await?;
    changing.end().await
}
