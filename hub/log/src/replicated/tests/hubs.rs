//! Hubs over one simulated engine, each with a disk in memory, stepped by a test.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Instant,
};

use model::{Clusterset, Cursor, Epoch, UnixMillis};
use replication::{
    engine::{Answered, Engine, EngineId, Instance, Keys, LogName, Replica as Name, Request},
    machine::{Now, Settings, Standing, TAIL_BYTES, TAIL_BYTES_MAX, TermEnd},
    testing::{LinkFaults, SimulatedEngine},
};

use super::super::{Fold, Happened, Part, Running, Stepped};
use crate::{
    Faults, Log, LogError, LogReader, MemoryDisk, MemoryLog, ReplayItem, Replica, SnapshotRows, StoredEvent,
    open_replica,
};

/// An event that no fold here takes.
pub(in super::super) const NEWER: &str = "of a newer build";
const TICK: u64 = 25;

pub(in super::super) fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

pub(in super::super) fn epoch(number: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(number),
        random: 7,
    }
}

/// The payloads of a log, as its state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payloads(Vec<Vec<u8>>);

impl Payloads {
    pub(crate) fn of(reader: &LogReader) -> Result<Self, LogError> {
        let mut found = Self::default();
        reader.replay(|item| {
            match item {
                ReplayItem::Snapshot(_) => {}
                ReplayItem::Row(payload) => found.0.push(payload),
                ReplayItem::Event(event) => found.0.push(event.payload),
            }
            Ok::<_, LogError>(())
        })?;
        Ok(found)
    }
}

impl Fold for Payloads {
    fn take(&mut self, event: StoredEvent, _: bool) -> Result<(), String> {
        if event.payload == NEWER.as_bytes() {
            return Err("unknown".into());
        }
        self.0.push(event.payload);
        Ok(())
    }

    fn rows(&self) -> SnapshotRows {
        Box::new(self.0.clone().into_iter())
    }

    fn begin_epoch(&mut self, _: Cursor) {}

    fn term(&self) -> u64 {
        0
    }
}

/// A log's snapshot and events, as text.
pub(in super::super) fn texts(log: &dyn Replica) -> Vec<String> {
    let found = Payloads::of(&log.reader()).unwrap();
    found
        .0
        .into_iter()
        .map(|text| String::from_utf8(text).unwrap())
        .collect()
}

/// The engine over a path of one hub.
struct Route {
    engine: SimulatedEngine,
    link: Mutex<LinkFaults>,
    asked: AtomicUsize,
}

impl Engine for Route {
    fn ask(&self, request: Request, done: Answered) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let link = *self.link.lock().unwrap();
        self.engine.ask_over(link, request, done);
    }
}

struct Hub {
    name: String,
    disk: MemoryDisk,
    replica: Option<MemoryLog>,
    path: Arc<Route>,
    part: Stepped<Payloads>,
    is_paused: bool,
    log: Option<Box<dyn Log>>,
    folded: Option<Payloads>,
    ends: Vec<TermEnd>,
    has_failed: bool,
}

/// Hubs, and the time.
pub(in super::super) struct Hubs {
    engine: SimulatedEngine,
    hubs: Vec<Hub>,
    now: u64,
    instances: u8,
}

pub(crate) fn settings(name: &str, instance: u8, is_origin: bool) -> Settings {
    Settings {
        clusterset: clusterset(),
        replica: Name::new(name).unwrap(),
        instance: Instance([instance; 8]),
        address: "hub:1".to_owned(),
        version: "1".to_owned(),
        rules: 1,
        takeover_after_millis: 1_500,
        origin: is_origin.then_some(EngineId([7; 16])),
        random: u64::from(instance),
        tail_bytes: TAIL_BYTES,
        tail_bytes_max: TAIL_BYTES_MAX,
    }
}

pub(crate) fn at(ticks: u64) -> Now {
    Now {
        ticks,
        time: UnixMillis(1_000_000 + ticks),
    }
}

