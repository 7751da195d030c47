//! The thread that owns a store, the two that read beside it, one of them only for positions of members, and the one that removes
//! what is not kept. Commands come in
//! through bounded queues; batches that wait together are synced together. No store call is ever made on a caller's thread.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SendError, SyncSender, TryRecvError, TrySendError},
    },
    thread::JoinHandle,
};

use model::{Clusterset, Cursor, Epoch, UnixMillis};

use super::{
    Batch, Completion, Limits, Log, LogReader, Replica, ReplicaView, Retention, SnapshotCompletion,
    SnapshotRows, Space, Stats,
    directory::{self, Directory},
    error::{AppendError, Failure, LogError, OpenError},
    reader::{CURSORS_WAITING_MAX, DurableHistory, READS_WAITING_MAX, ReadJob, ReadQueue},
    replica,
    retention::Keeper,
    rows::Volume,
    shared_head::SharedHead,
    sled,
    start::StartError,
    store::Store,
};

/// Calls that may wait for the log's thread; one more blocks its caller.
pub const APPENDS_WAITING_MAX: usize = 64;

/// Opens the durable log of a clusterset below a data directory, making it in `new_epoch` if there is none.
/// Everything from the newest snapshot to the head is verified before this returns.
pub fn open(data_dir: &Path, clusterset: &Clusterset, new_epoch: Epoch) -> Result<Box<dyn Log>, OpenError> {
    let (dir, clusterset) = (data_dir.to_path_buf(), clusterset.clone());
    replica::refuse_shared(data_dir)?;
    let opened = OwnerThread::spawn(move || {
        let volume = Directory::open(&dir, &clusterset)?;
        let opened = sled::guard(|| Store::open(&volume, &clusterset, new_epoch));
        let opened = opened.unwrap_or_else(|damaged| Err(StartError::Rows(damaged)));
        opened.map_err(|error| directory::open_error(&dir, &clusterset, error))
    })?;
    Ok(Box::new(opened))
}

/// Opens the log of a clusterset as a replica, making it in `new_epoch` if there is none. It is verified as by
/// [`open`].
pub fn open_replica(
    data_dir: &Path,
    clusterset: &Clusterset,
    new_epoch: Epoch,
) -> Result<Box<dyn Replica>, OpenError> {
    let (dir, clusterset) = (data_dir.to_path_buf(), clusterset.clone());
    let opened = OwnerThread::spawn(move || {
        let volume = Directory::open(&dir, &clusterset)?;
        let opened = sled::guard(|| Store::open(&volume, &clusterset, new_epoch));
        let opened = opened.unwrap_or_else(|damaged| Err(StartError::Rows(damaged)));
        opened.map_err(|error| directory::open_error(&dir, &clusterset, error))
    })?;
    Ok(Box::new(opened.in_directory(data_dir)))
}

enum Command {
    Append(Batch, Completion),
    Apply(Batch, SyncSender<Result<Cursor, AppendError>>),
    Sync,
    WriteSnapshot(Cursor, SnapshotRows, SnapshotCompletion),
    Seal(UnixMillis, SnapshotRows, SnapshotCompletion),
    Retain(Retention, UnixMillis),
    Retained,
    BeginEpoch(Epoch, SnapshotRows, SyncSender<Result<Cursor, LogError>>),
    Stop,
}

/// A log whose store lives on a thread of its own.
pub(super) struct OwnerThread {
    clusterset: Clusterset,
    shared: Arc<SharedHead>,
    commands: SyncSender<Command>,
    reads: SyncSender<Read>,
    cursors: SyncSender<Read>,
    /// Asks the system, which no store is needed for.
    space: Arc<dyn Fn() -> Option<Space> + Send + Sync>,
    /// The directory of a replica, with its mark.
    directory: Option<PathBuf>,
    /// Tells the keeper to leave the rest.
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl OwnerThread {
    /// Runs `open` on the new thread, and the log behind it.
    pub(super) fn spawn<V: Volume>(
        open: impl FnOnce() -> Result<Store<V>, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let (command_sender, command_receiver) = mpsc::sync_channel(APPENDS_WAITING_MAX);
        let (read_sender, read_receiver) = mpsc::sync_channel(READS_WAITING_MAX);
        let (cursor_sender, cursor_receiver) = mpsc::sync_channel(CURSORS_WAITING_MAX);
        // One that waits is enough: the next look sees what this one would have.
        let (retain_sender, retain_receiver) = mpsc::sync_channel(1);
        let (opened_sender, opened_receiver) = mpsc::sync_channel(1);
        let owner = spawn_named("log", move || {
            let opened = open().map(|store| {
                (
                    store.clusterset().clone(),
                    store.shared(),
                    (store.history(), store.history()),
                    store.volume(),
                    store.keeper(),
                    store,
                )
            });
            match opened {
                Ok((clusterset, shared, history, volume, keeper, store)) => {
                    if opened_sender
                        .send(Ok((clusterset, shared, history, volume, keeper)))
                        .is_ok()
                    {
                        own(store, &command_receiver, &retain_sender);
                    }
                }
                // The opener waits for exactly this.
                Err(error) => drop(opened_sender.send(Err(error))),
            }
        });
        let (clusterset, shared, history, volume, keeper): (_, _, _, V, _) = opened_receiver
            .recv()
            .expect("the owner answers once, and opening catches panics")?;
        let (history, of_cursors) = history;
        let reader = spawn_named("log-reader", move || read(&history, &read_receiver));
        let cursors = spawn_named("log-cursors", move || read(&of_cursors, &cursor_receiver));
        let commands = command_sender.clone();
        let ending = keeper.ending();
        let keeper = spawn_named("log-keeper", move || keep(&keeper, &retain_receiver, &commands));
        Ok(Self {
            clusterset,
            shared,
            commands: command_sender,
            reads: read_sender,
            cursors: cursor_sender,
            space: Arc::new(move || volume.space()),
            directory: None,
            ending,
            threads: vec![reader, cursors, owner, keeper],
        })
    }

    /// The same as the replica of a directory, which may be marked.
    pub(super) fn in_directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_path_buf());
        self
    }
}

