//! Owns: reading recorded events with their whole facts, where the log has a fact as the difference to the one before it
//! ([`crate::writer`] says which it stores so); and checking that each difference leads to the fact that was recorded.
//! Never: keeps more of what it has read than a bound; what it has not kept it reads again.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{ChainHash, Cursor, Epoch, Event, Revision};
use wire::{self, InvalidEvent, RecordedEvent, StoredFact};

use event_log::{Budget, Corruption, History, LogError, PayloadCheck, PayloadKind, StoredEvent};

/// Most differences in a row: a fact is stored whole at least every 32nd time, so that reading one event takes no more
/// than so many others.
pub const DIFFERENCES_MAX: u8 = 31;

/// Most bytes of facts that are kept while a page is read.
const PAGE_FACTS_BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of facts that are kept while a whole log is.
pub const LOG_FACTS_BYTES: usize = 64 * 1024 * 1024;
/// Facts of fewer bytes are not kept: hardly ever does a difference lead on from one.
const KEPT_BYTES_MIN: usize = 32;
/// Memory of an entry besides its bytes.
const ENTRY_BYTES: usize = 64;
/// One event, however large it is.
const ONE: Budget = Budget { events: 1, bytes: 0 };

/// Why an event could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// The log could not be read, or what was read is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It is no event that this build knows.
    #[error(transparent)]
    Event(#[from] InvalidEvent),
}

impl From<Corruption> for RecallError {
    fn from(corruption: Corruption) -> Self {
        Self::Log(corruption.into())
    }
}

/// Gives the payload of an earlier event of the same epoch, `None` if the log does not have it.
pub type ReadPayload<'a> = dyn FnMut(Revision) -> Result<Option<Vec<u8>>, LogError> + 'a;

/// The facts read last, as bases of later differences.
#[derive(Debug)]
pub struct Recall {
    epoch: Epoch,
    facts: BTreeMap<Revision, Bytes>,
    bytes: usize,
    bytes_max: usize,
}

