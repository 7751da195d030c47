//! A log on disk that takes several times its limit stays within it, and continues after a restart.
//! TRIBUTARY_RETENTION_MEGABYTES sets how much is appended (default 160); the times of appends are printed, not judged.

use std::{env, path::Path, time::Instant};

use hub::log::{self, Batch, Log, LogError, ReplayItem, Retention};
use shared::model::{Clusterset, Epoch, Revision, UnixMillis};

const EVENT_BYTES: usize = 4_000;
const EVENTS_PER_BATCH: usize = 32;
const SEGMENT_BYTES: u64 = 16_000_000;
const KEPT: Retention = Retention {
    age_millis: u64::MAX,
    bytes: 64_000_000,
};

#[test]
fn disk_use_stays_flat_while_segments_go() {
    let megabytes =
        env::var("TRIBUTARY_RETENTION_MEGABYTES").map_or(160, |text| text.parse().expect("a number"));
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let (mut before, mut during, mut largest, mut smallest) = (Vec::new(), Vec::new(), 0, u64::MAX);
    for _ in 0..megabytes * 1_000_000 / (EVENT_BYTES * EVENTS_PER_BATCH) {
        let batch = Batch::new(log.head(), vec![vec![7; EVENT_BYTES]; EVENTS_PER_BATCH]).unwrap();
        let began = Instant::now();
        log.append_and_wait(batch).unwrap();
        let took = began.elapsed().as_micros();
        let stats = log.stats();
        match stats.oldest_revision {
            Revision(1) => before.push(took),
            _ => {
                during.push(took);
                largest = largest.max(stats.bytes_on_disk);
                smallest = smallest.min(stats.bytes_on_disk);
            }
        }
        if stats.segment_bytes >= SEGMENT_BYTES {
            let state = stats.segment_start.revision.0.to_be_bytes().to_vec();
            log.seal(UnixMillis(0), Box::new(std::iter::once(state)), Box::new(drop));
        }
        log.retain_and_wait(KEPT, UnixMillis(0));
    }
    println!(
        "{smallest} to {largest} bytes on disk; appends in µs: p99 {} before anything went, {} after; longest {} and {}",
        p99(&mut before),
        p99(&mut during),
        before.last().unwrap(),
        during.last().unwrap()
    );
    // One segment more while the newest is written, and what its file grows by at a time.
    assert!(largest <= KEPT.bytes + 2 * SEGMENT_BYTES, "{largest}");
    assert!(smallest >= KEPT.bytes - 3 * SEGMENT_BYTES, "{smallest}");
    let (head, oldest) = (log.head(), log.stats().oldest_revision);
    drop(log);
    let log = open(dir.path());
    assert_eq!((log.head(), log.stats().oldest_revision), (head, oldest));
    let mut events = 0;
    let replayed = log.reader().replay(|item| {
        events += u64::from(matches!(item, ReplayItem::Event(_)));
        Ok::<_, LogError>(())
    });
    assert_eq!(replayed, Ok(head));
    assert_eq!(events, head.revision.0 - log.stats().segment_start.revision.0);
    drop(log);
    let report = log::verify(dir.path(), &mut |_| {}).unwrap();
    assert!(report.is_good(), "{report:?}");
}

fn open(dir: &Path) -> Box<dyn Log> {
    let clusterset = Clusterset::new("example.org", "default").unwrap();
    log::open(dir, &clusterset, Epoch::default().next(UnixMillis(1), 1)).unwrap()
}

/// Sorts, too.
fn p99(micros: &mut [u128]) -> u128 {
    micros.sort_unstable();
    micros[(micros.len() * 99 / 100).min(micros.len() - 1)]
}
