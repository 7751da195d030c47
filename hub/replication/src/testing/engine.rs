//! An engine in memory that does what real ones were seen to do: requests take effect later or never, answers are lost,
//! everything stands still for a while, the contents go back to earlier ones. A seed decides all of it, and time is an
//! argument.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{contents::Contents, dice::Dice};
use crate::engine::{Answer, Answered, Engine, EngineError, Head, Keys, Request};

/// After so many milliseconds without an answer a client gives up, unless it is slow.
const GIVE_UP_MILLIS: u64 = 400;
/// A slow client gives up after this.
const GIVE_UP_SLOW_MILLIS: u64 = 2_900;
/// Longest delay of an effect that comes late.
const LATE_MILLIS_MAX: u64 = 6_000;

/// The rate of each fault, in a thousand requests. With the default every request is performed and answered within
/// the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Longest delay, in milliseconds, of an effect and of an answer that are not late; 0: everything is immediate.
    pub latency_millis: u64,
    /// The request takes effect up to seconds later.
    pub late: u64,
    /// The request never takes effect.
    pub never: u64,
    /// The request takes effect, and its answer is lost.
    pub answer_lost: u64,
    /// The answer is seconds late, and the client waits for it.
    pub answer_late: u64,
}

/// The losses of a path between a hub and the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkFaults {
    /// Requests on their way.
    pub requests: bool,
    /// Answers on their way.
    pub answers: bool,
}

/// An engine in memory. A clone is another handle of the same engine.
#[derive(Clone)]
pub struct SimulatedEngine(Arc<Mutex<Inner>>);

struct Inner {
    contents: Contents,
    /// Each head that was written.
    heads: Vec<Head>,
    faults: Faults,
    dice: Dice,
    now: u64,
    still_until: u64,
    asked: u64,
    /// By time, then by the order in which they were planned.
    planned: BTreeMap<(u64, u64), Planned>,
    order: u64,
    waiting: BTreeMap<u64, Answered>,
}

enum Planned {
    /// The request takes effect; its answer, unless it is lost, comes so many milliseconds later.
    Effect(u64, Request, Option<u64>),
    Answer(u64, Result<Answer, EngineError>),
    GiveUp(u64),
}

type Told = Vec<(Answered, Result<Answer, EngineError>)>;

impl SimulatedEngine {
    /// An empty engine.
    pub fn new(keys: Keys, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            contents: Contents::new(keys),
            heads: Vec::new(),
            faults: Faults::default(),
            dice: Dice::new(seed),
            now: 0,
            still_until: 0,
            asked: 0,
            planned: BTreeMap::new(),
            order: 0,
            waiting: BTreeMap::new(),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// Sets whether values can be written.
    pub fn set_room(&self, has_room: bool) {
        self.inner().contents.has_room = has_room;
    }

    /// Nothing takes effect and nothing is answered for so many milliseconds.
    pub fn stand_still(&self, millis: u64) {
        let mut inner = self.inner();
        inner.still_until = inner.still_until.max(inner.now + millis);
    }

    /// A copy of the contents, for [`SimulatedEngine::restore`].
    pub fn backup(&self) -> Backup {
        Backup(self.inner().contents.clone())
    }

    /// The contents are earlier ones again; what is on its way stays so.
    pub fn restore(&self, backup: &Backup) {
        let mut inner = self.inner();
        inner.contents = backup.0.clone();
        inner.note_head();
    }

    /// Number of heads written so far.
    pub fn head_count(&self) -> usize {
        self.inner().heads.len()
    }

    /// The heads that were written after so many, in order.
    pub fn heads_after(&self, count: usize) -> Vec<Head> {
        self.inner().heads[count..].to_vec()
    }

    /// Takes a request over a path with faults.
    pub fn ask_over(&self, link: LinkFaults, request: Request, done: Answered) {
        let mut inner = self.inner();
        inner.plan(link, request, done);
        let told = inner.run();
        drop(inner);
        tell(told);
    }

    /// Goes on to a time in milliseconds, and does what was planned until then.
    pub fn advance(&self, now: u64) {
        let mut inner = self.inner();
        inner.now = inner.now.max(now);
        let told = inner.run();
        drop(inner);
        tell(told);
    }
}

/// Earlier contents of an engine.
#[derive(Debug, Clone)]
pub struct Backup(Contents);

impl Engine for SimulatedEngine {
    fn ask(&self, request: Request, done: Answered) {
        self.ask_over(LinkFaults::default(), request, done);
    }
}

/// Completions may ask again: never under the lock.
fn tell(told: Told) {
    for (done, outcome) in told {
        done(outcome);
    }
}

impl Inner {
    fn plan(&mut self, link: LinkFaults, request: Request, done: Answered) {
        self.asked += 1;
        let ask = self.asked;
        self.waiting.insert(ask, done);
        let Faults {
            latency_millis,
            late,
            never,
            answer_lost,
            answer_late,
        } = self.faults;
        let latency = |dice: &mut Dice| dice.between(0, latency_millis);
        let effect = match () {
            () if self.dice.in_thousand(late) => self.dice.between(GIVE_UP_MILLIS, LATE_MILLIS_MAX),
            () => latency(&mut self.dice),
        };
        let is_slow = self.dice.in_thousand(answer_late);
        let answer = match () {
            () if self.dice.in_thousand(answer_lost) || link.answers => None,
            () if is_slow => Some(self.dice.between(GIVE_UP_MILLIS, GIVE_UP_SLOW_MILLIS)),
            () => Some(latency(&mut self.dice)),
        };
        let give_up = if is_slow {
            GIVE_UP_SLOW_MILLIS
        } else {
            GIVE_UP_MILLIS
        };
        if !self.dice.in_thousand(never) && !link.requests {
            self.at(self.now + effect, Planned::Effect(ask, request, answer));
        }
        self.at(self.now + give_up, Planned::GiveUp(ask));
    }

    fn at(&mut self, at: u64, planned: Planned) {
        self.order += 1;
        self.planned.insert((at, self.order), planned);
    }

    fn run(&mut self) -> Told {
        let mut told = Told::new();
        while let Some(entry) = self.planned.first_entry()
            && entry.key().0 <= self.now
        {
            let at = entry.key().0;
            let planned = entry.remove();
            let stands_still = at < self.still_until;
            match planned {
                Planned::Effect(..) | Planned::Answer(..) if stands_still => {
                    self.at(self.still_until, planned)
                }
                Planned::Effect(ask, request, answer) => {
                    let outcome = self.contents.perform(&request, at);
                    self.note_head();
                    if let Some(delay) = answer {
                        self.at(at + delay, Planned::Answer(ask, outcome));
                    }
                }
                Planned::Answer(ask, outcome) => {
                    told.extend(self.waiting.remove(&ask).map(|done| (done, outcome)));
                }
                Planned::GiveUp(ask) => {
                    let outcome = Err(EngineError::Unanswered("no answer in time".into()));
                    told.extend(self.waiting.remove(&ask).map(|done| (done, outcome)));
                }
            }
        }
        told
    }

    fn note_head(&mut self) {
        let Ok(Some(head)) = self.contents.head() else {
            return;
        };
        if self.heads.last() != Some(&head) {
            self.heads.push(head);
        }
    }
}
