//! What the threads of a log do beside each other.

use shared::model::Revision;

use super::*;
use crate::log::{MemoryDisk, rows::RowsError, segment_name::SegmentName};

/// A disk that deletes nothing before it is told to, and says when it was asked.
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

#[test]
fn nobody_who_appends_waits_for_a_segment_that_goes() {
    let ((asked, is_asked), (delete, deletes)) = (mpsc::sync_channel(1), mpsc::channel());
    let volume = SlowToDelete {
        disk: MemoryDisk::default(),
        asked,
        deletes: Arc::new(std::sync::Mutex::new(deletes)),
    };
    let clusterset = Clusterset::new("example.org", "default").expect("a name");
    let epoch = Epoch::default().next(UnixMillis(1), 1);
    let mut log = OwnerThread::spawn(move || Ok(Store::open(&volume, &clusterset, epoch).expect("opened")))
        .expect("a log");
    append(&mut log, "before");
    log.seal_and_wait(UnixMillis(2), Box::new(std::iter::empty()))
        .expect("sealed");
    let nothing = Retention {
        age_millis: 0,
        bytes: 0,
    };
    log.retain(nothing, UnixMillis(3));
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
