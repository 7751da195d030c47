//! `tributary member wait`: ends when the named members are live, for scripts that have just installed them. It asks
//! again and again, also while the hub cannot be reached.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use client::{Access, duration};
use proto::v1;
use serde_json::json;
use shared::model::{ClusterId, advice};
use tokio::time::{Instant, sleep_until};

use super::{hub_args::HubArgs, listing::listed};
use crate::output::Output;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Flags of the wait.
#[derive(Debug, Args)]
pub(super) struct WaitArgs {
    /// The members to wait for
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new, required = true)]
    clusters: Vec<ClusterId>,
    /// Longest time to wait, as 90s, 2m or 1h
    #[arg(long, env = "TRIBUTARY_WAIT_TIMEOUT", value_name = "TIME", default_value = "2m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    hub: HubArgs,
}

/// Waits, names on standard error the members that are not live whenever that changes, and returns what to print.
pub(super) async fn run(args: WaitArgs) -> anyhow::Result<String> {
    let WaitArgs {
        clusters,
        timeout,
        hub,
    } = args;
    // Flags and files that are wrong stay wrong.
    let access = hub.access()?;
    let end = Instant::now() + timeout;
    let mut told = String::new();
    loop {
        let next = Instant::now() + LOOK_EVERY;
        // The last look begins within the time, and may be answered after it.
        let missing = match look(&access).await {
            Ok(answer) => missing(&clusters, &answer.members).join("; "),
            Err(error) => format!("{error:#}"),
        };
        if missing.is_empty() {
            return Ok(live(&clusters, hub.output));
        }
        if next >= end {
            let seconds = timeout.as_secs();
            let list = advice::member_list();
            bail!(
                "after {seconds} s not every member is live: {missing}. `{list}` shows more, as does the agent's log"
            );
        }
        if missing != told {
            eprintln!("waiting: {missing}");
            told = missing;
        }
        sleep_until(next).await;
    }
}

async fn look(access: &Access) -> anyhow::Result<v1::ListMembersResponse> {
    listed(access.connect(None).await?).await
}

/// A sentence for each that is not live yet.
fn missing(clusters: &[ClusterId], members: &[v1::MemberState]) -> Vec<String> {
    let lacks = |cluster: &ClusterId| {
        let member = members.iter().find(|member| member.cluster == cluster.as_str());
        let Some(member) = member else {
            return Some("is not a member yet");
        };
        match v1::SourceState::try_from(member.state) {
            Ok(v1::SourceState::SourceLive) if !member.connected => Some("has no session"),
            Ok(v1::SourceState::SourceLive) if !member.listed => Some("has not listed its exports yet"),
            Ok(v1::SourceState::SourceLive) => None,
            _ if member.connected => Some("has a session and is not live yet"),
            _ => Some("is not live and has no session"),
        }
    };
    let waiting = clusters
        .iter()
        .filter_map(|cluster| Some((cluster, lacks(cluster)?)));
    waiting
        .map(|(cluster, lacks)| format!("{cluster} {lacks}"))
        .collect()
}

fn live(clusters: &[ClusterId], output: Output) -> String {
    let names: Vec<&str> = clusters.iter().map(ClusterId::as_str).collect();
    match (output, &names[..]) {
        (output, names) if output.is_document() => output.document(&json!({ "live": names })),
        (_, [one]) => format!("{one} is live\n"),
        (_, names) => format!("{} members are live: {}\n", names.len(), names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(cluster: &str, state: v1::SourceState, connected: bool, listed: bool) -> v1::MemberState {
        v1::MemberState {
            cluster: cluster.to_owned(),
            state: state.into(),
            connected,
            listed,
            ..Default::default()
        }
    }

    fn clusters(names: &[&str]) -> Vec<ClusterId> {
        names.iter().map(|name| ClusterId::new(name).unwrap()).collect()
    }

    #[test]
    fn each_member_that_is_not_live_is_named_with_what_it_lacks() {
        let live = v1::SourceState::SourceLive;
        let members = [
            member("east", live, true, true),
            member("north", live, true, false),
            member("south", live, false, true),
            member("lost", v1::SourceState::SourceLost, false, true),
            member("other", v1::SourceState::SourceLost, false, false),
        ];
        let wanted = clusters(&["east", "north", "south", "lost", "west"]);
        assert_eq!(
            missing(&wanted, &members),
            [
                "north has not listed its exports yet",
                "south has no session",
                "lost is not live and has no session",
                "west is not a member yet",
            ]
        );
        assert!(missing(&clusters(&["east"]), &members).is_empty());
    }

    #[test]
    fn those_that_are_live_are_named() {
        assert_eq!(super::live(&clusters(&["east"]), Output::Text), "east is live\n");
        let two = clusters(&["east", "west"]);
        assert_eq!(
            super::live(&two, Output::Text),
            "2 members are live: east, west\n"
        );
        assert_eq!(
            super::live(&two, Output::Json),
            "{\n  \"live\": [\n    \"east\",\n    \"west\"\n  ]\n}\n"
        );
    }
}
