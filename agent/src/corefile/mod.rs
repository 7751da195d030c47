//! The command `corefile`: puts the clusterset's zone into the Corefile of CoreDNS, and takes it out.
//!
//! * [`args`]: the flags; [`edit`]: pure: what is to be done with a text;
//! * [`custom`]: pure: Corefiles that a cloud provider keeps, and the server block that goes beside them;
//! * [`cluster`], [`file`]: where the text comes from and goes to; [`report`]: what people read of it.
//!
//! It runs with a person's kubeconfig: the agent has no right to CoreDNS' configuration, and wants none.

pub mod args;
mod cluster;
mod custom;
pub mod edit;
mod file;
mod report;

use std::path::Path;

use anyhow::{Context, ensure};
use kube::Client;
use shared::{
    process::{LogArgs, Threads, block_on},
    tls::install_crypto_provider,
};

use args::{CorefileArgs, CorefileCommand, STANDARD_INPUT};
use cluster::ClusterCorefile;
use edit::{Wanted, decide};
use report::Report;

/// Runs the command.
pub fn run(log: &LogArgs, command: &CorefileCommand) -> anyhow::Result<()> {
    log.init()?;
    let (wanted, args) = match command {
        CorefileCommand::Add(args) => (Wanted::Zone, args),
        CorefileCommand::Remove(args) => (Wanted::NoZone, args),
    };
    if let Some(path) = &args.file {
        let shown = in_file(wanted, args, path)?;
        eprint!("{}", shown.report);
        print!("{}", shown.corefile);
        return Ok(());
    }
    install_crypto_provider()?;
    block_on(Threads::One, async {
        let (client, address) = cluster::connect(args.kubeconfig.as_deref()).await?;
        let corefile = ClusterCorefile::new(client, args);
        print!("{}", in_cluster(wanted, args, &corefile, &address).await?);
        Ok(())
    })
}

/// The zone in a cluster's DNS, before `add`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answering {
    /// CoreDNS is configured to answer the zone.
    Yes,
    /// `add` would configure it.
    Not {
        /// The lines that would change.
        change: String,
    },
    /// It is not configured, and something reverts edits of the Corefile: a label of its ConfigMap.
    Reverted(String),
}

/// Looks whether CoreDNS answers the zone. It changes nothing; a Corefile that `add` would refuse is an error.
pub async fn answering(client: Client, args: &CorefileArgs, address: &str) -> anyhow::Result<Answering> {
    let corefile = ClusterCorefile::new(client, args);
    let read = corefile
        .read()
        .await
        .with_context(|| format!("no Corefile at {address}"))?;
    let answers = match &read.kept_by {
        Some(_) if custom::imports_servers(&read.text) => {
            let standing = corefile.custom().await?;
            custom::decide(standing.as_deref(), Wanted::Zone, &args.zone)? == custom::Change::Nothing
        }
        kept_by => {
            let decision = decide(&read.text, Wanted::Zone, &args.zone)?;
            if let (Some(label), Some(_)) = (kept_by, &decision.text) {
                return Ok(Answering::Reverted(label.clone()));
            }
            decision.text.is_none()
        }
    };
    if answers {
        return Ok(Answering::Yes);
    }
    let shown = CorefileArgs {
        apply: false,
        ..args.clone()
    };
    let change = in_cluster(Wanted::Zone, &shown, &corefile, address).await?;
    Ok(Answering::Not { change })
}

/// Configures CoreDNS of a cluster to answer the zone, or not any more, and returns a report.
pub async fn configure(
    client: Client,
    wanted: Wanted,
    args: &CorefileArgs,
    address: &str,
) -> anyhow::Result<String> {
    in_cluster(wanted, args, &ClusterCorefile::new(client, args), address).await
}

/// Does it in a cluster, and says what was done.
async fn in_cluster(
    wanted: Wanted,
    args: &CorefileArgs,
    corefile: &ClusterCorefile,
    address: &str,
) -> anyhow::Result<String> {
    let read = corefile
        .read()
        .await
        .with_context(|| format!("no Corefile at {address}"))?;
    match wanted {
        Wanted::Zone => match &read.kept_by {
            Some(kept_by) if custom::imports_servers(&read.text) => {
                let standing = corefile.custom().await?;
                let beside = Beside::decide(wanted, args, Some(kept_by), standing.as_deref())?;
                beside.carry_out(corefile).await
            }
            _ => edit(wanted, args, corefile, (&read, address)).await,
        },
        Wanted::NoZone => remove(args, corefile, (&read, address)).await,
    }
}

