//! `tributary init`: keys, and a hub in a cluster.
//!
//! * `decide.rs`: the steps and the addresses, pure. `look.rs`: what is there. Here: carries the steps out.

mod decide;
mod look;

use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use certs::Subject;
use serde_json::{Value, json};
use shared::{model::advice, tls::HubAddress};

use self::decide::{Addresses, Step, Wish, addresses, names, plan, printed_place, wish};
use super::{
    args::{InitArgs, ServiceType},
    cluster::{Cluster, Right},
    gitops,
    helm::{Charts, Definitions, Helm},
    home::{Home, HubPlace},
    hub::Operator,
    plan::{Look, Planned, until},
    progress::Progress,
    values::{self, HUB_JOINING, HUB_TLS, Release},
};

pub(super) use decide::JOIN_PORT;

/// The release, the StatefulSet and the Service of the hub.
pub(super) const HUB: &str = "tributary-hub";

/// All that the steps work with.
struct Shell<'a> {
    args: &'a InitArgs,
    wish: Wish,
    home: &'a Home,
    cluster: Cluster,
    helm: Helm,
    charts: Charts,
    definitions: Definitions,
    release: Option<Release>,
    values: Value,
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: &InitArgs, home: &Home, progress: &mut Progress) -> anyhow::Result<String> {
    let wish = wish(args, home.remembered()?.hub.as_ref());
    ensure!(
        wish.kind != ServiceType::ClusterIp || wish.address.is_some(),
        "--service-type ClusterIP needs --address HOST:PORT: members are in other clusters"
    );
    if let Some(directory) = &args.print {
        return print(args, &wish, home, directory);
    }
    home.check_context()?;
    let helm = Helm::find(&args.charts.helm).await?;
    let charts = Charts::of(&args.charts)?;
    let cluster = Cluster::connect(&args.cluster).await?;
    let here = cluster.fingerprint().await?;
    home.check_place(&here, cluster.namespace())?;
    cluster.require(&needed(cluster.namespace())).await?;
    let (shell, planned) = look::look((args, wish), home, (cluster, helm, charts)).await?;
    for Planned { step, todo } in planned {
        match todo {
            None => progress.kept(name(step), &shell.text(step)),
            Some(reason) => {
                // From here on a hub of this clusterset in another place would be a second one.
                if !is_local(step) {
                    shell.remember_place(&here)?;
                }
                shell.carry_out(step, &reason, progress).await?;
            }
        }
    }
    shell.remember_place(&here)?;
    let hub = shell.address(progress).await?;
    let hub = shell.serving(hub, progress).await?;
    if home.has_context(&hub)? {
        progress.kept(
            "context",
            &format!("the context {} of this client", home.clusterset),
        );
    } else {
        home.put_context(&hub)?;
        progress.done(
            "context",
            &format!("the context {} of this client", home.clusterset),
        )?;
    }
    Ok(shell.result(&hub, progress))
}

/// The rights that the steps take, as far as an API server can be asked.
fn needed(namespace: &str) -> [Right<'_>; 9] {
    [
        Right("", "namespaces", "create", None),
        Right("", "secrets", "create", Some(namespace)),
        Right("", "services", "create", Some(namespace)),
        Right("apps", "statefulsets", "create", Some(namespace)),
        Right("networking.k8s.io", "networkpolicies", "create", Some(namespace)),
        Right(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "create",
            None,
        ),
        Right("rbac.authorization.k8s.io", "clusterroles", "create", None),
        Right("rbac.authorization.k8s.io", "clusterrolebindings", "create", None),
        Right("scheduling.k8s.io", "priorityclasses", "create", None),
    ]
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Authority => "authority",
        Step::Joining => "joining-authority",
        Step::HubCertificate => "hub-certificate",
        Step::OperatorCertificate => "operator-certificate",
        Step::Namespace => "namespace",
        Step::Definitions => "definitions",
        Step::HubSecret => "hub-secret",
        Step::JoiningSecret => "joining-secret",
        Step::Hub => "hub",
    }
}

