//! `tributary get`: the members, exports, imports, profiles and slices that the hub has recorded.

use clap::{Args, ValueEnum};
use client::{Access, Usage};
use proto::v1;
use serde_json::json;
use shared::model::{ClusterId, ServiceKey};

use super::{pages, service};
use crate::{
    operate::{
        HubArgs,
        print::{applied, or_dash, parked, span, state, time, version, yes},
    },
    output::{Output, table, value},
};

/// A kind of thing that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Clusters that are or were members
    #[value(alias = "member")]
    Members,
    /// Exports as the members report them
    #[value(alias = "export")]
    Exports,
    /// Imports as they are derived from the exports
    #[value(alias = "import")]
    Imports,
    /// ClusterProfiles
    #[value(alias = "profile")]
    Profiles,
    /// EndpointSlices of one service
    #[value(alias = "slice")]
    Slices,
}

/// The objects to list.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Kind of the objects
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// Service whose slices are listed, as NAMESPACE/NAME
    #[arg(value_name = "SERVICE", value_parser = service)]
    service: Option<ServiceKey>,
    /// Objects of one cluster only
    #[arg(long, env = "TRIBUTARY_CLUSTER", value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: Option<ClusterId>,
    /// Objects of one namespace only
    #[arg(long, short, env = "TRIBUTARY_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    hub: HubArgs,
}

/// Runs the command and returns what to print.
pub(crate) async fn get(args: GetArgs) -> anyhow::Result<String> {
    match (args.kind, &args.service) {
        (Kind::Slices, None) => {
            Err(Usage("slices are listed for one service: give it as NAMESPACE/NAME".to_owned()).into())
        }
        (Kind::Slices, Some(service)) => slices(&args, service, args.hub.access()?).await,
        (_, Some(service)) => Err(Usage(format!("{service} fits only the kind slices: leave it out")).into()),
        (kind, None) => listed(&args, kind, args.hub.access()?).await,
    }
}

async fn listed(args: &GetArgs, kind: Kind, access: Access) -> anyhow::Result<String> {
    let part = match kind {
        Kind::Members => v1::StatePart::Members,
        Kind::Exports => v1::StatePart::StateExports,
        Kind::Imports => v1::StatePart::Imports,
        Kind::Profiles | Kind::Slices => v1::StatePart::Profiles,
    };
    let asked = v1::GetStateRequest {
        parts: vec![part.into()],
        cluster: args.cluster.as_ref().map(ToString::to_string).unwrap_or_default(),
        namespace: args.namespace.clone().unwrap_or_default(),
        ..Default::default()
    };
    let answer = pages::state(&access.connect(None).await?, asked).await?;
    if args.hub.output.is_document() {
        return args.hub.output.message("GetStateResponse", &answer);
    }
    let (header, rows) = match kind {
        Kind::Members => members(&answer.members),
        Kind::Exports => exports(&answer.exports),
        Kind::Imports => imports(&answer.imports),
        Kind::Profiles | Kind::Slices => profiles(&answer.profiles),
    };
    Ok(printed(header, rows, args.hub.output))
}

/// Names of columns, and the rows below them.
type Table = (&'static [&'static str], Vec<Vec<String>>);

fn printed(header: &[&str], rows: Vec<Vec<String>>, output: Output) -> String {
    if rows.is_empty() {
        return "Nothing is recorded.\n".to_owned();
    }
    let header = header.iter().map(|&name| name.to_owned()).collect();
    table(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), output)
}

fn members(members: &[v1::MemberState]) -> Table {
    let row = |member: &v1::MemberState| {
        vec![
            member.cluster.clone(),
            state(member),
            yes(member.connected),
            applied(member, |applied| {
                applied.revision.map(|revision| revision.to_string())
            }),
            applied(member, |applied| applied.waits_millis.map(span)),
            applied(member, |applied| Some(parked(applied))),
            member.exports.to_string(),
            member.endpoint_slices.to_string(),
            time(member.state_since.as_ref()),
            version(&member.agent_version),
        ]
    };
    let header = &[
        "CLUSTER",
        "STATE",
        "CONNECTED",
        "APPLIED",
        "WAITS",
        "PARKED",
        "EXPORTS",
        "SLICES",
        "SINCE",
        "AGENT",
    ];
    (header, members.iter().map(row).collect())
}

