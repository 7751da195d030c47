//! `tributary member`: the flags, the requests, the exact command that confirms a dry run.

use clap::{Args, Subcommand};
use client::{failed, request};
use proto::v1::{self, membership_client::MembershipClient};
use shared::model::{ClusterId, KeyFingerprint, advice};

use super::{
    decision::{DECIDES, DecisionArgs},
    hub_args::{HubArgs, connect},
    leaving::{self, DrainArgs, EvictArgs, StayArgs},
    listing::listed,
    print,
    release::{self, ReleaseArgs},
    wait::{self, WaitArgs},
};

/// See the members and decide about them.
#[derive(Debug, Args)]
pub struct MemberArgs {
    #[command(subcommand)]
    command: MemberCommand,
}

#[derive(Debug, Subcommand)]
enum MemberCommand {
    /// Show every cluster that is or was a member
    List(ListArgs),
    /// Wait until members are live
    #[command(
        long_about = "Wait until each of the named members is live: its agent has a session with the hub and has \
            listed its exports. The time also runs while the hub cannot be reached. Standard error names the members \
            that are not live yet.\n\n\
        Exit code 0 once all are live, 1 when the time is over.\n\n\
        Example:\n  tributary member wait east west --timeout 2m --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Wait(WaitArgs),
    /// Admit another key or another cluster fingerprint for a member
    #[command(
        long_about = "Admit another key or another cluster fingerprint for a member: after its certificate was \
            issued with a new key, or its cluster was rebuilt. The hub's refusal of the session names both \
            fingerprints.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member rekey east --key-fingerprint 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    --hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Rekey(RekeyArgs),
    /// Have a member leave: its endpoints first, its exports later
    #[command(
        long_about = "Have a member leave: its endpoints go from the other clusters at once, wherever another member \
            has ready ones. Its exports and remaining endpoints go when the time is over, and its membership ends. \
            Until then `member stay` cancels the drain. Afterwards its id is free, and its keys stay refused. In its \
            cluster, the agent's command `leave` removes what agents wrote.\n\n\
        A second drain restarts the time.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member drain west --after 1h --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Drain(DrainArgs),
    /// Cancel the drain or the eviction of a member
    #[command(
        long_about = "Cancel `member drain` or `member evict`: the other clusters use the member's endpoints again, \
            and its exports stay. Once its time is over, nothing can be cancelled.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member stay west --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Stay(StayArgs),
    /// End a membership
    #[command(
        long_about = "End a membership without its cluster's help: its endpoints go from the other clusters at once, \
            wherever another member has ready ones; its exports follow when the time is over. Until then `member \
            stay` cancels the eviction. Its keys stay refused, and its id needs an operator's `member rekey` to join \
            again.\n\n\
        With --now everything happens at once and cannot be undone.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member evict west --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key\n  \
        tributary member evict west --now --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Evict(EvictArgs),
    /// Refuse a key of a cluster for ever
    #[command(
        long_about = "Refuse a key of a cluster for ever, because it was stolen; a key that the hub has never seen \
            can be revoked too. From then on the hub refuses it in any certificate, ends open connections with it \
            within seconds, and refuses the keys that were certified over its sessions. The member stays a member \
            and keeps its exports; if it has no other key, issue a certificate with a new one, and admit it with \
            `member rekey`.\n\n\
        The key fingerprint is the sha256 of the public key: `member list --output json` has those of members.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member revoke-key east 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    --hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    RevokeKey(RevokeKeyArgs),
    /// Delete what other clusters still hold from a cluster that is gone for good
    #[command(
        long_about = "Delete what other clusters still hold from a cluster that is gone for good and is not a member. A \
            hub that started with an empty or an old log cannot know if a cluster still exists that its log lacks or \
            calls evicted: members keep the objects of such a cluster until it reports to this hub. If it never \
            will, this command deletes them.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member forget gone --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Forget(ForgetArgs),
    /// Accept the mass withdrawal of a member that the hub has put on hold
    #[command(
        long_about = "Accept the mass withdrawal of a member that the hub has put on hold: when a member withdraws \
            most of its exports at once, the other clusters keep using them for the time of the hold. Look at its \
            cluster first: if its ServiceExports are gone by mistake, create them again there, and the hold ends. If \
            they were removed on purpose, this command removes them everywhere at once.\n\n\
        With --self-preservation it ends self-preservation instead: members that stay lost are withdrawn, although \
        many are lost at one time.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary member release west --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Release(ReleaseArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Args)]
struct RekeyArgs {
    /// The member
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    /// sha256 of the public key to admit besides the known ones (64 hexadecimal digits)
    #[arg(long, env = "TRIBUTARY_KEY_FINGERPRINT", value_name = "SHA256", value_parser = key_fingerprint)]
    key_fingerprint: Option<String>,
    /// uid of the namespace kube-system of the rebuilt cluster, which the member may be from now on
    #[arg(long, env = "TRIBUTARY_CLUSTER_FINGERPRINT", value_name = "UID")]
    cluster_fingerprint: Option<String>,
    #[command(flatten)]
    decision: DecisionArgs,
}

#[derive(Debug, Args)]
struct RevokeKeyArgs {
    /// The cluster whose key it is
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    /// sha256 of the public key (64 hexadecimal digits)
    #[arg(value_name = "SHA256", value_parser = key_fingerprint)]
    revoked: String,
    #[command(flatten)]
    decision: DecisionArgs,
}

#[derive(Debug, Args)]
struct ForgetArgs {
    /// A cluster that is not a member
    #[arg(value_name = "CLUSTER", value_parser = ClusterId::new)]
    cluster: ClusterId,
    #[command(flatten)]
    decision: DecisionArgs,
}

pub(super) fn key_fingerprint(text: &str) -> Result<String, String> {
    KeyFingerprint::read(text).map(|key| key.to_string())
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: MemberArgs) -> anyhow::Result<String> {
    match args.command {
        MemberCommand::List(args) => list(&args.hub).await,
        MemberCommand::Wait(args) => wait::run(args).await,
        MemberCommand::Rekey(args) => rekey(args).await,
        MemberCommand::Drain(args) => leaving::drain(args).await,
        MemberCommand::Stay(args) => leaving::stay(args).await,
        MemberCommand::Evict(args) => leaving::evict(args).await,
        MemberCommand::RevokeKey(args) => revoke_key(args).await,
        MemberCommand::Release(args) => release::run(args).await,
        MemberCommand::Forget(ForgetArgs { cluster, decision }) => {
            let forget = v1::ForgetMemberRequest {
                cluster: cluster.to_string(),
                confirm: decision.confirm,
                ..Default::default()
            };
            let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
            let answer = hub
                .forget(request(forget))
                .await
                .map_err(|status| failed(&status))?;
            let again = advice::confirm_member_forget(&cluster, &decision.hub.typed());
            Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
        }
    }
}

async fn revoke_key(args: RevokeKeyArgs) -> anyhow::Result<String> {
    let RevokeKeyArgs {
        cluster,
        revoked: key,
        decision,
    } = args;
    let revoke = v1::RevokeMemberKeyRequest {
        cluster: cluster.to_string(),
        key_fingerprint: key.clone(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.revoke_key(request(revoke)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_member_revoke_key(&cluster, &key, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

async fn list(hub: &HubArgs) -> anyhow::Result<String> {
    let members = listed(connect(hub, None).await?).await?;
    Ok(print::members(&members, hub.output))
}

async fn rekey(args: RekeyArgs) -> anyhow::Result<String> {
    let RekeyArgs {
        cluster,
        key_fingerprint,
        cluster_fingerprint,
        decision,
    } = args;
    let again = advice::confirm_member_rekey(
        &cluster,
        key_fingerprint.as_deref(),
        cluster_fingerprint.as_deref(),
        &decision.hub.typed(),
    );
    let rekey = v1::RekeyMemberRequest {
        cluster: cluster.to_string(),
        key_fingerprint: key_fingerprint.unwrap_or_default(),
        cluster_fingerprint: cluster_fingerprint.unwrap_or_default(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub
        .rekey(request(rekey))
        .await
        .map_err(|status| failed(&status))?;
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}
