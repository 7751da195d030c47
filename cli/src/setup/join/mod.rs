//! `tributary join`: a cluster becomes a member.
//!
//! * `decide.rs`: the steps, pure. `look.rs`: what is there. Here: carries the steps out, and waits.

mod decide;
mod look;

use std::path::Path;

use anyhow::Context;
use proto::v1::SourceState;
use serde_json::{Value, json};
use shared::{model::advice, tls::HubAddress};

use self::decide::{Seen, Step, left_behind};
use super::{
    args::JoinArgs,
    cluster::{Cluster, Right},
    dns, gitops,
    helm::{Charts, Definitions, Helm},
    home::{Home, HubPlace, MemberPlace},
    hub::Operator,
    init::JOIN_PORT,
    plan::{Look, Planned, until},
    progress::Progress,
    values::{self, AGENT_JOIN, Release},
};

pub(super) use look::stated_id;

/// The release and the Deployment of the agent.
pub(super) const AGENT: &str = "tributary-agent";

/// All that looking needs.
struct Tools<'a> {
    args: &'a JoinArgs,
    home: &'a Home,
    hub: HubPlace,
    operator: Operator,
    cluster: Cluster,
    helm: Helm,
    charts: Charts,
}

/// All that the steps work with.
struct Shell<'a> {
    tools: Tools<'a>,
    definitions: Definitions,
    release: Option<Release>,
    values: Value,
    dns: dns::Seen,
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: &JoinArgs, home: &Home, progress: &mut Progress) -> anyhow::Result<String> {
    let hub = home.hub()?;
    if let Some(directory) = &args.print {
        return print(args, &hub, directory);
    }
    let helm = Helm::find(&args.charts.helm).await?;
    let charts = Charts::of(&args.charts)?;
    let cluster = Cluster::connect(&args.cluster).await?;
    cluster.require(&needed(cluster.namespace())).await?;
    let operator = Operator::connect(home, &hub).await?;
    let tools = Tools {
        args,
        home,
        hub,
        operator,
        cluster,
        helm,
        charts,
    };
    let (shell, seen, planned) = look::look(tools).await?;
    if seen.dns {
        shell.tools.cluster.require(&dns::NEEDED).await?;
    }
    for Planned { step, todo } in planned {
        match todo {
            None => progress.kept(name(step), &shell.text(step)),
            Some(reason) => shell.carry_out(step, &reason, &seen, progress).await?,
        }
    }
    shell.joined(progress).await?;
    Ok(shell.result(progress))
}

/// The rights that the steps take, as far as an API server can be asked.
fn needed(namespace: &str) -> [Right<'_>; 9] {
    [
        Right("", "namespaces", "create", None),
        Right("", "secrets", "create", Some(namespace)),
        Right("apps", "deployments", "create", Some(namespace)),
        Right("networking.k8s.io", "networkpolicies", "create", Some(namespace)),
        Right(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "create",
            None,
        ),
        Right("rbac.authorization.k8s.io", "clusterroles", "create", None),
        Right("rbac.authorization.k8s.io", "clusterrolebindings", "create", None),
        Right(
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies",
            "create",
            None,
        ),
        Right("scheduling.k8s.io", "priorityclasses", "create", None),
    ]
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Remember => "remember",
        Step::Namespace => "namespace",
        Step::Definitions => "definitions",
        Step::Token => "token",
        Step::Agent => "agent",
        Step::Dns => "dns",
    }
}

