//! Owns: `clusterclass rebase`: Clusters of one class get another one, some at once, each healthy before others follow.
//! Never: writes without --confirm, or while anything of the preview is wrong.
//!
//! * `edit`: the class of a Cluster. `health`: what conditions say. `waves`: what is done in which order. `server`: requests.

mod edit;
mod health;
mod server;
#[cfg(test)]
mod tests;
mod waves;

use std::{collections::BTreeSet, fmt::Write, path::PathBuf, time::Duration};

use anyhow::{bail, ensure};
use clap::Args;
use clusterclass::{
    desired::{
        change::{Changes, Plan},
        objects::Listed,
        offline::{Planned, plans_of_edits},
        table::table,
    },
    model::Key,
};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use topology_reader as live;

use self::{
    edit::{ClassName, class, edited, is_paused, patch},
    server::Clusters,
    waves::{Pace, Rebase, shown},
};

/// Longest wait for the Clusters of one wave, minutes.
const WAIT_MINUTES: u64 = 60;

/// The Clusters, and their classes before and after.
#[derive(Debug, Args)]
pub(crate) struct RebaseArgs {
    /// Class that the Clusters have, as NAME or NAMESPACE/NAME; without a namespace, the Cluster's own
    #[arg(long, env = "TRIBUTARY_FROM", value_name = "CLASS")]
    from: ClassName,
    /// Class that they get, the same
    #[arg(long, env = "TRIBUTARY_TO", value_name = "CLASS")]
    to: ClassName,
    /// Labels of the Clusters, as kubectl's --selector has them; an empty one selects all
    #[arg(long, env = "TRIBUTARY_CLUSTERS", value_name = "SELECTOR")]
    clusters: String,
    /// Clusters that may be on their way at once
    #[arg(long, env = "TRIBUTARY_AT_ONCE", value_name = "COUNT", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Minutes after which a Cluster that is not healthy counts as failing
    #[arg(long, env = "TRIBUTARY_WAIT_MINUTES", value_name = "MINUTES", default_value_t = WAIT_MINUTES)]
    wait_minutes: u64,
    /// Kubeconfig of the management cluster
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,
    /// Context of the kubeconfig; its current one unless given
    #[arg(long, env = "TRIBUTARY_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Clusters of this namespace only; of all unless given
    #[arg(short = 'n', long, env = "TRIBUTARY_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
    /// Do it; without this, say what would be done
    #[arg(long)]
    confirm: bool,
}

impl RebaseArgs {
    fn pace(&self) -> Pace {
        Pace {
            look: Duration::from_secs(2),
            settle: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            wait: Duration::from_secs(self.wait_minutes.saturating_mul(60)),
        }
    }
}

/// The changes of a rebase.
struct Preview {
    /// Clusters that have the class already.
    begun: Vec<Key>,
    /// The others, as many in each wave as may be on their way at once.
    waves: Vec<Vec<Key>>,
    /// The plans and the waves as people read them.
    text: String,
}

/// Previews a rebase, and carries it out if that is confirmed. Steps are told as they are taken.
pub(crate) async fn run(
    args: &RebaseArgs,
    client: Client,
    tell: &mut (dyn FnMut(String) + Send),
) -> anyhow::Result<(String, Changes)> {
    let ended = CancellationToken::new();
    let signal = ended.clone();
    let listening = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            signal.cancel();
        }
    });
    let run = run_until(args, client, args.pace(), ended, tell).await;
    listening.abort();
    run
}

async fn run_until(
    args: &RebaseArgs,
    client: Client,
    pace: Pace,
    ended: CancellationToken,
    tell: &mut (dyn FnMut(String) + Send),
) -> anyhow::Result<(String, Changes)> {
    ensure!(
        args.from != args.to,
        "--from and --to are the same class: name another one"
    );
    let server = Clusters::of(client.clone()).await?;
    let selected = server.matching(args.namespace.as_deref(), &args.clusters).await?;
    let listed = live::read(client, &[]).await?;
    let preview = preview(args, &server, &selected, listed).await?;
    let Preview { begun, waves, text } = preview;
    if !args.confirm {
        let changes = if waves.is_empty() {
            Changes::Nothing
        } else {
            Changes::Something
        };
        let next = if waves.is_empty() {
            ""
        } else {
            "nothing was written; --confirm carries it out\n"
        };
        return Ok((text + next, changes));
    }
    tell(text.trim_end().to_owned());
    let mut rebase = Rebase {
        server: &server,
        to: &args.to,
        pace,
        ended,
        tell,
    };
    rebase.carry_out(&begun, &waves).await?;
    let count = begun.len() + waves.iter().map(Vec::len).sum::<usize>();
    Ok((
        format!("{count} Clusters have class {} and are healthy\n", args.to),
        Changes::Nothing,
    ))
}

