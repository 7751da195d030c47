//! `tributary member release`: accepts withdrawals on hold, or ends self-preservation.

use clap::Args;
use client::{failed, request};
use proto::v1::{self, membership_client::MembershipClient};
use shared::model::{ClusterId, advice};

use super::{
    decision::{DECIDES, DecisionArgs},
    hub_args::connect,
    print,
};

/// Flags that choose one of the two holds.
#[derive(Debug, Args)]
pub(super) struct ReleaseArgs {
    /// The member whose exports are on hold
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new, required_unless_present = "self_preservation")]
    cluster: Option<ClusterId>,
    /// End self-preservation instead: withdraw the members that stay lost, although there are many. This lasts until
    /// fewer are lost
    #[arg(long, env = "TRIBUTARY_SELF_PRESERVATION", conflicts_with = "cluster")]
    self_preservation: bool,
    #[command(flatten)]
    decision: DecisionArgs,
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: ReleaseArgs) -> anyhow::Result<String> {
    let decision = args.decision;
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let typed = decision.hub.typed();
    let (answer, again) = match args.cluster {
        Some(cluster) => {
            let release = v1::ReleaseMemberRequest {
                cluster: cluster.to_string(),
                confirm: decision.confirm,
                ..Default::default()
            };
            let answer = hub.release(request(release)).await;
            (answer, advice::confirm_member_release(&cluster, &typed))
        }
        None => {
            let release = v1::ReleaseSelfPreservationRequest {
                confirm: decision.confirm,
                ..Default::default()
            };
            let answer = hub.release_self_preservation(request(release)).await;
            (answer, advice::confirm_release_self_preservation(&typed))
        }
    };
    let answer = answer.map_err(|status| failed(&status))?;
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}
