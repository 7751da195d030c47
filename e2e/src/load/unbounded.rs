//! Owns: a hub whose budgets do not end a measurement of what it can take.
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
    let rule = format!("{{name: measured, members: [\"*\"], budget: {budget}}}");
    format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  members: [{rule}]\n")
}

/// Gives every member a budget that none of them meets.
pub(super) async fn lift_budgets(setup: &Setup, hub: &HubProcess) -> anyhow::Result<()> {
    let operator = setup.operator("load")?;
    let addresses = vec![hub.address.clone()];
    let connector = HubConnector::new(addresses, operator, Arc::new(TcpDial), TlsMetrics::default());
    let channel = match connector.connect().await {
        Ok(channel) => channel,
        Err(error) => bail!(explain(&error).unwrap_or_else(|| error.to_string())),
    };
    let apply = ApplyPolicyRequest {
        document: policy(),
        confirm: true,
        ..Default::default()
    };
    let applied = PolicyClient::new(channel).apply(apply).await;
    applied.context("the budgets were not lifted").map(drop)
}
