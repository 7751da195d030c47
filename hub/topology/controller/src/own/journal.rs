//! Owns: the log of topologies that the hub keeps itself, and the ledger that follows from it: what is recorded is durable
//! before the answer.
//! Never: knows an API server; shares the log of the clusterset.

use anyhow::{Context, anyhow};
use shared::model::UnixMillis;
use tokio::sync::oneshot;

use super::{
    rules::event::{Event, Recorded},
    rules::ledger::Ledger,
};
use event_log::{AppendError, Batch, EVENT_BYTES_MAX, Log, LogError, ReplayItem, Retention};

/// A segment is sealed at this size, bytes.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Or at this age, milliseconds, if anything happened in it.
const SEGMENT_AGE_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// Retention of its log: a month, or 256 MB.
const RETENTION: Retention = Retention {
    age_millis: 30 * 24 * 60 * 60 * 1_000,
    bytes: 256 << 20,
};

/// Why an event is not recorded.
#[derive(Debug, thiserror::Error)]
pub enum Unrecorded {
    /// It is larger than an event may be; nothing else is wrong.
    #[error("it takes {0} bytes to record, more than {EVENT_BYTES_MAX}: make the object smaller")]
    TooLarge(usize),
    /// The log takes nothing any more.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

/// The log, and what follows from it.
pub struct Journal {
    log: Box<dyn Log>,
    ledger: Ledger,
}

impl Journal {
    /// Reads a log. It blocks.
    ///
    /// # Errors
    ///
    /// It cannot be read, or another build wrote it.
    pub fn open(log: Box<dyn Log>) -> anyhow::Result<Self> {
        let mut ledger = Ledger::default();
        let took = log.reader().replay(|item| -> Result<(), Replayed> {
            match item {
                ReplayItem::Snapshot(_) => ledger = Ledger::default(),
                ReplayItem::Row(row) => ledger.restore(&row).map_err(Replayed::Unknown)?,
                ReplayItem::Event(event) => {
                    let recorded = Recorded::decode(&event.payload);
                    ledger.fold(
                        recorded
                            .map_err(|why| Replayed::Unknown(format!("event {}: {why}", event.revision)))?,
                    );
                }
            }
            Ok(())
        });
        took.context("the log of topologies cannot be read")?;
        Ok(Self { log, ledger })
    }

    /// The state that follows from all recorded events.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Records an event; it is durable then.
    ///
    /// # Errors
    ///
    /// It is too large, or the log has failed.
    pub async fn record(&mut self, event: Event, at: UnixMillis) -> Result<(), Unrecorded> {
        let recorded = Recorded::new(event, at);
        let payload = recorded.encode().map_err(|why| anyhow!(why))?;
        if payload.len() > EVENT_BYTES_MAX {
            return Err(Unrecorded::TooLarge(payload.len()));
        }
        let batch = Batch::new(self.log.head(), vec![payload]).map_err(anyhow::Error::from)?;
        let (sender, durable) = oneshot::channel();
        // A requester that stopped waiting is gone with the hub.
        self.log
            .append(batch, Box::new(move |outcome| drop(sender.send(outcome))));
        let outcome = durable.await.context("the log of topologies ended")?;
        outcome.map_err(|error: AppendError| anyhow!("the log of topologies takes nothing more: {error}"))?;
        self.ledger.fold(recorded);
        Ok(())
    }

    /// Seals large or old segments, and removes those beyond the retention.
    pub fn tend(&mut self, now: UnixMillis) {
        let stats = self.log.stats();
        let age = now.0.saturating_sub(stats.segment_began_at.0);
        let has_events = self.log.head() != stats.segment_start && self.log.head().revision.0 > 0;
        if has_events && (stats.segment_bytes >= SEGMENT_BYTES || age >= SEGMENT_AGE_MILLIS) {
            let told = |outcome: Result<(), LogError>| {
                if let Err(error) = outcome {
                    tracing::warn!(%error, "a segment of the log of topologies is not sealed; it is tried again");
                }
            };
            self.log
                .seal(now, Box::new(self.ledger.rows().into_iter()), Box::new(told));
            self.log.retain(RETENTION, now);
        }
    }
}

/// Why a replay ended.
#[derive(Debug, thiserror::Error)]
enum Replayed {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}")]
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::rules::event::ClusterName, *};
    use event_log::{MemoryDisk, MemoryLog};
    use shared::model::{Clusterset, Epoch};

    fn open(disk: &MemoryDisk) -> Journal {
        let clusterset = Clusterset::new("example.org", "default").unwrap();
        let epoch = Epoch::default().next(UnixMillis(1), 1);
        Journal::open(Box::new(MemoryLog::open(disk, &clusterset, epoch).unwrap())).unwrap()
    }

    fn settled(generation: i64) -> Event {
        Event::Settled {
            cluster: ClusterName {
                namespace: "ns".to_owned(),
                name: "c".to_owned(),
            },
            generation,
            said: BTreeMap::new(),
        }
    }

    #[tokio::test]
    async fn a_ledger_outlives_its_process_and_its_segments() {
        let disk = MemoryDisk::default();
        let mut journal = open(&disk);
        journal.record(settled(1), UnixMillis(5)).await.unwrap();
        drop(journal);
        let mut journal = open(&disk);
        journal.record(settled(2), UnixMillis(6)).await.unwrap();
        let known = journal.ledger().clone();
        let later = UnixMillis(SEGMENT_AGE_MILLIS + RETENTION.age_millis * 2);
        journal.tend(later);
        drop(journal);
        assert_eq!(*open(&disk).ledger(), known);
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused_and_changes_nothing() {
        let disk = MemoryDisk::default();
        let mut journal = open(&disk);
        let large = Event::FellBack {
            why: "x".repeat(EVENT_BYTES_MAX),
        };
        let refused = journal.record(large, UnixMillis(5)).await;
        assert!(matches!(refused, Err(Unrecorded::TooLarge(_))));
        assert_eq!(*journal.ledger(), Ledger::default());
        journal.record(settled(1), UnixMillis(5)).await.unwrap();
    }
}
