//! `tributary-hub log`: the flags, and what is found and done as a person reads it.

use std::{fmt::Write, path::PathBuf};

use clap::{Args, Subcommand};
use shared::{
    identity::Role,
    model::{ClusterId, Clusterset, UnixMillis, advice},
};

use crate::{
    clock::Clock,
    log::{Contents, LogReport, Progress, Stats, contents, limits::RetentionArgs},
    maintain::{
        self,
        backup::{self, BackupArgs},
        figures::Figures,
    },
};

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
        long_about = "Read every event and snapshot and check it against the hash chain, and each difference against the \
        hash of the fact that it leads to.\n\n\
        The hub must be stopped: a log has one owner. Nothing is changed or repaired. The output has a line for each \
        epoch with the verified events, and a line for each damaged place. Exit code 0 if everything is intact, 1 if \
        something is damaged.\n\n\
        Example:\n  tributary-hub log verify --data data"
    )]
    Verify(DataArgs),
    /// Show the segments, their sizes and what history they keep
    #[command(
        long_about = "Show the segments, their sizes, what history they keep, and how much of it a gigabyte holds.\n\n\
        The hub must be stopped: a log has one owner. Nothing is changed, and only the beginning of each segment and \
        the newest thousand events are read; verify reads everything.\n\n\
        Example:\n  tributary-hub log stats --data data"
    )]
    Stats(DataArgs),
    /// Copy the log of a running hub
    #[command(long_about = "Copy the log of a running hub, as of this moment.\n\n\
        The copy has the form of a data directory: its events, with all epochs that are kept, and the state that they \
        begin with. It is verified before it gets its name, so that a directory of that name is a whole backup. It \
        contains everything that members report, and no key: protect it like the volume. The hub keeps running \
        meanwhile.\n\n\
        Example:\n  tributary-hub log backup backup-2026-01-31 --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key")]
    Backup(Box<BackupArgs>),
    /// Restore a backup in place of a lost log
    #[command(
        long_about = "Restore a backup in place of a lost log, while the hub is stopped.\n\n\
        The backup is verified first; a directory that holds a log stays as it is. A new epoch begins, so every \
        member receives everything again, and nothing is deleted anywhere before its cluster has listed again. \
        Events after the backup are lost: make those decisions about members again. Run an interrupted restore \
        again. A backup that was cut short is refused. A hub whose certificate names another clusterset than the \
        backup does not start over it; with --clusterset the restore refuses such a backup.\n\n\
        Example:\n  tributary-hub log restore backup-2026-01-31 --data data"
    )]
    Restore(RestoreArgs),
    /// End a membership in the log of a stopped hub
    #[command(
        long_about = "End a membership in the log of a stopped hub, as member evict does in a running one: \
        for a member that keeps the hub from running. It is recorded with the operator's name; the member's keys \
        stay refused. A hub cannot know how old the log is that it starts over: to remove the member's imports from \
        the other clusters, an operator says `member forget` when the hub runs again.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary-hub log evict west --data data --operator alice --confirm"
    )]
    Evict(EvictArgs),
    /// Write the state anew and remove old history at once
    #[command(long_about = "Write the state anew and remove old history at once.\n\n\
        A running hub does this by itself as history grows; use this command if the volume is too small for the \
        history. The hub must be stopped: a log has one owner. The state is written into a new segment first. Then \
        segments older than --retention-age are removed, and the oldest ones while all together exceed \
        --retention-bytes. Members, exports, decisions and refused keys always stay. With --retention-bytes 0 only \
        the state stays. A second run changes nothing.\n\n\
        Example:\n  tributary-hub log compact --data data --retention-bytes 1GB")]
    Compact(CompactArgs),
}

#[derive(Debug, Args)]
struct DataArgs {
    /// Data directory of the hub
    #[arg(long, env = "TRIBUTARY_DATA", value_name = "DIR")]
    data: PathBuf,
}

#[derive(Debug, Args)]
struct RestoreArgs {
    /// The backup
    #[arg(value_name = "DIR")]
    backup: PathBuf,
    /// Refuse a backup of another clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "TRUST-DOMAIN/NAME", value_parser = named)]
    clusterset: Option<Clusterset>,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Debug, Args)]
struct CompactArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    retention: RetentionArgs,
}

#[derive(Debug, Args)]
struct EvictArgs {
    /// The member
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    #[command(flatten)]
    data: DataArgs,
    /// Operator who decides, for the record
    #[arg(long, env = "TRIBUTARY_OPERATOR", value_name = "NAME", value_parser = operator)]
    operator: String,
    /// Make the change. Without this flag the command only shows what would happen
    #[arg(long)]
    confirm: bool,
}

/// A name as it could stand in an operator's certificate.
fn operator(text: &str) -> Result<String, String> {
    let role = Role::operator(text).map_err(|error| error.to_string())?;
    Ok(role.name().to_owned())
}

