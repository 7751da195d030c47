//! `tributary verify`: names, connections and latency between clusters, seen by short-lived pods.
//!
//! * `ask.rs`, `seen.rs`, `judge.rs`, `next.rs`, `print.rs`: which services and clusters, what was seen, what it means, what
//!   to do, how it is printed. Pure.
//! * `look.rs`: reads imports and the agent's image. `pod.rs`, `life.rs`: the pods.
//!
//! It changes nothing but its pods, which end with it: also after Ctrl-C.

mod args;
mod ask;
mod judge;
mod life;
mod look;
mod next;
mod pod;
mod print;
mod seen;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::bail;
use futures::{StreamExt, future::join_all, stream};
use proto::v1;
use shared::model::ServiceKey;
use tokio::time::timeout;

pub use args::VerifyArgs;

use self::{
    judge::Verdict,
    life::{Place, Pods},
    pod::Template,
    seen::{Asked, Exported, Found, From, Import, Outcome, Unseen},
};
use super::{
    args::ClusterArgs,
    cluster::Cluster,
    home::{Home, MemberPlace},
    progress::Progress,
};
use crate::show::pages;

/// Clusters that are looked at at a time.
const CLUSTERS_AT_A_TIME: usize = 8;
/// The longest that removing the pods takes after Ctrl-C.
const REMOVE_WAIT: Duration = Duration::from_secs(10);
/// The directory beside the contexts, if flags name hub and certificates.
const CLUSTERSET_DEFAULT: &str = "default";

/// Runs the command and prints the verdict; returns 0 if everything works, 1 if something is broken, 2 if something could
/// not be checked.
pub(crate) fn run(args: &VerifyArgs) -> ExitCode {
    crate::doctor::ended(client::run(verify(args, None)))
}

/// Runs the command with the contexts of `config` or the user's, and returns the exit code and what to print.
pub async fn verify(args: &VerifyArgs, config: Option<PathBuf>) -> anyhow::Result<(u8, String)> {
    let pods = Pods::new(args.timeout);
    let ended = tokio::select! {
        biased;
        ended = examined(args, config, &pods) => Some(ended),
        () = interrupted() => None,
    };
    let left = tokio::select! {
        left = timeout(REMOVE_WAIT, pods.remove_all()) => left.unwrap_or_default(),
        () = interrupted() => Vec::new(),
    };
    if !left.is_empty() {
        eprintln!(
            "these pods could not be removed, and the next run removes them: {}",
            left.join(", ")
        );
    }
    match ended {
        Some(Ok((verdict, left_out))) => {
            let text = print::printed(&verdict, left_out, args.hub.output);
            Ok((verdict.exit_code(), text))
        }
        Some(Err(error)) => Err(error),
        None => bail!("interrupted: the pods are removed, and nothing was judged"),
    }
}

/// Returns on Ctrl-C or SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

async fn examined(
    args: &VerifyArgs,
    config: Option<PathBuf>,
    pods: &Pods,
) -> anyhow::Result<(Verdict, usize)> {
    let progress = Progress::new(None);
    let places = places(args, config)?;
    let channel = args.hub.access()?.connect(None).await?;
    let members = pages::members(&channel).await?.members;
    let namespace = args.service.as_ref().map(|service| service.namespace.to_string());
    let wanted = v1::GetStateRequest {
        parts: vec![v1::StatePart::StateExports.into()],
        namespace: namespace.unwrap_or_default(),
        ..Default::default()
    };
    let exports = pages::state(&channel, wanted).await?.exports;
    let (asked, left_out) = ask::services(&exports, args);
    let run = Run {
        args,
        asked: &asked,
        pods,
        progress: &progress,
    };
    let looks = ask::from(&members, args)
        .into_iter()
        .map(|id| run.from(places.get(&id).cloned(), id));
    let mut from: Vec<From> = stream::iter(looks)
        .buffer_unordered(CLUSTERS_AT_A_TIME)
        .collect()
        .await;
    from.sort_by(|one, other| one.cluster.cmp(&other.cluster));
    let contexts: BTreeMap<String, String> = places
        .into_iter()
        .map(|(id, place)| (id, place.context))
        .collect();
    let named: BTreeSet<String> = args.from.iter().map(ToString::to_string).collect();
    Ok((judge::judge(&asked, &from, &contexts, &named), left_out))
}

