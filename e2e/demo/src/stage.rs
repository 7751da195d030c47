//! The picture, kept current by the watches and shown on a screen; and waiting until it shows something.
//! It never sleeps: whoever waits here is woken by what a cluster says.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use kube::Client;

use super::{observe::Watches, picture::Picture, screen::Screen, table::table};

/// Longest wait for anything the demo waits for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The demo's view.
pub(super) struct Stage {
    pub(super) picture: Picture,
    pub(super) screen: Screen,
    watches: Watches,
}

impl Stage {
    /// Begins to watch these clusters.
    pub(super) fn new(clients: &BTreeMap<String, Client>, screen: Screen) -> Self {
        Self {
            picture: Picture::new(clients.keys()),
            screen,
            watches: Watches::start(clients),
        }
    }

    /// Waits for the next thing that a cluster says, and takes in all that waits behind it.
    pub(super) async fn look(&mut self) -> anyhow::Result<()> {
        let first = self.watches.next().await?;
        self.picture.observe(first);
        while let Some(observation) = self.watches.waiting() {
            self.picture.observe(observation);
        }
        self.screen.show(&self.picture).context("cannot print the table")
    }

    /// Waits until the clusters' APIs show what is wanted; how long that took.
    pub(super) async fn until(
        &mut self,
        what: &str,
        wanted: impl Fn(&Picture) -> bool,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let looking = async {
            while !wanted(&self.picture) {
                self.look().await?;
            }
            anyhow::Ok(())
        };
        let looked = tokio::time::timeout(WAIT_MAX, looking).await;
        match looked {
            Ok(seen) => seen.map(|()| began.elapsed()),
            Err(_) => bail!(
                "{what}: not so after {} s. The clusters' APIs show\n{}",
                WAIT_MAX.as_secs(),
                table(&self.picture).join("\n")
            ),
        }
    }

    /// Waits until every watch has its first list.
    pub(super) async fn complete(&mut self) -> anyhow::Result<()> {
        let complete = self.until("every watch has its first list", Picture::is_complete);
        complete.await.map(drop)
    }
}
