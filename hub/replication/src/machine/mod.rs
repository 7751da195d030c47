//! One hub's part in a log that several hubs share: it follows, takes the lead, commits, and gives the lead up.
//!
//! * `types`: inputs and outputs. `following`: what to apply of an answer. `quiet`, `rank`: when to take the lead.
//! * `sealing`: taking it. `leading`: a term. `tail`: which batches stay in the engine.
//!
//! The machine performs no IO. Time is an argument, and every decision follows from inputs.

mod following;
mod leading;
mod quiet;
mod rank;
mod sealing;
mod tail;
#[cfg(test)]
mod tests;
mod types;

use model::Cursor;

use self::{
    following::{Relation, Step, epoch_start, follow},
    leading::{Ids, Leading},
    quiet::Quiet,
    rank::{is_longest, is_somebody_ahead, rank},
    sealing::{Sealed, Sealing},
    tail::Tail,
};
pub use tail::{TAIL_BYTES, TAIL_BYTES_MAX};
pub use types::{AskId, Held, Input, Now, Output, Settings, Standing, TermEnd, Token, WriteError};

use crate::engine::{
    Answer, Base, Beat, Commit, EngineError, Head, HubRow, Position, Refusal, Request, Role, Seen, Term,
};

/// Most milliseconds between two inputs.
pub const TICK_MILLIS: u64 = 25;
/// A hub that does not lead asks this often.
const POLL_MILLIS: u64 = 100;
/// An answer is not waited for any longer; the next question is asked.
const PATIENCE_MILLIS: u64 = 2_000;
/// Each hub announces itself this often.
const ANNOUNCE_MILLIS: u64 = 5_000;
/// Before a hub takes the lead it has asked who is announced within so many milliseconds.
const FRESH_MILLIS: u64 = 500;
/// Hubs that come later wait so much longer each.
const RANK_MILLIS: u64 = 150;
/// Time in which every hub with a longer log than the engine's, or with a log at all, announces itself.
const OTHERS_MILLIS: u64 = 10_000;

/// A hub's part.
pub struct Machine {
    settings: Settings,
    held: Held,
    synced: Option<Cursor>,
    is_able: bool,
    ids: Ids,
    state: State,
    /// The question that is under way, when it was asked, and when the next one is due.
    poll: Option<(AskId, u64)>,
    poll_at: u64,
    announce: Option<(AskId, u64)>,
    announce_at: u64,
    /// The announced hubs, and the time of the question.
    hubs: (Vec<HubRow>, Option<u64>),
    tail: Tail,
}

enum State {
    Watching(Watching),
    Sealing(Box<Sealing>),
    Leading(Box<Leading>),
}

/// A hub that does not lead.
struct Watching {
    place: Place,
    /// Since when it is there.
    since: u64,
    quiet: Quiet,
}

/// The log on disk beside the engine's, by the newest answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Unknown,
    NoHead,
    Foreign,
    Unreadable(Refusal),
    Level,
    Behind,
    Copying,
    Ahead,
}

impl Machine {
    /// The part of a hub that starts with this log on disk.
    pub fn new(settings: Settings, held: Held, now: Now) -> Self {
        let tail = Tail::new(settings.tail_bytes, settings.tail_bytes_max, now.ticks);
        Self {
            settings,
            held,
            tail,
            synced: held.at,
            is_able: false,
            ids: Ids::default(),
            state: State::Watching(Watching::new(now)),
            poll: None,
            poll_at: now.ticks,
            announce: None,
            announce_at: now.ticks,
            hubs: (Vec::new(), None),
        }
    }

