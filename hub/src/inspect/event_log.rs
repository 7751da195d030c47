//! `EventLog`: the history in pages, and the beginning of a watch.
//! One call reads a bounded part of the log; a filter that matches little costs more calls, never a longer one.

use std::pin::Pin;

use prost::Message as _;
use prost_types::Timestamp;
use proto::v1::{self, event_log_server::EventLog};
use shared::{
    model::{Epoch, Revision, UnixMillis},
    tls, wire,
};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::{
    Inspection, Sight, access::Need, backup::Backup, filter::Filter, log_status, new_epoch, recall_status,
    seek::OLDEST, watch::Watch,
};
use crate::{
    log::Budget,
    recall::{self, Page},
};

/// Most events that one answer holds.
pub(super) const LIST_EVENTS_MAX: usize = 1_000;
/// Events in an answer unless another number is asked for.
const LIST_EVENTS_DEFAULT: usize = 100;
/// An answer that has this many bytes takes no further event.
const LIST_BYTES: usize = 2 * 1024 * 1024;
/// Events that one call looks at, wanted or not.
pub(super) const LIST_SCAN_MAX: usize = 20_000;
/// The word by which a request means the oldest epoch of the log.
const OLDEST_EPOCH: &str = "oldest";
/// Longest part of an unknown epoch that a refusal repeats, in characters.
const EPOCH_CHARACTERS_MAX: usize = 80;
/// The last revision of an earlier epoch whose end was not reached.
const UNKNOWN_END: Revision = Revision(0);
/// Bound of one read.
const READ: Budget = Budget {
    events: 1_024,
    bytes: 512 * 1024,
};

const _: () = assert!(
    LIST_BYTES + 2 * shared::model::fact::FACT_BYTES_MAX <= shared::model::sync::MESSAGE_BYTES_MAX,
    "the last event, which may be the largest, must fit too"
);

#[tonic::async_trait]
impl EventLog for Inspection {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send>>;

    type BackupStream = Pin<Box<dyn Stream<Item = Result<v1::BackupPart, Status>> + Send>>;

    async fn list(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let listed = async {
            let caller = self.admit(&request, &request.get_ref().clusterset, Need::Read)?;
            // A caller that waits for a revision delays no other answer.
            self.at_least(request.get_ref().at_least_revision).await?;
            let _turn = self.turns.of(&caller).await;
            self.list_events(request.into_inner(), caller.sight()).await
        };
        self.counted("EventLog/List", listed).await
    }

    async fn watch(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let begun = async {
            let caller = self.admit(&request, &request.get_ref().clusterset, Need::Read)?;
            let peer = tls::peer(&request)?;
            let watch = Watch::begin(self, caller, peer, request.into_inner()).await?;
            Ok(Box::pin(watch.into_stream()) as Self::WatchStream)
        };
        self.counted("EventLog/Watch", begun).await
    }

    async fn backup(
        &self,
        request: Request<v1::BackupRequest>,
    ) -> Result<Response<Self::BackupStream>, Status> {
        let begun = async {
            self.admit(&request, &request.get_ref().clusterset, Need::Copy)?;
            let backup = Backup::begin(self, tls::peer(&request)?).await?;
            Ok(Box::pin(backup.into_stream()) as Self::BackupStream)
        };
        self.counted("EventLog/Backup", begun).await
    }
}

impl Inspection {
    pub(super) async fn list_events(
        &self,
        request: v1::ListEventsRequest,
        sight: Sight,
    ) -> Result<v1::ListEventsResponse, Status> {
        let from = self.first_wanted(&request)?;
        let filter = Filter::from_proto(request.filter, sight)?;
        let limit = limit(request.limit)?;
        let current = self.view.read().head().epoch;
        let (epoch, epochs) = self.epoch_of(&request.epoch, current).await?;
        let mut from = match from {
            First::At(revision) => revision,
            First::Since(at) => self.first_since(epoch, at).await?,
        };
        let mut next = from;
        let (mut events, mut bytes, mut scanned) = (Vec::new(), 0, 0);
        let head = loop {
            let page = self.read_events(epoch, next, READ).await?;
            if page.head.epoch != current {
                return Err(new_epoch(page.head.epoch));
            }
            if page.events.is_empty() {
                // For an earlier epoch this is the end, whatever the head of the current one is.
                break if epoch == current {
                    page.head.revision
                } else {
                    Revision(next.0.saturating_sub(1))
                };
            }
            // The oldest that is kept was asked for.
            if from == OLDEST {
                from = page.events[0].0.revision;
            }
            for (event, hash) in page.events {
                (next, scanned) = (event.revision.next(), scanned + 1);
                if filter.matches(&event) {
                    let shown = wire::event_to_view(&event, hash);
                    bytes += shown.encoded_len();
                    events.push(shown);
                }
                if events.len() >= limit || bytes >= LIST_BYTES {
                    break;
                }
            }
            if events.len() >= limit || bytes >= LIST_BYTES || scanned >= LIST_SCAN_MAX {
                break if epoch == current {
                    page.head.revision
                } else {
                    UNKNOWN_END
                };
            }
        };
        Ok(v1::ListEventsResponse {
            epoch: epoch.to_string(),
            events,
            next_revision: if next > head && head != UNKNOWN_END {
                0
            } else {
                next.0
            },
            head_revision: head.0,
            from_revision: from.0,
            answered_by: self.answered_by(self.view.read().head().revision),
            epochs: epochs.iter().map(Epoch::to_string).collect(),
        })
    }

