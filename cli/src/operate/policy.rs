//! `tributary policy`: the file that is read, the requests, the exact command that confirms a dry run.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use client::{failed, request};
use proto::v1::{self, policy_client::PolicyClient};
use shared::{
    model::{ServiceKey, advice, policy::POLICY_BYTES_MAX},
    wire,
};

use super::{
    decision::DecisionArgs,
    hub_args::{HubArgs, connect},
    print,
};

/// See the policy of the clusterset and decide about it.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show the policy in force, as it was applied
    Get(GetArgs),
    /// Show what a policy would do, and change nothing
    #[command(
        long_about = "Show what a policy would do, and change nothing: the exports that it would refuse, the imports \
            that would go, everywhere or in one member, and the number of endpoints that it would leave out. The \
            client parses the file, and the hub compares it with what its members export now.\n\n\
        Example:\n  tributary policy test policy.yaml --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Test(TestArgs),
    /// Put a policy in force
    #[command(
        long_about = "Put a policy in force; it replaces the one before, and is an event of the log. An export that \
            it refuses is still recorded, and left out of every cluster; a looser policy restores it. A policy of \
            `spec: {}` allows everything.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary policy apply policy.yaml --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Apply(ApplyArgs),
    /// Hand a service back to its oldest export
    #[command(
        long_about = "Hand a service back to its oldest export: under `precedence: incumbent` in the policy, a \
            younger export keeps the first place until then.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary policy release shop/cart --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Release(ReleaseArgs),
}

/// The right that only operators have.
const DECIDES: &str = "decides about the policy";

#[derive(Debug, Args)]
struct GetArgs {
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The policy, a YAML document
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Args)]
struct ApplyArgs {
    /// The policy, a YAML document
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    decision: DecisionArgs,
}

#[derive(Debug, Args)]
struct ReleaseArgs {
    /// The service, as NAMESPACE/NAME
    #[arg(value_name = "NAMESPACE/NAME", value_parser = service)]
    service: ServiceKey,
    #[command(flatten)]
    decision: DecisionArgs,
}

fn service(text: &str) -> Result<ServiceKey, String> {
    let (namespace, name) = text
        .split_once('/')
        .ok_or("a service is written as NAMESPACE/NAME")?;
    ServiceKey::new(namespace, name).map_err(|error| error.to_string())
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: PolicyArgs) -> anyhow::Result<String> {
    match args.command {
        PolicyCommand::Get(GetArgs { hub }) => get(&hub).await,
        PolicyCommand::Test(TestArgs { file, hub }) => {
            let again = advice::confirm_policy_apply(&file.display().to_string(), &hub.typed());
            apply(&file, &hub, false, &again).await
        }
        PolicyCommand::Apply(ApplyArgs { file, decision }) => {
            let again = advice::confirm_policy_apply(&file.display().to_string(), &decision.hub.typed());
            apply(&file, &decision.hub, decision.confirm, &again).await
        }
        PolicyCommand::Release(args) => release(args).await,
    }
}

async fn get(hub: &HubArgs) -> anyhow::Result<String> {
    let mut policy = PolicyClient::new(connect(hub, None).await?);
    let answer = policy.get(request(v1::GetPolicyRequest::default())).await;
    let answer = answer.map_err(|status| failed(&status))?;
    Ok(print::policy(answer.get_ref(), hub.output))
}

async fn apply(file: &Path, hub: &HubArgs, confirm: bool, again: &str) -> anyhow::Result<String> {
    let apply = v1::ApplyPolicyRequest {
        document: document(file)?,
        confirm,
        ..Default::default()
    };
    let mut policy = PolicyClient::new(connect(hub, Some(DECIDES)).await?);
    let answer = policy.apply(request(apply)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    Ok(print::decision(answer.get_ref(), again, hub.output))
}

/// Reads no more of a file than a policy can have, and refuses what the hub would refuse before asking it.
fn document(file: &Path) -> anyhow::Result<String> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut document = String::new();
    let read = opened
        .take(POLICY_BYTES_MAX as u64 + 1)
        .read_to_string(&mut document);
    read.with_context(|| format!("cannot read {}", file.display()))?;
    ensure!(
        document.len() <= POLICY_BYTES_MAX,
        "{} has more than the {POLICY_BYTES_MAX} bytes that a policy may have: use patterns, or fewer comments",
        file.display()
    );
    wire::read_policy(&document).with_context(|| file.display().to_string())?;
    Ok(document)
}

async fn release(args: ReleaseArgs) -> anyhow::Result<String> {
    let ReleaseArgs { service, decision } = args;
    let release = v1::ReleasePrecedenceRequest {
        service: Some(v1::ServiceKey {
            namespace: service.namespace.to_string(),
            name: service.name.to_string(),
        }),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut policy = PolicyClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = policy.release(request(release)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_policy_release(&service, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}
