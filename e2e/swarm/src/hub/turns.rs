//! Turns within a hub: drawn, one step at a time, or everybody's in a round.

use hub_core::{
    clock::Moment,
    writer::{Work, WriterError},
};

use super::{Hub, Left, Recorded};
use crate::{draw::Draw, histogram::Histogram, network::Network};

impl Hub {
    /// One turn of one part.
    pub(crate) fn turn(
        &mut self,
        draw: &mut Draw,
        network: &mut Network,
        at: Moment,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
    ) {
        let streams = self.streams();
        let stream = streams.get(draw.index(streams.len())).copied();
        match (draw.below(16), stream) {
            (0..=2, Some(id)) => drop(self.listen(id, network, at, seen)),
            (3, Some(id)) => drop(self.judge(id)),
            (4 | 5, Some(id)) => drop(self.hand_over(id, at)),
            (6, Some(id)) => drop(self.hear(id, network, at, seen)),
            (7..=9, Some(id)) => drop(self.speak(id, network, at.now(), (seen, trace))),
            (10, Some(id)) => drop(self.check_silence(id, network, at.now(), seen)),
            (11, _) => self.tick(at),
            (12, _) => drop(self.take(at) | self.farewell(at)),
            (13, _) => drop(self.step(at, seen)),
            (14, _) => self.sync(seen),
            (15, _) => drop(self.complete(at)),
            _ => {}
        }
    }

    /// Everybody's turn; false when nobody had anything to do.
    pub(crate) fn round(
        &mut self,
        network: &mut Network,
        at: Moment,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
    ) -> bool {
        let mut something = false;
        // A look at the clock is nothing by itself: what follows from it is what counts.
        self.tick(at);
        self.make_room(at);
        for id in self.streams() {
            something |= self.check_silence(id, network, at.now(), seen);
            while let Some(news) = self.listen(id, network, at, seen) {
                something |= news;
            }
            something |= self.judge(id);
            while self.hand_over(id, at) {
                something = true;
                self.make_room(at);
            }
        }
        while self.farewell(at) {
            something = true;
            self.make_room(at);
        }
        // What is not synced yet is nobody's business, and sessions speak all the same.
        something |= self.append(at, seen);
        something |= self.talk(network, at, (&mut *seen, &mut *trace));
        something |= self.write(at, seen);
        something |= self.talk(network, at, (seen, trace));
        something
    }

    /// Sessions say all that they have to, some of it before they hear what they are told.
    fn talk(
        &mut self,
        network: &mut Network,
        at: Moment,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
    ) -> bool {
        let mut something = false;
        for id in self.streams() {
            while self.speak(id, network, at.now(), (&mut *seen, &mut *trace)) {
                something = true;
            }
            while self.hear(id, network, at, seen) {
                something = true;
            }
            while self.speak(id, network, at.now(), (&mut *seen, &mut *trace)) {
                something = true;
            }
        }
        something
    }

    /// It has written what it has heard by now, and not synced it.
    pub(crate) fn write_unsynced(&mut self, network: &mut Network, at: Moment, seen: &mut Histogram) {
        for id in self.streams() {
            while self.listen(id, network, at, seen).is_some() {}
            while self.hand_over(id, at) {
                self.make_room(at);
            }
        }
        self.append(at, seen);
    }

    /// The writer does what it can before the disk has answered.
    fn append(&mut self, at: Moment, seen: &mut Histogram) -> bool {
        let mut something = false;
        while self.failed.is_none() && self.step(at, seen) {
            something = true;
        }
        something
    }

    /// The writer takes what it can, so that the next one finds room.
    fn make_room(&mut self, at: Moment) {
        while self.take(at) {}
    }

    /// The writer and the disk go on as far as they can.
    fn write(&mut self, at: Moment, seen: &mut Histogram) -> bool {
        let mut something = false;
        loop {
            let mut went_on = self.take(at) | self.step(at, seen);
            self.sync(seen);
            went_on |= self.complete(at);
            something |= went_on;
            if !went_on || self.failed.is_some() {
                return something;
            }
        }
    }

    /// Stops in order: sessions are told, what waits is made durable, a snapshot is written. What is durable then comes
    /// back beside the outcome.
    pub(crate) fn stop(
        mut self,
        network: &mut Network,
        at: Moment,
        seen: &mut Histogram,
    ) -> (Result<(), WriterError>, Recorded, Left) {
        for id in self.streams() {
            network.hub_leaves(id, "the hub is shutting down");
        }
        self.leaving
            .extend(std::mem::take(&mut self.sessions).into_values());
        loop {
            self.write(at, seen);
            if self.failed.is_some() || !self.farewell(at) {
                break;
            }
        }
        self.writer.take(Work::Stop, at);
        self.write(at, seen);
        let (recorded, left) = (self.recorded(), Left::by(&self));
        if self.failed.is_some() {
            return (Ok(()), recorded, left);
        }
        self.log.hold_syncs(false);
        (self.writer.finish(), recorded, left)
    }
}
