//! `tributary export`: makes a ServiceExport, and says where it arrived, and when.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use proto::v1::{ExportArrival, LackReason, MemberState, SourceState};
use serde_json::json;
use shared::api::{ServiceExport, ServiceExportSpec};
use tokio::time::Instant;

use super::{
    args::ExportArgs,
    cluster::{Cluster, Right},
    home::Home,
    hub::Operator,
    join::stated_id,
    plan::{Look, until},
    progress::Progress,
};

/// Runs the command and returns what to print.
pub(super) async fn run(args: &ExportArgs, home: &Home, progress: &mut Progress) -> anyhow::Result<String> {
    let (namespace, name) = (args.service.0.as_str(), args.service.1.as_str());
    let cluster = Cluster::connect(&args.cluster).await?;
    let services = Api::<Service>::namespaced(cluster.client.clone(), namespace);
    if services
        .get_opt(name)
        .await
        .map_err(|error| cluster.failed(error))?
        .is_none()
    {
        bail!(
            "there is no Service {namespace}/{name} in context {}: nothing was changed",
            args.cluster.context
        );
    }
    let began = Instant::now();
    make(&cluster, (namespace, name), progress).await?;
    if !args.wait {
        let text = format!("{namespace}/{name} is exported. --wait says where it arrives.");
        let value = json!({"namespace": namespace, "name": name});
        return Ok(progress.result(args.common.output, value, &text));
    }
    let hub = home.hub()?;
    let operator = Operator::connect(home, &hub).await?;
    let id = stated_id(&cluster).await?;
    let id =
        id.with_context(|| format!("the cluster of context {} is no member yet", args.cluster.context))?;
    recorded(args, (&cluster, &operator), &id, progress).await?;
    let arrived = arrived(args, &operator, (&id, began), progress).await?;
    let others = arrived.after.len();
    let mut text = format!("{namespace}/{name} of {id} arrived in {}:", count(others));
    for (member, seconds) in &arrived.after {
        text += &format!("\n  {member}  after {seconds:.1} s");
    }
    for (member, reason) in &arrived.lacking {
        text += &format!("\n  {member}  not: {reason}");
    }
    text += &format!("\nA cluster without the namespace {namespace} imports it once the namespace is there.");
    let value = json!({
        "namespace": namespace, "name": name, "cluster": id, "arrivedAfterSeconds": arrived.after, "lacking": arrived.lacking,
    });
    Ok(progress.result(args.common.output, value, &text))
}

fn count(clusters: usize) -> String {
    match clusters {
        1 => "1 cluster".to_owned(),
        other => format!("{other} clusters"),
    }
}

/// Makes the ServiceExport, unless it is there.
async fn make(
    cluster: &Cluster,
    (namespace, name): (&str, &str),
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let exports = Api::<ServiceExport>::namespaced(cluster.client.clone(), namespace);
    let text = format!("the ServiceExport {namespace}/{name}");
    let found = exports
        .get_opt(name)
        .await
        .map_err(|error| cluster.failed(error))?;
    if found.is_some() {
        progress.kept("export", &text);
        return Ok(());
    }
    let right = Right(
        "multicluster.x-k8s.io",
        "serviceexports",
        "create",
        Some(namespace),
    );
    cluster.require(&[right]).await?;
    let export = ServiceExport {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: ServiceExportSpec::default(),
        status: None,
    };
    match exports.create(&PostParams::default(), &export).await {
        Ok(_) => progress.done("export", &text),
        // Another run was faster.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            progress.kept("export", &text);
            Ok(())
        }
        Err(error) => Err(cluster.failed(error)),
    }
}

/// Waits until the hub has recorded the export. An export that is not valid is an error.
async fn recorded(
    args: &ExportArgs,
    (cluster, operator): (&Cluster, &Operator),
    id: &str,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (namespace, name) = (args.service.0.as_str(), args.service.1.as_str());
    let exports = Api::<ServiceExport>::namespaced(cluster.client.clone(), namespace);
    until(progress, args.common.timeout, async || {
        if let Some(recorded) = operator.export(id, (namespace, name)).await? {
            if !recorded.denial_reason.is_empty() {
                bail!(
                    "the hub refuses {namespace}/{name} of {id}: {}",
                    recorded.denial_message
                );
            }
            return Ok(Look::Ready(()));
        }
        let export = exports
            .get_opt(name)
            .await
            .map_err(|error| cluster.failed(error))?;
        let conditions = export
            .and_then(|export| export.status)
            .unwrap_or_default()
            .conditions;
        let invalid = conditions
            .iter()
            .find(|one| one.type_ == "Valid" && one.status == "False");
        if let Some(invalid) = invalid {
            bail!(
                "{namespace}/{name} is not valid: {} ({})",
                invalid.message,
                invalid.reason
            );
        }
        Ok(Look::Waiting(format!(
            "the agent of {id} has not reported {namespace}/{name} to the hub yet"
        )))
    })
    .await
}

