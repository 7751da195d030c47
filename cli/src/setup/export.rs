//! `tributary export`: makes a ServiceExport, and says where it arrived, and when.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use proto::v1::{MemberState, SourceState};
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
    let recorded = recorded(args, (&cluster, &operator), &id, progress).await?;
    let arrived = arrived(args, &operator, (&id, recorded, began), progress).await?;
    let mut text = format!("{namespace}/{name} of {id} arrived in {}:", count(arrived.len()));
    for (member, seconds) in &arrived {
        text += &format!("\n  {member}  after {seconds:.1} s");
    }
    text += &format!("\nA cluster without the namespace {namespace} imports it once the namespace is there.");
    let value = json!({"namespace": namespace, "name": name, "cluster": id, "arrivedAfterSeconds": arrived});
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

/// Waits until the hub has recorded the export, and returns the revision. An export that is not valid is an error.
async fn recorded(
    args: &ExportArgs,
    (cluster, operator): (&Cluster, &Operator),
    id: &str,
    progress: &mut Progress,
) -> anyhow::Result<u64> {
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
            return Ok(Look::Ready(recorded.revision));
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

/// Waits until every live member has applied the revision; the seconds after which each had.
async fn arrived(
    args: &ExportArgs,
    operator: &Operator,
    (id, revision, began): (&str, u64, Instant),
    progress: &mut Progress,
) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut arrived = BTreeMap::new();
    until(progress, args.common.timeout, async || {
        let members = operator.members().await?;
        let (there, late) = divided(&members, id, revision);
        let seconds = began.elapsed().as_secs_f64();
        for member in there {
            arrived.entry(member).or_insert(seconds);
        }
        Ok(if late.is_empty() {
            Look::Ready(())
        } else {
            Look::Waiting(format!("not applied yet by {}", late.join(", ")))
        })
    })
    .await?;
    progress.kept("arrived", "every live member has applied it");
    Ok(arrived)
}

/// The other live members that have applied a revision, and those that have not. Pure.
fn divided(members: &[MemberState], source: &str, revision: u64) -> (Vec<String>, Vec<String>) {
    let live = |member: &&MemberState| {
        member.cluster != source && member.state() == SourceState::SourceLive && member.connected
    };
    let has = |member: &&MemberState| {
        let applied = member.applied.as_ref().and_then(|applied| applied.revision);
        applied.is_some_and(|applied| applied >= revision)
    };
    let (there, late): (Vec<&MemberState>, Vec<&MemberState>) = members.iter().filter(live).partition(has);
    let names = |members: Vec<&MemberState>| members.iter().map(|member| member.cluster.clone()).collect();
    (names(there), names(late))
}

#[cfg(test)]
mod tests {
    use proto::v1::MemberApplied;

    use super::*;

    #[test]
    fn only_other_live_members_are_waited_for() {
        let member = |name: &str, state: SourceState, applied: Option<u64>| MemberState {
            cluster: name.to_owned(),
            state: state.into(),
            connected: state == SourceState::SourceLive,
            applied: Some(MemberApplied {
                revision: applied,
                ..MemberApplied::default()
            }),
            ..MemberState::default()
        };
        let members = [
            member("east", SourceState::SourceLive, None),
            member("west", SourceState::SourceLive, Some(7)),
            member("north", SourceState::SourceLive, Some(6)),
            member("south", SourceState::SourceLive, None),
            member("gone", SourceState::SourceLost, None),
        ];
        let (there, late) = divided(&members, "east", 7);
        assert_eq!(
            (there, late),
            (
                vec!["west".to_owned()],
                vec!["north".to_owned(), "south".to_owned()]
            )
        );
    }
}
