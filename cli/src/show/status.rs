//! `tributary status`: the members, and what needs attention, on one screen.

use anyhow::bail;
use clap::Args;
use proto::v1;
use serde_json::json;
use shared::doctor::look;

use super::{
    pages,
    problems::{Problem, problems},
    section,
};
use crate::{
    operate::{
        HubArgs,
        print::{applied, parked, said_by, span, state, version, yes},
    },
    output::{Output, value},
};

/// The parts to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// End with exit code 1 if there is a problem
    #[arg(long, env = "TRIBUTARY_CHECK")]
    check: bool,
    #[command(flatten)]
    hub: HubArgs,
}

/// Runs the command and returns what to print.
pub(crate) async fn status(args: StatusArgs) -> anyhow::Result<String> {
    let channel = args.hub.access()?.connect(None).await?;
    let members = pages::members(&channel).await?;
    let asked = v1::GetStateRequest {
        parts: vec![v1::StatePart::StateExports.into(), v1::StatePart::Imports.into()],
        ..Default::default()
    };
    let state = pages::state(&channel, asked).await?;
    let problems = problems(&members, &state.exports, look::now());
    let text = if args.hub.output.is_document() {
        document(&members, &state, &problems, args.hub.output)?
    } else {
        screen(&members, &state, &problems, args.hub.output)
    };
    if args.check && !problems.is_empty() {
        print!("{text}");
        bail!("{}", counted(problems.len(), "problem"));
    }
    Ok(text)
}

fn document(
    members: &v1::ListMembersResponse,
    state: &v1::GetStateResponse,
    problems: &[Problem],
    output: Output,
) -> anyhow::Result<String> {
    let each: anyhow::Result<Vec<_>> = members
        .members
        .iter()
        .map(|member| value("MemberState", member))
        .collect();
    Ok(output.document(&json!({
        "clusterset": state.clusterset,
        "epoch": state.epoch,
        "revision": state.revision.to_string(),
        "members": each?,
        "exports": state.exports.len(),
        "imports": state.imports.len(),
        "problems": problems,
    })))
}

fn screen(
    members: &v1::ListMembersResponse,
    state: &v1::GetStateResponse,
    problems: &[Problem],
    output: Output,
) -> String {
    let header = format!(
        "Clusterset {}: {}, {}, {} at revision {}{}\n",
        state.clusterset,
        counted(members.members.len(), "member"),
        counted(state.exports.len(), "export"),
        counted(state.imports.len(), "import"),
        state.revision,
        said_by(state.answered_by.as_ref()),
    );
    let columns = [
        "CLUSTER",
        "STATE",
        "CONNECTED",
        "WAITS",
        "PARKED",
        "EXPORTS",
        "SLICES",
        "AGENT",
    ];
    let rows = members.members.iter().map(member_row).collect();
    let members = section("Members", &columns, rows, output);
    if problems.is_empty() {
        return format!("{header}{members}\nNo problems.\n");
    }
    let lines: String = problems
        .iter()
        .map(|Problem { about, what, next }| format!("  {about}: {what}\n    next: {next}\n"))
        .collect();
    format!(
        "{header}{members}\n{}\n{lines}",
        counted(problems.len(), "problem")
    )
}

fn member_row(member: &v1::MemberState) -> Vec<String> {
    vec![
        member.cluster.clone(),
        state(member),
        yes(member.connected),
        applied(member, |applied| applied.waits_millis.map(span)),
        applied(member, |applied| Some(parked(applied))),
        member.exports.to_string(),
        member.endpoint_slices.to_string(),
        version(&member.agent_version),
    ]
}

fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        more => format!("{more} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_has_members_and_each_problem_with_its_next_step() {
        let member = v1::MemberState {
            cluster: "east".into(),
            state: v1::SourceState::SourceLive.into(),
            connected: true,
            agent_version: "0.1.0".into(),
            exports: 1,
            ..Default::default()
        };
        let members = v1::ListMembersResponse {
            members: vec![member],
            ..Default::default()
        };
        let state = v1::GetStateResponse {
            clusterset: "example.org/default".into(),
            revision: 7,
            exports: vec![v1::RecordedExport::default()],
            ..Default::default()
        };
        let found = [Problem {
            about: "east".into(),
            what: "no session".into(),
            next: "run the doctor of its agent".into(),
        }];
        let expected = "\
Clusterset example.org/default: 1 member, 1 export, 0 imports at revision 7

Members
CLUSTER  STATE  CONNECTED  WAITS  PARKED  EXPORTS  SLICES  AGENT
east     live   yes        -      -       1        0       0.1.0

1 problem
  east: no session
    next: run the doctor of its agent
";
        assert_eq!(screen(&members, &state, &found, Output::Wide), expected);
        assert!(screen(&members, &state, &[], Output::Wide).ends_with("\nNo problems.\n"));
        let document = document(&members, &state, &found, Output::Json).expect("JSON");
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        assert_eq!(document["problems"][0]["about"], "east");
        assert_eq!(document["members"][0]["state"], "SOURCE_LIVE");
    }
}
