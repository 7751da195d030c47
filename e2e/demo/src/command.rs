//! The commands that act on a running demo: as a user of its clusters and its hub, or over its control channel.
//! Each is a process of its own; none shares memory with the demo.

use std::{collections::BTreeMap, io::Write};

use anyhow::{Context, bail};
use kube::Client;

use super::{
    args::Command,
    control::{self, Order},
    directory::DemoDirectory,
    get, kubeconfig, objects,
};
use advice::DEMO_EXPORTS;

/// Runs one command, and prints what there is to say.
pub(super) async fn run(place: &DemoDirectory, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Events { follow } => {
            drop(control::require_running(place).await?);
            get::events(place, follow).await
        }
        command => print(lines(place, command).await?),
    }
}

/// Runs one command; what there is to say.
pub(super) async fn lines(place: &DemoDirectory, command: Command) -> anyhow::Result<Vec<String>> {
    // Said once, in the same words for every command.
    drop(control::require_running(place).await?);
    Ok(match command {
        Command::Apply { cluster, file } => {
            let applied = objects::apply(&client(place, &cluster).await?, &objects::read(&file)?).await;
            let applied = applied.with_context(|| format!("{} in {cluster}", file.display()))?;
            let told = |object: &String| format!("{object} applied in {cluster}");
            applied.iter().map(told).collect()
        }
        Command::Export { cluster, service } => {
            objects::export(&client(place, &cluster).await?, &cluster, &service).await?;
            vec![format!(
                "{service} is exported by {cluster}; `{DEMO_EXPORTS}` shows its conditions"
            )]
        }
        Command::Unexport { cluster, service } => {
            objects::unexport(&client(place, &cluster).await?, &service).await?;
            vec![format!("{service} is no longer exported by {cluster}")]
        }
        Command::Get { kind, cluster } => {
            let mut clients = clients(place).await?;
            clients.retain(|name, _| cluster.as_ref().is_none_or(|only| only == name));
            get::get(&clients, kind).await?
        }
        Command::Events { .. } => bail!("events are printed as they come"),
        Command::Kill { program } => vec![control::ask(place, &Order::Kill(program)).await?],
        Command::Start { program } => vec![control::ask(place, &Order::Start(program)).await?],
    })
}

/// Prints lines; a reader that stops reading (`| head`) is no failure.
fn print(lines: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in lines {
        match writeln!(output, "{line}") {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

async fn clients(place: &DemoDirectory) -> anyhow::Result<BTreeMap<String, Client>> {
    kubeconfig::clients(&place.kubeconfig()).await
}

async fn client(place: &DemoDirectory, cluster: &str) -> anyhow::Result<Client> {
    let client = clients(place).await?.remove(cluster);
    client.with_context(|| format!("the demo has no cluster {cluster}"))
}
