//! What every command that decides about members takes.

use clap::Args;

use super::hub_args::HubArgs;

/// What only operators do.
pub(super) const DECIDES: &str = "decides about members";

#[derive(Debug, Clone, Args)]
pub(super) struct DecisionArgs {
    /// Do it. Without this flag it only says what would happen
    #[arg(long)]
    pub(super) confirm: bool,
    #[command(flatten)]
    pub(super) hub: HubArgs,
}
