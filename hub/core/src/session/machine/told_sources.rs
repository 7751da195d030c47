//! Owns: which news of sources a member is told, and when.
//! Never: tells what was recorded with a source after it.

use model::sync::HubMessage;

use crate::{push::Push, view::View};

/// News of sources are gathered for so long after the last ones: when a fleet comes back at once, each member would
/// hear of each other one by one.
pub(super) const SOURCES_GATHER_MILLIS: u64 = 250;
/// Sources of one message.
pub(super) const SOURCES_OF_A_MESSAGE: usize = 256;

/// The sources as last sent to the member.
#[derive(Debug, Default)]
pub(super) struct ToldSources {
    version: u64,
    /// More is not told before this time.
    not_before: u64,
    /// Something waits until then.
    pub(super) waiting_until: Option<u64>,
}

impl ToldSources {
    /// The sources that changed and may be told: everything that was recorded with them has been sent.
    pub(super) fn due(&mut self, push: &Push, view: &View, now: u64) -> Option<HubMessage> {
        self.waiting_until = None;
        if view.sources_version() == self.version {
            return None;
        }
        let settled = push.settled()?;
        if now < self.not_before {
            self.waiting_until = Some(self.not_before);
            return None;
        }
        let (told, sources) = view.sources_after(self.version, settled, SOURCES_OF_A_MESSAGE);
        if sources.is_empty() {
            return None;
        }
        self.version = told;
        if sources.len() < SOURCES_OF_A_MESSAGE {
            self.not_before = now + SOURCES_GATHER_MILLIS;
        }
        Some(HubMessage::SourcesChanged(sources))
    }
}