/// Removes the zone from both places that `add` may have written, at whatever time: the Corefile may have been a
/// provider's before or since. Both are decided before anything is written.
async fn remove(
    args: &CorefileArgs,
    corefile: &ClusterCorefile,
    (read, address): (&cluster::Read, &str),
) -> anyhow::Result<String> {
    let standing = corefile.custom().await?;
    let Some(standing) = standing.filter(|standing| custom::is_ours(standing)) else {
        return edit(Wanted::NoZone, args, corefile, (read, address)).await;
    };
    let decided = decide(&read.text, Wanted::NoZone, &args.zone).map(|decision| decision.text.is_some());
    let beside = Beside::decide(Wanted::NoZone, args, read.kept_by.as_deref(), Some(&standing));
    let beside = match beside {
        // The block answers another zone, and stays.
        Err(_) if matches!(decided, Ok(true)) => {
            return edit(Wanted::NoZone, args, corefile, (read, address)).await;
        }
        beside => beside?,
    };
    let mut text = match decided {
        Ok(true) => edit(Wanted::NoZone, args, corefile, (read, address)).await?,
        Ok(false) => String::new(),
        Err(error) => format!("The Corefile beside it stays as it is: {error:#}\n"),
    };
    text += &beside.carry_out(corefile).await?;
    Ok(text)
}

/// Does it in the Corefile itself, and says what was done.
async fn edit(
    wanted: Wanted,
    args: &CorefileArgs,
    corefile: &ClusterCorefile,
    (read, address): (&cluster::Read, &str),
) -> anyhow::Result<String> {
    let (map, key) = (format!("{}/{}", args.namespace, args.configmap), &args.key);
    let place = format!("the ConfigMap {map} (key {key}) at {address}");
    let decision =
        decide(&read.text, wanted, &args.zone).with_context(|| format!("{place} stays as it is"))?;
    if let Some(text) = decision.text.as_ref().filter(|_| args.apply) {
        corefile.write(read, text).await?;
    }
    let report = Report {
        wanted,
        args,
        place: &place,
        before: &read.text,
        decision: &decision,
    };
    let warning = read.kept_by.as_ref().filter(|_| wanted == Wanted::Zone);
    let warning = warning.map(|kept_by| report::edits_are_put_back(&map, kept_by));
    Ok(warning.unwrap_or_default() + &report.text())
}

/// The change to the ConfigMap beside the Corefile's.
struct Beside<'a> {
    wanted: Wanted,
    args: &'a CorefileArgs,
    place: String,
    kept_by: Option<&'a str>,
    standing: Option<&'a str>,
    change: custom::Change,
}

impl<'a> Beside<'a> {
    fn decide(
        wanted: Wanted,
        args: &'a CorefileArgs,
        kept_by: Option<&'a str>,
        standing: Option<&'a str>,
    ) -> anyhow::Result<Self> {
        let place = format!("{}/{}", args.namespace, custom::CONFIGMAP);
        let change = custom::decide(standing, wanted, &args.zone)
            .with_context(|| format!("the ConfigMap {place} stays as it is"))?;
        Ok(Self {
            wanted,
            args,
            place,
            kept_by,
            standing,
            change,
        })
    }

    /// Does it, if it is to be done, and says what was done.
    async fn carry_out(&self, corefile: &ClusterCorefile) -> anyhow::Result<String> {
        match &self.change {
            custom::Change::Write(text) if self.args.apply => corefile.write_custom(Some(text)).await?,
            custom::Change::Remove if self.args.apply => corefile.write_custom(None).await?,
            _ => {}
        }
        let report = report::Beside {
            wanted: self.wanted,
            args: self.args,
            place: &self.place,
            kept_by: self.kept_by,
            standing: self.standing,
            change: &self.change,
        };
        Ok(report.text())
    }
}

/// The output for a file: text for people, and the Corefile for a program that reads the output.
struct Shown {
    report: String,
    corefile: String,
}

/// Does it in a file.
fn in_file(wanted: Wanted, args: &CorefileArgs, path: &Path) -> anyhow::Result<Shown> {
    ensure!(
        !args.apply || path.as_os_str() != STANDARD_INPUT,
        "standard input cannot be written: leave --apply out, the new Corefile is printed"
    );
    let before = file::read(path)?;
    let place = if path.as_os_str() == STANDARD_INPUT {
        "the Corefile".to_owned()
    } else {
        path.display().to_string()
    };
    let decision = decide(&before, wanted, &args.zone).with_context(|| format!("{place} stays as it is"))?;
    let report = Report {
        wanted,
        args,
        place: &place,
        before: &before,
        decision: &decision,
    };
    let report = report.text();
    let after = decision.text.as_ref();
    if args.apply {
        after.map_or(Ok(()), |after| file::write(path, after))?;
    }
    let corefile = if args.apply {
        String::new()
    } else {
        after.unwrap_or(&before).clone()
    };
    Ok(Shown { report, corefile })
}

#[cfg(test)]
mod tests;
