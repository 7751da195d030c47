//! Answers as people and as programs read them: columns that align, or one JSON document.

use prost_types::Timestamp;
use proto::v1;
use serde_json::{Value, json};

/// Digits of a key fingerprint that a column shows; JSON has all of them.
const KEY_DIGITS: usize = 16;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// Columns for people
    Text,
    /// One JSON document for programs
    Json,
}

/// The members of a clusterset.
pub(super) fn members(response: &v1::ListMembersResponse, output: Output) -> String {
    if output == Output::Json {
        let members: Vec<Value> = response.members.iter().map(member_json).collect();
        let document = json!({ "epoch": response.epoch, "revision": response.revision, "members": members });
        return format!("{document:#}\n");
    }
    let header = [
        "CLUSTER",
        "STATE",
        "SINCE",
        "LISTED",
        "CONNECTED",
        "EXPORTS",
        "SLICES",
        "JOINED-AT",
        "KEYS",
    ];
    let rows = response.members.iter().map(|member| {
        vec![
            member.cluster.clone(),
            state(member),
            time(member.state_since.as_ref()),
            yes(member.listed),
            yes(member.connected),
            member.exports.to_string(),
            member.endpoint_slices.to_string(),
            member.incarnation.to_string(),
            keys(member),
        ]
    });
    let table = columns(
        std::iter::once(header.map(str::to_owned).to_vec())
            .chain(rows)
            .collect(),
    );
    let members = match response.members.len() {
        1 => "1 member".to_owned(),
        more => format!("{more} members"),
    };
    let (revision, epoch) = (response.revision, &response.epoch);
    format!("{table}{members} at revision {revision} of epoch {epoch}\n")
}

/// The outcome of a decision, or of its dry run with the command that confirms it.
pub(super) fn decision(response: &v1::MemberDecisionResponse, confirm: &str, output: Output) -> String {
    let v1::MemberDecisionResponse {
        done,
        revision,
        effects,
    } = response;
    if output == Output::Json {
        let mut document = json!({ "done": done, "revision": revision, "effects": effects });
        if !done {
            document["confirm"] = confirm.into();
        }
        return format!("{document:#}\n");
    }
    let effects: String = effects.iter().map(|effect| format!("  * {effect}\n")).collect();
    match (done, revision) {
        (false, _) => format!("Nothing has changed yet. With --confirm:\n{effects}To do it:\n  {confirm}\n"),
        (true, 0) => format!("Nothing was recorded:\n{effects}"),
        (true, revision) => format!("Done, recorded at revision {revision}:\n{effects}"),
    }
}

fn member_json(member: &v1::MemberState) -> Value {
    json!({
        "cluster": member.cluster,
        "state": state(member),
        "stateSince": time(member.state_since.as_ref()),
        "listed": member.listed,
        "connected": member.connected,
        "exports": member.exports,
        "endpointSlices": member.endpoint_slices,
        "incarnation": member.incarnation,
        "clusterFingerprint": member.cluster_fingerprint,
        "keyFingerprints": member.key_fingerprints,
    })
}

fn state(member: &v1::MemberState) -> String {
    let name = member.state().as_str_name();
    name.strip_prefix("SOURCE_").unwrap_or(name).to_ascii_lowercase()
}

fn keys(member: &v1::MemberState) -> String {
    let short = member
        .key_fingerprints
        .iter()
        .map(|key| key.chars().take(KEY_DIGITS).collect::<String>());
    let short: Vec<String> = short.collect();
    if short.is_empty() {
        "-".to_owned()
    } else {
        short.join(",")
    }
}

fn time(at: Option<&Timestamp>) -> String {
    let at = at.and_then(|at| jiff::Timestamp::new(at.seconds, at.nanos).ok());
    at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}"))
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Rows as aligned columns, two spaces apart, nothing behind the last.
fn columns(rows: Vec<Vec<String>>) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..count)
        .map(|column| width(column).unwrap_or_default())
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line: Vec<String> = cells.collect();
        format!("{}\n", line.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_columns_that_align() {
        let member = |cluster: &str, exports| v1::MemberState {
            cluster: cluster.to_owned(),
            incarnation: 1,
            state: v1::SourceState::SourceLive.into(),
            listed: true,
            connected: exports > 0,
            key_fingerprints: vec!["ab".repeat(32)],
            exports,
            state_since: Some(Timestamp {
                seconds: 1_700_000_000,
                nanos: 5,
            }),
            ..v1::MemberState::default()
        };
        let response = v1::ListMembersResponse {
            epoch: "1000-07".to_owned(),
            revision: 12,
            members: vec![member("east", 3), member("a-long-name", 0)],
        };
        let text = members(&response, Output::Text);
        let expected = "\
CLUSTER      STATE  SINCE                 LISTED  CONNECTED  EXPORTS  SLICES  JOINED-AT  KEYS
east         live   2023-11-14T22:13:20Z  yes     yes        3        0       1          abababababababab
a-long-name  live   2023-11-14T22:13:20Z  yes     no         0        0       1          abababababababab
2 members at revision 12 of epoch 1000-07
";
        assert_eq!(text, expected);
    }
}
