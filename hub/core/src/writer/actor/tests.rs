//! The writer's steps: what is shown and answered when, and when a snapshot is due.

use model::{ClusterId, Clusterset, Epoch, Revision, UnixMillis};

use super::*;
use crate::replay;
use event_log::{Faults, Limits, MemoryDisk, MemoryLog, Retention};
use fold::Command;

mod shared;

const AT: Moment = Moment {
    micros: 1_000_000,
    wall: UnixMillis(2_000),
};

/// A writer over what the disk holds, stepped by hand.
struct Hand {
    writer: Writer,
    log: MemoryLog,
    completed: mpsc::UnboundedReceiver<Completed>,
}

impl Hand {
    fn over(disk: &MemoryDisk, bounds: Bounds) -> Self {
        let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        let log = MemoryLog::open(disk, &clusterset, epoch).expect("it opens");
        let (state, _) = replay::replay(&log.reader()).expect("it is whole");
        let options = Options {
            hub: "hub".into(),
            hub_version: "0".into(),
            adopt_epoch: false,
            bounds,
        };
        let metrics = WriterMetrics::default();
        let (mut writer, _, completed) = Writer::new(state, Box::new(log.clone()), options, metrics, AT);
        writer.begin(AT);
        let mut hand = Self {
            writer,
            log,
            completed,
        };
        hand.settle().expect("its rules are durable");
        hand
    }

    /// Everything that can be done without more requests.
    fn settle(&mut self) -> Result<(), WriterError> {
        loop {
            while self.writer.step(AT, || 7)? {}
            match self.completed.try_recv() {
                Ok(completed) => self.writer.on_completed(completed, AT)?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Has an event decided that is not durable yet.
    fn decide(&mut self, number: u32) -> oneshot::Receiver<Result<Operated, Rejection>> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Forget {
            cluster: ClusterId::new(&format!("gone-{number}")).expect("a cluster id"),
            operator: "alice".into(),
        };
        let confirm = true;
        self.writer.take(
            Work::Operate {
                command,
                confirm,
                describe: |_, _, _| Vec::new(),
                reply,
            },
            AT,
        );
        answer
    }

    /// Records an event and makes it durable.
    fn record(&mut self, number: u32) {
        let mut answer = self.decide(number);
        self.settle().expect("it is durable");
        assert!(matches!(answer.try_recv(), Ok(Ok(_))));
    }

    fn shown(&self) -> Revision {
        self.writer.view.read().head().revision
    }
}

#[test]
fn events_that_a_crash_left_behind_the_snapshot_count_towards_the_next() {
    let disk = MemoryDisk::default();
    let mut crashed = Hand::over(&disk, Bounds::default());
    crashed.record(1);
    let head = crashed.writer.durable;
    drop(crashed);
    // A hub that only starts and stops: it has nothing of its own to write a snapshot for.
    let restarted = Hand::over(&disk, Bounds::default()).writer;
    assert_eq!((restarted.durable, restarted.snapshot_at), (head, 0));
    restarted.finish().expect("it stops in order");
    let again = Hand::over(&disk, Bounds::default()).writer;
    assert_eq!(again.log.stats().snapshot_revision, Some(head.revision));
    assert_eq!(again.snapshot_at, head.revision.0);
}

#[test]
fn what_a_log_takes_at_a_time_is_asked_of_it() {
    let mut hand = Hand::over(&MemoryDisk::default(), Bounds::default());
    hand.settle().expect("its rules are durable");
    hand.log.limit(Limits {
        batch_events: 1,
        ..Limits::default()
    });
    hand.log.hold_syncs(true);
    let mut answers: Vec<_> = (1..=3).map(|number| hand.decide(number)).collect();
    hand.writer.append(AT).expect("handed to the log");
    let parts: Vec<usize> = hand.writer.in_flight[0]
        .parts
        .iter()
        .map(|part| part.events)
        .collect();
    assert_eq!(parts, [1, 1, 1]);
    hand.log.sync();
    hand.settle().expect("all of it is durable");
    assert!(
        answers
            .iter_mut()
            .all(|answer| matches!(answer.try_recv(), Ok(Ok(_))))
    );
}

#[test]
fn a_full_segment_is_sealed_between_batches_and_what_is_not_to_be_kept_goes() {
    let bounds = Bounds {
        segment_bytes: 1,
        retention: Retention {
            age_millis: u64::MAX,
            bytes: 0,
        },
        ..Bounds::default()
    };
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, bounds);
    hand.record(1);
    hand.writer.take(Work::Tick, AT);
    assert!(!hand.writer.has_room(), "it is due between batches");
    hand.settle().expect("it is sealed");
    let (stats, head) = (hand.log.stats(), hand.writer.durable);
    assert_eq!((stats.segments, stats.segment_start), (2, head));
    assert_eq!(stats.segment_began_at, AT.wall);
    hand.writer.take(Work::Tick, AT);
    hand.settle().expect("nothing has happened since");
    assert_eq!(hand.log.stats().segments, 2, "nothing is removed at every tick");
    let later = Moment {
        micros: AT.micros + disk::RETAIN_INTERVAL_MILLIS * 1_000,
        ..AT
    };
    hand.writer.take(Work::Tick, later);
    assert_eq!(hand.log.stats().segments, 1);
    hand.record(2);
    drop(hand);
    let again = Hand::over(&disk, bounds);
    assert!(again.log.head().revision > head.revision);
}

#[test]
fn a_log_that_fails_while_nothing_is_appended_ends_the_writer_all_the_same() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    hand.record(1);
    disk.set_faults(Faults {
        fail_sync: true,
        ..Faults::default()
    });
    let rows = Box::new(std::iter::empty());
    hand.log.seal_and_wait(AT.wall, rows).expect_err("the disk fails");
    hand.settle().expect("nobody has looked yet");
    hand.writer.take(Work::Tick, AT);
    let ended = hand.settle().expect_err("it takes no more");
    assert!(matches!(ended, WriterError::Append(_)), "{ended}");
}

