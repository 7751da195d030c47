//! `tributary explain`: why an import looks as it does, and where it arrived; or the parts of a topology.

use anyhow::ensure;
use clap::Args;
use proto::v1;
use shared::model::{ClusterId, ServiceKey, advice};

use super::{
    arrival::{Arrival, arrivals, lacking},
    get::{ports, service_type},
    pages, section, service,
};
use crate::{
    operate::{
        HubArgs,
        print::{or_dash, said_by, time, yes},
    },
    output::Output,
};

/// The subject of the explanation.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Service, as NAMESPACE/NAME; with --topology a Cluster
    #[arg(value_name = "NAMESPACE/NAME", value_parser = service)]
    service: ServiceKey,
    /// Show only what concerns this cluster
    #[arg(long, env = "TRIBUTARY_CLUSTER", value_name = "CLUSTER", value_parser = ClusterId::new, conflicts_with = "topology")]
    cluster: Option<ClusterId>,
    /// Explain the topology of a Cluster of Cluster API instead
    #[arg(long, env = "TRIBUTARY_EXPLAIN_TOPOLOGY")]
    topology: bool,
    #[command(flatten)]
    hub: HubArgs,
}

/// Runs the command and returns what to print.
pub(crate) async fn explain(args: ExplainArgs) -> anyhow::Result<String> {
    let channel = args.hub.access()?.connect(None).await?;
    let subject = if args.topology {
        v1::ExplainSubject::ClusterTopology
    } else {
        v1::ExplainSubject::Unspecified
    };
    let asked = v1::ExplainRequest {
        namespace: args.service.namespace.to_string(),
        name: args.service.name.to_string(),
        subject: subject.into(),
        ..Default::default()
    };
    let explained = pages::explanation(&channel, asked).await?;
    let output = args.hub.output;
    if output.is_document() {
        return output.message("ExplainResponse", &explained);
    }
    if let Some(topology) = &explained.topology {
        return Ok(format!(
            "{}: {}\n{}",
            args.service,
            explained.summary,
            topology_text(topology, output)
        ));
    }
    let asked = v1::GetStateRequest {
        parts: vec![v1::StatePart::Members.into(), v1::StatePart::StateExports.into()],
        namespace: args.service.namespace.to_string(),
        ..Default::default()
    };
    let state = pages::state(&channel, asked).await?;
    let members = state.members;
    let cluster = args.cluster.as_ref().map(ClusterId::as_str);
    if let Some(cluster) = cluster {
        let known = members.iter().any(|member| member.cluster == cluster);
        ensure!(
            known,
            "{cluster} is not a member: `{}` shows the members",
            advice::member_list()
        );
    }
    let lacking = lacking(&state.exports, &args.service);
    let arrived = arrivals((&explained, &lacking), &members, cluster);
    Ok(text(&args.service, &explained, arrived, cluster, output))
}