impl Shell<'_> {
    fn text(&self, step: Step) -> String {
        let namespace = self.cluster.namespace();
        let directory = self.home.directory.display();
        match step {
            Step::Authority => format!(
                "the authority of clusterset {} in {directory}",
                self.home.clusterset
            ),
            Step::Joining => "the authority with which clusters join".to_owned(),
            Step::HubCertificate => "the hub's certificate".to_owned(),
            Step::OperatorCertificate => format!("the certificate of the operator {}", self.wish.operator),
            Step::Namespace => format!("the namespace {namespace}"),
            Step::Definitions => "the definitions".to_owned(),
            Step::HubSecret => format!("the Secret {namespace}/{HUB_TLS}"),
            Step::JoiningSecret => format!("the Secret {namespace}/{HUB_JOINING}"),
            Step::Hub => format!("the hub (Helm release {HUB})"),
        }
    }

    async fn carry_out(&self, step: Step, reason: &str, progress: &mut Progress) -> anyhow::Result<()> {
        match step {
            Step::Definitions => {
                let tools = (&self.cluster, &self.helm, &self.charts);
                return self.definitions.install(tools, progress).await;
            }
            Step::Hub => {
                progress.note(&format!("calling Helm for {HUB}: {reason}"));
                let release = ("hub", self.release.as_ref());
                self.helm
                    .apply(&self.cluster, &self.charts, release, &self.values)
                    .await?;
            }
            Step::Namespace => self.cluster.make_namespace().await?,
            Step::HubSecret | Step::JoiningSecret => self.put_secret(step).await?,
            local => make_local(local, (&self.args.cluster.namespace, &self.wish), self.home)?,
        }
        progress.done(name(step), &self.text(step))
    }

    async fn put_secret(&self, step: Step) -> anyhow::Result<()> {
        let need = |name: &str| self.home.need(name);
        if step == Step::JoiningSecret {
            let (certificate, key) = (need("joining.ca.crt")?, need("joining.ca.key")?);
            let texts = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
            return self.cluster.put_secret(HUB_JOINING, &texts).await;
        }
        let (certificate, key, ca) = (need("hub.crt")?, need("hub.key")?, need("ca.crt")?);
        let texts = [
            ("tls.crt", certificate.as_str()),
            ("tls.key", key.as_str()),
            ("ca.crt", ca.as_str()),
        ];
        self.cluster.put_secret(HUB_TLS, &texts).await
    }

    /// Remembers the cluster (UID of its kube-system) and the namespace of the hub.
    fn remember_place(&self, here: &str) -> anyhow::Result<()> {
        let args = &self.cluster.args;
        let remembered = self.home.remember(|all| {
            let hub = all.hub.get_or_insert_default();
            if hub.hubs.is_empty() {
                hub.operator.clone_from(&self.wish.operator);
                hub.service_type = self.wish.kind;
            }
            hub.cluster = Some(here.to_owned());
            hub.context = Some(args.context.clone());
            hub.namespace = Some(args.namespace.clone());
        });
        remembered.map(drop)
    }

    /// Waits until the address of the hub is known, and remembers it.
    async fn address(&self, progress: &mut Progress) -> anyhow::Result<HubPlace> {
        let given = (self.wish.address.as_ref(), self.wish.join_address.as_ref());
        let kind = self.wish.kind;
        let (hubs, joins) = until(progress, self.args.common.timeout, async || {
            let (service, nodes) = look::places(&self.cluster, kind).await?;
            Ok(match addresses(kind, &service, &nodes, given) {
                Addresses::Known { hubs, joins } => Look::Ready((hubs, joins)),
                Addresses::Waiting(reason) => Look::Waiting(reason),
            })
        })
        .await?;
        let texts = |all: &[HubAddress]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let before = self.home.remembered()?.hub.unwrap_or_default();
        let hub = HubPlace {
            hubs: texts(&hubs),
            joins: texts(&joins),
            operator: self.wish.operator.clone(),
            service_type: kind,
            given: given.0.map(ToString::to_string),
            given_join: given.1.map(ToString::to_string),
            ..before
        };
        let text = format!(
            "the hub's address: {}; clusters join at {}",
            hub.hubs.join(", "),
            hub.joins.join(", ")
        );
        if self.home.remember(|all| all.hub = Some(hub.clone()))? {
            progress.done("address", &text)?;
        } else {
            progress.kept("address", &text);
        }
        Ok(hub)
    }

    /// Waits until the hub answers its operator, and remembers that.
    async fn serving(&self, hub: HubPlace, progress: &mut Progress) -> anyhow::Result<HubPlace> {
        until(progress, self.args.common.timeout, async || {
            let answer = match Operator::connect(self.home, &hub).await {
                Ok(operator) => operator.members().await.map(drop),
                Err(error) => Err(error),
            };
            let Err(error) = answer else {
                return Ok(Look::Ready(()));
            };
            Ok(Look::Waiting(match self.cluster.pods_wait_for(HUB).await? {
                Some(reason) => reason,
                None => format!("the hub runs and does not answer: {error:#}"),
            }))
        })
        .await?;
        progress.kept("serving", "the hub answers");
        let hub = HubPlace { served: true, ..hub };
        self.home.remember(|all| all.hub = Some(hub.clone()))?;
        Ok(hub)
    }

    fn result(&self, hub: &HubPlace, progress: &Progress) -> String {
        let done = if progress.changed() {
            "is ready"
        } else {
            "was ready: nothing was to do"
        };
        let text = format!(
            "The clusterset {} {done}. Its hub is at {}.\nKeep a copy of {}: it has the keys of the clusterset.\nNext: \
             {}",
            self.home.clusterset,
            hub.hubs.join(", "),
            self.home.directory.display(),
            advice::join()
        );
        let value = json!({
            "clusterset": self.home.clusterset,
            "hub": hub.hubs,
            "join": hub.joins,
            "directory": self.home.directory,
        });
        progress.result(self.args.common.output, value, &text)
    }
}

