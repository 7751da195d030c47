//! Owns: decisions about members that the hub takes itself, when told to, recorded as an operator's are.
//! Never: decides anything: others choose the decision, and the fold allows it.

use anyhow::anyhow;
use futures::{FutureExt, future::BoxFuture};
use topology_controller::enrol::Decides;
use tracing::info;

use crate::effects;
use crate::{fold::Command, writer::WriterHandle};

/// The way to have decisions of the hub's own recorded. Clones are the same way.
#[derive(Clone)]
pub struct HubDecisions {
    writer: WriterHandle,
}

impl HubDecisions {
    /// The way to this writer.
    pub fn new(writer: WriterHandle) -> Self {
        Self { writer }
    }

    async fn record(&self, command: Command) -> anyhow::Result<()> {
        let operated = self.writer.operate(command.clone(), true, effects::of).await?;
        let operated = operated.map_err(|rejection| anyhow!("{rejection}"))?;
        if let Some(revision) = operated.revision {
            info!(
                revision = revision.0,
                operator = command.operator(),
                kinds = operated.kinds.join(","),
                effects = operated.effects.join("; "),
                "the hub decided"
            );
        }
        Ok(())
    }
}

impl Decides for HubDecisions {
    fn decide(&self, command: Command) -> BoxFuture<'_, anyhow::Result<()>> {
        self.record(command).boxed()
    }
}