/// The clusters by id: those that joined from this machine, and those of `--cluster`.
fn places(args: &VerifyArgs, config: Option<PathBuf>) -> anyhow::Result<BTreeMap<String, ClusterArgs>> {
    let clusterset = args.hub.context_name();
    let home = Home::of(config, clusterset.as_deref().unwrap_or(CLUSTERSET_DEFAULT))?;
    let joined = home.remembered()?.members;
    let mut places: BTreeMap<String, ClusterArgs> = joined
        .iter()
        .map(|(id, place)| (id.clone(), MemberPlace::args(place)))
        .collect();
    for (id, context) in &args.clusters {
        let namespace = places.get(id).map(|place| place.namespace.clone());
        let place = ClusterArgs {
            context: context.clone(),
            kubeconfig: args.kubeconfig.clone(),
            namespace: namespace.unwrap_or_else(|| shared::api::names::TRIBUTARY_NAMESPACE.to_owned()),
        };
        places.insert(id.clone(), place);
    }
    Ok(places)
}

/// The questions to every cluster, and the pods that ask.
struct Run<'a> {
    args: &'a VerifyArgs,
    asked: &'a [Asked],
    pods: &'a Pods,
    progress: &'a Progress,
}

impl Run<'_> {
    /// Looks from one cluster.
    async fn from(&self, place: Option<ClusterArgs>, id: String) -> From {
        let mut from = From {
            context: place
                .as_ref()
                .map(|place| place.context.clone())
                .unwrap_or_default(),
            found: Err(next::no_context(&id)),
            ran: BTreeMap::new(),
            cluster: id,
        };
        let Some(place) = place else { return from };
        let cluster = match Cluster::connect(&place).await {
            Ok(cluster) => cluster,
            Err(error) => {
                from.found = Err(next::unreachable(&from.cluster, &error));
                return from;
            }
        };
        from.found = self
            .found(&cluster)
            .await
            .map_err(|error| next::unreachable(&from.cluster, &error));
        if let Ok(found) = &from.found {
            from.ran = self.looked(&from.cluster, &cluster, found).await;
        }
        from
    }

    async fn found(&self, cluster: &Cluster) -> anyhow::Result<BTreeMap<ServiceKey, Found>> {
        let mut all = BTreeMap::new();
        for Asked { service, .. } in self.asked {
            all.insert(service.clone(), look::found(cluster, service).await?);
        }
        Ok(all)
    }

    /// Has pods look at all imports, in one namespace after another.
    async fn looked(
        &self,
        id: &str,
        cluster: &Cluster,
        found: &BTreeMap<ServiceKey, Found>,
    ) -> BTreeMap<ServiceKey, Result<Outcome, Unseen>> {
        let mut imports: Vec<(&ServiceKey, &Import)> = Vec::new();
        // Where nobody should answer, a pod would find out nothing.
        let asked = self.asked.iter();
        for Asked { service, .. } in asked.filter(|asked| asked.exports.iter().any(Exported::should_answer)) {
            if let Some(Found::Import(import)) = found.get(service) {
                imports.push((service, import));
            }
        }
        if imports.is_empty() {
            return BTreeMap::new();
        }
        let template = match self.template(cluster).await {
            Ok(template) => template,
            Err(error) => {
                let unseen = next::unreachable(id, &error);
                let all = imports.into_iter();
                return all
                    .map(|(service, _)| (service.clone(), Err(unseen.clone())))
                    .collect();
            }
        };
        let mut groups: BTreeMap<&str, Vec<(&ServiceKey, &Import)>> = BTreeMap::new();
        for (service, import) in imports {
            let namespace = match &self.args.namespace {
                Some(namespace) => namespace,
                None if template.needs_secret() => cluster.namespace(),
                None => &service.namespace,
            };
            groups.entry(namespace).or_default().push((service, import));
        }
        let looks = groups.into_iter().map(|(namespace, imports)| {
            let place = Place {
                id,
                cluster,
                namespace,
                template: &template,
            };
            self.group(place, imports)
        });
        join_all(looks).await.into_iter().flatten().collect()
    }

    async fn group(
        &self,
        place: Place<'_>,
        imports: Vec<(&ServiceKey, &Import)>,
    ) -> Vec<(ServiceKey, Result<Outcome, Unseen>)> {
        let sources: BTreeSet<&str> = self
            .asked
            .iter()
            .flat_map(|asked| &asked.exports)
            .map(|export| export.cluster.as_str())
            .collect();
        let requests = seen::requests(&imports, &sources);
        let outcome = self.pods.carry_out(&place, &requests, self.progress).await;
        let outcome = outcome.map_err(|error| next::no_pod(place.id, place.namespace, &error));
        imports
            .into_iter()
            .map(|(service, _)| (service.clone(), outcome.clone()))
            .collect()
    }

    async fn template(&self, cluster: &Cluster) -> anyhow::Result<Template> {
        match (look::template(cluster).await, &self.args.image) {
            (Ok(template), Some(image)) => Ok(template.with_image(image)),
            (Err(_), Some(image)) => Ok(Template::default().with_image(image)),
            (template, None) => template,
        }
    }
}
