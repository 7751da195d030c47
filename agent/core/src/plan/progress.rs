//! Owns: the position up to which the hub's objects are applied in this cluster: the services that are not at rest and
//! since when, the parked ones, and the positions that wait for them. Pure bookkeeping: time is an argument, and what a
//! service needs is the plan's to say.
//!
//! A position is reached when every service that was touched before it was planned, after that, to the end. A parked
//! service holds no position back, and is counted instead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{
    Cursor, Epoch, ServiceKey,
    sync::{Applied, PARKED_AGE_MAX_MILLIS, PARKED_NAMED_MAX},
};

/// Most positions that wait to be reached; a later one replaces the newest.
pub const POSITIONS_WAITING_MAX: usize = 64;

/// The outcome of work on a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The objects match what was sent.
    Stands,
    /// Only other content or somebody's hand helps: it is refused or fails for long, is fought over, or its name is taken.
    Parked,
    /// It is not known yet, or will be tried again.
    Open,
}

/// The position to report to the hub, and whether it is new.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// The position applied.
    pub applied: Applied,
    /// Grows when a sent object is reached or parked: growth is reported soon.
    pub changes: u64,
}

/// Since when: how many there are at each number, to ask for the least.
#[derive(Debug, Clone, Default)]
struct Since(BTreeMap<u64, usize>);

/// A service that was touched and is not at rest since.
#[derive(Debug, Clone, Copy)]
struct Touches {
    first: u64,
    last: u64,
}

#[derive(Debug, Clone, Copy)]
struct Parking {
    /// Milliseconds.
    since: u64,
    /// The last touch.
    touched: u64,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    tick: u64,
    cursor: Cursor,
    /// Something was sent between the one before and this one.
    has_content: bool,
}

/// The bookkeeping.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Numbers what the hub said, in order.
    tick: u64,
    open: BTreeMap<ServiceKey, Touches>,
    open_since: Since,
    parked: BTreeMap<ServiceKey, Parking>,
    parked_since: Since,
    positions: VecDeque<Position>,
    told: Option<Cursor>,
    has_content: bool,
    reached: Option<Cursor>,
    changes: u64,
}

impl Progress {
    /// The hub said something that touches `services`, after which everything up to `cursor` has been received.
    /// True when a position is reached by it.
    pub fn received(&mut self, services: &BTreeSet<ServiceKey>, cursor: Option<Cursor>) -> bool {
        if !services.is_empty() {
            self.tick += 1;
            self.has_content = true;
        }
        for service in services {
            self.touch(service);
        }
        let Some(cursor) = cursor.filter(|cursor| self.told != Some(*cursor)) else {
            return false;
        };
        self.told = Some(cursor);
        let mut position = Position {
            tick: self.tick,
            cursor,
            has_content: std::mem::take(&mut self.has_content),
        };
        if self.positions.len() >= POSITIONS_WAITING_MAX
            && let Some(newest) = self.positions.pop_back()
        {
            position.has_content |= newest.has_content;
        }
        self.positions.push_back(position);
        self.advance()
    }

    /// Everything was sent anew, perhaps by a hub whose log was rewound: earlier progress does not count for it.
    pub fn begin_anew(&mut self) {
        self.positions.clear();
        (self.told, self.reached) = (None, None);
    }

    /// Marks a service as changed. A parked one stays parked until it has been tried.
    fn touch(&mut self, service: &ServiceKey) {
        let tick = self.tick;
        if let Some(parking) = self.parked.get_mut(service) {
            parking.touched = tick;
        } else if let Some(touches) = self.open.get_mut(service) {
            touches.last = tick;
        } else {
            self.reopen(service, tick, tick);
        }
    }

    fn reopen(&mut self, service: &ServiceKey, first: u64, last: u64) {
        self.open_since.add(first);
        self.open.insert(service.clone(), Touches { first, last });
    }

    /// The work on a service begins: what was received until now it takes into account.
    pub fn began(&self) -> u64 {
        self.tick
    }

    /// The work that `began` then has ended, in milliseconds of a monotonic clock. True when there is news.
    pub fn ended(&mut self, service: &ServiceKey, began: u64, end: End, now: u64) -> bool {
        let parked = match end {
            End::Open => return false,
            End::Stands => self.stands(service, began),
            End::Parked => self.park(service, now),
        };
        self.changes += u64::from(parked);
        self.advance() || parked
    }

    /// True when it was parked.
    fn stands(&mut self, service: &ServiceKey, began: u64) -> bool {
        let open = self.open.remove(service);
        let parked = self.parked.remove(service);
        if let Some(touches) = open {
            self.open_since.remove(touches.first);
        }
        if let Some(parking) = parked {
            self.parked_since.remove(parking.since);
        }
        let touches = open.map(|touches| touches.last);
        let last = touches.max(parked.map(|parking| parking.touched));
        if let Some(last) = last.filter(|last| *last > began) {
            // Objects sent meanwhile are not in it.
            self.reopen(service, began + 1, last);
        }
        parked.is_some()
    }

    /// True when it was not.
    fn park(&mut self, service: &ServiceKey, now: u64) -> bool {
        let open = self.open.remove(service);
        if let Some(touches) = open {
            self.open_since.remove(touches.first);
        }
        if self.parked.contains_key(service) {
            return false;
        }
        let parking = Parking {
            since: now,
            touched: open.map_or(0, |touches| touches.last),
        };
        self.parked.insert(service.clone(), parking);
        self.parked_since.add(now);
        true
    }

    /// Takes the positions over that nothing holds back any more; true when there was content among them.
    fn advance(&mut self) -> bool {
        let before = self.changes;
        let held_from = self.open_since.least().unwrap_or(u64::MAX);
        while let Some(position) = self.positions.pop_front_if(|position| position.tick < held_from) {
            self.reached = Some(position.cursor);
            self.changes += u64::from(position.has_content);
        }
        self.changes > before
    }

    /// Services with open or parked work: planning everything anew includes these.
    pub fn services(&self) -> impl Iterator<Item = &ServiceKey> {
        self.open.keys().chain(self.parked.keys())
    }

    /// The position to report to the hub now, in milliseconds of the clock of [`Progress::ended`]. `epoch` is the epoch
    /// in which the hub has sent everything; a position of another epoch means nothing to it.
    pub fn reach(&self, epoch: Option<Epoch>, now: u64) -> Reach {
        let age = |since: u64| now.saturating_sub(since).min(PARKED_AGE_MAX_MILLIS);
        let applied = Applied {
            cursor: self.reached.filter(|cursor| Some(cursor.epoch) == epoch),
            parked: u32::try_from(self.parked.len()).unwrap_or(u32::MAX),
            oldest_parked_age_millis: self.parked_since.least().map_or(0, age),
            parked_services: self.parked.keys().take(PARKED_NAMED_MAX).cloned().collect(),
        };
        Reach {
            applied,
            changes: self.changes,
        }
    }
}

impl Since {
    fn add(&mut self, at: u64) {
        *self.0.entry(at).or_default() += 1;
    }

    fn remove(&mut self, at: u64) {
        if let Some(count) = self.0.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&at);
            }
        }
    }

    fn least(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }
}
