//! `tributary-hub log backup`: takes a copy of a running hub's log, verifies it, and only then calls it a backup.
//! A directory under the name that was asked for is a whole backup, or it is not there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use client::{AccessArgs, failed};
use proto::v1::{self, backup_part::Part, event_log_client::EventLogClient};
use shared::model::{advice, sync::MESSAGE_BYTES_MAX};
use tonic::Streaming;

use super::verify;
use crate::log::{CopyBegin, CopyEnd, Receiving, Report, clusterset};

/// Copy the log of a running hub.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// New directory for the copy
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    hub: AccessArgs,
}

/// The log that a copy is of.
struct Copied {
    begin: v1::BackupBegin,
    rows: u64,
}

/// Runs the command and returns what to print.
pub(super) async fn run(BackupArgs { dir, hub }: BackupArgs) -> anyhow::Result<String> {
    ensure!(
        !dir.exists(),
        "{} is there already: name a directory that is not",
        dir.display()
    );
    let unfinished = unfinished(&dir)?;
    let channel = hub.access()?.connect(Some("copies the log")).await?;
    let mut log = EventLogClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let parts = log.backup(v1::BackupRequest::default()).await;
    let parts = parts.map_err(|status| failed(&status))?.into_inner();
    let copied = copy(parts, &unfinished).await?;
    eprintln!("verifying {} rows", copied.rows);
    ensure_good(&verify(&unfinished, &mut |_| {})?, &unfinished)?;
    fs::rename(&unfinished, &dir).with_context(|| format!("cannot name the backup {}", dir.display()))?;
    let v1::BackupBegin {
        clusterset,
        epoch,
        revision,
        segments,
    } = copied.begin;
    Ok(format!(
        "{}: clusterset {clusterset} up to revision {revision} of epoch {epoch}, {segments} segments, verified\n",
        dir.display()
    ))
}

/// The path of an unfinished copy. Removes the remains of an interrupted one.
fn unfinished(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut name = dir
        .file_name()
        .ok_or_else(|| anyhow!("{} is not the name of a directory to make", dir.display()))?
        .to_owned();
    name.push(".unfinished");
    let unfinished = dir.with_file_name(name);
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", unfinished.display()))
        }
        _ => Ok(unfinished),
    }
}

fn ensure_good(report: &Report, dir: &Path) -> anyhow::Result<()> {
    ensure!(
        report.is_good() && !report.logs.is_empty(),
        "what arrived is damaged, and is no backup; it is left in {}: `{}` says where",
        dir.display(),
        advice::log_verify(&dir.display().to_string())
    );
    Ok(())
}

/// Writes the received data to the directory. The disk may block here: there is nothing else to do meanwhile.
async fn copy(mut parts: Streaming<v1::BackupPart>, dir: &Path) -> anyhow::Result<Copied> {
    let Some(Part::Begin(begin)) = next(&mut parts).await? else {
        bail!("the hub does not say what the copy is of: its version and this one do not fit");
    };
    let announced = CopyBegin {
        end: CopyEnd {
            clusterset: begin.clusterset.clone(),
            epoch: begin.epoch.clone(),
            revision: begin.revision,
        },
        segments: begin.segments,
    };
    let mut copy = Receiving::begin(dir, &clusterset(&begin.clusterset)?, announced)?;
    let mut sent = None;
    while let Some(part) = next(&mut parts).await? {
        match part {
            Part::Segment(segment) => {
                let number = copy.segment(&segment.name)?;
                eprintln!("segment {number} of {}: {}", begin.segments, segment.name);
            }
            Part::Rows(page) => {
                copy.rows(page.rows.into_iter().map(|row| (row.key, row.value)).collect())?;
            }
            Part::End(end) => sent = Some(end.rows),
            Part::Begin(_) => bail!("the hub began twice: its version and this one do not fit"),
        }
    }
    let rows = copy.finish(sent)?;
    Ok(Copied { begin, rows })
}

async fn next(parts: &mut Streaming<v1::BackupPart>) -> anyhow::Result<Option<Part>> {
    let part = parts.message().await.map_err(|status| failed(&status))?;
    Ok(part.and_then(|part| part.part))
}
