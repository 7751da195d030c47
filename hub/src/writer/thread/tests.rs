//! The writer over a log in memory: what waits for the disk, and what a start after a crash leaves to the next.

use prometheus_client::registry::Registry;
use shared::model::{ClusterId, Clusterset, Epoch, UnixMillis};

use super::*;
use crate::{
    fold::Command,
    log::{Faults, MemoryDisk, MemoryLog},
    replay,
};

/// A writer over what the disk holds.
fn writer(disk: &MemoryDisk) -> Writer {
    writer_over(log(disk))
}

fn log(disk: &MemoryDisk) -> MemoryLog {
    let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    MemoryLog::open(disk, &clusterset, epoch).expect("it opens")
}

fn writer_over(log: MemoryLog) -> Writer {
    let (state, _) = replay::replay(&log.reader()).expect("it is whole");
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
    };
    let metrics = WriterMetrics::register(&mut Registry::default());
    Writer::new(state, Box::new(log), options, Clock::start(), metrics).0
}

/// Has an event decided that is not durable yet.
fn decide(writer: &mut Writer, number: u32) {
    let cluster = ClusterId::new(&format!("gone-{number}")).expect("a cluster id");
    let request = Request::Operate {
        token: 1,
        command: Command::Forget {
            cluster,
            operator: "alice".into(),
        },
        confirm: true,
        describe: |_, _, _| Vec::new(),
    };
    writer.handle(request);
}

/// Records an event and makes it durable.
fn record(writer: &mut Writer, number: u32) {
    decide(writer, number);
    writer.commit().expect("it is durable");
}

#[test]
fn events_that_a_crash_left_behind_the_snapshot_count_towards_the_next() {
    let disk = MemoryDisk::default();
    let mut crashed = writer(&disk);
    record(&mut crashed, 1);
    let head = crashed.durable;
    drop(crashed);
    // A hub that only starts and stops: it has nothing of its own to write a snapshot for.
    let restarted = writer(&disk);
    assert_eq!((restarted.durable, restarted.snapshot_at), (head, 0));
    restarted.finish().expect("it stops in order");
    let again = writer(&disk);
    assert_eq!(again.log.stats().snapshot_revision, Some(head.revision));
    assert_eq!(again.snapshot_at, head.revision.0);
}

#[test]
fn nothing_is_answered_or_shown_before_it_is_durable() {
    let disk = MemoryDisk::default();
    let mut writer = writer(&disk);
    let shown = writer.view.read().head();
    let (reply, mut answer) = oneshot::channel();
    writer.operations.insert(1, reply);
    decide(&mut writer, 1);
    disk.set_faults(Faults {
        fail_sync: true,
        ..Faults::default()
    });
    writer.commit().expect_err("the disk fails");
    assert!(answer.try_recv().is_err(), "answered without the disk");
    assert_eq!(writer.view.read().head(), shown, "shown without the disk");
}

#[test]
fn a_snapshot_of_many_facts_waits_for_more_events_than_it_has_rows() {
    assert!(!is_snapshot_due(SNAPSHOT_EVENTS - 1, 0));
    assert!(is_snapshot_due(SNAPSHOT_EVENTS, SNAPSHOT_EVENTS / 2));
    assert!(!is_snapshot_due(SNAPSHOT_EVENTS + 1, SNAPSHOT_EVENTS));
    assert!(is_snapshot_due(2 * SNAPSHOT_EVENTS, SNAPSHOT_EVENTS));
}

/// The next start reads the older snapshot and the events behind it.
#[test]
fn a_stop_while_a_snapshot_is_written_is_in_order() {
    let disk = MemoryDisk::default();
    let log = log(&disk);
    let mut writer = writer_over(log.clone());
    record(&mut writer, 1);
    let head = writer.durable;
    log.hold_syncs(true);
    let rows = wire::snapshot::rows(writer.core.state().clone());
    writer.log.write_snapshot(
        head,
        Box::new(rows),
        Box::new(|outcome| panic!("not written yet: {outcome:?}")),
    );
    writer.finish().expect("it stops in order");
    let again = self::writer(&disk);
    assert_eq!((again.durable, again.log.stats().snapshot_revision), (head, None));
}

#[test]
fn members_are_counted_by_state() {
    let mut registry = Registry::default();
    let mut writer = writer(&MemoryDisk::default());
    writer.metrics = WriterMetrics::register(&mut registry);
    record(&mut writer, 1);
    record(&mut writer, 2);
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
