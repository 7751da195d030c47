//! The state of a hub that follows the log of another: every event is folded as it comes, so that the hub can lead at once.

use std::collections::BTreeSet;

use model::{ClusterId, Cursor, Fact};

use crate::{
    recall::{LOG_FACTS_BYTES, Recall, payload_at},
    replay::{ReplayError, replay},
    snapshot,
    writer::note_end,
};
use event_log::{LogReader, SnapshotRows, StoredEvent, replicated};
use fold::{RULES, Rules, State};

/// A state that follows a log.
pub struct Following {
    state: State,
    rules: Rules,
    reader: LogReader,
    recall: Recall,
    ended: BTreeSet<ClusterId>,
}

impl Following {
    /// The state at the head of a log.
    pub fn replayed(reader: LogReader) -> Result<Self, ReplayError> {
        let (state, head) = replay(&reader)?;
        Ok(Self {
            state,
            rules: RULES,
            reader,
            recall: Recall::new(head.epoch, LOG_FACTS_BYTES),
            ended: BTreeSet::new(),
        })
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, and the members whose end was recorded while this hub was level with the log.
    pub fn into_parts(self) -> (State, BTreeSet<ClusterId>) {
        (self.state, self.ended)
    }
}

impl replicated::Fold for Following {
    fn take(&mut self, event: StoredEvent, is_level: bool) -> Result<(), String> {
        let (reader, epoch) = (&self.reader, self.recall.epoch());
        let mut read = |revision| reader.wait(move |history| payload_at(history, epoch, revision));
        let event = self.recall.event(event, &mut read);
        let event = event.map_err(|error| error.to_string())?;
        let version = match event.fact.fact {
            Fact::FoldVersionChanged { to, .. } => to,
            _ => self.state.fold_version(),
        };
        self.rules.fold(version).map_err(|error| error.to_string())?;
        drop(fold::apply(&mut self.state, &event));
        // The end of a membership that was recorded long ago may be that of an old copy.
        if is_level || matches!(event.fact.fact, Fact::MemberJoined { .. }) {
            note_end(&mut self.ended, &event);
        }
        Ok(())
    }

    fn rows(&self) -> SnapshotRows {
        Box::new(snapshot::rows(self.state.clone()))
    }

    fn begin_epoch(&mut self, head: Cursor) {
        self.state.begin_epoch();
        self.recall = Recall::new(head.epoch, LOG_FACTS_BYTES);
    }

    fn term(&self) -> u64 {
        self.state.term()
    }
}
