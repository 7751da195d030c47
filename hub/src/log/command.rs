//! `tributary-hub log`: the flags, and the report as a person reads it. Only `verify` until a later wave.

use std::{fmt::Write, path::PathBuf};

use clap::{Args, Subcommand};

use super::{LogReport, Progress, verify};

/// Look after an event log on disk.
#[derive(Debug, Args)]
pub struct EventLogArgs {
    #[command(subcommand)]
    command: EventLogCommand,
}

#[derive(Debug, Subcommand)]
enum EventLogCommand {
    /// Read every event and snapshot and check it against the hash chain
    #[command(
        long_about = "Read every event and snapshot and check it against the hash chain.\n\n\
        The hub must be stopped: a log has one owner. Nothing is changed or repaired. A line per epoch says what is \
        good, a line per damage says where it is. Exit code 0 if all is good, 1 if anything is damaged.\n\n\
        Example:\n  tributary-hub log verify --data data"
    )]
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// Data directory of the hub
    #[arg(long, env = "TRIBUTARY_DATA", value_name = "DIR")]
    data: PathBuf,
}

/// Runs a sub-command; what it found goes to standard output, how far it is to standard error.
pub fn run(args: EventLogArgs) -> anyhow::Result<()> {
    let EventLogCommand::Verify(VerifyArgs { data }) = args.command;
    let report = verify(&data, &mut |progress| eprintln!("{}", describe(&progress)))?;
    let mut said = String::new();
    for log in &report.logs {
        write_log(&mut said, log)?;
    }
    print!("{said}");
    let damages: usize = report.logs.iter().map(|log| log.corruptions.len()).sum();
    anyhow::ensure!(
        damages == 0,
        "{damages} damaged places in {}; restore a backup of the directory, or move it aside and start the hub with \
         an empty one: every member lists its cluster again, nothing that lives is deleted, only history is lost",
        data.display()
    );
    Ok(())
}

fn describe(progress: &Progress) -> String {
    let Progress {
        clusterset,
        epoch,
        revision,
        last,
    } = progress;
    format!("{clusterset}: epoch {epoch}, revision {revision} of {last}")
}

fn write_log(said: &mut String, log: &LogReport) -> std::fmt::Result {
    writeln!(said, "clusterset {}", log.clusterset)?;
    for epoch in &log.epochs {
        let snapshots: Vec<_> = epoch.snapshots.iter().map(ToString::to_string).collect();
        writeln!(
            said,
            "  epoch {}: {} good events, {} payload bytes, good snapshots at revisions [{}]",
            epoch.epoch,
            epoch.events,
            epoch.payload_bytes,
            snapshots.join(", ")
        )?;
    }
    for corruption in &log.corruptions {
        writeln!(said, "  DAMAGED at {}: {}", corruption.place, corruption.what)?;
    }
    Ok(())
}
