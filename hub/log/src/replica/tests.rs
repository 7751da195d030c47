//! A replica shows what it applied, keeps what is synced, and is opened by whoever may.

use model::{ChainHash, Epoch, Revision, UnixMillis};
use tempfile::TempDir;

use super::*;
use crate::{Failure, MemoryDisk, MemoryLog, ReplayItem, open_replica};

fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

fn epoch() -> Epoch {
    Epoch {
        created_at: UnixMillis(1),
        random: 7,
    }
}

fn in_memory(disk: &MemoryDisk) -> MemoryLog {
    let log = MemoryLog::open(disk, &clusterset(), epoch()).unwrap();
    log.hold_syncs(true);
    log
}

fn apply(replica: &mut dyn Replica, text: &str) -> Cursor {
    let batch = Batch::new(replica.head(), vec![text.into()]).unwrap();
    replica.apply(batch).unwrap()
}

fn events(log: &dyn Log) -> Vec<String> {
    let mut seen = Vec::new();
    let take = |item| {
        if let ReplayItem::Event(event) = item {
            seen.push(String::from_utf8(event.payload).unwrap());
        }
        Ok::<_, crate::LogError>(())
    };
    log.reader().replay(take).unwrap();
    seen
}

#[test]
fn what_is_applied_is_seen_at_once_and_lost_from_the_newest_backwards() {
    for kept in 0..=3 {
        let disk = MemoryDisk::default();
        let mut replica = in_memory(&disk);
        let first = apply(&mut replica, "a");
        replica.sync_applied();
        apply(&mut replica, "b");
        let head = apply(&mut replica, "c");
        assert_eq!((replica.head(), replica.synced()), (head, first));
        assert_eq!(events(&replica), ["a", "b", "c"]);
        assert_eq!(replica.stats().events_appended, 3);
        drop(replica);
        disk.crash(kept);
        let texts = ["a", "b", "c"];
        let survives = &texts[..(1 + kept).min(3)];
        let again = in_memory(&disk);
        assert_eq!(events(&again), survives);
        assert_eq!(again.synced(), again.head(), "what is read at a start is durable");
    }
}

#[test]
fn a_batch_that_does_not_follow_the_head_changes_nothing() {
    let mut replica = in_memory(&MemoryDisk::default());
    let start = replica.head();
    let head = apply(&mut replica, "a");
    let gap = Cursor {
        revision: Revision(3),
        ..head
    };
    let foreign = Cursor {
        hash: ChainHash([9; 16]),
        ..head
    };
    for before in [start, gap, foreign] {
        let batch = Batch::new(before, vec![b"b".to_vec()]).unwrap();
        assert_eq!(replica.apply(batch), Err(AppendError::Fenced(head)));
    }
    assert_eq!(events(&replica), ["a"]);
}

#[test]
fn the_next_segment_does_not_outlive_the_end_of_the_one_before() {
    let disk = MemoryDisk::default();
    let mut replica = in_memory(&disk);
    apply(&mut replica, "a");
    let sealed_at = apply(&mut replica, "b");
    let rows = || Box::new(std::iter::once(b"state".to_vec()));
    replica.seal(UnixMillis(5), rows(), Box::new(|_| {}));
    assert_eq!(replica.synced(), sealed_at);
    apply(&mut replica, "c");
    drop(replica);
    disk.crash(0);
    let again = in_memory(&disk);
    assert_eq!((again.head(), disk.segment_count()), (sealed_at, 2));
}

#[test]
fn a_replica_whose_disk_fails_says_so_and_takes_nothing_more() {
    let disk = MemoryDisk::default();
    let mut replica = in_memory(&disk);
    let head = apply(&mut replica, "a");
    disk.set_faults(crate::Faults {
        fail_sync: true,
        ..crate::Faults::default()
    });
    replica.sync_applied();
    let Some(Failure(_)) = replica.stats().failure else {
        panic!("it failed");
    };
    let batch = Batch::new(head, vec![b"b".to_vec()]).unwrap();
    assert!(matches!(replica.apply(batch), Err(AppendError::Failed(_))));
}

#[test]
fn a_replica_on_disk_keeps_what_it_applied_when_it_is_closed() {
    let directory = TempDir::new().unwrap();
    let open = || open_replica(directory.path(), &clusterset(), epoch()).unwrap();
    assert!(!has_log(directory.path()).unwrap());
    let mut replica = open();
    assert!(has_log(directory.path()).unwrap());
    let head = apply(&mut *replica, "a");
    assert_eq!(replica.view().head(), head);
    drop(replica);
    let mut replica = open();
    let (again, synced) = (replica.head(), replica.synced());
    assert_eq!((again, synced), (head, head));
    let head = apply(&mut *replica, "b");
    replica.begin_sync();
    while replica.synced() != head {
        std::thread::yield_now();
    }
}

#[test]
fn a_marked_directory_is_opened_as_a_replica_only() {
    let directory = TempDir::new().unwrap();
    let mut replica = open_replica(directory.path(), &clusterset(), epoch()).unwrap();
    assert_eq!(replica.marked().unwrap(), None);
    replica.mark("00ff").unwrap();
    let head = apply(&mut *replica, "a");
    drop(replica);
    let refused = crate::open(directory.path(), &clusterset(), epoch())
        .err()
        .unwrap();
    assert!(
        matches!(&refused, OpenError::Shared { engine, .. } if engine == "00ff"),
        "{refused}"
    );
    let replica = open_replica(directory.path(), &clusterset(), epoch()).unwrap();
    assert_eq!(
        (replica.head(), replica.marked().unwrap()),
        (head, Some("00ff".into()))
    );
}
