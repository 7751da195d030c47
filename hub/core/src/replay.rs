//! From the log to the state: the newest snapshot and the events after it, verified as they are read. It blocks, and
//! runs once, before anything is served. Reading, decoding and folding run at the same time (`decoding.rs`); the
//! caller's thread folds, in the order of the log.

mod decoding;

use std::thread;

use model::{Cursor, Fact};

use self::decoding::{Decoded, Items};
use event_log::{LogError, LogReader};
#[cfg(any(test, feature = "simulated"))]
use fold::FIRST_FOLD_VERSION;
use fold::{self, DerivedKey, ForeignRules, RULES, Restored, Rules, SnapshotRow, State};

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
        /// The problem.
        reason: String,
    },
    /// The snapshot cannot be restored.
    #[error("the snapshot cannot be read by this build: {0}. Use the build that wrote it, or a newer one")]
    Snapshot(String),
    /// Other rules folded it than this build has.
    #[error(transparent)]
    Rules(#[from] ForeignRules),
}

/// The same for a log that no rules took over: of tests, which record events only.
#[cfg(any(test, feature = "simulated"))]
pub fn replay_by_the_first_rules(reader: &LogReader) -> Result<(State, Cursor), ReplayError> {
    replay_by(Rules::of(FIRST_FOLD_VERSION), reader)
}

/// Rebuilds the state at the log's head.
pub fn replay(reader: &LogReader) -> Result<(State, Cursor), ReplayError> {
    replay_by(RULES, reader)
}

fn replay_by(rules: Rules, reader: &LogReader) -> Result<(State, Cursor), ReplayError> {
    thread::scope(|scope| {
        let (items, reading) = decoding::begin(scope, reader);
        let folded = fold_all(rules, items);
        let head = reading
            .join()
            .unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        // A fold that gave up is why the reader found nobody: its reason is the one to tell. The state folded before
        // the reader failed is dropped.
        let (replaying, head) = (folded?, head?);
        Ok((replaying.finish()?, head))
    })
}

/// Folds all items; the reader knows whether that was all.
fn fold_all(rules: Rules, items: Items) -> Result<Replaying, ReplayError> {
    let mut replaying = Replaying {
        rules,
        rows: Vec::new(),
        state: None,
        is_new: true,
        differing: Vec::new(),
    };
    for chunk in items {
        for decoded in chunk? {
            replaying.take(decoded)?;
        }
    }
    Ok(replaying)
}

struct Replaying {
    rules: Rules,
    /// Nothing came yet: a log without anything is of no version.
    is_new: bool,
    rows: Vec<SnapshotRow>,
    state: Option<State>,
    /// Derived objects that the snapshot has otherwise than its facts say.
    differing: Vec<DerivedKey>,
}