#[test]
fn who_is_fenced_answers_nobody_and_says_that_it_is_no_failure_of_the_disk() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    hand.record(1);
    let before = hand.shown();
    let other = event_log::Batch::new(hand.log.head(), vec![b"somebody else's".to_vec()]).expect("small");
    hand.log.append_and_wait(other).expect("the log is theirs, too");
    let mut answer = hand.decide(2);
    let fenced = hand.settle().expect_err("the head is another");
    assert!(fenced.ends_term(), "{fenced}");
    assert!(answer.try_recv().is_err(), "answered, and never recorded");
    assert_eq!(hand.shown(), before);

    let mut failing = Hand::over(&MemoryDisk::default(), Bounds::default());
    failing.settle().expect("its rules are durable");
    failing.log.hold_syncs(true);
    failing.decide(1);
    failing.settle().expect("nothing fails");
    let failed = AppendError::Failed(Failure("the disk".into()));
    let ended = failing.writer.on_completed(Completed(Err(failed)), AT);
    assert!(!ended.expect_err("it failed").ends_term());
}

#[test]
fn nothing_is_answered_or_shown_before_it_is_durable() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    hand.log.hold_syncs(true);
    let mut answer = hand.decide(1);
    hand.settle().expect("nothing fails");
    assert!(answer.try_recv().is_err() && hand.shown() == Revision(1));
    disk.set_faults(Faults {
        fail_sync: true,
        ..Faults::default()
    });
    hand.log.sync();
    hand.settle().expect_err("the disk fails");
    assert!(answer.try_recv().is_err(), "answered without the disk");
    assert_eq!(hand.shown(), Revision(1), "shown without the disk");
}

#[test]
fn while_a_batch_is_synced_the_next_is_decided_and_goes_out_when_the_disk_is_free_or_it_is_full() {
    let bounds = Bounds {
        batch_events: 2,
        ..Bounds::default()
    };
    let mut hand = Hand::over(&MemoryDisk::default(), bounds);
    hand.log.hold_syncs(true);
    let mut first = hand.decide(1);
    hand.settle().expect("nothing fails");
    let mut second = hand.decide(2);
    hand.settle().expect("nothing fails");
    assert_eq!(hand.writer.in_flight.len(), 1, "one event is no full batch");
    assert!(hand.writer.has_room());
    let mut third = hand.decide(3);
    hand.settle().expect("nothing fails");
    assert_eq!(hand.writer.in_flight.len(), 2, "a full one goes out behind it");
    let mut fourth = hand.decide(4);
    hand.decide(5);
    hand.settle().expect("nothing fails");
    assert_eq!(hand.writer.in_flight.len(), 2);
    assert!(!hand.writer.has_room(), "the third batch is full and waits");
    hand.log.sync();
    hand.settle().expect("it is durable");
    for answer in [&mut first, &mut second, &mut third] {
        assert!(matches!(answer.try_recv(), Ok(Ok(_))));
    }
    assert!(fourth.try_recv().is_err());
    assert_eq!(hand.shown(), Revision(4));
    hand.log.sync();
    hand.settle().expect("it is durable");
    assert_eq!((hand.shown(), hand.writer.is_idle()), (Revision(6), true));
}

/// The revision that a query would be answered at, and whether a cluster is known at it.
fn asked(hand: &Hand, number: u32) -> (Revision, bool) {
    let present = hand.writer.present().read().expect("it writes");
    let cluster = ClusterId::new(&format!("gone-{number}")).expect("a cluster id");
    assert_eq!(present.head.revision, present.state.revision());
    (present.head.revision, present.state.member(&cluster).is_some())
}

