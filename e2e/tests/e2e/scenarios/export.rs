//! A service exported in one cluster arrives in the others, and goes again.

use tributary_e2e::world::{Backend, World};

/// One export: from a cluster through the hub and its log to another.
pub(super) async fn arrives_everywhere(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let world = World::start(dir.path(), &backend, &["east", "west", "north"]).await?;
    world.end().await
}
