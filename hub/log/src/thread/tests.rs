//! Tests of the threads of a log working at the same time.

use std::time::{Duration, Instant};

use model::Revision;

use super::*;
use crate::{MemoryDisk, rows::RowsError, segment_name::SegmentName};

/// A disk that deletes nothing before it may, and signals each request.
#[derive(Clone)]
struct SlowToDelete {
    disk: MemoryDisk,
    asked: SyncSender<()>,
    deletes: Arc<std::sync::Mutex<Receiver<()>>>,
}

impl Volume for SlowToDelete {
    type Rows = <MemoryDisk as Volume>::Rows;

    fn segments(&self) -> Result<Vec<SegmentName>, RowsError> {
        self.disk.segments()
    }

    fn open(&self, name: SegmentName) -> Result<Self::Rows, RowsError> {
        self.disk.open(name)
    }

    fn create(&self, name: SegmentName) -> Result<Self::Rows, RowsError> {
        self.disk.create(name)
    }

    fn remove(&self, name: SegmentName) -> Result<(), RowsError> {
        self.asked.send(()).expect("the test waits for it");
        self.deletes
            .lock()
            .expect("no panic")
            .recv()
            .expect("the test says when");
        self.disk.remove(name)
    }

    fn bytes_on_disk(&self, name: SegmentName) -> u64 {
        self.disk.bytes_on_disk(name)
    }

    fn space(&self) -> Option<Space> {
        self.disk.space()
    }
}

fn append(log: &mut OwnerThread, text: &str) -> Cursor {
    let batch = Batch::new(log.head(), vec![text.into()]).expect("a batch");
    log.append_and_wait(batch).expect("durable")
}

/// A log on such a disk, the disk, the signal of each request, and the permission.
fn slow_to_delete() -> (OwnerThread, MemoryDisk, Receiver<()>, mpsc::Sender<()>) {
    let ((asked, is_asked), (delete, deletes)) = (mpsc::sync_channel(2), mpsc::channel());
    let disk = MemoryDisk::default();
    let volume = SlowToDelete {
        disk: disk.clone(),
        asked,
        deletes: Arc::new(std::sync::Mutex::new(deletes)),
    };
    let clusterset = Clusterset::new("example.org", "default").expect("a name");
    let epoch = Epoch::default().next(UnixMillis(1), 1);
    let open = move || Ok(Store::open(&volume, &clusterset, epoch).expect("opened"));
    let log = OwnerThread::spawn(open).expect("a log");
    (log, disk, is_asked, delete)
}

fn seal(log: &mut OwnerThread) {
    log.seal_and_wait(UnixMillis(2), Box::new(std::iter::empty()))
        .expect("sealed");
}

const NOTHING: Retention = Retention {
    age_millis: 0,
    bytes: 0,
};

#[test]
fn nobody_who_appends_waits_for_a_segment_that_goes() {
    let (mut log, _, is_asked, delete) = slow_to_delete();
    append(&mut log, "before");
    seal(&mut log);
    log.retain(NOTHING, UnixMillis(3));
    is_asked.recv().expect("the first segment is to go");
    let head = append(&mut log, "meanwhile");
    assert_eq!(head.revision, Revision(2));
    assert_eq!(log.stats().retain_count, 0, "it has not gone");
    delete.send(()).expect("it waits for this");
    while log.stats().retain_count == 0 {
        std::thread::yield_now();
    }
    assert_eq!(
        (log.stats().segments, log.stats().oldest_revision),
        (1, Revision(2))
    );
}

#[test]
fn who_closes_a_log_waits_for_one_segment_that_goes() {
    let (mut log, disk, is_asked, delete) = slow_to_delete();
    for text in ["first", "second", "third"] {
        append(&mut log, text);
        seal(&mut log);
    }
    log.retain(NOTHING, UnixMillis(3));
    is_asked.recv().expect("the first segment is to go");
    let ending = Arc::clone(&log.ending);
    let closing = std::thread::spawn(move || drop(log));
    let until = Instant::now() + Duration::from_secs(10);
    while !ending.load(Ordering::Relaxed) {
        assert!(Instant::now() < until, "the keeper is not told");
        std::thread::yield_now();
    }
    delete.send(()).expect("it waits for this");
    // A second one that is to go finds nobody who lets it.
    drop(delete);
    closing.join().expect("closed");
    assert!(
        is_asked.try_recv().is_err(),
        "the second one waits for the next start"
    );
    assert_eq!(disk.segments().expect("listed").len(), 3);
}

/// A reader of history whose store takes long, with others behind it, delays no member that connects again.
#[test]
fn a_position_is_found_while_a_reader_of_history_waits() {
    let (mut log, _, _, _) = slow_to_delete();
    let head = append(&mut log, "a");
    let (history, ((begun, has_begun), (go_on, goes_on))) =
        (log.reader(), (mpsc::channel(), mpsc::channel::<()>()));
    let slow = std::thread::spawn(move || {
        history.wait(move |_| {
            begun.send(()).expect("the test waits for it");
            goes_on.recv().expect("the test says when");
            Ok(())
        })
    });
    has_begun.recv().expect("the store is read");
    let (cursors, (found, is_found)) = (log.cursors(), mpsc::channel());
    std::thread::spawn(move || {
        let hash = cursors.wait(move |history| history.hash_at(head.epoch, head.revision));
        found.send(hash).expect("the test waits for it");
    });
    let hash = is_found.recv_timeout(Duration::from_secs(10));
    go_on.send(()).expect("the reader waits");
    slow.join().expect("no panic").expect("read");
    assert!(matches!(hash, Ok(Ok(Some(_)))), "{hash:?}");
}