#[test]
fn a_question_sees_a_batch_when_it_is_durable_and_waits_for_none() {
    let bounds = Bounds {
        batch_events: 2,
        ..Bounds::default()
    };
    let mut hand = Hand::over(&MemoryDisk::default(), bounds);
    hand.log.hold_syncs(true);
    let pinned = hand.writer.present().read().expect("it writes");
    for number in 1..=4 {
        let _decided = hand.decide(number);
        hand.settle().expect("nothing fails");
        assert_eq!(asked(&hand, number), (Revision(1), false));
    }
    assert_eq!(
        hand.writer.core().state().revision(),
        Revision(5),
        "it is ahead of the disk"
    );
    hand.log.sync();
    hand.settle().expect("it is durable");
    assert_eq!((asked(&hand, 3), asked(&hand, 4).1), ((Revision(4), true), false));
    hand.log.sync();
    hand.settle().expect("it is durable");
    assert_eq!(asked(&hand, 4), (Revision(5), true));
    assert_eq!(
        pinned.state.members().len(),
        0,
        "whoever holds one holds it as it was"
    );
}

#[test]
fn nothing_of_a_batch_that_the_disk_does_not_take_is_ever_seen_and_the_end_leaves_no_present() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    hand.log.hold_syncs(true);
    let _decided = hand.decide(1);
    hand.settle().expect("nothing fails");
    disk.set_faults(Faults {
        fail_sync: true,
        ..Faults::default()
    });
    hand.log.sync();
    hand.settle().expect_err("the disk fails");
    assert_eq!(asked(&hand, 1), (Revision(1), false));
    let present = hand.writer.present();
    drop(hand);
    assert!(
        present.read().is_err(),
        "nobody knows what is recorded from here on"
    );
}

#[test]
fn a_new_epoch_is_seen_with_the_state_that_it_began_with() {
    let mut hand = Hand::over(&MemoryDisk::default(), Bounds::default());
    hand.record(1);
    let before = hand.writer.present().read().expect("it writes");
    hand.writer.core.must_mint = Some(before.head.epoch);
    hand.settle().expect("it is begun");
    let now = hand.writer.present().read().expect("it writes");
    assert!(now.head.epoch > before.head.epoch && now.head == hand.writer.durable);
    assert_eq!(now.state.revision(), Revision(0));
    let incarnations = |of: &Published| {
        of.state
            .members()
            .values()
            .map(|one| one.since())
            .collect::<Vec<_>>()
    };
    assert_eq!(incarnations(&now), incarnations(&before));
    assert_eq!(
        before.state.revision(),
        Revision(2),
        "whoever holds it holds it as it was"
    );
}

#[test]
fn a_snapshot_is_written_after_so_many_events_and_of_many_facts_after_more() {
    assert!(!is_snapshot_due(Bounds::default(), 49_999, 0));
    assert!(is_snapshot_due(Bounds::default(), 50_000, 25_000));
    assert!(!is_snapshot_due(Bounds::default(), 50_001, 50_000));
    assert!(is_snapshot_due(Bounds::default(), 100_000, 50_000));
    let bounds = Bounds {
        snapshot_events: 3,
        ..Bounds::default()
    };
    let mut hand = Hand::over(&MemoryDisk::default(), bounds);
    let written = |hand: &Hand| hand.log.stats().snapshot_revision;
    for (event, snapshot) in [
        // The first event of all says which rules fold the log.
        (1, None),
        (2, Some(Revision(3))),
        (3, Some(Revision(3))),
        (4, Some(Revision(3))),
    ] {
        hand.record(event);
        assert_eq!(written(&hand), snapshot, "after event {event}");
    }
}

#[test]
fn the_bounds_of_a_batch_fit_into_the_logs() {
    let bounds = Bounds::default();
    assert!(
        bounds.batch_events <= event_log::BATCH_EVENTS_MAX
            && bounds.batch_bytes <= event_log::BATCH_BYTES_MAX
    );
}

/// The next start reads the older snapshot and the events behind it.
#[test]
fn a_stop_while_a_snapshot_is_written_is_in_order() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    hand.record(1);
    let head = hand.writer.durable;
    hand.log.hold_syncs(true);
    let rows = snapshot::rows(hand.writer.core.state().clone());
    hand.writer.log.write_snapshot(
        head,
        Box::new(rows),
        Box::new(|outcome| panic!("not written yet: {outcome:?}")),
    );
    hand.writer.finish().expect("it stops in order");
    let again = Hand::over(&disk, Bounds::default()).writer;
    assert_eq!((again.durable, again.log.stats().snapshot_revision), (head, None));
}

#[test]
fn members_are_counted_by_state() {
    let mut registry = prometheus_client::registry::Registry::default();
    let mut hand = Hand::over(&MemoryDisk::default(), Bounds::default());
    hand.writer.metrics = WriterMetrics::register(&mut registry);
    hand.record(1);
    hand.record(2);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
    for line in [
        "members{state=\"forgotten\"} 2",
        "members{state=\"live\"} 0",
        "exports_in_conflict{reason=\"PortConflict\"} 0",
    ] {
        assert!(text.lines().any(|said| said == line), "{line} is not in:\n{text}");
    }
}

mod members;
