//! Flags of every command that decides about members.

use clap::Args;

use super::hub_args::HubArgs;

/// The right that only operators have.
pub(super) const DECIDES: &str = "decides about members";

#[derive(Debug, Clone, Args)]
pub(super) struct DecisionArgs {
    /// Make the change. Without this flag the command only shows what would happen
    #[arg(long)]
    pub(super) confirm: bool,
    #[command(flatten)]
    pub(super) hub: HubArgs,
}
