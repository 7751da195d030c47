//! The newest batches in the engine, and from which position on they stay.

use std::collections::VecDeque;

use model::Cursor;

use crate::engine::{EngineBatch, HubRow, Position, Replica, Role};

/// Bytes of batches that stay, so that a hub which was away for a while follows on without a copy.
pub const TAIL_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of batches above which the oldest go, although a hub does not have them.
pub const TAIL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// A trim is considered this often …
const TRIM_MILLIS: u64 = 30_000;
/// … or after this share of the bytes that stay was committed.
const TRIM_SHARE: u64 = 2;
/// Milliseconds for which a hub that copies the log keeps the batches from being removed.
const COPY_MILLIS_MAX: u64 = 600_000;
/// So many marks are behind the bytes that stay.
const MARKS: u64 = 1_024;

/// Batches from a position on.
struct Mark {
    first: Position,
    bytes: u64,
}

/// The batches that this process knows to be in the engine. Those before them count as older.
pub(super) struct Tail {
    keep: u64,
    keep_max: u64,
    marks: VecDeque<Mark>,
    bytes: u64,
    /// Bytes since the last look.
    grown: u64,
    looked_at: u64,
    /// Since when somebody copies the log.
    copies_since: Option<u64>,
}

/// A trim that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trim {
    pub(super) below: Position,
    /// An announced hub lacks batches that go: it copies the log when it comes back.
    pub(super) leaves_behind: bool,
}

impl Tail {
    pub(super) fn new(keep: u64, keep_max: u64, now: u64) -> Self {
        Self {
            keep,
            keep_max,
            marks: VecDeque::new(),
            bytes: 0,
            grown: 0,
            looked_at: now,
            copies_since: None,
        }
    }

    /// A batch is in the engine.
    pub(super) fn push(&mut self, batch: &EngineBatch) {
        let bytes = batch.encoded().len() as u64;
        self.bytes += bytes;
        self.grown += bytes;
        match self.marks.back_mut() {
            Some(last) if last.bytes + bytes <= self.keep / MARKS => last.bytes += bytes,
            _ => self.marks.push_back(Mark {
                first: after(batch.before()),
                bytes,
            }),
        }
        // A hub that follows for long is told of no trim.
        while self.bytes > self.keep_max.saturating_mul(2)
            && let Some(gone) = self.marks.pop_front()
        {
            self.bytes -= gone.bytes;
        }
    }

    /// The first position behind which fewer than so many bytes are.
    fn start_of(&self, keep: u64) -> Option<Position> {
        let mut rest = self.bytes;
        let mut start = None;
        for mark in &self.marks {
            if rest < keep {
                break;
            }
            start = Some(mark.first);
            rest -= mark.bytes;
        }
        start
    }

    /// The trim that is due at this time, if one is. `mine` is the position of this hub's disk.
    pub(super) fn look(&mut self, hubs: &[HubRow], me: &Replica, mine: Cursor, now: u64) -> Option<Trim> {
        if now < self.looked_at + TRIM_MILLIS && self.grown < self.keep / TRIM_SHARE {
            return None;
        }
        (self.looked_at, self.grown) = (now, 0);
        let others = || hubs.iter().filter(|row| row.replica != *me);
        if others().any(|row| row.role == Role::Copies) {
            self.copies_since.get_or_insert(now);
        } else {
            self.copies_since = None;
        }
        let is_copied = self
            .copies_since
            .is_some_and(|since| now < since + COPY_MILLIS_MAX);
        let synced = others().filter_map(|row| row.synced).chain([mine]).map(after);
        let smallest = synced.min().unwrap_or(after(mine));
        let usual = self
            .start_of(self.keep)
            .map(|start| start.min(smallest))
            .filter(|_| !is_copied);
        // Never what this hub's own disk lacks.
        let forced = self.start_of(self.keep_max).map(|start| start.min(after(mine)));
        let below = usual.max(forced)?;
        if self.marks.front().is_none_or(|oldest| below <= oldest.first) {
            return None;
        }
        Some(Trim {
            below,
            leaves_behind: is_copied || below > smallest,
        })
    }

    /// The engine removed everything before a position.
    pub(super) fn trimmed(&mut self, below: Position) {
        while self.marks.get(1).is_some_and(|next| next.first <= below)
            && let Some(gone) = self.marks.pop_front()
        {
            self.bytes -= gone.bytes;
        }
    }
}

fn after(at: Cursor) -> Position {
    Position {
        epoch: at.epoch,
        revision: at.revision.next(),
    }
}
