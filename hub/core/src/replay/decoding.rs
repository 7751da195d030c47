//! Owns: a log read and decoded by several threads, and handed out in its order: one reads, and makes whole what is stored
//! as a difference, which needs the events before; some decode and hash, which needs nothing; the caller's folds.
//! Never: folds.

use std::{
    num::NonZero,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, Scope, ScopedJoinHandle},
};

use bytes::Bytes;
use model::{Cursor, Event};
use wire::{InvalidEvent, RecordedEvent};

use super::ReplayError;
use crate::recall::{LOG_FACTS_BYTES, ReadPayload, Recall, RecallError, payload_at};
use crate::snapshot;
use event_log::{LogError, LogReader, ReplayItem};
use fold::SnapshotRow;

/// Most items that are handed over together …
pub(super) const CHUNK_ITEMS: usize = 512;
/// … and bytes of facts after which it is full.
const CHUNK_BYTES: usize = 512 * 1024;
/// Chunks that may wait for each decoder, and of each of them.
pub(super) const CHUNKS_WAITING_MAX: usize = 2;
/// Most threads that decode: two keep up with one that folds …
const DECODERS_MAX: usize = 3;
/// … and fewest: that they take turns is the same everywhere.
const DECODERS_MIN: usize = 2;

/// A decoded item that a state is rebuilt from.
pub(super) enum Decoded {
    Row(SnapshotRow),
    Event(Event),
}

/// The same as far as it was read.
enum Read {
    Row(SnapshotRow),
    Event(RecordedEvent, Bytes),
}

/// Items in the order of the log: chunks of items, or the reason why there are no more.
pub(super) struct Items {
    /// Each chunk comes from the decoder after the one that the chunk before came from.
    decoders: Vec<Receiver<Result<Vec<Decoded>, ReplayError>>>,
    chunks: usize,
}

impl Iterator for Items {
    type Item = Result<Vec<Decoded>, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let decoder = &self.decoders[self.chunks % self.decoders.len()];
        self.chunks += 1;
        // One that is gone got no chunk after its last one, and so did none of the others.
        decoder.recv().ok()
    }
}

/// Begins to read and decode everything. The head that is reached is known when all items were handed out, or nobody
/// takes them any more.
pub(super) fn begin<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    reader: &'env LogReader,
) -> (Items, ScopedJoinHandle<'scope, Result<Cursor, ReplayError>>) {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let (mut reads, mut decoders) = (Vec::new(), Vec::new());
    for _ in 0..processors.clamp(DECODERS_MIN, DECODERS_MAX) {
        let (read, to_decode) = mpsc::sync_channel(CHUNKS_WAITING_MAX);
        let (decoded, to_fold) = mpsc::sync_channel(CHUNKS_WAITING_MAX);
        scope.spawn(move || decode_chunks(to_decode, decoded));
        reads.push(read);
        decoders.push(to_fold);
    }
    let reading = scope.spawn(move || read_all(reader, reads));
    (Items { decoders, chunks: 0 }, reading)
}

fn decode_chunks(chunks: Receiver<Vec<Read>>, decoded: SyncSender<Result<Vec<Decoded>, ReplayError>>) {
    for chunk in chunks {
        let chunk: Result<Vec<Decoded>, ReplayError> = chunk.into_iter().map(decode).collect();
        let is_last = chunk.is_err();
        // The folding thread may have found an error in an earlier item.
        if decoded.send(chunk).is_err() || is_last {
            return;
        }
    }
}

fn decode(read: Read) -> Result<Decoded, ReplayError> {
    Ok(match read {
        Read::Row(row) => Decoded::Row(row),
        Read::Event(recorded, fact) => Decoded::Event(recorded.into_event(fact).map_err(invalid)?),
    })
}

fn invalid(error: InvalidEvent) -> ReplayError {
    ReplayError::Event {
        revision: error.revision.0,
        reason: error.to_string(),
    }
}

/// A chunk of items that go to the next decoder together.
#[derive(Default)]
struct Chunk {
    items: Vec<Read>,
    bytes: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.items.len() >= CHUNK_ITEMS || self.bytes >= CHUNK_BYTES
    }
}

/// Reads everything, in order; gives back the head that was reached.
fn read_all(reader: &LogReader, decoders: Vec<SyncSender<Vec<Read>>>) -> Result<Cursor, ReplayError> {
    let mut turns = decoders.iter().cycle();
    let mut send = |chunk: Chunk| match turns.next() {
        Some(decoder) => decoder.send(chunk.items).map_err(|_| LogError::Closed),
        None => Ok(()),
    };
    let mut chunk = Chunk::default();
    let epoch = reader.wait(|history| Ok(history.head().epoch))?;
    let mut recall = Recall::new(epoch, LOG_FACTS_BYTES);
    let mut payload = |revision| reader.wait(move |history| payload_at(history, epoch, revision));
    let read_to_the_end = reader.replay(|item| {
        if let Some((read, bytes)) = read(item, &mut recall, &mut payload)? {
            chunk.items.push(read);
            chunk.bytes += bytes;
        }
        if chunk.is_full() {
            send(std::mem::take(&mut chunk))?;
        }
        Ok::<_, ReplayError>(())
    });
    // An item before an error may have one of its own, which then counts.
    send(chunk)?;
    read_to_the_end
}

/// Differences lead on from the facts of the snapshot, and from those of the events before.
fn read(
    item: ReplayItem,
    recall: &mut Recall,
    payload: &mut ReadPayload<'_>,
) -> Result<Option<(Read, usize)>, ReplayError> {
    Ok(match item {
        ReplayItem::Snapshot(_) => None,
        ReplayItem::Row(row) => {
            let bytes = row.len();
            let row = snapshot::decode_row(&row).map_err(|error| ReplayError::Snapshot(error.to_string()))?;
            if let SnapshotRow::Fact { revision, fact, .. } = &row {
                recall.remember(*revision, &fact.bytes);
            }
            Some((Read::Row(row), bytes))
        }
        ReplayItem::Event(stored) => {
            let (recorded, fact) = recall.recorded(stored, payload).map_err(|error| match error {
                RecallError::Log(error) => ReplayError::Log(error),
                RecallError::Event(error) => invalid(error),
            })?;
            let bytes = fact.len();
            Some((Read::Event(recorded, fact), bytes))
        }
    })
}