impl Shell<'_> {
    fn text(&self, step: Step) -> String {
        let Tools { args, cluster, .. } = &self.tools;
        let namespace = cluster.namespace();
        match step {
            Step::Remember => format!("{} is the cluster of context {}", args.id, args.cluster.context),
            Step::Namespace => format!("the namespace {namespace}"),
            Step::Definitions => "the definitions".to_owned(),
            Step::Token => {
                format!("the join string (Secret {namespace}/{AGENT_JOIN}), or the agent's certificate")
            }
            Step::Agent => format!("the agent (Helm release {AGENT})"),
            Step::Dns => match &self.dns {
                dns::Seen::Answers => "CoreDNS answers clusterset.local".to_owned(),
                dns::Seen::Cannot(reason) => format!("CoreDNS is not changed: {reason}"),
                dns::Seen::Unwanted | dns::Seen::Change(_) => "CoreDNS is left as it is".to_owned(),
            },
        }
    }

    async fn carry_out(
        &self,
        step: Step,
        reason: &str,
        seen: &Seen,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let Tools {
            args,
            home,
            cluster,
            helm,
            charts,
            ..
        } = &self.tools;
        match step {
            Step::Remember => {
                let place = MemberPlace::from(&args.cluster);
                home.remember(|all| drop(all.members.insert(args.id.to_string(), place)))?;
            }
            Step::Namespace => cluster.make_namespace().await?,
            Step::Definitions => return self.definitions.install((cluster, helm, charts), progress).await,
            Step::Token => {
                progress.note(&format!("making a token: {reason}"));
                self.token(seen).await?;
            }
            Step::Agent => {
                progress.note(&format!("calling Helm for {AGENT}: {reason}"));
                helm.apply(cluster, charts, ("agent", self.release.as_ref()), &self.values)
                    .await?;
            }
            Step::Dns => {
                dns::add(cluster).await?;
                let text =
                    "CoreDNS answers clusterset.local, within a minute where it reloads its configuration";
                return progress.done(name(step), text);
            }
        }
        progress.done(name(step), &self.text(step))
    }

    /// Makes a token, and revokes those that an interrupted run made.
    async fn token(&self, seen: &Seen) -> anyhow::Result<()> {
        let Tools {
            args,
            hub,
            operator,
            cluster,
            ..
        } = &self.tools;
        for left in left_behind(seen, args.id.as_str(), operator.name()) {
            operator.revoke_token(left).await?;
        }
        let join = operator.make_token(args.id.as_str(), hub).await?;
        let texts = [("join", join.as_str()), ("clusterId", args.id.as_str())];
        cluster.put_secret(AGENT_JOIN, &texts).await
    }

    /// Waits until the hub has the member in session, and its ClusterProfile is Joined.
    async fn joined(&self, progress: &mut Progress) -> anyhow::Result<()> {
        let Tools {
            args,
            operator,
            cluster,
            ..
        } = &self.tools;
        let id = args.id.as_str();
        until(progress, args.common.timeout, async || {
            let members = operator.members().await?;
            let member = members.iter().find(|member| member.cluster == id);
            let live = member.is_some_and(|member| member.state() == SourceState::SourceLive && member.connected);
            if !live {
                return Ok(Look::Waiting(match cluster.pods_wait_for(AGENT).await? {
                    Some(reason) => reason,
                    None => format!(
                        "the agent runs, and {id} is not live at the hub yet (kubectl -n {} logs deployment/{AGENT})",
                        cluster.namespace()
                    ),
                }));
            }
            Ok(match operator.is_joined(id).await? {
                Ok(()) => Look::Ready(()),
                Err(why) => Look::Waiting(format!("the ClusterProfile of {id} is not Joined: {why}")),
            })
        })
        .await?;
        progress.kept(
            "member",
            &format!("{id} is live, and its ClusterProfile is Joined"),
        );
        Ok(())
    }

    fn result(&self, progress: &Progress) -> String {
        let Tools { args, home, .. } = &self.tools;
        let done = if progress.changed() {
            "is"
        } else {
            "was (nothing was to do)"
        };
        let text = format!(
            "{} {done} a member of the clusterset {}.\nNext: {}",
            args.id,
            home.clusterset,
            advice::export(&args.cluster.context)
        );
        let value = json!({"clusterset": home.clusterset, "member": args.id.as_str()});
        progress.result(args.common.output, value, &text)
    }
}

/// The values of the agent's chart.
fn chart_values(args: &JoinArgs, hub: &HubPlace) -> anyhow::Result<Value> {
    let port = |text: &String| text.parse::<HubAddress>().map(|address| address.port);
    let hubs: Result<Vec<u16>, _> = hub.hubs.iter().map(port).collect();
    let mut hubs = hubs.context("the hub's address cannot be read")?;
    hubs.dedup();
    let join = hub.joins.first().map_or(Ok(JOIN_PORT), port)?;
    Ok(values::agent(args.id.as_str(), &hubs, join, &args.charts))
}

/// Writes what would be applied. The Secret has a reference: a token is made by `tributary token create`.
fn print(args: &JoinArgs, hub: &HubPlace, directory: &Path) -> anyhow::Result<String> {
    let reference = format!("the first line of `{}`", advice::token_create(args.id.as_str()));
    let secrets = [(
        AGENT_JOIN,
        vec![("join", reference.as_str()), ("clusterId", args.id.as_str())],
    )];
    let values = chart_values(args, hub)?;
    gitops::write(directory, &args.cluster.namespace, &secrets, ("agent", &values))
}

#[cfg(test)]
mod tests;