    /// The present part of this hub.
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Leading(_) => Standing::Leads,
            State::Sealing(_) => Standing::Seals,
            State::Watching(watching) => match &watching.place {
                Place::Unknown | Place::NoHead => Standing::Waits,
                Place::Foreign => Standing::Foreign,
                Place::Unreadable(refusal) => Standing::Unreadable(refusal.clone()),
                Place::Level => Standing::Follows { is_level: true },
                Place::Behind => Standing::Follows { is_level: false },
                Place::Copying => Standing::Copies,
                Place::Ahead => Standing::Ahead,
            },
        }
    }

    /// The head as this hub knows it; on a leader its own.
    pub fn head(&self) -> Option<&Head> {
        match &self.state {
            State::Leading(leading) => Some(leading.head()),
            State::Sealing(sealing) => sealing.commit.expected.as_ref(),
            State::Watching(watching) => watching.quiet.seen().map(|(head, _)| head),
        }
    }

    /// Returns true if an append is taken: this hub leads, and not too many wait.
    pub fn has_room(&self) -> bool {
        matches!(&self.state, State::Leading(leading) if leading.has_room())
    }

    /// Takes an input and returns what is to be done, in order.
    pub fn on(&mut self, input: Input, now: Now) -> Vec<Output> {
        let out = self.take(input, now);
        for output in &out {
            match output {
                Output::Apply(batch) => self.tail.push(batch),
                Output::Trimmed(below) => self.tail.trimmed(*below),
                _ => {}
            }
        }
        out
    }

    fn take(&mut self, input: Input, now: Now) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Tick => {}
            Input::Answered { ask, outcome } => self.answered(ask, outcome, now, &mut out),
            Input::Able(is_able) => self.is_able = is_able,
            Input::Synced(at) => self.synced = Some(at),
            Input::Copied { at, term } => self.copied(at, term, now),
            Input::Append { token, .. } | Input::BeginEpoch { token, .. } | Input::Confirm { token } => {
                self.called(token, input, &mut out);
            }
            Input::BeginSegment => {
                if let State::Leading(leading) = &mut self.state {
                    leading.begin_segment();
                }
            }
            Input::Resign { next } => {
                if let State::Leading(leading) = &mut self.state {
                    leading.resign(next);
                }
            }
        }
        self.step(now, &mut out);
        out
    }

    fn called(&mut self, token: Token, call: Input, out: &mut Vec<Output>) {
        let State::Leading(leading) = &mut self.state else {
            let outcome = Err(WriteError::Fenced(self.held.at.unwrap_or_default()));
            out.push(Output::Released { token, outcome });
            return;
        };
        let taken = match call {
            Input::Append { before, payloads, .. } => leading.append(token, before, payloads),
            Input::BeginEpoch { epoch, .. } => leading.begin_epoch(token, epoch),
            _ => leading.confirm(token, &self.ids),
        };
        if let Err(error) = taken {
            let outcome = Err(error);
            out.push(Output::Released { token, outcome });
        }
    }

    fn copied(&mut self, at: Cursor, term: Term, now: Now) {
        self.held.at = Some(at);
        self.held.term = term;
        self.synced = Some(at);
        if matches!(self.state, State::Watching(_)) {
            self.watch(now);
        }
    }

    /// Begins to watch anew: what was seen before counts for nothing.
    fn watch(&mut self, now: Now) {
        self.state = State::Watching(Watching::new(now));
        self.poll = None;
        self.poll_at = now.ticks;
    }

    fn answered(
        &mut self,
        ask: AskId,
        outcome: Result<Answer, EngineError>,
        now: Now,
        out: &mut Vec<Output>,
    ) {
        if let Some((_, asked_at)) = self.announce.take_if(|(announce, _)| *announce == ask) {
            if let Ok(Answer::Hubs(hubs)) = outcome {
                self.hubs = (hubs, Some(asked_at));
            }
            return;
        }
        if self.poll.take_if(|(poll, _)| *poll == ask).is_some() {
            self.polled(outcome, now, out);
            return;
        }
        match &mut self.state {
            State::Watching(_) => {}
            State::Sealing(sealing) => match sealing.answered(ask, &outcome, now) {
                Sealed::Leads(asked_at) => self.lead(asked_at, out),
                Sealed::Not => self.watch(now),
                Sealed::Unknown => {}
            },
            State::Leading(leading) => {
                let end = leading.answered(ask, outcome, now, out);
                self.held.at = Some(leading.head().at);
                if let Some(end) = end {
                    self.end(&end, now, out);
                }
            }
        }
    }

    fn polled(&mut self, outcome: Result<Answer, EngineError>, now: Now, out: &mut Vec<Output>) {
        let State::Watching(watching) = &mut self.state else {
            return;
        };
        let seen = match outcome {
            Ok(Answer::Read(seen)) => seen,
            Err(EngineError::Refused(refusal)) => {
                watching.quiet.unanswered();
                watching.go(Place::Unreadable(refusal), now);
                return;
            }
            _ => {
                watching.quiet.unanswered();
                return;
            }
        };
        let Some(head) = &seen.head else {
            watching.quiet = Quiet::default();
            watching.go(Place::NoHead, now);
            return;
        };
        watching.quiet.answered(now.ticks, head, seen.beat.as_ref());
        let place = self.follow(head, &seen, out);
        let State::Watching(watching) = &mut self.state else {
            return;
        };
        if place == Place::Ahead && watching.place != Place::Ahead {
            // The others must know before one of them takes the lead.
            self.announce_at = now.ticks;
        }
        watching.go(place, now);
    }

    /// Applies what follows, and says where the log is then.
    fn follow(&mut self, head: &Head, seen: &Seen, out: &mut Vec<Output>) -> Place {
        let State::Watching(watching) = &self.state else {
            return Place::Unknown;
        };
        if self.held.engine.is_some_and(|engine| engine != head.engine) {
            return Place::Foreign;
        }
        if watching.place == Place::Copying {
            return Place::Copying;
        }
        let Some(at) = self.held.at else {
            out.push(Output::Copy { diverged: false });
            return Place::Copying;
        };
        let (steps, at, relation) = follow(&self.settings.clusterset, at, self.held.term, head, seen);
        self.held.at = Some(at);
        for step in steps {
            out.push(match step {
                Step::Apply(batch) => {
                    self.held.term = self.held.term.max(batch.term());
                    Output::Apply(batch)
                }
                Step::BeginEpoch(base) => Output::BeginEpoch(base),
            });
        }
        match relation {
            Relation::Level => {
                self.held.term = self.held.term.max(head.term);
                self.held.engine = Some(head.engine);
                Place::Level
            }
            Relation::Behind => Place::Behind,
            Relation::Ahead => Place::Ahead,
            Relation::Gap | Relation::Diverged => {
                let diverged = relation == Relation::Diverged;
                out.push(Output::Copy { diverged });
                Place::Copying
            }
        }
    }

    /// The work that is due at this moment.
    fn step(&mut self, now: Now, out: &mut Vec<Output>) {
        if matches!(self.state, State::Watching(_))
            && let Some(commit) = self.takeover(now)
        {
            self.poll = None;
            self.state = State::Sealing(Box::new(Sealing::new(commit, now)));
        }
        match &mut self.state {
            State::Watching(_) => self.poll(now, out),
            State::Sealing(sealing) => {
                if !sealing.step(now, &mut self.ids, out) {
                    self.watch(now);
                }
            }
            State::Leading(leading) => {
                if let Some(mine) = self.synced
                    && let Some(trim) = self
                        .tail
                        .look(&self.hubs.0, &self.settings.replica, mine, now.ticks)
                {
                    if trim.leaves_behind {
                        out.push(Output::LeavesBehind(trim.below));
                    }
                    leading.trim(trim.below);
                }
                if let Some(end) = leading.step(now, &mut self.ids, out) {
                    self.end(&end, now, out);
                }
            }
        }
        self.announce(now, out);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Output>) {
        let State::Watching(watching) = &mut self.state else {
            return;
        };
        if self
            .poll
            .take_if(|(_, asked_at)| now.ticks >= *asked_at + PATIENCE_MILLIS)
            .is_some()
        {
            watching.quiet.unanswered();
        }
        if self.poll.is_some() || now.ticks < self.poll_at {
            return;
        }
        let follows = watching.place != Place::Copying;
        let from = self.held.at.filter(|_| follows).map(|at| Position {
            epoch: at.epoch,
            revision: at.revision.next(),
        });
        let ask = self.ids.next();
        self.poll = Some((ask, now.ticks));
        // A log that is behind reads on at once.
        let is_behind = watching.place == Place::Behind;
        self.poll_at = now.ticks + if is_behind { 0 } else { POLL_MILLIS };
        let request = Request::Read { from };
        out.push(Output::Ask { ask, request });
    }

    fn announce(&mut self, now: Now, out: &mut Vec<Output>) {
        self.announce
            .take_if(|(_, asked_at)| now.ticks >= *asked_at + PATIENCE_MILLIS);
        if self.announce.is_some() || now.ticks < self.announce_at {
            return;
        }
        let ask = self.ids.next();
        self.announce = Some((ask, now.ticks));
        self.announce_at = now.ticks + ANNOUNCE_MILLIS;
        let role = match self.standing() {
            Standing::Waits | Standing::Foreign | Standing::Unreadable(_) => Role::Waits,
            Standing::Follows { .. } | Standing::Seals => Role::Follows,
            Standing::Copies => Role::Copies,
            Standing::Ahead => Role::Ahead,
            Standing::Leads => Role::Leads,
        };
        let row = HubRow {
            replica: self.settings.replica.clone(),
            address: self.settings.address.clone(),
            version: self.settings.version.clone(),
            rules: self.settings.rules,
            role,
            term: self.held.term,
            synced: self.synced,
        };
        let request = Request::Announce(row);
        out.push(Output::Ask { ask, request });
    }

    /// Returns true if the announced hubs were asked for a moment ago; else asks now.
    fn knows_hubs(&mut self, now: Now) -> bool {
        let is_fresh = self
            .hubs
            .1
            .is_some_and(|asked_at| now.ticks <= asked_at + FRESH_MILLIS);
        if !is_fresh {
            self.announce_at = self.announce_at.min(now.ticks);
        }
        is_fresh
    }

    /// The commit by which this hub takes the lead, if it is its turn.
    fn takeover(&mut self, now: Now) -> Option<Commit> {
        let State::Watching(watching) = &self.state else {
            return None;
        };
        let since = watching.since;
        match watching.place {
            Place::Level if self.is_able => {
                let (head, beat) = watching.quiet.seen()?;
                let (head, quiet) = (head.clone(), watching.quiet.millis());
                let needed = self.silence_needed(&head, beat.cloned().as_ref());
                // Asked a little earlier, so that nobody waits for the answer.
                if quiet + FRESH_MILLIS / 2 < needed || !self.knows_hubs(now) || quiet < needed {
                    return None;
                }
                if is_somebody_ahead(&self.hubs.0, &self.settings.replica, &head) {
                    return None;
                }
                let next = self.next_head(&head, head.at);
                Some(Commit::seal(head, next))
            }
            Place::Ahead if self.is_able && now.ticks >= since + OTHERS_MILLIS => {
                let (head, _) = watching.quiet.seen()?;
                let head = head.clone();
                let (mine, synced) = (self.held.at?, self.synced?);
                if !self.knows_hubs(now) || !is_longest(&self.hubs.0, &self.settings.replica, &synced) {
                    return None;
                }
                let epoch = mine.epoch.max(head.at.epoch).next(now.time, self.settings.random);
                let next = self.next_head(&head, epoch_start(&self.settings.clusterset, epoch));
                Some(Commit {
                    base: Some(Base { epoch, over: mine }),
                    ..Commit::seal(head, next)
                })
            }
            Place::NoHead if self.is_able => self.first_head(since, now),
            _ => None,
        }
    }

    /// Milliseconds of silence before this hub may take the lead.
    fn silence_needed(&self, head: &Head, beat: Option<&Beat>) -> u64 {
        let me = &self.settings.replica;
        let rank = RANK_MILLIS * rank(&self.settings.clusterset, me, &self.hubs.0, &head.replica);
        let usual = self.settings.takeover_after_millis + rank;
        match beat {
            // One who resigned lets the others go first.
            _ if head.instance == self.settings.instance => usual,
            Some(Beat::Resigned { term, next }) if *term == head.term => match next {
                None => rank,
                Some(next) if next == me => 0,
                Some(_) => usual,
            },
            _ => usual,
        }
    }

    fn next_head(&self, head: &Head, at: Cursor) -> Head {
        Head {
            engine: head.engine,
            term: head.term.max(self.held.term).next(),
            at,
            replica: self.settings.replica.clone(),
            instance: self.settings.instance,
        }
    }

    /// The first head of an engine: over this hub's log, or over none once no other hub has announced one.
    fn first_head(&mut self, since: u64, now: Now) -> Option<Commit> {
        let engine = self.settings.origin?;
        if self.held.engine.is_some_and(|held| held != engine) {
            return None;
        }
        let at = match self.held.at {
            Some(at) => at,
            None => {
                if now.ticks < since + OTHERS_MILLIS || !self.knows_hubs(now) {
                    return None;
                }
                let me = &self.settings.replica;
                if self
                    .hubs
                    .0
                    .iter()
                    .any(|row| row.replica != *me && row.synced.is_some())
                {
                    return None;
                }
                let epoch = model::Epoch {
                    created_at: now.time,
                    random: self.settings.random,
                };
                epoch_start(&self.settings.clusterset, epoch)
            }
        };
        let next = Head {
            engine,
            term: self.held.term.next(),
            at,
            replica: self.settings.replica.clone(),
            instance: self.settings.instance,
        };
        Some(Commit {
            expected: None,
            next,
            batch: None,
            base: None,
        })
    }

    fn lead(&mut self, asked_at: u64, out: &mut Vec<Output>) {
        let State::Sealing(sealing) = &self.state else {
            return;
        };
        let Commit { next, base, .. } = sealing.commit.clone();
        if self.held.at.is_none() {
            out.push(Output::NewLog(next.at));
        }
        out.extend(base.map(Output::BeginEpoch));
        self.held = Held {
            at: Some(next.at),
            term: next.term,
            engine: Some(next.engine),
        };
        out.push(Output::Lead(next.clone()));
        let leading = Leading::new(self.settings.clusterset.clone(), next, asked_at);
        self.state = State::Leading(Box::new(leading));
    }

    fn end(&mut self, end: &TermEnd, now: Now, out: &mut Vec<Output>) {
        let watching = State::Watching(Watching::new(now));
        if let State::Leading(leading) = std::mem::replace(&mut self.state, watching) {
            leading.end(end, out);
        }
        self.watch(now);
        out.push(Output::Ended(end.clone()));
    }
}

impl Watching {
    fn new(now: Now) -> Self {
        Self {
            place: Place::Unknown,
            since: now.ticks,
            quiet: Quiet::default(),
        }
    }

    fn go(&mut self, place: Place, now: Now) {
        if self.place != place {
            self.place = place;
            self.since = now.ticks;
        }
    }
}