/// Makes keys on this machine.
fn make_local(step: Step, (namespace, wish): (&str, &Wish), home: &Home) -> anyhow::Result<()> {
    match step {
        Step::Authority => home.make_authority(),
        Step::Joining => home.make_joining(),
        Step::HubCertificate => {
            let (dns_names, ips) = names(namespace, wish.address.as_ref());
            let name = "hub".to_owned();
            home.issue(&Subject::Hub { name, dns_names, ips })
        }
        Step::OperatorCertificate => home.issue(&Subject::Operator(wish.operator.clone())),
        Step::Namespace | Step::Definitions | Step::HubSecret | Step::JoiningSecret | Step::Hub => {
            bail!("this step is not for this machine")
        }
    }
}

/// The values of the hub's chart.
fn chart_values(args: &InitArgs, wish: &Wish) -> Value {
    let given = wish.address.as_ref().map(ToString::to_string);
    let given = given.as_deref().map(|given| given.trim_start_matches("https://"));
    values::hub(&args.clusterset, wish.kind, given, &args.charts)
}

/// True for a step on this machine.
fn is_local(step: Step) -> bool {
    matches!(
        step,
        Step::Authority | Step::Joining | Step::HubCertificate | Step::OperatorCertificate
    )
}

/// Writes what would be applied, makes the keys on this machine that it needs, and remembers where the hub will be.
fn print(args: &InitArgs, wish: &Wish, home: &Home, directory: &Path) -> anyhow::Result<String> {
    let before = home.remembered()?.hub;
    let place = printed_place(wish, before.as_ref()).map_err(|why| anyhow!(why))?;
    home.check_context()?;
    let planned = plan(
        &look::local(&wish.operator, home)?,
        &args.cluster.namespace,
        &home.directory.display().to_string(),
    );
    for Planned { step, todo } in planned.map_err(|why| anyhow!(why))? {
        if is_local(step) && todo.is_some() {
            make_local(step, (&args.cluster.namespace, wish), home)?;
        }
    }
    let need = |name: &str| home.need(name);
    let (hub, hub_key, ca) = (need("hub.crt")?, need("hub.key")?, need("ca.crt")?);
    let (joining, joining_key) = (need("joining.ca.crt")?, need("joining.ca.key")?);
    let secrets = [
        (
            HUB_TLS,
            vec![("tls.crt", &*hub), ("tls.key", &*hub_key), ("ca.crt", &*ca)],
        ),
        (
            HUB_JOINING,
            vec![("tls.crt", &*joining), ("tls.key", &*joining_key)],
        ),
    ];
    let values = chart_values(args, wish);
    let written = gitops::write(directory, &args.cluster.namespace, &secrets, ("hub", &values))?;
    home.remember(|all| all.hub = Some(place.clone()))?;
    home.put_context(&place)?;
    Ok(written)
}

#[cfg(test)]
mod tests;
