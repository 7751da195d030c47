//! Owns: the policy of a hub that is measured: budgets that do not end a measurement, or what a shape asks for.
//! Never: measures.

use std::sync::Arc;

use anyhow::{Context, bail};
use proto::v1::{ApplyPolicyRequest, policy_client::PolicyClient};
use shared::{
    tls::{HubConnector, TcpDial, TlsMetrics, explain},
    wire::{POLICY_API_VERSION, POLICY_KIND},
};

use super::hub::{HubProcess, Setup};

/// Changes a minute that a member may make: more than any hub can record.
const EVENTS_PER_MINUTE: u64 = 1_000_000_000;

/// The policy that says so.
pub(super) fn policy() -> String {
    let budget = format!("{{eventsPerMinute: {EVENTS_PER_MINUTE}}}");
    document(&format!(
        "members: [{{name: measured, members: [\"*\"], budget: {budget}}}]"
    ))
}

fn document(rules: &str) -> String {
    format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  {rules}\n")
}

/// Gives every member a budget that none of them meets.
pub(super) async fn lift_budgets(setup: &Setup, hub: &HubProcess) -> anyhow::Result<()> {
    let applied = apply(setup, hub, policy()).await;
    applied.context("the budgets were not lifted")
}

/// Gives the clusterset a policy of this one line.
pub(super) async fn apply_policy(setup: &Setup, hub: &HubProcess, rules: &str) -> anyhow::Result<()> {
    let applied = apply(setup, hub, document(rules)).await;
    applied.context("the policy was not applied")
}

async fn apply(setup: &Setup, hub: &HubProcess, document: String) -> anyhow::Result<()> {
    let operator = setup.operator("load")?;
    let addresses = vec![hub.address.clone()];
    let connector = HubConnector::new(addresses, operator, Arc::new(TcpDial), TlsMetrics::default());
    let channel = match connector.connect().await {
        Ok(channel) => channel,
        Err(error) => bail!(explain(&error).unwrap_or_else(|| error.to_string())),
    };
    let apply = ApplyPolicyRequest {
        document,
        confirm: true,
        ..Default::default()
    };
    PolicyClient::new(channel).apply(apply).await?;
    Ok(())
}
