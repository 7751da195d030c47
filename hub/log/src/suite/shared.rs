//! A place whose log several hubs could share: an engine and a disk in memory. Each opening is another process of one hub.

use std::sync::{Arc, Mutex};

use model::Epoch;
use replication::testing::SimulatedEngine;

use super::{Place, clusterset, with_version_1};
use crate::{
    Batch, Log, MemoryDisk, MemoryLog,
    replicated::{
        Happened, Stepped,
        hubs::{at, engine, part, settings},
    },
};

/// Milliseconds between two steps.
const STEP: u64 = 25;
/// Steps until the hub leads: the process before did not say that it ends.
const STEPS_MAX: u64 = 200;

pub(super) struct SharedPlace {
    engine: SimulatedEngine,
    disk: MemoryDisk,
    /// Time, and the number of processes.
    now: Mutex<(u64, u8)>,
}

impl Default for SharedPlace {
    fn default() -> Self {
        Self {
            engine: engine(),
            disk: MemoryDisk::default(),
            now: Mutex::default(),
        }
    }
}

impl Place for SharedPlace {
    fn make_version_1(&self) {
        with_version_1(&self.disk);
    }

    fn open_in(&self, epoch: Epoch) -> Box<dyn Log> {
        let mut now = self.now.lock().unwrap();
        now.1 = now.1.wrapping_add(1);
        let replica = MemoryLog::open(&self.disk, &clusterset(), epoch).unwrap();
        let part = part(
            settings("a", now.1, true),
            Arc::new(self.engine.clone()),
            Some(replica),
        );
        let part = Stepped::start(part, at(now.0)).unwrap();
        part.set_able(true);
        for _ in 0..STEPS_MAX {
            now.0 += STEP;
            for happened in part.advance(at(now.0)) {
                if let Happened::Leads(lead) = happened {
                    return lead.log;
                }
            }
        }
        panic!("it does not lead: {:?}", part.standing());
    }
}

/// Appends payloads in as few batches as the log takes.
pub(super) fn append_all(log: &mut dyn Log, payloads: Vec<Vec<u8>>) {
    let limits = log.limits();
    let mut payloads = payloads.into_iter().peekable();
    while payloads.peek().is_some() {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(payload) = payloads.next_if(|next| {
            batch.is_empty()
                || (batch.len() < limits.batch_events && bytes + next.len() <= limits.batch_bytes)
        }) {
            bytes += payload.len();
            batch.push(payload);
        }
        let batch = Batch::new(log.head(), batch).unwrap();
        assert_eq!(log.append_and_wait(batch.clone()), Ok(batch.head_after()));
    }
}