/// Runs a sub-command; what it found goes to standard output, how far it is to standard error.
pub fn run(args: EventLogArgs) -> anyhow::Result<()> {
    match args.command {
        EventLogCommand::Verify(args) => run_verify(args),
        EventLogCommand::Stats(args) => run_stats(args),
        EventLogCommand::Backup(args) => client::run(backup::run(*args)).map(|said| print!("{said}")),
        EventLogCommand::Restore(args) => run_restore(&args, Clock::start().wall()),
        EventLogCommand::Evict(args) => run_evict(args, Clock::start().wall()),
        EventLogCommand::Compact(args) => run_compact(args, Clock::start().wall()),
    }
}

fn run_stats(DataArgs { data }: DataArgs) -> anyhow::Result<()> {
    let mut said = String::new();
    for log in contents(&data)? {
        write_contents(&mut said, &log)?;
        if let Some(figures) = Figures::of(&log)? {
            writeln!(said, "  {figures}")?;
        }
    }
    print!("{said}");
    Ok(())
}

fn run_compact(args: CompactArgs, now: UnixMillis) -> anyhow::Result<()> {
    let data = &args.data.data;
    for Contents { clusterset, .. } in contents(data)? {
        eprintln!("{clusterset}: reading the state and writing it anew");
        let (before, after) = maintain::compact(data, &clusterset, args.retention.retention(), now)?;
        println!("{clusterset}: {}; now {}", amount(&before), amount(&after));
    }
    Ok(())
}

fn named(clusterset: &str) -> Result<Clusterset, String> {
    let parts = clusterset.split_once('/');
    let named = parts.and_then(|(domain, name)| Clusterset::new(domain, name).ok());
    named.ok_or_else(|| "write it as trust domain and name, such as example.org/default".to_owned())
}

fn run_restore(args: &RestoreArgs, now: UnixMillis) -> anyhow::Result<()> {
    let data = &args.data.data;
    eprintln!("verifying {}", args.backup.display());
    for head in maintain::restore(&args.backup, data, args.clusterset.as_ref(), now, rand::random())? {
        println!(
            "{}: the log of {} is restored, and epoch {} has begun: start the hub",
            data.display(),
            args.backup.display(),
            head.epoch
        );
    }
    Ok(())
}

fn run_evict(args: EvictArgs, now: UnixMillis) -> anyhow::Result<()> {
    let EvictArgs {
        cluster,
        data: DataArgs { data },
        operator,
        confirm,
    } = args;
    for Contents { clusterset, .. } in contents(&data)? {
        let operated = maintain::evict(&data, &clusterset, cluster.clone(), &operator, confirm, now)?;
        operated.effects.iter().for_each(|effect| println!("{effect}"));
        match operated.revision {
            Some(revision) => println!(
                "recorded at revision {revision}; once the hub runs, remove what other clusters hold of it: `{}`",
                advice::member_forget(&cluster)
            ),
            None if confirm => {}
            None => println!("nothing is changed without --confirm"),
        }
    }
    Ok(())
}

fn amount(stats: &Stats) -> String {
    format!(
        "{}, {} bytes on disk, history from revision {} on",
        segments(stats.segments),
        stats.bytes_on_disk,
        stats.oldest_revision
    )
}

fn segments(count: u64) -> String {
    match count {
        1 => "1 segment".to_owned(),
        more => format!("{more} segments"),
    }
}

/// A time for people; one that no calendar has as the number that it is.
fn began(at: UnixMillis) -> String {
    let millis = i64::try_from(at.0).ok();
    let time = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    time.map_or_else(|| format!("{} ms after 1970", at.0), |time| time.to_string())
}

fn write_contents(said: &mut String, log: &Contents) -> std::fmt::Result {
    let bytes: u64 = log.segments.iter().map(|segment| segment.bytes).sum();
    writeln!(
        said,
        "clusterset {}: {}, {bytes} bytes on disk, head at revision {} of epoch {}",
        log.clusterset,
        segments(log.segments.len() as u64),
        log.head.1,
        log.head.0
    )?;
    for segment in &log.segments {
        writeln!(
            said,
            "  {}: {} bytes, begun at {}, from revision {} of epoch {} on, {}",
            segment.name,
            segment.bytes,
            began(segment.began_at),
            segment.start.revision.next(),
            segment.start.epoch,
            match segment.start.revision.0 {
                0 => "from the start of the epoch",
                _ if segment.has_base => "with the state before it",
                _ => "the state before it follows from the segment before",
            }
        )?;
    }
    Ok(())
}

fn run_verify(DataArgs { data }: DataArgs) -> anyhow::Result<()> {
    let report = maintain::verify(&data, &mut |progress| eprintln!("{}", describe(&progress)))?;
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
    let count = segments(log.segments as u64);
    writeln!(said, "clusterset {}: {count}", log.clusterset)?;
    for epoch in &log.epochs {
        let snapshots: Vec<_> = epoch.snapshots.iter().map(ToString::to_string).collect();
        writeln!(
            said,
            "  epoch {}: {} good events from revision {} on, {} payload bytes, {} events as differences, good snapshots at revisions [{}]",
            epoch.epoch,
            epoch.events,
            epoch.first,
            epoch.payload_bytes,
            epoch.differences,
            snapshots.join(", ")
        )?;
    }
    for corruption in &log.corruptions {
        writeln!(said, "  DAMAGED at {}: {}", corruption.place, corruption.what)?;
    }
    Ok(())
}
