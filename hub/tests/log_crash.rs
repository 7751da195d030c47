//! A process that appends is killed at random, again and again: what it acknowledged is there, the chain holds.
//! The test runs itself as that process. TRIBUTARY_CRASH_ROUNDS sets how often (default 10), TRIBUTARY_CRASH_SEED
//! repeats a schedule; both are printed.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use hub::log::{self, Batch, LogError, ReplayItem, Retention};
use shared::model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};

const CHILD_DIR: &str = "TRIBUTARY_CRASH_CHILD_DIR";
const CHILD_SEED: &str = "TRIBUTARY_CRASH_CHILD_SEED";
/// About what a few segments of this test take.
const FEW: Retention = Retention {
    age_millis: u64::MAX,
    bytes: 40_000_000,
};
/// Acknowledgements after which a child is killed, at most.
const ACKED_MAX: u64 = 150;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    if let Some(dir) = env::var_os(CHILD_DIR) {
        append_until_killed(Path::new(&dir), number(CHILD_SEED).expect("the parent sets it"));
    }
    let rounds = number("TRIBUTARY_CRASH_ROUNDS").unwrap_or(10);
    let seed = number("TRIBUTARY_CRASH_SEED").unwrap_or_else(|| std::process::id().into());
    println!("TRIBUTARY_CRASH_ROUNDS={rounds} TRIBUTARY_CRASH_SEED={seed}");
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let (mut positions, mut epochs) = (0, 0);
    for round in 0..rounds {
        let acked = kill_one(dir.path(), &mut random);
        positions += acked.len();
        epochs += acked
            .iter()
            .filter(|cursor| cursor.revision == Revision(0))
            .count();
        check(dir.path(), &acked, round);
    }
    let report = log::verify(dir.path(), &mut |_| {}).unwrap();
    assert!(report.is_good(), "{report:?}");
    assert!(
        epochs > 0 || rounds < 10,
        "the schedule must also kill around new epochs"
    );
    println!("{positions} acknowledged positions found again, {epochs} of them new epochs");
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, it is {text:?}")),
    )
}

/// SplitMix64: enough randomness for a schedule, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

fn first_epoch() -> Epoch {
    Epoch {
        created_at: UnixMillis(1),
        random: 0,
    }
}

/// Starts a child, kills it once it has acknowledged some batches, and returns all it acknowledged.
fn kill_one(dir: &Path, random: &mut Random) -> Vec<Cursor> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["what_was_acknowledged_survives_a_kill", "--exact", "--nocapture"])
        .env(CHILD_DIR, dir)
        .env(CHILD_SEED, random.below(u64::MAX).to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let kill_after = 1 + random.below(ACKED_MAX) as usize;
    let mut acked = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The last line may be cut by the kill: then nobody was told.
        let Some(cursor) = parse(&line.unwrap()) else {
            continue;
        };
        acked.push(cursor);
        if acked.len() == kill_after {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(acked.len() >= kill_after, "the child ended by itself: {status}");
    acked
}

/// Everything acknowledged is in the log that is opened now, with the bytes that were written.
fn check(dir: &Path, acked: &[Cursor], round: u64) {
    let opened = log::open(dir, &clusterset(), first_epoch());
    let log = opened.unwrap_or_else(|error| panic!("round {round}: {error}"));
    let head = log.head();
    let place = |cursor: &Cursor| (cursor.epoch, cursor.revision);
    let last = acked.iter().max_by_key(|cursor| place(cursor)).unwrap();
    assert!(
        place(&head) >= place(last),
        "round {round}: {head:?} is before {last:?}"
    );
    let cursors = acked.to_vec();
    let hashes = log.reader().wait(move |history| {
        let hash = |cursor: &Cursor| history.hash_at(cursor.epoch, cursor.revision);
        cursors.iter().map(hash).collect::<Result<Vec<_>, LogError>>()
    });
    for (cursor, hash) in acked.iter().zip(hashes.unwrap()) {
        // History goes with its segments; what is known of it is what was acknowledged.
        assert!(
            hash.is_none_or(|hash| hash == cursor.hash),
            "round {round}: {cursor:?}"
        );
        assert!(hash.is_some() || cursor != last, "round {round}: {cursor:?}");
    }
    let mut at = Revision(0);
    let replay = log.reader().replay(|item| {
        match item {
            ReplayItem::Snapshot(info) => at = info.at.revision,
            ReplayItem::Row(row) => assert!(row == payload(head.epoch, at), "round {round}: snapshot"),
            ReplayItem::Event(event) => {
                at = at.next();
                let same = event.revision == at && event.payload == payload(head.epoch, at);
                assert!(same, "round {round}: event {at}");
            }
        }
        Ok::<_, LogError>(())
    });
    assert_eq!((replay.unwrap(), at), (head, head.revision), "round {round}");
}

/// Bytes that follow from the place, now and then large enough for several rows.
fn payload(epoch: Epoch, revision: Revision) -> Vec<u8> {
    let length = match revision.0 % 97 {
        0 => 40_000,
        rest => 4 * rest as usize,
    };
    let text = format!("{epoch} {revision} ");
    text.bytes().cycle().take(length.max(text.len())).collect()
}

/// The child: appends with several batches in flight, writes snapshots, begins epochs, prints what is durable.
fn append_until_killed(dir: &Path, seed: u64) -> ! {
    let mut random = Random(seed);
    let mut log = log::open(dir, &clusterset(), first_epoch()).unwrap();
    let mut expected = log.head();
    loop {
        for _ in 0..1 + random.below(8) {
            let count = 1 + random.below(40);
            let revisions = (1..=count).map(|n| Revision(expected.revision.0 + n));
            let payloads = revisions
                .map(|revision| payload(expected.epoch, revision))
                .collect();
            let batch = Batch::new(expected, payloads).unwrap();
            expected = batch.head_after();
            log.append(batch, Box::new(|outcome| print(outcome.unwrap())));
        }
        let at = log.head();
        match random.below(16) {
            // Refused while another is being written: that is fine here.
            0..4 => {
                let row = Box::new(std::iter::once(payload(at.epoch, at.revision)));
                log.write_snapshot(at, row, Box::new(drop));
            }
            5 | 6 => {
                // At the head, and so behind everything that was appended.
                let row = Box::new(std::iter::once(payload(expected.epoch, expected.revision)));
                log.seal(UnixMillis(0), row, Box::new(drop));
            }
            7 => log.retain(FEW, UnixMillis(0)),
            4 => {
                let epoch = expected.epoch.next(UnixMillis(0), 0);
                let base = Box::new(std::iter::once(payload(epoch, Revision(0))));
                expected = log.begin_epoch(epoch, base).unwrap();
                print(expected);
            }
            _ => {}
        }
    }
}

fn print(cursor: Cursor) {
    let line = format!("acked {} {} {}\n", cursor.epoch, cursor.revision, cursor.hash);
    // One write: a line is there as a whole or cut, and never mixed with another.
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn parse(line: &str) -> Option<Cursor> {
    let mut words = line.strip_prefix("acked ")?.split(' ');
    let epoch = words.next()?.parse().ok()?;
    let revision = Revision(words.next()?.parse().ok()?);
    let hex = words.next().filter(|hex| hex.len() == 32)?;
    let mut hash = ChainHash::default();
    for (index, byte) in hash.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(Cursor {
        epoch,
        revision,
        hash,
    })
}