/// Plans all Clusters with their new class, and asks the server whether each may have it.
async fn preview(
    args: &RebaseArgs,
    server: &Clusters,
    selected: &[Value],
    listed: Listed,
) -> anyhow::Result<Preview> {
    let (begun, there) = chosen(args, selected)?;
    let keys: BTreeSet<Key> = there.iter().map(|cluster| key(cluster)).collect();
    let edits = there
        .iter()
        .map(|cluster| edited(cluster, &args.to.of(&key(cluster).0)));
    let plans = planned(plans_of_edits(listed, edits.collect()), &keys, args)?;
    for cluster in &there {
        let key = key(cluster);
        server
            .edit(&key, patch(cluster, &args.to.of(&key.0)), true)
            .await?;
    }
    let all: Vec<Key> = keys.into_iter().collect();
    let waves: Vec<Vec<Key>> = all
        .chunks(usize::from(args.at_once))
        .map(<[Key]>::to_vec)
        .collect();
    let mut text = table(&plans);
    for (at, wave) in waves.iter().enumerate() {
        writeln!(text, "wave {} of {}: {}", at + 1, waves.len(), shown(wave))?;
    }
    let others = selected.len() - all.len() - begun.len();
    if others + begun.len() > 0 {
        writeln!(
            text,
            "{} have class {} already, {others} have other classes and stay",
            begun.len(),
            args.to
        )?;
    }
    Ok(Preview { begun, waves, text })
}

/// Those that have the class already, and those that are to get it.
fn chosen<'a>(args: &RebaseArgs, selected: &'a [Value]) -> anyhow::Result<(Vec<Key>, Vec<&'a Value>)> {
    let has = |cluster: &&Value, named: &ClassName| class(cluster) == Some(named.of(&key(cluster).0));
    let begun = selected.iter().filter(|one| has(one, &args.to)).map(key);
    let begun: BTreeSet<Key> = begun.collect();
    let there: Vec<&Value> = selected.iter().filter(|one| has(one, &args.from)).collect();
    ensure!(
        !(there.is_empty() && begun.is_empty()),
        "of {} Clusters that --clusters selects, none has class {}: correct the selector, or --from",
        selected.len(),
        args.from
    );
    let paused: Vec<Key> = there
        .iter()
        .filter(|one| is_paused(one))
        .map(|one| key(one))
        .collect();
    ensure!(
        paused.is_empty(),
        "paused: {}; nobody would carry out the change: resume them, or leave them out of --clusters",
        shown(&paused)
    );
    Ok((begun.into_iter().collect(), there))
}

/// The plans of the Clusters that are rebased. What is wrong with them, or with the class, ends the preview.
fn planned(planned: Planned, keys: &BTreeSet<Key>, args: &RebaseArgs) -> anyhow::Result<Vec<Plan>> {
    let of = |(namespace, name): &Key, kind: &str| format!("{kind} {namespace}/{name}");
    let mut about: BTreeSet<String> = keys.iter().map(|key| of(key, "Cluster")).collect();
    about.extend(keys.iter().map(|key| of(&args.to.of(&key.0), "ClusterClass")));
    let wrong = planned.findings.iter().filter(|one| about.contains(&one.object));
    let wrong: Vec<String> = wrong.map(ToString::to_string).collect();
    if !wrong.is_empty() {
        bail!(
            "nothing was written, {} findings: {}; correct the class {} or the Clusters, or leave those out of --clusters",
            wrong.len(),
            wrong.join("; "),
            args.to
        );
    }
    let is = |plan: &Plan| keys.contains(&(plan.namespace.clone(), plan.name.clone()));
    let plans: Vec<Plan> = planned.plans.into_iter().filter(is).collect();
    ensure!(
        plans.len() == keys.len(),
        "{} of {} Clusters cannot be planned: run `clusterclass diff` for the reasons",
        keys.len() - plans.len(),
        keys.len()
    );
    Ok(plans)
}

fn key(cluster: &Value) -> Key {
    let text = |name: &str| cluster["metadata"][name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