fn spawn_named(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let builder = std::thread::Builder::new().name(name.into());
    // Log lines there belong to the clusterset that starts it.
    let span = tracing::Span::current();
    let spawned = builder.spawn(move || span.in_scope(body));
    spawned.expect("the system starts a thread")
}

/// The owner's loop: a group of appends, one sync, a piece of a snapshot, again.
fn own<V: Volume>(
    mut store: Store<V>,
    commands: &Receiver<Command>,
    keeper: &SyncSender<(Retention, UnixMillis)>,
) {
    let mut waiting = None;
    loop {
        let command = match waiting.take() {
            Some(command) => Some(command),
            None if store.has_snapshot() => match commands.try_recv() {
                Ok(command) => Some(command),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Command::Stop),
            },
            None => Some(commands.recv().unwrap_or(Command::Stop)),
        };
        match command {
            Some(Command::Append(batch, done)) => waiting = append_group(&mut store, batch, done, commands),
            Some(Command::Apply(batch, answer)) => {
                // The caller waits for this, or its thread is gone.
                let _ = answer.send(store.apply(&batch));
            }
            Some(Command::Sync) => sync(&mut store),
            Some(Command::WriteSnapshot(at, rows, done)) => tell(store.start_snapshot(at, rows, done)),
            Some(Command::Seal(now, rows, done)) => tell(store.seal(now, rows, done)),
            // A log that has failed is left as it is.
            Some(Command::Retain(retention, now)) if store.alive().is_ok() => {
                let _ = keeper.try_send((retention, now));
            }
            Some(Command::Retain(..)) => {}
            Some(Command::Retained) => store.retained(),
            Some(Command::BeginEpoch(epoch, rows, answer)) => {
                tell(store.abandon_snapshot());
                // The caller waits for this, or its thread is gone.
                let _ = answer.send(store.begin_epoch(epoch, rows));
            }
            Some(Command::Stop) => {
                tell(store.abandon_snapshot());
                sync(&mut store);
                return;
            }
            None => {}
        }
        tell(store.step_snapshot());
    }
}

/// Makes durable what a replica applied. A failure is a state of the log.
fn sync<V: Volume>(store: &mut Store<V>) {
    if store.is_behind() {
        let _ = store.commit();
    }
}

/// The keeper's loop, until the owner ends. A segment that cannot be removed now is removed another time; the disk's
/// own failure shows at the next append. One warning for each reason, however often it is tried.
fn keep<V: Volume>(
    keeper: &Keeper<V>,
    looks: &Receiver<(Retention, UnixMillis)>,
    owner: &SyncSender<Command>,
) {
    let mut told = None;
    while let Ok((retention, now)) = looks.recv() {
        // A store panics on damaged files, and this thread survives it.
        let kept = sled::guard(|| keeper.retain(&retention, now));
        let failed = kept.map_err(LogError::from).flatten().err();
        if let Some(error) = &failed
            && failed != told
        {
            tracing::warn!(%error, "could not remove old segments of the event log; the next try follows");
        }
        told = failed;
        // An owner that is gone counts nothing any more.
        let _ = owner.send(Command::Retained);
    }
}

fn tell(told: Option<(SnapshotCompletion, Result<(), LogError>)>) {
    if let Some((done, outcome)) = told {
        done(outcome);
    }
}