    /// The epoch that a request names, and all there are if it names one.
    pub(super) async fn epoch_of(&self, named: &str, current: Epoch) -> Result<(Epoch, Vec<Epoch>), Status> {
        if named.is_empty() {
            return Ok((current, Vec::new()));
        }
        let read = self.reader.ask(|history| history.epochs());
        let epochs = read.await.map_err(log_status)?;
        let epoch = if named == OLDEST_EPOCH {
            epochs.first().copied()
        } else {
            let named = named.parse().ok();
            named.filter(|epoch| epochs.contains(epoch))
        };
        let epoch = epoch.ok_or_else(|| {
            let known: Vec<String> = epochs.iter().map(Epoch::to_string).collect();
            let named: String = named.chars().take(EPOCH_CHARACTERS_MAX).collect();
            Status::not_found(format!(
                "this log has no epoch {named:?}; it has {}",
                known.join(", ")
            ))
        })?;
        Ok((epoch, epochs))
    }

    /// The position at which a request wants to begin.
    fn first_wanted(&self, request: &v1::ListEventsRequest) -> Result<First, Status> {
        let v1::ListEventsRequest {
            from_revision,
            since,
            since_millis_ago,
            ..
        } = request;
        match (*from_revision, since, *since_millis_ago) {
            (revision, None, 0) => Ok(First::At(Revision(revision))),
            (0, Some(since), 0) => Ok(First::Since(millis(since)?)),
            (0, None, ago) => Ok(First::Since(UnixMillis(self.clock.wall().0.saturating_sub(ago)))),
            _ => Err(Status::invalid_argument(
                "from_revision, since and since_millis_ago say the same in different ways: give one of them",
            )),
        }
    }

    /// Durable events from a revision on, with whole facts.
    pub(super) async fn read_events(
        &self,
        epoch: Epoch,
        from: Revision,
        budget: Budget,
    ) -> Result<Page, Status> {
        let read = self
            .reader
            .ask(move |history| Ok(recall::read(history, epoch, from, budget)));
        read.await.map_err(log_status)?.map_err(recall_status)
    }
}

/// The first event of a page.
enum First {
    /// At this revision.
    At(Revision),
    /// At the first event that was recorded then or later.
    Since(UnixMillis),
}

/// A time in a request. Before 1970 nothing was recorded.
fn millis(at: &Timestamp) -> Result<UnixMillis, Status> {
    let nanos = u64::try_from(at.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    let nanos = nanos.ok_or_else(|| {
        Status::invalid_argument(format!("since has {} nanos; use 0 to 999999999", at.nanos))
    })?;
    let seconds = u64::try_from(at.seconds).unwrap_or(0);
    // An event recorded within the millisecond before is not since then.
    Ok(UnixMillis(
        seconds
            .saturating_mul(1_000)
            .saturating_add(nanos.div_ceil(1_000_000)),
    ))
}

fn limit(asked: u32) -> Result<usize, Status> {
    match usize::try_from(asked).unwrap_or(usize::MAX) {
        0 => Ok(LIST_EVENTS_DEFAULT),
        limit if limit <= LIST_EVENTS_MAX => Ok(limit),
        limit => Err(Status::invalid_argument(format!(
            "limit {limit} is above {LIST_EVENTS_MAX}: ask for pages, passing next_revision on as from_revision"
        ))),
    }
}
