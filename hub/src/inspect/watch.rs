//! A watch: every wanted event once, in order, only what is durable, until the client goes away.
//! The client pulls: one that reads slowly costs one page of the log, and is never skipped over.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use proto::v1;
use shared::{
    model::{ChainHash, ClusterId, Epoch, Event, Fact, Revision},
    process::Backoff,
    tls::PeerIdentity,
    wire,
};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_stream::Stream;
use tonic::{Code, Status};

use super::{
    Inspection, MEMBER_WATCHES_MAX, OPERATOR_WATCHES_MAX, READER_WATCHES_MAX, WATCHES_OF_ONE_MAX,
    access::{self, Caller},
    filter::Filter,
    metrics::OpenWatch,
    new_epoch,
    seek::OLDEST,
};
use crate::log::Budget;

/// Bound of a watch's memory.
const READ: Budget = Budget {
    events: 256,
    bytes: 256 * 1024,
};
/// Waits between tries while too many reads of the log are waiting.
pub(super) const BUSY: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(2));

/// One client's watch.
pub(super) struct Watch {
    inspection: Inspection,
    filter: Filter,
    /// The member whose certificate it is: it ends with the membership.
    member: Option<ClusterId>,
    caller: Caller,
    /// The caller: the watch ends with its key and its connection.
    peer: Arc<PeerIdentity>,
    epoch: Epoch,
    /// The next revision to look at.
    next: Revision,
    /// The head when it began.
    began_at: Revision,
    page: VecDeque<(Event, ChainHash)>,
    changed: watch::Receiver<u64>,
    /// Sent after the last message; nothing follows it.
    last_word: Option<Status>,
    ended: bool,
    _place: Place,
    _open: OpenWatch,
}

impl Watch {
    /// Begins a watch, if there is a place for it.
    pub(super) async fn begin(
        inspection: &Inspection,
        caller: Caller,
        peer: Arc<PeerIdentity>,
        request: v1::WatchEventsRequest,
    ) -> Result<Self, Status> {
        let filter = Filter::from_proto(request.filter, caller.sight())?;
        let place = place(inspection, &caller)?;
        // In this order: what is published after the subscription wakes it.
        let changed = inspection.view.subscribe();
        let head = inspection.view.read().head();
        let after_head = head.revision.next();
        let turn = inspection.turns.of(&caller).await;
        let (epoch, _) = inspection.epoch_of(&request.epoch, head.epoch).await?;
        drop(turn);
        let is_current = epoch == head.epoch;
        // An earlier epoch has ended: what is read of it is what it has.
        let begins = if is_current { after_head } else { OLDEST };
        let next = Revision(request.from_revision.unwrap_or(begins.0));
        if is_current && next > after_head {
            return Err(Status::out_of_range(format!(
                "revision {next} does not exist yet: the head of epoch {} is {}. If the revision was seen, it was \
                 in an epoch before this one: name that one, or watch from 0",
                head.epoch, head.revision
            )));
        }
        Ok(Self {
            inspection: inspection.clone(),
            filter,
            member: caller.cluster().cloned(),
            caller,
            peer,
            epoch,
            next,
            began_at: head.revision,
            page: VecDeque::new(),
            changed,
            last_word: None,
            ended: false,
            _place: place,
            _open: inspection.metrics.watch(),
        })
    }

