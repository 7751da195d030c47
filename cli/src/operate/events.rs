//! `tributary events`: a page of the history, from a revision or a time on.

use std::str::FromStr;

use clap::Args;
use client::{failed, request};
use proto::v1::{self, event_log_client::EventLogClient};
use shared::model::{Epoch, sync::MESSAGE_BYTES_MAX};

use super::{
    hub_args::{HubArgs, connect},
    print,
};

/// The word by which a request means the oldest epoch of the log.
const OLDEST_EPOCH: &str = "oldest";

/// Show recorded events.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Begin with the first event since so long ago (90s, 10m, 2h, 3d), or since this time (RFC 3339). Times are by the
    /// hub's clock
    #[arg(
        long,
        env = "TRIBUTARY_SINCE",
        value_name = "AGO|TIME",
        conflicts_with = "from"
    )]
    since: Option<Since>,
    /// Begin with this revision; without this and --since, with the oldest one
    #[arg(long, env = "TRIBUTARY_FROM", value_name = "REVISION", default_value_t = 0)]
    from: u64,
    /// Largest number of events to show, up to 1000
    #[arg(long, env = "TRIBUTARY_LIMIT", value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
    /// Show events of this cluster only
    #[arg(long, env = "TRIBUTARY_CLUSTER", value_name = "CLUSTER", default_value = "")]
    cluster: String,
    /// Show events of this kind only, such as export_upserted or member_lost
    #[arg(long, env = "TRIBUTARY_KIND", value_name = "KIND", default_value = "")]
    kind: String,
    /// Show events about Services of this namespace only
    #[arg(
        long,
        env = "TRIBUTARY_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = ""
    )]
    namespace: String,
    /// Show events of this epoch, as answers name it; unless given, of the current one. An epoch begins when a log is
    /// restored or rewound
    #[arg(long, env = "TRIBUTARY_EPOCH", value_name = "EPOCH", conflicts_with = "all")]
    epoch: Option<Epoch>,
    /// Show events of all epochs that the log still has, oldest first
    #[arg(long, env = "TRIBUTARY_ALL")]
    all: bool,
    #[command(flatten)]
    hub: HubArgs,
}

/// The start, in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// So many milliseconds ago, by the hub's clock.
    Ago(u64),
    /// At this time.
    At(jiff::Timestamp),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ago(text)
            .filter(|millis| *millis > 0)
            .map(Self::Ago)
            .or_else(|| text.parse().ok().map(Self::At))
            .ok_or_else(|| {
                "use a number with s, m, h or d, such as 10m, or a time such as 2026-01-31T09:30:00Z"
                    .to_owned()
            })
    }
}

/// Milliseconds of a number with its unit.
fn ago(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 24 * 3_600,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    number.checked_mul(seconds * 1_000)
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: EventsArgs) -> anyhow::Result<String> {
    let EventsArgs {
        since,
        from,
        limit,
        cluster,
        kind,
        namespace,
        epoch,
        all,
        hub,
    } = args;
    let (since, since_millis_ago) = match since {
        None => (None, 0),
        Some(Since::Ago(millis)) => (None, millis),
        Some(Since::At(at)) => {
            let (seconds, nanos) = (at.as_second(), at.subsec_nanosecond());
            (Some(prost_types::Timestamp { seconds, nanos }), 0)
        }
    };
    let epoch = match epoch {
        _ if all => OLDEST_EPOCH.to_owned(),
        Some(epoch) => epoch.to_string(),
        None => String::new(),
    };
    let mut list = v1::ListEventsRequest {
        epoch,
        from_revision: from,
        limit,
        filter: Some(v1::EventFilter {
            cluster,
            kind,
            namespace,
        }),
        since,
        since_millis_ago,
        ..Default::default()
    };
    let log = EventLogClient::new(connect(&hub, None).await?);
    let mut log = log.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut printed = String::new();
    let mut others = Vec::new();
    loop {
        let asked = request(list.clone());
        let answer = log
            .list(asked)
            .await
            .map_err(|status| failed(&status))?
            .into_inner();
        printed.push_str(&print::events(&answer, hub.output));
        if all && list.epoch == OLDEST_EPOCH {
            others = answer.epochs;
            others.retain(|epoch| *epoch != answer.epoch);
            others.reverse();
        }
        let Some(next) = others.pop() else {
            return Ok(printed);
        };
        list.epoch = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_while_ago_or_a_point() {
        let since = |text: &str| text.parse::<Since>();
        assert_eq!(since("90s"), Ok(Since::Ago(90_000)));
        assert_eq!(since("10m"), Ok(Since::Ago(600_000)));
        assert_eq!(since("2h"), Ok(Since::Ago(7_200_000)));
        assert_eq!(since("3d"), Ok(Since::Ago(259_200_000)));
        let at = "2026-01-31T09:30:00Z";
        assert_eq!(since(at), Ok(Since::At(at.parse().unwrap())));
        for bad in [
            "",
            "m",
            "0m",
            "-5m",
            "10",
            "10 m",
            "ten",
            "99999999999999999d",
            "2026-01-31",
            "ü",
        ] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
