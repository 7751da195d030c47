//! `tributary member drain`, `member stay` and `member evict`: how a membership ends, or does not.

use std::time::Duration;

use clap::Args;
use client::{duration, failed, request};
use proto::v1::{self, membership_client::MembershipClient};
use shared::model::{ClusterId, advice};

use super::{
    decision::{DECIDES, DecisionArgs},
    hub_args::connect,
    print,
};

/// Flags of `member drain`.
#[derive(Debug, Args)]
pub(super) struct DrainArgs {
    /// The member
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    /// Time from now until its exports follow its endpoints and its membership ends, as 90s, 30m, 1h or 2d; a week at
    /// most
    #[arg(long, env = "TRIBUTARY_LEAVE_AFTER", value_name = "TIME", default_value = "1h", value_parser = duration)]
    after: Duration,
    #[command(flatten)]
    decision: DecisionArgs,
}

/// Flags of `member stay`.
#[derive(Debug, Args)]
pub(super) struct StayArgs {
    /// A member that is to leave
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    #[command(flatten)]
    decision: DecisionArgs,
}

/// Flags of `member evict`.
#[derive(Debug, Args)]
pub(super) struct EvictArgs {
    /// The member
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    /// Time from now until its exports follow its endpoints and its membership ends, as 90s, 30m, 1h or 2d; a week at
    /// most
    #[arg(long, env = "TRIBUTARY_LEAVE_AFTER", value_name = "TIME", default_value = "1h", value_parser = duration)]
    after: Duration,
    /// End the membership and remove everything of the cluster at once: for a compromised cluster. This cannot be
    /// undone
    #[arg(long, env = "TRIBUTARY_EVICT_NOW", conflicts_with = "after")]
    now: bool,
    #[command(flatten)]
    decision: DecisionArgs,
}

/// Has a member leave, and returns what to print.
pub(super) async fn drain(args: DrainArgs) -> anyhow::Result<String> {
    let DrainArgs {
        cluster,
        after,
        decision,
    } = args;
    let drain = v1::DrainMemberRequest {
        cluster: cluster.to_string(),
        confirm: decision.confirm,
        after_millis: millis(after),
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.drain(request(drain)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_member_drain(&cluster, after.as_secs(), &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

/// Has a member stay, and returns what to print.
pub(super) async fn stay(args: StayArgs) -> anyhow::Result<String> {
    let StayArgs { cluster, decision } = args;
    let stay = v1::StayMemberRequest {
        cluster: cluster.to_string(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.stay(request(stay)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_member_stay(&cluster, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

/// Ends a membership, and returns what to print.
pub(super) async fn evict(args: EvictArgs) -> anyhow::Result<String> {
    let EvictArgs {
        cluster,
        after,
        now,
        decision,
    } = args;
    let after = (!now && !after.is_zero()).then_some(after);
    let evict = v1::EvictMemberRequest {
        cluster: cluster.to_string(),
        confirm: decision.confirm,
        after_millis: after.map(millis).unwrap_or_default(),
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.evict(request(evict)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let seconds = after.map(|after| after.as_secs());
    let again = advice::confirm_member_evict(&cluster, seconds, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
