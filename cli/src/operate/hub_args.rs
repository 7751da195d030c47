//! The flags of every command that asks the hub.

use client::{Access, AccessArgs};
use tonic::transport::Channel;

use crate::output::Output;

/// Hub, client certificate and output format.
#[derive(Debug, Clone, clap::Args)]
pub struct HubArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// Form of the output
    #[arg(
        long,
        short,
        env = "TRIBUTARY_OUTPUT",
        value_name = "FORM",
        default_value = "text"
    )]
    pub(crate) output: Output,
}

impl HubArgs {
    /// Puts flags, variables and context together, and reads the files.
    pub(crate) fn access(&self) -> anyhow::Result<Access> {
        self.access.access()
    }

    /// The name of the context that is used; `None`: flags and variables say everything.
    pub(crate) fn context_name(&self) -> Option<String> {
        self.access.context_name()
    }

    /// The flags as they would be typed again.
    pub(super) fn typed(&self) -> String {
        self.access.typed()
    }
}

/// Connects to the hub of flags, variables and context.
pub(super) async fn connect(args: &HubArgs, operators: Option<&str>) -> anyhow::Result<Channel> {
    args.access()?.connect(operators).await
}
