//! Measures the speed of the log: events made durable by batch size, verified opening, verified replay, bytes on disk.
//! A plain program instead of a bench framework: every figure is one long run against a real disk, where the sync
//! dominates; repeating microseconds would measure the wrong thing. `cargo bench -p tributary-hub --bench log`;
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

/// Wall and CPU time of a phase. On a busy machine the CPU column is the one that means something.
struct Phase {
    started: Instant,
    cpu_before: u64,
}

impl Phase {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            cpu_before: cpu_micros(),
        }
    }

    fn done(self, what: &str, batch: usize, events: usize) {
        let per_second = events as f64 / self.started.elapsed().as_secs_f64();
        let cpu = (cpu_micros() - self.cpu_before) as f64 / events as f64;
        println!("{batch:>8} {what:<8} {per_second:>12.0} events/s {cpu:>8.2} CPU us/event");
    }
}

/// User and system time of this process, all threads; 0 where there is no procfs.
fn cpu_micros() -> u64 {
    const MICROS_PER_TICK: u64 = 10_000;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse().unwrap_or(0));
    ticks.sum::<u64>() * MICROS_PER_TICK
}

fn run(batch: usize, events: usize) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut log = open(&dir);
    let phase = Phase::start();
    append(&mut *log, batch, events);
    phase.done("append", batch, events);
    let bytes = log.stats().bytes_on_disk as usize / events;
    drop(log);
    // Opening verifies everything, because there is no snapshot.
    let phase = Phase::start();
    let log = open(&dir);
    phase.done("open", batch, events);
    let phase = Phase::start();
    let mut replayed = 0;
    log.reader()
        .replay(|item| {
            replayed += usize::from(matches!(item, ReplayItem::Event(_)));
            Ok::<_, LogError>(())
        })
        .expect("what was appended reads back");
    phase.done("replay", batch, replayed);
    println!("{batch:>8} {:<8} {bytes:>12} bytes/event", "disk");
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
