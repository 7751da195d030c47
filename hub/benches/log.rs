//! How fast the log is: events made durable per second by batch size, and verified replay.
//! A plain program instead of a bench framework: every figure is one long run against a real disk, where the
//! sync dominates; repeating microseconds would measure the wrong thing. `cargo bench -p tributary-hub --bench log`;
//! TRIBUTARY_BENCH_EVENTS sets the events per batch size (default 500,000).

use std::{env, sync::mpsc, time::Instant};

use hub::log::{self, Batch, Log, LogError, ReplayItem};
use shared::model::{Clusterset, Epoch, UnixMillis};

const PAYLOAD_BYTES: usize = 400;
/// Batches that wait for the disk at once, as a writer that runs ahead would have.
const IN_FLIGHT: usize = 4;

fn main() {
    // `cargo test --benches` runs this too, without --bench: then it only shows that it works.
    let measured = env::args().any(|argument| argument == "--bench");
    let events = env::var("TRIBUTARY_BENCH_EVENTS")
        .ok()
        .map(|text| text.parse().expect("a number"));
    let events = events.unwrap_or(if measured { 500_000 } else { 5_000 });
    println!(
        "{:>10} {:>14} {:>14} {:>12} {:>12}",
        "batch", "appended/s", "replayed/s", "disk B/event", "open ms"
    );
    for batch in [1, 64, 512, 4096] {
        // One event per sync is slow by nature: fewer of them.
        run(batch, if batch == 1 { events / 50 } else { events });
    }
}

fn open(dir: &tempfile::TempDir) -> Box<dyn Log> {
    let clusterset = Clusterset::new("example.org", "default").expect("valid names");
    let epoch = Epoch {
        created_at: UnixMillis(1),
        random: 0,
    };
    log::open(dir.path(), &clusterset, epoch).expect("a fresh directory opens")
}

fn run(batch: usize, events: usize) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut log = open(&dir);
    let started = Instant::now();
    append(&mut *log, batch, events);
    let appended = started.elapsed();
    let bytes = log.stats().bytes_on_disk as usize / events;
    drop(log);
    let started = Instant::now();
    let log = open(&dir);
    let opened = started.elapsed();
    let started = Instant::now();
    let mut replayed = 0;
    log.reader()
        .replay(|item| {
            replayed += usize::from(matches!(item, ReplayItem::Event(_)));
            Ok::<_, LogError>(())
        })
        .expect("what was appended reads back");
    let per_second = |elapsed: std::time::Duration| (replayed as f64 / elapsed.as_secs_f64()) as u64;
    let (appended, replayed) = (per_second(appended), per_second(started.elapsed()));
    println!(
        "{batch:>10} {appended:>14} {replayed:>14} {bytes:>12} {:>12}",
        opened.as_millis()
    );
}

fn append(log: &mut dyn Log, batch: usize, events: usize) {
    let mut expected = log.head();
    let (sender, receiver) = mpsc::sync_channel(IN_FLIGHT);
    let mut in_flight = 0;
    let mut left = events;
    while left > 0 {
        let count = left.min(batch);
        let payloads = (0..count)
            .map(|n| vec![(left + n) as u8; PAYLOAD_BYTES])
            .collect();
        let next = Batch::new(expected, payloads).expect("within the bounds");
        expected = next.head_after();
        left -= count;
        let sender = sender.clone();
        let done = move |outcome| sender.send(outcome).expect("the receiver outlives the appends");
        log.append(next, Box::new(done));
        in_flight += 1;
        if in_flight == IN_FLIGHT || left == 0 {
            let waits = if left == 0 { in_flight } else { 1 };
            for _ in 0..waits {
                receiver
                    .recv()
                    .expect("every append is answered")
                    .expect("and durable");
                in_flight -= 1;
            }
        }
    }
}