fn text(
    service: &ServiceKey,
    explained: &v1::ExplainResponse,
    arrived: Vec<Arrival>,
    cluster: Option<&str>,
    output: Output,
) -> String {
    let concerns = |other: &str| cluster.is_none_or(|cluster| cluster == other);
    let mut text = format!("{service}: {}\n", explained.summary);
    if let Some(import) = explained
        .import
        .as_ref()
        .and_then(|recorded| recorded.import.as_ref())
    {
        text.push_str(&format!(
            "Type {}, ports {}\n",
            service_type(import.r#type()),
            ports(&import.ports)
        ));
    }
    if !explained.precedence.is_empty() {
        text.push_str(&format!("{}\n", explained.precedence));
    }
    let arrived = arrived
        .into_iter()
        .map(|at| vec![at.cluster, at.state.to_owned(), or_dash(&at.detail)]);
    text.push_str(&section(
        "Arrival",
        &["CLUSTER", "STATE", "DETAIL"],
        arrived.collect(),
        output,
    ));
    text.push_str(&candidates(explained, concerns, output));
    text.push_str(&decisions(explained, concerns, output));
    let refused = explained
        .refused
        .iter()
        .filter(|refused| concerns(&refused.cluster));
    let refused = refused.map(|refused| {
        vec![
            refused.cluster.clone(),
            refused.reason.clone(),
            refused.message.clone(),
        ]
    });
    text.push_str(&section(
        "Refused exports",
        &["CLUSTER", "REASON", "MESSAGE"],
        refused.collect(),
        output,
    ));
    text.push_str(&conflicts(explained));
    text.push_str(&events(explained, concerns, output));
    let said_by = said_by(explained.answered_by.as_ref());
    text.push_str(&format!(
        "\nRevision {} of epoch {}{said_by}\n",
        explained.revision, explained.epoch
    ));
    text
}

fn candidates(explained: &v1::ExplainResponse, concerns: impl Fn(&str) -> bool, output: Output) -> String {
    let row = |candidate: &v1::Candidate| {
        let ready: u32 = candidate.slices.iter().map(|slice| slice.ready_endpoints).sum();
        let all: u32 = candidate.slices.iter().map(|slice| slice.endpoints).sum();
        let state = candidate.state().as_str_name();
        vec![
            candidate.precedence.to_string(),
            candidate.cluster.clone(),
            state
                .strip_prefix("SOURCE_")
                .unwrap_or(state)
                .to_ascii_lowercase(),
            format!("{ready} of {all}"),
            time(candidate.created_at.as_ref()),
            note(candidate),
        ]
    };
    let candidates = explained
        .candidates
        .iter()
        .filter(|candidate| concerns(&candidate.cluster));
    let header = ["RANK", "CLUSTER", "STATE", "READY", "CREATED", "NOTE"];
    section("Exports", &header, candidates.map(row).collect(), output)
}

fn note(candidate: &v1::Candidate) -> String {
    match (&candidate.held_since, &candidate.leaving_until) {
        (Some(since), _) => format!("on hold since {}", time(Some(since))),
        (None, Some(until)) => format!("leaves at {}", time(Some(until))),
        (None, None) => "-".to_owned(),
    }
}

fn decisions(explained: &v1::ExplainResponse, concerns: impl Fn(&str) -> bool, output: Output) -> String {
    let row = |decision: &v1::PropertyDecision| {
        let losers = decision.losers.iter().filter(|loser| concerns(&loser.cluster));
        let losers: Vec<String> = losers
            .map(|loser| format!("{} wanted {}", loser.cluster, loser.value))
            .collect();
        vec![
            decision.property.clone(),
            or_dash(&decision.value),
            or_dash(&decision.winner),
            or_dash(&losers.join("; ")),
        ]
    };
    let rows = explained.decisions.iter().map(row).collect();
    section(
        "Properties",
        &["PROPERTY", "VALUE", "DECIDED-BY", "OTHERS"],
        rows,
        output,
    )
}

fn conflicts(explained: &v1::ExplainResponse) -> String {
    if explained.conflicts.is_empty() {
        return String::new();
    }
    let each = explained
        .conflicts
        .iter()
        .map(|conflict| format!("  {}\n", conflict.message));
    format!("\nConflicts\n{}", each.collect::<String>())
}

fn events(explained: &v1::ExplainResponse, concerns: impl Fn(&str) -> bool, output: Output) -> String {
    let row = |event: &v1::Event| {
        vec![
            event.revision.to_string(),
            time(event.recorded_at.as_ref()),
            or_dash(&event.cluster),
            event.kind.clone(),
        ]
    };
    let events = explained
        .events
        .iter()
        .filter(|event| event.cluster.is_empty() || concerns(&event.cluster));
    let mut text = section(
        "Events",
        &["REVISION", "RECORDED", "CLUSTER", "KIND"],
        events.map(row).collect(),
        output,
    );
    if explained.events_left_out > 0 {
        text.push_str(&format!(
            "{} more events are not shown\n",
            explained.events_left_out
        ));
    }
    if explained.events_out_of_reach > 0 {
        text.push_str(&format!(
            "{} older events are no longer in the log\n",
            explained.events_out_of_reach
        ));
    }
    text
}

fn topology_text(topology: &v1::TopologyExplanation, output: Output) -> String {
    let mut text = format!(
        "ClusterClass {}, version {}\n",
        topology.cluster_class, topology.version
    );
    for line in topology.upgrade.iter().chain(&topology.findings) {
        text.push_str(&format!("  {line}\n"));
    }
    let variables = topology.variables.iter().map(|variable| {
        vec![
            variable.name.clone(),
            or_dash(&variable.value),
            yes(variable.published),
        ]
    });
    text.push_str(&section(
        "Variables",
        &["NAME", "VALUE", "PUBLISHED"],
        variables.collect(),
        output,
    ));
    let objects = topology.objects.iter().map(|object| {
        let patches = object
            .patches
            .iter()
            .filter(|patch| patch.changed)
            .map(|patch| &*patch.name);
        vec![
            object.place.clone(),
            object.kind.clone(),
            object.name.clone(),
            object.action.clone(),
            or_dash(&patches.collect::<Vec<_>>().join(",")),
        ]
    });
    text.push_str(&section(
        "Objects",
        &["PLACE", "KIND", "NAME", "ACTION", "CHANGED-BY"],
        objects.collect(),
        output,
    ));
    if topology.left_out > 0 {
        text.push_str(&format!("{} more are not shown\n", topology.left_out));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained() -> v1::ExplainResponse {
        let candidate = |cluster: &str, precedence| v1::Candidate {
            cluster: cluster.into(),
            precedence,
            state: v1::SourceState::SourceLive.into(),
            slices: vec![v1::CandidateSlice {
                endpoints: 2,
                ready_endpoints: 1,
                ..Default::default()
            }],
            ..Default::default()
        };
        v1::ExplainResponse {
            epoch: "1000-07".into(),
            revision: 9,
            summary: "imported from east and west".into(),
            import: Some(v1::RecordedImport {
                import: Some(v1::ServiceImport {
                    r#type: v1::ServiceType::ClusterSetIp.into(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            candidates: vec![candidate("east", 1), candidate("west", 2)],
            decisions: vec![v1::PropertyDecision {
                property: "sessionAffinity".into(),
                value: "None".into(),
                winner: "east".into(),
                losers: vec![v1::LosingValue {
                    cluster: "west".into(),
                    value: "ClientIP".into(),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn an_explanation_says_what_where_and_why() {
        let service = ServiceKey::new("shop", "cart").expect("valid");
        let arrived = vec![Arrival {
            cluster: "west".into(),
            state: "applied",
            detail: String::new(),
        }];
        let expected = "\
shop/cart: imported from east and west
Type ClusterSetIP, ports -

Arrival
CLUSTER  STATE    DETAIL
west     applied  -

Exports
RANK  CLUSTER  STATE  READY   CREATED  NOTE
1     east     live   1 of 2  -        -
2     west     live   1 of 2  -        -

Properties
PROPERTY         VALUE  DECIDED-BY  OTHERS
sessionAffinity  None   east        west wanted ClientIP

Revision 9 of epoch 1000-07
";
        assert_eq!(
            text(&service, &explained(), arrived, None, Output::Wide),
            expected
        );
        let of_east = text(&service, &explained(), Vec::new(), Some("east"), Output::Wide);
        assert!(
            of_east.contains("1     east") && !of_east.contains("west wanted"),
            "{of_east}"
        );
    }
}