    /// The answers, made as they are read.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send {
        futures::stream::unfold(self, |mut watch| async move {
            if watch.ended {
                return None;
            }
            let item = watch.next_wanted().await;
            watch.ended = item.is_err();
            Some((item, watch))
        })
    }

    async fn next_wanted(&mut self) -> Result<v1::WatchEventsResponse, Status> {
        loop {
            while let Some((event, hash)) = self.page.pop_front() {
                self.next = event.revision.next();
                self.end_with_membership(&event);
                self.end_with_key(&event);
                if self.filter.matches(&event) {
                    self.inspection.metrics.event_watched();
                    let event = Some(wire::event_to_view(&event, hash));
                    return Ok(v1::WatchEventsResponse {
                        epoch: self.epoch.to_string(),
                        event,
                    });
                }
            }
            if let Some(last_word) = self.last_word.take() {
                return Err(last_word);
            }
            let (drain, lifetime) = (self.inspection.drain.clone(), self.peer.lifetime.clone());
            tokio::select! {
                biased;
                () = drain.cancelled() => return Err(self.drained()),
                ended = lifetime.ended() => return Err(ended),
                filled = self.fill() => filled?,
            }
        }
    }

    /// Waits for events behind the position and reads a page of them.
    async fn fill(&mut self) -> Result<(), Status> {
        loop {
            self.changed.borrow_and_update();
            let head = self.inspection.view.read().head();
            let same_epoch = head.epoch == self.epoch;
            if !same_epoch || head.revision >= self.next {
                self.page = self.read().await?.into();
                if !self.page.is_empty() {
                    return Ok(());
                }
                if !same_epoch {
                    return Err(new_epoch(head.epoch));
                }
            }
            if self.changed.changed().await.is_err() {
                return Err(self.drained());
            }
        }
    }

    /// Too many readers are no reason to end a watch: it tries again.
    async fn read(&self) -> Result<Vec<(Event, ChainHash)>, Status> {
        let mut busy = BUSY;
        loop {
            let turn = self.inspection.turns.of(&self.caller).await;
            let read = self.inspection.read_events(self.epoch, self.next, READ).await;
            drop(turn);
            match read {
                Ok(page) => return Ok(page.events),
                Err(status) if status.code() == Code::ResourceExhausted => {
                    tokio::time::sleep(busy.failed(rand::random())).await;
                }
                Err(status) => return Err(status),
            }
        }
    }

    /// A member reads the end of its own membership, and nothing after it.
    fn end_with_membership(&mut self, event: &Event) {
        let ends = matches!(event.fact.fact, Fact::MemberEvicted { .. } | Fact::MemberLeft);
        if ends && event.revision > self.began_at && self.member.is_some() && event.cluster == self.member {
            self.page.clear();
            self.last_word = Some(Status::permission_denied(format!(
                "the membership whose certificate this is ended at revision {}",
                event.revision
            )));
        }
    }

    /// Nobody reads on with a key that is revoked.
    fn end_with_key(&mut self, event: &Event) {
        let revoked = match event.fact.fact {
            Fact::MemberKeyRevoked { key, .. } | Fact::OperatorKeyRevoked { key, .. } => key,
            _ => return,
        };
        if revoked == self.peer.key_fingerprint {
            self.page.clear();
            self.last_word = Some(Status::permission_denied(access::revoked_key(revoked)));
        }
    }

    fn drained(&self) -> Status {
        Status::unavailable(format!(
            "the hub is shutting down: watch again from revision {}",
            self.next
        ))
    }
}

/// A place among the watches of the caller, where it has a share, and one among those of all of its kind.
type Place = (Option<OwnedSemaphorePermit>, OwnedSemaphorePermit);

fn place(inspection: &Inspection, caller: &Caller) -> Result<Place, Status> {
    let own = match caller {
        Caller::Operator(_) => None,
        Caller::Reader(_) | Caller::Member(_) => {
            let own = inspection.watches_of_one.places(caller).try_acquire_owned();
            Some(own.map_err(|_| {
                Status::resource_exhausted(format!(
                    "{WATCHES_OF_ONE_MAX} watches with this certificate's identity are open, as many as one may have: close \
                     one, or read pages with EventLog/List"
                ))
            })?)
        }
    };
    let (places, max) = match caller {
        Caller::Operator(_) => (&inspection.operator_watches, OPERATOR_WATCHES_MAX),
        Caller::Reader(_) => (&inspection.reader_watches, READER_WATCHES_MAX),
        Caller::Member(_) => (&inspection.member_watches, MEMBER_WATCHES_MAX),
    };
    let place = places.clone().try_acquire_owned().map_err(|_| {
        Status::resource_exhausted(format!(
            "{max} watches are open, as many as there may be: close one, or read pages with EventLog/List"
        ))
    })?;
    Ok((own, place))
}
