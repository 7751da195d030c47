//! `plan`, `diff` and `explain`: their arguments, where their objects are read, and what is printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Args;
use clusterclass::{
    desired::{
        change::{Changes, Plan},
        objects::Objects,
        offline::{Planned, Preview},
    },
    model::Finding,
};
use tokio::runtime::Runtime;
use topology_reader as live;

use crate::{
    dry::{DRY_RUN, dry_run},
    extension::ExtensionArgs,
    files::{Old, contents},
};

/// Classes with their templates, clusters, and what there is of these: in files, or in a management cluster.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// File (YAML or JSON), or directory of such files, with ClusterClasses, their templates, Clusters, and the objects
    /// that exist already; may be repeated
    #[arg(
        short = 'f',
        long = "file",
        env = "TRIBUTARY_FILE",
        value_name = "FILE",
        required_unless_present = "kubeconfig",
        value_delimiter = ','
    )]
    files: Vec<PathBuf>,
    #[command(flatten)]
    before: Old,
    /// Kubeconfig of a management cluster: existing objects are read from it, and the files are edits of them
    #[arg(
        long,
        env = "TRIBUTARY_KUBECONFIG",
        value_name = "FILE",
        conflicts_with = "old"
    )]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; its current one unless given
    #[arg(long, env = "TRIBUTARY_CONTEXT", value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Read this namespace only; all unless given
    #[arg(
        short = 'n',
        long,
        env = "TRIBUTARY_NAMESPACE",
        value_name = "NAME",
        requires = "kubeconfig"
    )]
    namespace: Option<String>,
    #[command(flatten)]
    extensions: ExtensionArgs,
}

fn runtime() -> anyhow::Result<Runtime> {
    api_client::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime's threads")
}

/// Waits for what asks a management cluster.
pub(crate) fn block_on<T>(asking: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let answer = runtime.block_on(asking);
    // A call that still hangs is not waited for.
    runtime.shutdown_background();
    answer
}

/// Requests to a management cluster beside reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Nothing,
    /// A dry run of each object that would be written.
    DryRuns,
}

/// Plans from what a management cluster has, with the files for edits of that.
fn live(
    args: &PlanArgs,
    kubeconfig: &Path,
    files: &[(String, Vec<u8>)],
    asks: Asks,
    preview: Preview<'_>,
) -> anyhow::Result<Planned> {
    let runtime = runtime()?;
    let read = runtime.block_on(async {
        let client = live::client(kubeconfig, args.context.as_deref()).await?;
        let listed = live::read(client.clone(), args.namespace.as_deref().as_slice()).await?;
        anyhow::Ok((client, listed))
    });
    let planned = read.and_then(|(client, listed)| {
        let there = listed.clone();
        // Not within the runtime: extensions are asked meanwhile, by one of their own.
        let mut planned = preview
            .plans_of_server(listed, files)
            .map_err(anyhow::Error::msg)?;
        if asks == Asks::DryRuns {
            let objects = Objects::of(&there.objects);
            let said = runtime.block_on(dry_run(client, &objects, &mut planned.plans));
            planned.findings.extend(said.findings);
            warn_of_rights(said.no_right);
        }
        Ok(planned)
    });
    // A call that still hangs is not waited for.
    runtime.shutdown_background();
    planned
}

fn warn_of_rights(no_right: BTreeSet<String>) {
    if !no_right.is_empty() {
        let kinds: Vec<String> = no_right.into_iter().collect();
        eprintln!(
            "warning: not dry-run, the kubeconfig has no right to patch: {}; values that the server normalises look \
             like changes there",
            kinds.join(", ")
        );
    }
}

/// Says which extensions a preview lacks.
fn warn_of_extensions(plans: &[Plan]) {
    let mut lacking: BTreeMap<&str, usize> = BTreeMap::new();
    for plan in plans {
        let extensions = plan.left_out.iter().filter_map(|one| one.extension.as_deref());
        for extension in extensions.collect::<BTreeSet<&str>>() {
            *lacking.entry(extension).or_default() += 1;
        }
    }
    for (extension, clusters) in lacking {
        let clusters = match clusters {
            1 => "1 Cluster".to_owned(),
            clusters => format!("{clusters} Clusters"),
        };
        eprintln!(
            "warning: extension {extension} was not asked for {clusters}: what it does is missing, and what it has done \
             looks like a change; give --extension {extension}=URL"
        );
    }
}

/// Prints what is planned even where something else is wrong.
pub(crate) fn run_plan(
    args: &PlanArgs,
    asks: Asks,
    print: fn(&[Plan]) -> String,
) -> anyhow::Result<(String, Changes)> {
    let files = contents(&args.files)?;
    let asker = args.extensions.asker()?;
    let preview = Preview(&asker);
    let planned = match &args.kubeconfig {
        Some(kubeconfig) => live(args, kubeconfig, &files, asks, preview)?,
        None => {
            let old = contents(&args.before.old)?;
            let old = (!args.before.old.is_empty()).then_some(old.as_slice());
            preview.plans(&files, old).map_err(anyhow::Error::msg)?
        }
    };
    warn_of_extensions(&planned.plans);
    if !planned.findings.is_empty() {
        if !planned.plans.is_empty() {
            print!("{}", print(&planned.plans));
        }
        let only_refused = planned.findings.iter().all(|one| one.rule == DRY_RUN);
        let besides = if only_refused {
            ""
        } else {
            "its Clusters are not planned"
        };
        return Err(told(&planned.findings, besides));
    }
    ensure!(
        !planned.plans.is_empty(),
        "the files have no Cluster with a topology: give one, with its ClusterClass and the templates that this names"
    );
    let changes = if planned.plans.iter().any(Plan::writes) {
        Changes::Something
    } else {
        Changes::Nothing
    };
    Ok((print(&planned.plans), changes))
}

/// Prints findings, and says how many there are.
pub(crate) fn told(findings: &[Finding], besides: &str) -> anyhow::Error {
    for finding in findings {
        println!("{finding}");
    }
    let besides = match besides {
        "" => String::new(),
        besides => format!("; {besides}"),
    };
    match findings.len() {
        1 => anyhow::anyhow!("1 finding is printed above: correct the object{besides}"),
        count => anyhow::anyhow!("{count} findings are printed above: correct the objects{besides}"),
    }
}
