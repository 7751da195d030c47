//! Finds events in the history: the first since a time, and those at given revisions. It asks the log for single
//! events, a bounded number of them, and knows no more of the log than that.

use prost::Message as _;
use proto::v1;
use shared::{
    model::{ChainHash, Epoch, Event, Revision, UnixMillis},
    wire,
};
use tonic::{Code, Status};

use super::{Inspection, Shown, Sight, log_status, recall_status};
use crate::log::{Budget, StoredEvent};

/// Most events that an explanation shows.
pub(super) const EVENTS_SHOWN_MAX: usize = 50;
/// Most bytes that they have together.
pub(super) const EVENTS_SHOWN_BYTES: usize = 512 * 1024;
/// Asks for the oldest event that is kept.
pub(super) const OLDEST: Revision = Revision(0);
/// Behind every revision that there can be.
const REVISIONS_END: Revision = Revision(1 << 62);
/// One event, however large it is.
const ONE: Budget = Budget { events: 1, bytes: 0 };

/// The events behind an explanation.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// Oldest first.
    pub(super) events: Vec<v1::Event>,
    /// Number of events omitted, as the answer has no room for them.
    pub(super) left_out: usize,
    /// Number of events omitted, as the log no longer reaches back to them.
    pub(super) out_of_reach: usize,
}

impl Inspection {
    /// The first revision that was recorded at `at` or later; the one after the head, if none was. It halves, so that
    /// it reads as many events as a revision has bits. Recorded time never goes back within a log; if it does
    /// nevertheless, the resulting event was recorded at `at` or later, and the one before it was not.
    pub(super) async fn first_since(&self, epoch: Epoch, at: UnixMillis) -> Result<Revision, Status> {
        let head = self.view.read().head();
        // The end of an earlier epoch is found by halving, because nothing is behind it.
        let mut behind = if epoch == head.epoch {
            head.revision.next()
        } else {
            REVISIONS_END
        };
        let oldest = self.event_from(epoch, OLDEST).await?;
        let mut first = oldest.map_or(behind, |oldest| oldest.revision);
        while first < behind {
            let middle = Revision(first.0 + (behind.0 - first.0) / 2);
            let found = match self.event_from(epoch, middle).await {
                // It was removed a moment ago.
                Err(status) if status.code() == Code::OutOfRange => {
                    first = middle.next();
                    continue;
                }
                found => found?,
            };
            match found {
                None => behind = middle,
                // Events that the log no longer has are older than those it has.
                Some(found) if found.revision > middle => first = found.revision.min(behind),
                Some(found) => {
                    let found = wire::parse_event(found.revision, found.payload.into());
                    let found = found.map_err(|error| recall_status(error.into()))?;
                    if found.recorded_at() >= at {
                        behind = middle;
                    } else {
                        first = middle.next();
                    }
                }
            }
        }
        Ok(first)
    }

    /// The first event that the log has at a revision or after it.
    async fn event_from(&self, epoch: Epoch, from: Revision) -> Result<Option<StoredEvent>, Status> {
        let read = self.reader.ask(move |history| history.read(epoch, from, ONE));
        Ok(read.await.map_err(log_status)?.events.pop())
    }

    /// The events at `revisions`, the most important first, as far as the log reaches and `room` bytes hold them.
    /// Events that do not concern the reader are not even counted.
    pub(super) async fn evidence(
        &self,
        epoch: Epoch,
        revisions: &[Revision],
        room: usize,
        sight: &Sight,
    ) -> Result<Evidence, Status> {
        let room = room.min(EVENTS_SHOWN_BYTES);
        let (mut evidence, mut bytes) = (Evidence::default(), 0);
        for (index, &revision) in revisions.iter().enumerate() {
            if evidence.events.len() >= EVENTS_SHOWN_MAX {
                evidence.left_out += revisions.len() - index;
                break;
            }
            let Some((event, hash)) = self.event_at(epoch, revision).await? else {
                evidence.out_of_reach += 1;
                continue;
            };
            if !sight.shows(Shown::Event(&event)) {
                continue;
            }
            let event = wire::event_to_view(&event, hash);
            let size = event.encoded_len();
            if bytes + size > room {
                evidence.left_out += 1;
                continue;
            }
            bytes += size;
            evidence.events.push(event);
        }
        evidence.events.sort_by_key(|event| event.revision);
        Ok(evidence)
    }

    /// The event at a revision; `None`: the log no longer has it. The start of an epoch, at revision 0, was recorded in
    /// the one before.
    async fn event_at(&self, epoch: Epoch, revision: Revision) -> Result<Option<(Event, ChainHash)>, Status> {
        if revision == Revision(0) {
            return Ok(None);
        }
        let mut page = match self.read_events(epoch, revision, ONE).await {
            Err(status) if matches!(status.code(), Code::Aborted | Code::OutOfRange) => return Ok(None),
            page => page?,
        };
        Ok(page.events.pop().filter(|(event, _)| event.revision == revision))
    }
}
