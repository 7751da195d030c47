//! A batch of events as the engine holds it: frozen bytes, checked against their chain before anybody sees them.

use bytes::Bytes;
use model::{ChainHash, Cursor, Epoch, Revision};

use super::{names::Term, text::Unreadable};

/// Most events in one batch.
pub const BATCH_EVENTS_MAX: usize = 4_096;
/// Most payload bytes in a batch of several events: etcd keeps thousands of entries in memory, whatever their size.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;
/// The largest event. One larger than [`BATCH_BYTES_MAX`] has a batch of its own.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;

const VERSION: u8 = 1;
const BEGINS_SEGMENT: u8 = 1;
const LENGTH_BYTES: usize = 4;
/// Version, flags, term, hash before, hash after, count.
const HEADER_BYTES: usize = 1 + 1 + 8 + 16 + 16 + 4;
const ENCODED_BYTES_MAX: usize = HEADER_BYTES + EVENT_BYTES_MAX + BATCH_EVENTS_MAX * LENGTH_BYTES;

/// Events that become durable together. Its bytes are made once, so every attempt to commit it sends the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineBatch {
    before: Cursor,
    after: Cursor,
    term: Term,
    begins_segment: bool,
    bytes: Bytes,
}

/// The events do not make a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a batch has 1 to {BATCH_EVENTS_MAX} events of {BATCH_BYTES_MAX} bytes together, or one of {EVENT_BYTES_MAX} bytes; not {events} events of {bytes} bytes"
)]
pub struct InvalidEngineBatch {
    /// Number of events.
    pub events: usize,
    /// The bytes of their payloads.
    pub bytes: usize,
}

/// Returns true if so many events with so many payload bytes fit into one batch.
pub(crate) fn fits(events: usize, bytes: usize) -> bool {
    let bytes_max = if events == 1 {
        EVENT_BYTES_MAX
    } else {
        BATCH_BYTES_MAX
    };
    (1..=BATCH_EVENTS_MAX).contains(&events) && bytes <= bytes_max
}

impl EngineBatch {
    /// Chains payloads behind a position.
    pub fn new<'a>(
        before: Cursor,
        term: Term,
        begins_segment: bool,
        payloads: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, InvalidEngineBatch> {
        let (mut events, mut body, mut hash) = (0, Vec::new(), before.hash);
        for payload in payloads {
            events += 1;
            body.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            body.extend_from_slice(payload);
            hash = hash.after(payload);
        }
        let bytes = body.len() - events * LENGTH_BYTES;
        if !fits(events, bytes) {
            return Err(InvalidEngineBatch { events, bytes });
        }
        let after = Cursor {
            epoch: before.epoch,
            revision: Revision(before.revision.0 + events as u64),
            hash,
        };
        let mut encoded = Vec::with_capacity(HEADER_BYTES + body.len());
        encoded.push(VERSION);
        encoded.push(if begins_segment { BEGINS_SEGMENT } else { 0 });
        encoded.extend_from_slice(&term.0.to_be_bytes());
        encoded.extend_from_slice(&before.hash.0);
        encoded.extend_from_slice(&after.hash.0);
        encoded.extend_from_slice(&(events as u32).to_be_bytes());
        encoded.extend_from_slice(&body);
        Ok(Self {
            before,
            after,
            term,
            begins_segment,
            bytes: encoded.into(),
        })
    }

    /// Reads the bytes of the batch whose first event is this one. Lengths, count and chain must be right.
    pub fn decode(epoch: Epoch, first: Revision, bytes: Bytes) -> Result<Self, Unreadable> {
        let header = bytes
            .first_chunk::<HEADER_BYTES>()
            .filter(|_| bytes.len() <= ENCODED_BYTES_MAX);
        let header = header.ok_or_else(|| invalid("its length is impossible"))?;
        match header[0] {
            VERSION => {}
            0 => return Err(invalid("its version does not exist")),
            version => {
                return Err(Unreadable::Newer {
                    what: WHAT,
                    version: version.into(),
                    known: VERSION.into(),
                });
            }
        }
        if header[1] & !BEGINS_SEGMENT != 0 {
            return Err(invalid("it has an unknown flag"));
        }
        let number =
            |from: usize, to: usize| header[from..to].iter().fold(0, |n, &b| (n << 8) | u64::from(b));
        let hash = |from: usize| {
            let mut hash = ChainHash::default();
            hash.0.copy_from_slice(&header[from..from + 16]);
            hash
        };
        let events = number(42, 46);
        let previous = first
            .0
            .checked_sub(1)
            .filter(|previous| previous.checked_add(events).is_some());
        let previous = previous.ok_or_else(|| invalid("its place is impossible"))?;
        let before = Cursor {
            epoch,
            revision: Revision(previous),
            hash: hash(10),
        };
        let batch = Self {
            before,
            after: Cursor {
                revision: Revision(previous + events),
                hash: hash(26),
                ..before
            },
            term: Term(number(2, 10)),
            begins_segment: header[1] == BEGINS_SEGMENT,
            bytes: bytes.clone(),
        };
        batch.check(events)?;
        Ok(batch)
    }

    fn check(&self, events: u64) -> Result<(), Unreadable> {
        let (mut count, mut bytes, mut hash) = (0, 0, self.before.hash);
        for payload in self.payloads() {
            count += 1;
            bytes += payload.len();
            hash = hash.after(&payload);
        }
        if count as u64 != events || HEADER_BYTES + count * LENGTH_BYTES + bytes != self.bytes.len() {
            return Err(invalid("its lengths do not add up"));
        }
        if !fits(count, bytes) {
            return Err(invalid("it is larger than a batch may be"));
        }
        if hash != self.after.hash {
            return Err(invalid("its hash is not that of its events"));
        }
        Ok(())
    }

    /// The position that it follows.
    pub fn before(&self) -> Cursor {
        self.before
    }

    /// The position of its last event.
    pub fn after(&self) -> Cursor {
        self.after
    }

    /// The term in which it was written.
    pub fn term(&self) -> Term {
        self.term
    }

    /// True if a segment of the log begins before it.
    pub fn begins_segment(&self) -> bool {
        self.begins_segment
    }

    /// The bytes that an engine holds.
    pub fn encoded(&self) -> &Bytes {
        &self.bytes
    }

    /// The payloads in order, without copying.
    pub fn payloads(&self) -> impl Iterator<Item = Bytes> + use<> {
        let mut rest = self.bytes.slice(HEADER_BYTES..);
        std::iter::from_fn(move || {
            let length = rest.first_chunk::<LENGTH_BYTES>()?;
            let length = u32::from_be_bytes(*length) as usize;
            if rest.len() - LENGTH_BYTES < length {
                return None;
            }
            let mut payload = rest.split_to(LENGTH_BYTES + length);
            Some(payload.split_off(LENGTH_BYTES))
        })
    }
}

const WHAT: &str = "batch";

fn invalid(why: &'static str) -> Unreadable {
    Unreadable::Invalid { what: WHAT, why }
}