/// The clusters that an export reached while the command waited.
#[derive(Debug, Default)]
struct Arrived {
    /// The seconds after which each cluster had it.
    after: BTreeMap<String, f64>,
    /// The clusters that lack it, and why.
    lacking: BTreeMap<String, &'static str>,
}

/// Waits until every live member holds the import, or lacks it for a reason that waiting does not change. It is the fact
/// that the ServiceExport's condition states.
async fn arrived(
    args: &ExportArgs,
    operator: &Operator,
    (id, began): (&str, Instant),
    progress: &mut Progress,
) -> anyhow::Result<Arrived> {
    let (namespace, name) = (args.service.0.as_str(), args.service.1.as_str());
    let mut arrived = Arrived::default();
    until(progress, args.common.timeout, async || {
        let members = operator.members().await?;
        let export = operator.export(id, (namespace, name)).await?;
        let arrival = export.and_then(|export| export.arrival).unwrap_or_default();
        let seconds = began.elapsed().as_secs_f64();
        for cluster in arrival.clusters.iter().filter(|cluster| *cluster != id) {
            arrived.after.entry(cluster.clone()).or_insert(seconds);
        }
        let (late, lacking) = divided(&members, &arrival);
        arrived.lacking = lacking;
        Ok(if late.is_empty() {
            Look::Ready(())
        } else {
            Look::Waiting(format!("not applied yet by {}", late.join(", ")))
        })
    })
    .await?;
    progress.kept("arrived", "every live member has answered");
    Ok(arrived)
}

/// The live members that are to be waited for, and the clusters that lack the import for another reason. Pure.
fn divided(
    members: &[MemberState],
    arrival: &ExportArrival,
) -> (Vec<String>, BTreeMap<String, &'static str>) {
    let is_live = |cluster: &str| {
        let mut live = members
            .iter()
            .filter(|member| member.state() == SourceState::SourceLive && member.connected);
        live.any(|member| member.cluster == cluster)
    };
    let (mut late, mut lacking) = (Vec::new(), BTreeMap::new());
    for one in &arrival.lacking {
        let reason = match one.reason() {
            LackReason::LackNoNamespace => "has no such namespace",
            LackReason::LackWithheld => "the policy withholds it",
            LackReason::LackNotWritten => "its agent could not write it: its log says why",
            LackReason::LackWaits | LackReason::LackNotKnown | LackReason::Unspecified => {
                if is_live(&one.cluster) {
                    late.push(one.cluster.clone());
                }
                "has not said to have applied it"
            }
        };
        lacking.insert(one.cluster.clone(), reason);
    }
    if arrival.clusters.is_empty() && arrival.lacking.is_empty() {
        late.push("any cluster".to_owned());
    }
    (late, lacking)
}

#[cfg(test)]
mod tests {
    use proto::v1::LackingCluster;

    use super::*;

    #[test]
    fn only_live_members_that_may_still_apply_it_are_waited_for() {
        let member = |name: &str, state: SourceState| MemberState {
            cluster: name.to_owned(),
            state: state.into(),
            connected: state == SourceState::SourceLive,
            ..MemberState::default()
        };
        let members = [
            member("east", SourceState::SourceLive),
            member("north", SourceState::SourceLive),
            member("south", SourceState::SourceLive),
            member("gone", SourceState::SourceLost),
        ];
        let lacks = |cluster: &str, reason: LackReason| LackingCluster {
            cluster: cluster.to_owned(),
            reason: reason.into(),
        };
        let arrival = ExportArrival {
            clusters: vec!["east".to_owned()],
            lacking: vec![
                lacks("gone", LackReason::LackWaits),
                lacks("north", LackReason::LackWaits),
                lacks("south", LackReason::LackNoNamespace),
            ],
        };
        let (late, lacking) = divided(&members, &arrival);
        assert_eq!(late, ["north"]);
        let names: Vec<&String> = lacking.keys().collect();
        assert_eq!(names, ["gone", "north", "south"]);
        assert_eq!(lacking["south"], "has no such namespace");
        let (late, _) = divided(&members, &ExportArrival::default());
        assert_eq!(late, ["any cluster"], "the hub has not judged it yet");
    }
}
