//! Owns: the hub's system calls under strace: at least one sync of the log for each acknowledged batch.
//! Never: trusts the hub's own count of syncs.

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, signal},
    member::{Member, hello},
    real::Unavailable,
};
use crash::facts;
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Batches that are acknowledged one after the other.
const BATCHES: u32 = 50;
/// Time for strace to attach, and to end.
const STRACE_WAIT: Duration = Duration::from_secs(30);
/// System calls that make a file durable. `sync_file_range`, which sled uses too, is none: it leaves the disk's own
/// cache and the file's length alone.
const SYNCS: [&str; 2] = ["fsync(", "fdatasync("];

pub(super) async fn every_acknowledgement_waits_for_a_sync() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let trace = dir.path().join("trace");
    let hub = clusterset.hub()?.id().context("the hub runs")?;
    let mut member = Member::open(&clusterset, "east", hello("uid-of-east")).await?;
    let strace = attach(hub, &trace).await?;
    let before = member.acknowledged;
    for number in 1..=BATCHES {
        // One fact at a time: each is a batch of its own, for nothing else is under way.
        member.report([facts::change(number)?]).await?;
        member.settled().await?;
    }
    let batches = member.acknowledged - before;
    detach(strace).await?;
    let syncs = syncs(&std::fs::read_to_string(&trace)?, &clusterset.data());
    println!("{syncs} syncs of the log for {batches} acknowledged batches");
    ensure!(
        batches == u64::from(BATCHES),
        "{batches} batches were acknowledged"
    );
    ensure!(
        syncs >= batches,
        "only {syncs} syncs for {batches} acknowledged batches"
    );
    clusterset.end().await
}

/// Traces every thread of a process, present and future.
async fn attach(process: u32, trace: &Path) -> anyhow::Result<Child> {
    let started = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(trace)
        .args(["-p", &process.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut strace = match started {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "strace is missing: install it (apt-get install strace)".to_owned();
            return Err(Unavailable { reason }.into());
        }
        started => started.context("cannot start strace")?,
    };
    let mut said = BufReader::new(strace.stderr.take().context("strace has an error output")?).lines();
    let attached = async {
        while let Some(line) = said.next_line().await? {
            if line.contains("attached") {
                return Ok(());
            }
            ensure!(
                !line.contains("not permitted"),
                "strace may not trace here: {line}"
            );
        }
        anyhow::bail!("strace ended before it was attached")
    };
    tokio::time::timeout(STRACE_WAIT, attached)
        .await
        .context("strace does not attach")??;
    // Its output must go on being read, or it stops when the pipe is full.
    tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
    Ok(strace)
}

async fn detach(mut strace: Child) -> anyhow::Result<()> {
    signal(strace.id().context("strace runs")?, "INT").await?;
    tokio::time::timeout(STRACE_WAIT, strace.wait())
        .await
        .context("strace does not end")??;
    Ok(())
}

/// Syncs of files below a directory, as `strace -y` writes them; a failed one does not count.
fn syncs(trace: &str, directory: &Path) -> u64 {
    let below = format!("<{}/", directory.display());
    let of_the_log = trace.lines().filter(|line| {
        let synced = SYNCS.iter().any(|call| line.contains(call));
        synced && line.contains(&below) && !line.contains("= -1")
    });
    of_the_log.count() as u64
}