impl Recall {
    /// Nothing was read yet, and at most so many bytes of facts of this epoch are kept.
    pub fn new(epoch: Epoch, bytes_max: usize) -> Self {
        Self {
            epoch,
            facts: BTreeMap::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// The epoch whose events it reads.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Keeps the fact that the event at a revision recorded; the oldest go.
    pub fn remember(&mut self, revision: Revision, fact: &Bytes) {
        if fact.len() < KEPT_BYTES_MIN || revision == Revision(0) {
            return;
        }
        self.take(revision);
        self.bytes += fact.len() + ENTRY_BYTES;
        self.facts.insert(revision, fact.clone());
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.facts.pop_first()
        {
            self.bytes -= oldest.len() + ENTRY_BYTES;
        }
    }

    /// Gives a fact away: one difference at most leads on from it.
    fn take(&mut self, revision: Revision) -> Option<Bytes> {
        let fact = self.facts.remove(&revision)?;
        self.bytes -= fact.len() + ENTRY_BYTES;
        Some(fact)
    }

    /// An event with its whole fact.
    pub fn event(&mut self, stored: StoredEvent, read: &mut ReadPayload<'_>) -> Result<Event, RecallError> {
        let (recorded, fact) = self.recorded(stored, read)?;
        Ok(recorded.into_event(fact)?)
    }

    /// The same for who decodes it elsewhere: what was recorded, and its whole fact.
    pub fn recorded(
        &mut self,
        stored: StoredEvent,
        read: &mut ReadPayload<'_>,
    ) -> Result<(RecordedEvent, Bytes), RecallError> {
        let recorded = wire::parse_event(stored.revision, stored.payload.into())?;
        let fact = self.fact(&recorded, read)?;
        Ok((recorded, fact))
    }

    /// The whole encoded fact of an event, which is kept.
    fn fact(&mut self, recorded: &RecordedEvent, read: &mut ReadPayload<'_>) -> Result<Bytes, RecallError> {
        let fact = match recorded.fact() {
            StoredFact::Whole(fact) => fact,
            StoredFact::Over(base) => {
                let base = self.base(recorded.revision(), base, read)?;
                self.restore(recorded, &base)?
            }
        };
        self.remember(recorded.revision(), &fact);
        Ok(fact)
    }

    /// The fact that the event at `base` recorded, for the one at `revision`.
    fn base(
        &mut self,
        revision: Revision,
        mut base: Revision,
        read: &mut ReadPayload<'_>,
    ) -> Result<Bytes, RecallError> {
        let damaged = |what: String| Corruption::event(self.epoch, revision, what);
        let mut between: Vec<RecordedEvent> = Vec::new();
        let mut fact = loop {
            if between.len() > usize::from(DIFFERENCES_MAX) {
                let what =
                    format!("its fact is more than {DIFFERENCES_MAX} differences away from a whole one");
                return Err(damaged(what).into());
            }
            if let Some(fact) = self.facts.get(&base) {
                break fact.clone();
            }
            let missing = || {
                damaged(format!(
                    "its fact is a difference to event {base}, which is missing"
                ))
            };
            let payload = read(base)?.ok_or_else(missing)?;
            let recorded = wire::parse_event(base, payload.into())?;
            match recorded.fact() {
                StoredFact::Whole(fact) => break fact,
                StoredFact::Over(next) => {
                    between.push(recorded);
                    base = next;
                }
            }
        };
        self.take(base);
        while let Some(next) = between.pop() {
            fact = self.restore(&next, &fact)?;
        }
        Ok(fact)
    }

    fn restore(&self, recorded: &RecordedEvent, base: &[u8]) -> Result<Bytes, Corruption> {
        let restored = recorded.restore(base);
        restored.map_err(|invalid| Corruption::event(self.epoch, invalid.revision, invalid.problem))
    }
}

/// Some events in order, each with the chain hash at it, and the log's durable head at the time they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Events from the revision asked for; empty if there is none yet.
    pub events: Vec<(Event, ChainHash)>,
    /// The log's durable head.
    pub head: Cursor,
}

/// As [`History::read`], with whole facts: the budget bounds both, the bytes read and the result. A page ends before an
/// event that cannot be read, and the next one says why.
pub fn read(
    history: &dyn History,
    epoch: Epoch,
    from: Revision,
    budget: Budget,
) -> Result<Page, RecallError> {
    loop {
        let page = history.read(epoch, from, budget)?;
        let first = page.events.first().map(|event| event.revision);
        match (whole(history, epoch, page, budget.bytes), first) {
            // The segment went while it was read. The oldest has changed since it was requested.
            (Err(RecallError::Log(LogError::Forgotten { asked, .. })), Some(first)) => {
                let oldest = history.first_revision(epoch);
                if oldest <= first {
                    let what = format!("its fact is a difference to event {asked}, which is no longer there");
                    return Err(Corruption::event(epoch, first, what).into());
                }
                if from != Revision(0) {
                    let asked = from;
                    return Err(LogError::Forgotten { epoch, asked, oldest }.into());
                }
            }
            (read, _) => return read,
        }
    }
}

fn whole(
    history: &dyn History,
    epoch: Epoch,
    page: event_log::Page,
    bytes_max: usize,
) -> Result<Page, RecallError> {
    let mut recall = Recall::new(epoch, PAGE_FACTS_BYTES);
    let (mut events, mut bytes) = (Vec::with_capacity(page.events.len()), 0);
    for stored in page.events {
        let hash = stored.hash;
        match recall.event(stored, &mut |revision| payload_at(history, epoch, revision)) {
            Ok(event) => {
                bytes += event.fact.bytes.len();
                events.push((event, hash));
            }
            Err(error) if events.is_empty() => return Err(error),
            Err(_) => break,
        }
        if bytes > bytes_max {
            break;
        }
    }
    let head = page.head;
    Ok(Page { events, head })
}

/// The payload stored at a revision, if the log has it.
pub fn payload_at(
    history: &dyn History,
    epoch: Epoch,
    revision: Revision,
) -> Result<Option<Vec<u8>>, LogError> {
    let found = history.read(epoch, revision, ONE)?.events.pop();
    let found = found.filter(|found| found.revision == revision);
    Ok(found.map(|found| found.payload))
}

/// The check of every difference, for `log verify`.
#[derive(Debug)]
pub struct DifferenceCheck(Recall);

impl Default for DifferenceCheck {
    fn default() -> Self {
        Self(Recall::new(Epoch::default(), LOG_FACTS_BYTES))
    }
}

impl PayloadCheck for DifferenceCheck {
    fn check(
        &mut self,
        epoch: Epoch,
        segment_first: Revision,
        event: StoredEvent,
        read: &mut ReadPayload<'_>,
    ) -> Result<PayloadKind, LogError> {
        if self.0.epoch != epoch {
            self.0 = Recall::new(epoch, LOG_FACTS_BYTES);
        }
        let revision = event.revision;
        let checked = wire::parse_event(revision, event.payload.into())
            .map_err(RecallError::from)
            .and_then(|recorded| {
                self.0.fact(&recorded, read)?;
                Ok(recorded.fact())
            });
        match checked {
            Ok(StoredFact::Whole(_)) => Ok(PayloadKind::Whole),
            Ok(StoredFact::Over(base)) if base < segment_first => {
                let what =
                    format!("its fact is a difference to event {base}, which lies in an earlier segment");
                Err(Corruption::event(epoch, revision, what).into())
            }
            Ok(StoredFact::Over(_)) => Ok(PayloadKind::Difference),
            Err(RecallError::Log(error)) => Err(error),
            Err(RecallError::Event(invalid)) => {
                Err(Corruption::event(epoch, invalid.revision, invalid.problem).into())
            }
        }
    }
}