pub(crate) fn engine() -> SimulatedEngine {
    SimulatedEngine::new(Keys::new(&clusterset(), LogName::Events), 1)
}

/// A part over a disk in memory.
pub(crate) fn part(
    settings: Settings,
    engine: Arc<dyn Engine>,
    replica: Option<MemoryLog>,
) -> Part<Payloads> {
    Part {
        settings,
        engine,
        replica: replica.map(|replica| Box::new(replica) as Box<dyn Replica>),
        refold: Box::new(|reader| Payloads::of(&reader)),
        new_replica: Box::new(|_| Err(LogError::Closed)),
    }
}

impl Hubs {
    /// Hubs that all have the same empty log; the first brings it into the engine.
    pub(in super::super) fn new(names: &[&str]) -> Self {
        let mut hubs = Self {
            engine: engine(),
            hubs: Vec::new(),
            now: 0,
            instances: 0,
        };
        for name in names {
            let disk = MemoryDisk::default();
            let is_origin = hubs.hubs.is_empty();
            let replica = MemoryLog::open(&disk, &clusterset(), epoch(1)).unwrap();
            let hub = hubs.hub(name, is_origin, disk, Some(replica));
            hubs.hubs.push(hub);
        }
        hubs
    }

    fn hub(&mut self, name: &str, is_origin: bool, disk: MemoryDisk, replica: Option<MemoryLog>) -> Hub {
        self.instances += 1;
        let path = Arc::new(Route {
            engine: self.engine.clone(),
            link: Mutex::default(),
            asked: AtomicUsize::new(0),
        });
        let settings = settings(name, self.instances, is_origin);
        let part = part(settings, Arc::clone(&path) as Arc<dyn Engine>, replica.clone());
        let part = Stepped::start(part, at(self.now)).unwrap();
        part.set_able(true);
        Hub {
            name: name.to_owned(),
            disk,
            replica,
            path,
            part,
            is_paused: false,
            log: None,
            folded: None,
            ends: Vec::new(),
            has_failed: false,
        }
    }

    /// One with an empty disk comes.
    pub(in super::super) fn join(&mut self, name: &str) -> usize {
        let hub = self.hub(name, false, MemoryDisk::default(), None);
        self.hubs.push(hub);
        self.hubs.len() - 1
    }

    pub(in super::super) fn now(&self) -> u64 {
        self.now
    }

    pub(in super::super) fn pass(&mut self, millis: u64) {
        for _ in 0..millis / TICK {
            self.now += TICK;
            self.engine.advance(self.now);
            for hub in self.hubs.iter_mut().filter(|hub| !hub.is_paused) {
                for happened in hub.part.advance(at(self.now)) {
                    match happened {
                        Happened::Leads(lead) => {
                            hub.log = Some(lead.log);
                            hub.folded = Some(lead.fold);
                        }
                        Happened::Ended(end) => hub.ends.push(end),
                        Happened::MustCopy { .. } => {}
                        Happened::Failed(_) => hub.has_failed = true,
                    }
                }
            }
        }
    }

    /// Waits until a hub leads.
    pub(in super::super) fn lead(&mut self, index: usize) -> Box<dyn Log> {
        for _ in 0..1_000 {
            if let Some(log) = self.hubs[index].log.take() {
                return log;
            }
            self.pass(TICK);
        }
        panic!("hub {index} does not lead: {:?}", self.standing(index));
    }

    pub(in super::super) fn standing(&self, index: usize) -> Standing {
        self.hubs[index].part.standing()
    }

    pub(in super::super) fn replica(&self, index: usize) -> &MemoryLog {
        self.hubs[index].replica.as_ref().unwrap()
    }

    /// The state with which a hub took the lead, as text.
    pub(in super::super) fn folded(&self, index: usize) -> Vec<String> {
        let folded = self.hubs[index].folded.clone().unwrap();
        folded
            .0
            .into_iter()
            .map(|text| String::from_utf8(text).unwrap())
            .collect()
    }

    pub(in super::super) fn ends(&self, index: usize) -> &[TermEnd] {
        &self.hubs[index].ends
    }

