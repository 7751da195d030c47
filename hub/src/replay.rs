//! From the log to the state: the newest snapshot and the events after it, verified as they are read.
//! It blocks, and runs once, before anything is served.

use shared::{model::Cursor, wire};

use crate::{
    fold::{self, SnapshotRow, State},
    log::{LogError, LogReader, ReplayItem},
    wire::snapshot,
};

/// Why a log could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An event is none that this build knows.
    #[error(
        "event {revision} cannot be read by this build: {reason}. Use the build that wrote it, or a newer one"
    )]
    Event {
        /// Its revision.
        revision: u64,
        /// What is wrong.
        reason: String,
    },
    /// The snapshot cannot be restored.
    #[error("the snapshot cannot be read by this build: {0}. Use the build that wrote it, or a newer one")]
    Snapshot(String),
}

/// Rebuilds the state at the log's head.
pub fn replay(reader: &LogReader) -> Result<(State, Cursor), ReplayError> {
    let mut replaying = Replaying::default();
    let head = reader.replay(|item| replaying.take(item))?;
    Ok((replaying.finish()?, head))
}

#[derive(Default)]
struct Replaying {
    rows: Vec<SnapshotRow>,
    state: Option<State>,
}

impl Replaying {
    fn take(&mut self, item: ReplayItem) -> Result<(), ReplayError> {
        match item {
            ReplayItem::Snapshot(_) => {}
            ReplayItem::Row(row) => {
                let row =
                    snapshot::decode_row(&row).map_err(|error| ReplayError::Snapshot(error.to_string()))?;
                self.rows.push(row);
            }
            ReplayItem::Event(stored) => {
                let decoded = wire::decode_event(stored.revision, stored.payload.into());
                let event = decoded.map_err(|error| ReplayError::Event {
                    revision: stored.revision.0,
                    reason: error.to_string(),
                })?;
                fold::apply(self.state()?, &event);
            }
        }
        Ok(())
    }

    /// The state, restored from the rows when the first event comes.
    fn state(&mut self) -> Result<&mut State, ReplayError> {
        if self.state.is_none() {
            self.state = Some(self.restore()?);
        }
        Ok(self.state.as_mut().expect("set above"))
    }

    fn restore(&mut self) -> Result<State, ReplayError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(State::new());
        }
        State::restore(rows).map_err(|error| ReplayError::Snapshot(error.to_string()))
    }

    fn finish(mut self) -> Result<State, ReplayError> {
        self.state()?;
        Ok(self.state.expect("made by the line before"))
    }
}
