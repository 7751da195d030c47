//! Owns: the figures of a log's history: bytes for each event, time for each gigabyte, number of differences.
//! Never: reads a log.

use std::fmt;

use shared::{
    model::{Revision, UnixMillis},
    wire::{self, InvalidEvent, StoredFact},
};

use crate::log::{Contents, StoredEvent};

const GIGABYTE: u64 = 1_000_000_000;
/// Least size of the history for a forecast: a store takes that much for a few events, too.
const FORETOLD_BYTES_MIN: u64 = 16 * 1024 * 1024;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The history that is kept of the current epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Figures {
    first: Revision,
    last: Revision,
    /// From the first event that is kept to the last.
    millis: u64,
    /// Bytes of all segments that have events of it.
    bytes: u64,
    newest: u64,
    newest_payload_bytes: u64,
    newest_differences: u64,
}

impl Figures {
    /// The figures of a log; none of an epoch without an event.
    pub(super) fn of(log: &Contents) -> Result<Option<Self>, InvalidEvent> {
        let (Some(first), Some(last)) = (&log.first, log.newest.last()) else {
            return Ok(None);
        };
        let began: UnixMillis = recorded_at(first)?;
        let mut differences = 0;
        for stored in &log.newest {
            let recorded = wire::parse_event(stored.revision, stored.payload.clone().into())?;
            differences += u64::from(matches!(recorded.fact(), StoredFact::Over(_)));
        }
        // An epoch may have begun within the oldest segment that has events of it: that one is counted whole.
        let older = log
            .segments
            .iter()
            .rposition(|segment| segment.start.epoch < log.head.0);
        let segments = &log.segments[older.unwrap_or(0)..];
        Ok(Some(Self {
            first: first.revision,
            last: last.revision,
            millis: recorded_at(last)?.0.saturating_sub(began.0),
            bytes: segments.iter().map(|segment| segment.bytes).sum(),
            newest: log.newest.len() as u64,
            newest_payload_bytes: log.newest.iter().map(|stored| stored.payload.len() as u64).sum(),
            newest_differences: differences,
        }))
    }

    fn events(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }
}

fn recorded_at(stored: &StoredEvent) -> Result<UnixMillis, InvalidEvent> {
    let recorded = wire::parse_event(stored.revision, stored.payload.clone().into())?;
    Ok(recorded.recorded_at())
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            last,
            millis,
            bytes,
            newest,
            newest_payload_bytes,
            newest_differences,
        } = *self;
        let days = |millis: f64| millis / DAY_MILLIS as f64;
        let time = days(millis as f64);
        write!(f, "history: revisions {first} to {last} in {time:.2} days, ")?;
        if bytes < FORETOLD_BYTES_MIN {
            write!(f, "too little to say how much 1 GB holds; ")?;
        } else {
            let per_gigabyte = GIGABYTE as f64 / bytes as f64;
            let (each, events) = (bytes / self.events(), self.events() as f64 * per_gigabyte);
            write!(
                f,
                "{each} bytes on disk for each, snapshots included; at this rate 1 GB holds {events:.0} events, {:.2} \
                 days; ",
                days(millis as f64 * per_gigabyte)
            )?;
        }
        let each = newest_payload_bytes / newest.max(1);
        write!(
            f,
            "of the newest {newest} events {newest_differences} are stored as differences, and one takes {each} payload \
             bytes"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_holds_as_much_as_the_rate_says() {
        let figures = Figures {
            first: Revision(1_001),
            last: Revision(2_000),
            millis: DAY_MILLIS,
            bytes: 250_000_000,
            newest: 1_000,
            newest_payload_bytes: 230_400,
            newest_differences: 960,
        };
        assert_eq!(
            figures.to_string(),
            "history: revisions 1001 to 2000 in 1.00 days, 250000 bytes on disk for each, snapshots included; at this \
             rate 1 GB holds 4000 events, 4.00 days; of the newest 1000 events 960 are stored as differences, and one \
             takes 230 payload bytes"
        );
        let young = Figures {
            bytes: FORETOLD_BYTES_MIN - 1,
            ..figures
        };
        assert_eq!(
            young.to_string(),
            "history: revisions 1001 to 2000 in 1.00 days, too little to say how much 1 GB holds; of the newest 1000 \
             events 960 are stored as differences, and one takes 230 payload bytes"
        );
    }
}