    pub(in super::super) fn has_failed(&self, index: usize) -> bool {
        self.hubs[index].has_failed
    }

    pub(in super::super) fn asked(&self, index: usize) -> usize {
        self.hubs[index].path.asked.load(Ordering::Relaxed)
    }

    pub(in super::super) fn pause(&mut self, index: usize) {
        self.hubs[index].is_paused = true;
        let nothing = LinkFaults {
            requests: true,
            answers: true,
        };
        *self.hubs[index].path.link.lock().unwrap() = nothing;
    }

    pub(in super::super) fn resume(&mut self, index: usize) {
        self.hubs[index].is_paused = false;
        *self.hubs[index].path.link.lock().unwrap() = LinkFaults::default();
    }

    /// Requests of a hub arrive, and it hears nothing, until five seconds have passed.
    pub(in super::super) fn lose_answers(&mut self, index: usize) {
        *self.hubs[index].path.link.lock().unwrap() = LinkFaults {
            requests: false,
            answers: true,
        };
    }

    pub(in super::super) fn hold_syncs(&mut self, index: usize) {
        self.replica(index).hold_syncs(true);
    }

    pub(in super::super) fn fill_disk(&mut self, index: usize) {
        self.hubs[index].disk.set_faults(Faults {
            writes_before_full: Some(0),
            ..Faults::default()
        });
    }

    /// The machine of a hub stops, and a new process starts over what was durable.
    pub(in super::super) fn crash(&mut self, index: usize) {
        let (name, disk) = (self.hubs[index].name.clone(), self.hubs[index].disk.clone());
        self.hubs[index].disk.crash(0);
        let replica = MemoryLog::open(&disk, &clusterset(), epoch(1)).unwrap();
        self.hubs[index] = self.hub(&name, false, disk, Some(replica));
    }

    /// Copies the log of one hub to another.
    pub(in super::super) fn copy(&mut self, from: usize, to: usize) {
        let disk = self.hubs[from].disk.copy();
        let replica = MemoryLog::open(&disk, &clusterset(), epoch(1)).unwrap();
        self.hubs[to].part.copied(Box::new(replica.clone()));
        (self.hubs[to].disk, self.hubs[to].replica) = (disk, Some(replica));
    }
}

/// A part on a thread over a directory, on a clock ten times as fast; its engine is new, and its log's term is one more each
/// time.
pub(in super::super) fn running(directory: &Path, term: u64) -> (Running, Box<dyn Log>) {
    let started = Instant::now();
    let clock = move || at(started.elapsed().as_micros() as u64 / 100);
    let replica = open_replica(directory, &clusterset(), epoch(1)).unwrap();
    let engine = engine();
    let dir = directory.to_path_buf();
    let part = Part {
        settings: settings("a", term as u8, true),
        engine: Arc::new(engine),
        replica: Some(replica),
        refold: Box::new(move |reader| {
            let found = Payloads::of(&reader)?;
            Ok(Counted(found, term - 1))
        }),
        new_replica: Box::new(move |at| {
            open_replica(&dir, &clusterset(), at.epoch).map_err(|error| LogError::Refused(error.to_string()))
        }),
    };
    let (sender, receiver) = mpsc::channel();
    let running = Running::start(part, Box::new(clock), move |happened| {
        let _ = sender.send(happened);
    });
    let running = running.unwrap();
    running.set_able(true);
    loop {
        if let Happened::Leads(lead) = receiver.recv().unwrap() {
            return (running, lead.log);
        }
    }
}

/// Payloads in which so many terms are.
struct Counted(Payloads, u64);

impl Fold for Counted {
    fn take(&mut self, event: StoredEvent, is_level: bool) -> Result<(), String> {
        self.0.take(event, is_level)
    }

    fn rows(&self) -> SnapshotRows {
        self.0.rows()
    }

    fn begin_epoch(&mut self, head: Cursor) {
        self.0.begin_epoch(head);
    }

    fn term(&self) -> u64 {
        self.1
    }
}