/// Stages a batch and those that wait right behind it, syncs once, completes them in order. Gives back the
/// first command that is not an append.
fn append_group<V: Volume>(
    store: &mut Store<V>,
    batch: Batch,
    done: Completion,
    commands: &Receiver<Command>,
) -> Option<Command> {
    let mut group = vec![(store.stage(&batch), done)];
    let mut behind = None;
    while group.len() < APPENDS_WAITING_MAX {
        match commands.try_recv() {
            Ok(Command::Append(batch, done)) => group.push((store.stage(&batch), done)),
            Ok(other) => {
                behind = Some(other);
                break;
            }
            Err(_) => break,
        }
    }
    let any_staged = group.iter().any(|(staged, _)| staged.is_ok());
    let committed = if any_staged {
        store.commit().map(drop)
    } else {
        Ok(())
    };
    for (staged, done) in group {
        done(staged.and_then(|head| committed.clone().map(|()| head).map_err(Into::into)));
    }
    behind
}

enum Read {
    Job(ReadJob),
    Stop,
}

fn read<V: Volume>(history: &DurableHistory<V>, reads: &Receiver<Read>) {
    while let Ok(Read::Job(job)) = reads.recv() {
        job(history);
    }
}

struct Reads(SyncSender<Read>);

impl ReadQueue for Reads {
    fn try_submit(&self, job: ReadJob) -> Result<(), LogError> {
        self.0.try_send(Read::Job(job)).map_err(|error| match error {
            TrySendError::Full(_) => LogError::Busy,
            TrySendError::Disconnected(_) => LogError::Closed,
        })
    }

    fn submit(&self, job: ReadJob) -> Result<(), LogError> {
        self.0.send(Read::Job(job)).map_err(|_| LogError::Closed)
    }
}

impl Log for OwnerThread {
    fn clusterset(&self) -> &Clusterset {
        &self.clusterset
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn head(&self) -> Cursor {
        self.shared.head()
    }

    fn append(&mut self, batch: Batch, done: Completion) {
        // The owner ends only in drop, unless a bug made it panic.
        if let Err(SendError(Command::Append(_, done))) = self.commands.send(Command::Append(batch, done)) {
            done(Err(AppendError::Failed(Failure("its thread is gone".into()))));
        }
    }

    fn write_snapshot(&mut self, at: Cursor, rows: SnapshotRows, done: SnapshotCompletion) {
        let command = Command::WriteSnapshot(at, rows, done);
        if let Err(SendError(Command::WriteSnapshot(_, _, done))) = self.commands.send(command) {
            done(Err(LogError::Closed));
        }
    }

    fn seal(&mut self, now: UnixMillis, rows: SnapshotRows, done: SnapshotCompletion) {
        let command = Command::Seal(now, rows, done);
        if let Err(SendError(Command::Seal(_, _, done))) = self.commands.send(command) {
            done(Err(LogError::Closed));
        }
    }

    fn retain(&mut self, retention: Retention, now: UnixMillis) {
        // An owner that is gone removes nothing any more.
        let _ = self.commands.send(Command::Retain(retention, now));
    }

    fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let command = Command::BeginEpoch(epoch, rows, sender);
        self.commands.send(command).map_err(|_| LogError::Closed)?;
        receiver.recv().unwrap_or(Err(LogError::Closed))
    }

    fn reader(&self) -> LogReader {
        LogReader::new(Reads(self.reads.clone()))
    }

    fn cursors(&self) -> LogReader {
        LogReader::new(Reads(self.cursors.clone()))
    }

    fn space(&self) -> Option<Space> {
        (self.space)()
    }

    fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Replica for OwnerThread {
    fn apply(&mut self, batch: Batch) -> Result<Cursor, AppendError> {
        let gone = || AppendError::Failed(Failure("its thread is gone".into()));
        let (sender, receiver) = mpsc::sync_channel(1);
        self.commands
            .send(Command::Apply(batch, sender))
            .map_err(|_| gone())?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    fn begin_sync(&mut self) {
        // An owner that is gone shows at the next batch.
        let _ = self.commands.try_send(Command::Sync);
    }

    fn synced(&self) -> Cursor {
        self.shared.synced()
    }

    fn view(&self) -> ReplicaView {
        ReplicaView {
            clusterset: self.clusterset.clone(),
            shared: Arc::clone(&self.shared),
            reader: self.reader(),
            cursors: self.cursors(),
            space: Arc::clone(&self.space),
        }
    }

    fn mark(&mut self, engine: &str) -> io::Result<()> {
        match &self.directory {
            Some(directory) => replica::write_mark(directory, engine),
            None => Ok(()),
        }
    }

    fn marked(&self) -> io::Result<Option<String>> {
        self.directory.as_deref().map_or(Ok(None), replica::read_mark)
    }
}

impl Drop for OwnerThread {
    /// Writes pending appends first; then the threads end and the store is closed.
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        let _ = self.reads.send(Read::Stop);
        let _ = self.cursors.send(Read::Stop);
        let _ = self.commands.send(Command::Stop);
        for thread in self.threads.drain(..) {
            // A panic of theirs has been printed where it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
