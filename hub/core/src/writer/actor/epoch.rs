//! Owns: the step to another epoch: the log begins it, the sessions of the one before end, and the view is replaced.

use super::{Writer, WriterError, view_of};
use crate::snapshot;
use crate::{clock::Moment, writer::handle::SessionEvent};

impl Writer {
    /// Begins the epoch that is due, and closes the sessions of the old one. Sessions receive it before the view
    /// changes, which is the next step.
    pub(super) fn begin_epoch(&mut self, at: Moment, random: u64) -> Result<(), WriterError> {
        let known = self.core.must_mint().unwrap_or(self.durable.epoch);
        let epoch = known.max(self.durable.epoch).next(at.wall, random);
        let mut carried = self.core.state().clone();
        carried.begin_epoch();
        self.durable = self
            .log
            .begin_epoch(epoch, Box::new(snapshot::rows(carried.clone())))?;
        for (session, why) in self.core.epoch_begun(self.durable, carried) {
            self.tell(session, SessionEvent::Close(why));
            self.sessions.remove(&session);
        }
        self.metrics.epoch_begun();
        self.metrics.sessions(self.sessions.len());
        self.snapshot_at = 0;
        self.view_outdated = true;
        let word_of = self.core.minted_by();
        tracing::warn!(%epoch, word_of, "began a new epoch: this cluster showed that the log was rewound, or knows a later one");
        Ok(())
    }

    pub(super) fn replace_view(&mut self) {
        self.publisher.publish(self.core.published());
        self.view.replace(view_of(self.core.state(), self.durable));
        self.view_outdated = false;
    }
}