impl Replaying {
    fn take(&mut self, decoded: Decoded) -> Result<(), ReplayError> {
        self.is_new = false;
        match decoded {
            Decoded::Row(row) => self.rows.push(row),
            Decoded::Event(event) => {
                let rules = self.rules;
                let state = self.state()?;
                // Other rules say that they take the log over before they record anything.
                if !matches!(event.fact.fact, Fact::FoldVersionChanged { .. }) {
                    rules.fold(state.fold_version())?;
                }
                drop(fold::apply(state, &event));
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
        let restored = State::restore_and_compare(rows);
        let Restored { state, differing } =
            restored.map_err(|error| ReplayError::Snapshot(error.to_string()))?;
        self.differing = differing;
        Ok(state)
    }

    fn finish(mut self) -> Result<State, ReplayError> {
        let (rules, is_new) = (self.rules, self.is_new);
        let version = self.state()?.fold_version();
        if !is_new {
            rules.fold(version)?;
        }
        let mut state = self.state.expect("made above");
        if let Some(first) = self.differing.first() {
            tracing::error!(
                objects = self.differing.len(),
                %first,
                "derived objects in the snapshot do not follow from its facts: they were derived anew, and every member \
                 gets a snapshot. The release that wrote the log had a defect: please report it"
            );
            state.doubt_what_was_told();
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use model::{ClusterId, Clusterset, Epoch, Event, Fact, Revision, SessionId, UnixMillis};

    use super::{
        decoding::{CHUNK_ITEMS, CHUNKS_WAITING_MAX},
        *,
    };
    use crate::snapshot;
    use event_log::{Batch, Log, MemoryDisk, MemoryLog};

    /// More than may wait, so that reading, decoding and folding have to wait for each other.
    const EVENTS: u64 = (CHUNK_ITEMS * (8 * CHUNKS_WAITING_MAX + 3) + 1) as u64;

    fn log() -> MemoryLog {
        let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        MemoryLog::open(&MemoryDisk::default(), &clusterset, epoch).expect("it opens")
    }

    fn event(revision: u64) -> Event {
        Event {
            revision: Revision(revision),
            recorded_at: UnixMillis(revision),
            cluster: Some(ClusterId::new(&format!("gone-{}", revision % 50)).expect("a cluster id")),
            incarnation: Revision(0),
            session: SessionId(0),
            member_sequence: 0,
            fact: wire::encode_fact(&Fact::MemberForgotten {
                operator: "alice".into(),
            }),
            changed_by: None,
        }
    }

    fn append(log: &mut MemoryLog, payloads: Vec<Vec<u8>>) {
        let batch = Batch::new(log.head(), payloads).expect("within the bounds");
        log.append_and_wait(batch).expect("it is durable");
    }

    #[test]
    fn a_log_of_many_chunks_gives_the_state_of_its_events_one_by_one() {
        let (mut log, mut state) = (log(), State::new());
        let events: Vec<Event> = (1..=EVENTS).map(event).collect();
        append(&mut log, events.iter().map(wire::encode_event).collect());
        events
            .iter()
            .for_each(|event| drop(fold::apply(&mut state, event)));
        let (replayed, head) = replay_by_the_first_rules(&log.reader()).expect("it is whole");
        assert_eq!((replayed, head), (state, log.head()));
    }

    #[test]
    fn an_event_that_cannot_be_decoded_ends_the_replay_with_its_revision() {
        let mut log = log();
        let mut payloads: Vec<Vec<u8>> = (1..=EVENTS).map(|n| wire::encode_event(&event(n))).collect();
        payloads.push(b"no event".to_vec());
        payloads.push(wire::encode_event(&event(EVENTS + 2)));
        append(&mut log, payloads);
        let error = replay_by_the_first_rules(&log.reader()).expect_err("it cannot be read");
        assert!(
            matches!(error, ReplayError::Event { revision, .. } if revision == EVENTS + 1),
            "{error}"
        );
    }

    /// A decoder finds the first, and the one that reads finds the second before.
    #[test]
    fn of_two_events_that_cannot_be_decoded_the_first_is_told() {
        let mut log = log();
        let mut broken = event(EVENTS + 1);
        broken.fact.bytes = b"no fact".as_slice().into();
        let mut payloads: Vec<Vec<u8>> = (1..=EVENTS).map(|n| wire::encode_event(&event(n))).collect();
        payloads.extend([wire::encode_event(&broken), b"no event".to_vec()]);
        append(&mut log, payloads);
        let error = replay_by_the_first_rules(&log.reader()).expect_err("it cannot be read");
        assert!(
            matches!(error, ReplayError::Event { revision, .. } if revision == EVENTS + 1),
            "{error}"
        );
    }

    fn taken_over(revision: u64, from: u32, to: u32) -> Event {
        Event {
            cluster: None,
            fact: wire::encode_fact(&Fact::FoldVersionChanged { from, to }),
            ..event(revision)
        }
    }

    /// The outcome of opening a log of these events with a release of version 3.
    fn by_the_third(events: &[Event], snapshot_after: Option<usize>) -> Result<u32, ForeignRules> {
        let (mut log, mut state) = (log(), State::new());
        for (number, event) in events.iter().enumerate() {
            append(&mut log, vec![wire::encode_event(event)]);
            drop(fold::apply(&mut state, event));
            if snapshot_after == Some(number) {
                let rows = snapshot::rows(state.clone());
                log.write_snapshot_and_wait(log.head(), Box::new(rows))
                    .expect("it is durable");
            }
        }
        match replay_by(Rules::of(3), &log.reader()) {
            Ok((state, _)) => Ok(state.fold_version()),
            Err(ReplayError::Rules(foreign)) => Err(foreign),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_log_of_the_version_before_is_folded_and_of_any_other_it_is_refused() {
        let third = Rules::of(3);
        let older = Err(ForeignRules::Older(1, third));
        let newer = Err(ForeignRules::Newer(4, third));
        assert_eq!(
            by_the_third(&[], None),
            Ok(1),
            "a new log is taken over before anything is recorded"
        );
        assert_eq!(by_the_third(&[taken_over(1, 1, 3), event(2)], None), Ok(3));
        assert_eq!(by_the_third(&[taken_over(1, 1, 2), event(2)], None), Ok(2));
        let changed_hands = [taken_over(1, 1, 2), event(2), taken_over(3, 2, 3), event(4)];
        assert_eq!(by_the_third(&changed_hands, None), Ok(3));
        assert_eq!(by_the_third(&[taken_over(1, 1, 4)], None), newer);
        assert_eq!(by_the_third(&[taken_over(1, 1, 4), event(2)], None), newer);
        assert_eq!(by_the_third(&[event(1)], None), older);
        assert_eq!(
            by_the_third(&[event(1)], Some(0)),
            older,
            "also when all of it is in a snapshot"
        );
        let left_out = [event(1), taken_over(2, 1, 2), event(3)];
        assert_eq!(
            by_the_third(&left_out, None),
            older,
            "its first event was folded by the first"
        );
        assert_eq!(
            by_the_third(&left_out, Some(0)),
            Ok(2),
            "a snapshot is derived anew"
        );
        assert_eq!(by_the_third(&left_out, Some(2)), Ok(2));
    }
}