fn exports(exports: &[v1::RecordedExport]) -> Table {
    let row = |recorded: &v1::RecordedExport| {
        let export = recorded.export.clone().unwrap_or_default();
        vec![
            key(export.service.as_ref()),
            recorded.cluster.clone(),
            taken(recorded),
            in_clusters(recorded),
            recorded.endpoints.to_string(),
            service_type(export.r#type()),
            ports(&export.ports),
            time(export.created_at.as_ref()),
            recorded.revision.to_string(),
        ]
    };
    let header = &[
        "SERVICE",
        "CLUSTER",
        "TAKEN",
        "CLUSTERS",
        "ENDPOINTS",
        "TYPE",
        "PORTS",
        "CREATED",
        "REVISION",
    ];
    (header, exports.iter().map(row).collect())
}

/// In how many clusters it arrived.
fn in_clusters(recorded: &v1::RecordedExport) -> String {
    recorded.arrival.as_ref().map_or_else(
        || "-".to_owned(),
        |arrival| {
            let there = arrival.clusters.len();
            format!("{there}/{}", there + arrival.lacking.len())
        },
    )
}

/// Yes, the reason why not, or that it is on hold or in conflict.
fn taken(recorded: &v1::RecordedExport) -> String {
    if !recorded.denial_reason.is_empty() {
        return recorded.denial_reason.clone();
    }
    if recorded.held_since.is_some() {
        return "on hold".to_owned();
    }
    match recorded.conflicts.len() {
        0 => "yes".to_owned(),
        1 => "yes, 1 conflict".to_owned(),
        more => format!("yes, {more} conflicts"),
    }
}

fn imports(imports: &[v1::RecordedImport]) -> Table {
    let row = |recorded: &v1::RecordedImport| {
        let import = recorded.import.clone().unwrap_or_default();
        let clusters: Vec<&str> = import
            .clusters
            .iter()
            .map(|exporting| &*exporting.cluster)
            .collect();
        vec![
            key(import.service.as_ref()),
            or_dash(&clusters.join(",")),
            recorded.endpoints.to_string(),
            service_type(import.r#type()),
            ports(&import.ports),
            recorded.revision.to_string(),
        ]
    };
    let header = &["SERVICE", "CLUSTERS", "ENDPOINTS", "TYPE", "PORTS", "REVISION"];
    (header, imports.iter().map(row).collect())
}

fn profiles(profiles: &[v1::Profile]) -> Table {
    let row = |profile: &v1::Profile| {
        let conditions = profile
            .conditions
            .iter()
            .map(|condition| format!("{}={}", condition.r#type, condition.status));
        let properties = profile
            .properties
            .iter()
            .map(|property| format!("{}={}", property.name, content(property)));
        vec![
            profile.cluster.clone(),
            or_dash(&profile.kubernetes_version),
            or_dash(&conditions.collect::<Vec<_>>().join(",")),
            or_dash(&properties.collect::<Vec<_>>().join(",")),
        ]
    };
    let header = &["CLUSTER", "KUBERNETES", "CONDITIONS", "PROPERTIES"];
    (header, profiles.iter().map(row).collect())
}

/// The value, unless it is too long for a message.
fn content(property: &v1::ClusterProperty) -> String {
    match &property.content {
        Some(v1::cluster_property::Content::Value(value)) => value.clone(),
        _ => "(long)".to_owned(),
    }
}

async fn slices(args: &GetArgs, service: &ServiceKey, access: Access) -> anyhow::Result<String> {
    let asked = v1::ExplainRequest {
        namespace: service.namespace.to_string(),
        name: service.name.to_string(),
        ..Default::default()
    };
    let explained = pages::explanation(&access.connect(None).await?, asked).await?;
    let wanted = |candidate: &&v1::Candidate| {
        args.cluster
            .as_ref()
            .is_none_or(|cluster| cluster.as_str() == candidate.cluster)
    };
    let candidates = explained.candidates.iter().filter(wanted);
    let slices =
        candidates.flat_map(|candidate| candidate.slices.iter().map(|slice| (&candidate.cluster, slice)));
    if args.hub.output.is_document() {
        let each = slices.map(|(cluster, slice)| {
            let mut document = value("CandidateSlice", slice)?;
            document["cluster"] = json!(cluster);
            Ok(document)
        });
        let each: anyhow::Result<Vec<_>> = each.collect();
        return Ok(args.hub.output.document(&json!({ "slices": each? })));
    }
    let rows = slices.map(|(cluster, slice)| {
        vec![
            cluster.clone(),
            slice.name.clone(),
            slice.endpoints.to_string(),
            slice.ready_endpoints.to_string(),
            slice.revision.to_string(),
        ]
    });
    let header = ["CLUSTER", "SLICE", "ENDPOINTS", "READY", "REVISION"];
    Ok(printed(&header, rows.collect(), args.hub.output))
}

/// A service as NAMESPACE/NAME.
pub(super) fn key(key: Option<&v1::ServiceKey>) -> String {
    key.map_or_else(|| "-".to_owned(), |key| format!("{}/{}", key.namespace, key.name))
}

/// The type as a ServiceImport writes it.
pub(super) fn service_type(kind: v1::ServiceType) -> String {
    match kind {
        v1::ServiceType::ClusterSetIp => "ClusterSetIP",
        v1::ServiceType::Headless => "Headless",
        v1::ServiceType::Unspecified => "-",
    }
    .to_owned()
}

/// Ports as kubectl writes them: `http 80/TCP`.
pub(super) fn ports(ports: &[v1::ServicePort]) -> String {
    let each = ports.iter().map(|port| {
        let number = format!("{}/{}", port.port, port.protocol().as_str_name());
        if port.name.is_empty() {
            number
        } else {
            format!("{} {number}", port.name)
        }
    });
    or_dash(&each.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service_key() -> Option<v1::ServiceKey> {
        Some(v1::ServiceKey {
            namespace: "shop".into(),
            name: "cart".into(),
        })
    }

    fn port() -> v1::ServicePort {
        v1::ServicePort {
            name: "http".into(),
            protocol: v1::Protocol::Tcp.into(),
            port: 80,
            ..Default::default()
        }
    }

    #[test]
    fn exports_say_whether_they_are_taken() {
        let export = v1::RecordedExport {
            cluster: "east".into(),
            revision: 4,
            endpoints: 2,
            export: Some(v1::Export {
                service: service_key(),
                r#type: v1::ServiceType::ClusterSetIp.into(),
                ports: vec![port()],
                ..Default::default()
            }),
            arrival: Some(v1::ExportArrival {
                clusters: vec!["east".into(), "west".into()],
                lacking: vec![v1::LackingCluster::default()],
            }),
            ..Default::default()
        };
        let denied = v1::RecordedExport {
            cluster: "west".into(),
            denial_reason: "PolicyDenied".into(),
            arrival: None,
            ..export.clone()
        };
        let (header, rows) = exports(&[export, denied]);
        let expected = "\
SERVICE    CLUSTER  TAKEN         CLUSTERS  ENDPOINTS  TYPE          PORTS        CREATED  REVISION
shop/cart  east     yes           2/3       2          ClusterSetIP  http 80/TCP  -        4
shop/cart  west     PolicyDenied  -         2          ClusterSetIP  http 80/TCP  -        4
";
        assert_eq!(printed(header, rows, Output::Wide), expected);
    }

    #[test]
    fn imports_name_their_clusters() {
        let exporting = |cluster: &str| v1::ExportingCluster {
            cluster: cluster.into(),
            ..Default::default()
        };
        let import = v1::RecordedImport {
            revision: 9,
            endpoints: 3,
            import: Some(v1::ServiceImport {
                service: service_key(),
                r#type: v1::ServiceType::Headless.into(),
                clusters: vec![exporting("east"), exporting("west")],
                ..Default::default()
            }),
            ..Default::default()
        };
        let (header, rows) = imports(&[import]);
        let expected = "\
SERVICE    CLUSTERS   ENDPOINTS  TYPE      PORTS  REVISION
shop/cart  east,west  3          Headless  -      9
";
        assert_eq!(printed(header, rows, Output::Wide), expected);
        assert_eq!(
            printed(header, Vec::new(), Output::Wide),
            "Nothing is recorded.\n"
        );
    }

    #[test]
    fn slices_need_a_service_and_nothing_else_takes_one() {
        use clap::Parser;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            get: GetArgs,
        }
        for line in ["get slices", "get imports shop/cart"] {
            let args = Line::try_parse_from(line.split(' ')).expect("it is parsed").get;
            let error = client::run(get(args)).expect_err(line);
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
        assert!(Line::try_parse_from(["get", "slices", "cart"]).is_err());
    }
}
