//! The writer's side of a hub: batches are appended, synced, and only then what they did is released. Epochs begin
//! and snapshots are written here.

use hub::{
    fold::TOMBSTONES_MAX,
    log::{self, Log},
    session::machine::Admission,
    wire as hub_wire,
    writer::{Batch, NotAdmitted, Reply, Token, view_of},
};
use shared::model::SessionId;

use super::{Asking, HOLDER_ANSWER_MILLIS, Histogram, Hub, HubSession, Moment, Network, StreamId, lock};

/// Bytes of objects after which a message is full: worlds are small, and their snapshots are to take several.
const CHUNK_BYTES: usize = 300;

impl Hub {
    /// Hands the batch to the log. What it did is released when it is synced.
    pub(in crate::verify::swarm) fn append(&mut self) -> bool {
        let mut batch = self.core.take_batch();
        let empty = batch.events.is_empty();
        if empty && batch.replies.is_empty() && batch.publications.is_empty() && batch.sources.is_none() {
            return false;
        }
        if !empty {
            let expected = self.in_flight.iter().rev().map(|batch| batch.head).next();
            let events = std::mem::take(&mut batch.events);
            let appended = log::Batch::chained(expected.unwrap_or(self.log.head()), events);
            let appended = appended.expect("a small world has small batches");
            let done = self.done.clone();
            self.log
                .append(appended, Box::new(move |outcome| lock(&done).push(outcome)));
        }
        self.in_flight.push_back(batch);
        true
    }

    /// Syncs, and releases what became durable.
    pub(in crate::verify::swarm) fn sync(
        &mut self,
        network: &mut Network,
        at: Moment,
        seen: &mut Histogram,
    ) -> bool {
        self.log.sync();
        let outcomes = std::mem::take(&mut *lock(&self.done));
        if let Some(Err(error)) = outcomes.into_iter().find(Result::is_err) {
            self.failed = Some(error.to_string());
            return true;
        }
        let released: Vec<Batch> = self.in_flight.drain(..).collect();
        let something = !released.is_empty();
        for batch in released {
            self.release(batch, network, at, seen);
        }
        self.begin_epoch_if_due(network, at, seen) || something
    }

    fn release(&mut self, batch: Batch, network: &mut Network, at: Moment, seen: &mut Histogram) {
        self.promised = batch.head;
        self.view.publish(batch.head, batch.publications, TOMBSTONES_MAX);
        self.view.set_sources(batch.sources.into_iter().flatten());
        for reply in batch.replies {
            match reply {
                Reply::Admitted(token, admission) => {
                    let id = self.admitting.remove(&token);
                    let Some(session) = id.and_then(|id| self.sessions.get_mut(&id)) else {
                        continue;
                    };
                    seen.count(if admission.welcome.resume {
                        "resume"
                    } else {
                        "snapshot"
                    });
                    session.admitted = Some(admission.welcome.session);
                    session.request = None;
                    session.machine.on_admitted(Admission {
                        chunk_bytes: CHUNK_BYTES,
                        ..*admission
                    });
                }
                Reply::NotAdmitted(token, why) => self.not_admitted(token, why, network, at),
                Reply::Acknowledged(session, sequence) => {
                    if let Some(session) = self.admitted(session) {
                        session.machine.on_acknowledged(sequence);
                    }
                }
                Reply::Refused(session, refused) => {
                    seen.count("item refused");
                    if let Some(session) = self.admitted(session) {
                        session.machine.on_refused(refused);
                    }
                }
                Reply::Close(session, why) => {
                    let closed = |(_, one): &(&StreamId, &HubSession)| one.admitted == Some(session);
                    if let Some(id) = self.sessions.iter().find(closed).map(|(id, _)| *id) {
                        if why.contains("took over") {
                            seen.count("second session took over");
                        }
                        self.close(id, network, &why);
                    }
                }
                Reply::Operated(..) => {}
            }
        }
    }

    fn admitted(&mut self, session: SessionId) -> Option<&mut HubSession> {
        self.sessions
            .values_mut()
            .find(|one| one.admitted == Some(session))
    }

    fn not_admitted(&mut self, token: Token, why: NotAdmitted, network: &mut Network, at: Moment) {
        let Some(id) = self.admitting.remove(&token) else {
            return;
        };
        let NotAdmitted::Held(holder) = why else {
            self.close(id, network, &format!("{why:?}"));
            return;
        };
        if let Some(session) = self.admitted(holder.session) {
            session.machine.ping(token);
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.asking = Some(Asking {
                holder: holder.session,
                until: at.now + HOLDER_ANSWER_MILLIS,
                answered: false,
            });
        }
    }

    fn begin_epoch_if_due(&mut self, network: &mut Network, at: Moment, seen: &mut Histogram) -> bool {
        // What was taken meanwhile belongs to the old epoch.
        if self.core.must_mint().is_none() || self.core.pending().0 > 0 {
            return false;
        }
        let Some(known) = self.core.must_mint() else {
            return false;
        };
        let head = self.log.head();
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let epoch = known.max(head.epoch).next(at.wall, self.random);
        let mut carried = self.core.state().clone();
        carried.begin_epoch();
        match self
            .log
            .begin_epoch(epoch, Box::new(hub_wire::snapshot::rows(carried)))
        {
            Ok(head) => self.core.epoch_begun(head),
            Err(error) => {
                self.failed = Some(error.to_string());
                return true;
            }
        }
        seen.count("epoch begun");
        self.view.replace(view_of(self.core.state(), self.log.head()));
        let batch = self.core.take_batch();
        self.release(batch, network, at, seen);
        true
    }

    /// Writes a snapshot, when everything that was applied is durable.
    pub(in crate::verify::swarm) fn snapshot(&mut self) {
        if self.in_flight.is_empty() && self.core.pending().0 == 0 && self.core.head() == self.log.head() {
            let rows = hub_wire::snapshot::rows(self.core.state().clone());
            self.log
                .write_snapshot(self.log.head(), Box::new(rows), Box::new(|_| {}));
        }
    }

    /// Stops in order: the last batch is released, sessions are told.
    pub(in crate::verify::swarm) fn stop(mut self, network: &mut Network, at: Moment, seen: &mut Histogram) {
        self.append();
        self.sync(network, at, seen);
        self.snapshot();
        self.log.sync();
        for id in self.streams() {
            network.hub_leaves(id, "the hub is shutting down");
        }
    }
}
