//! One term of a leader: what is queued, the one write that is under way, and when the lead was last confirmed.
//!
//! * At most one write is under way: of two, the later could be evaluated first and would look fenced.
//! * A commit without an answer is sent again with the same bytes until the engine says what the head is.
//! * A call is released by an answer to a request that was asked after the call.

use std::collections::VecDeque;

use bytes::Bytes;
use model::{Clusterset, Cursor, Epoch};

use super::{
    following::epoch_start,
    types::{AskId, Now, Output, TermEnd, Token, WriteError},
};
use crate::engine::{
    Answer, BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Base, Beat, Commit, EngineBatch, EngineError, Head, Position,
    Refusal, Replica, Request,
};

/// Appends and confirmations that may wait each.
pub(super) const WAITING_MAX: usize = 64;
/// A leader that commits nothing shows this often that it lives.
const BEAT_MILLIS: u64 = 500;
/// Wait before a request without an answer is repeated.
pub(super) const RETRY_MILLIS: u64 = 50;
/// A term that was not confirmed for so long ends.
pub(super) const UNCONFIRMED_MILLIS_MAX: u64 = 3_000;

/// Numbers requests to the engine.
#[derive(Debug, Default)]
pub(super) struct Ids(u64);

impl Ids {
    /// The number of the next request.
    pub(super) fn next(&mut self) -> AskId {
        self.0 += 1;
        AskId(self.0)
    }

    /// The number that the next request will have.
    pub(super) fn upcoming(&self) -> AskId {
        AskId(self.0 + 1)
    }
}

/// A call that waits for its commit.
enum Queued {
    Batch {
        token: Token,
        before: Cursor,
        after: Cursor,
        payloads: Vec<Bytes>,
        bytes: usize,
    },
    Epoch {
        token: Token,
        epoch: Epoch,
    },
}

/// The write that is under way.
struct Flight {
    write: Write,
    /// The attempt whose answer is awaited, and when it was asked.
    attempt: Option<(AskId, u64)>,
    retry_at: u64,
    /// True if an earlier attempt had no answer: it may take effect at any time.
    is_uncertain: bool,
}

enum Write {
    Commit {
        commit: Box<Commit>,
        calls: Vec<(Token, Cursor)>,
    },
    Beat(Beat),
    Trim(Position),
}

/// A term as its leader sees it.
pub(super) struct Leading {
    clusterset: Clusterset,
    head: Head,
    /// The position behind everything that is queued.
    end: Cursor,
    queue: VecDeque<Queued>,
    flight: Option<Flight>,
    /// Calls that wait for an answer to a request with this number or a later one.
    confirms: VecDeque<(Token, AskId)>,
    /// The question about the head that is under way, when it was asked, and the head at that moment.
    question: Option<(AskId, u64, Cursor)>,
    question_at: u64,
    /// When the newest request was asked that confirmed the lead.
    confirmed_at: u64,
    beats: u64,
    beat_at: u64,
    begins_segment: bool,
    trim: Option<Position>,
    resigns: Option<Option<Replica>>,
}

impl Leading {
    /// A term that began with a request asked at a time.
    pub(super) fn new(clusterset: Clusterset, head: Head, asked_at: u64) -> Self {
        Self {
            clusterset,
            end: head.at,
            head,
            queue: VecDeque::new(),
            flight: None,
            confirms: VecDeque::new(),
            question: None,
            question_at: 0,
            confirmed_at: asked_at,
            beats: 0,
            beat_at: asked_at + BEAT_MILLIS,
            begins_segment: false,
            trim: None,
            resigns: None,
        }
    }

    /// The committed head.
    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    /// Returns true if another append may wait.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < WAITING_MAX
    }

    /// Queues events.
    pub(super) fn append(
        &mut self,
        token: Token,
        before: Cursor,
        payloads: Vec<Bytes>,
    ) -> Result<(), WriteError> {
        if self.resigns.is_some() || before != self.end {
            return Err(WriteError::Fenced(self.head.at));
        }
        if !self.has_room() {
            return Err(WriteError::Full);
        }
        let slices = payloads.iter().map(|payload| &payload[..]);
        let batch = EngineBatch::new(before, self.head.term, false, slices);
        let batch = batch.map_err(|_| WriteError::Refused(Refusal::TooLarge))?;
        let after = batch.after();
        self.end = after;
        self.queue.push_back(Queued::Batch {
            token,
            before,
            after,
            bytes: payloads.iter().map(Bytes::len).sum(),
            payloads,
        });
        Ok(())
    }

    /// Queues a new epoch.
    pub(super) fn begin_epoch(&mut self, token: Token, epoch: Epoch) -> Result<(), WriteError> {
        if self.resigns.is_some() || epoch <= self.end.epoch {
            return Err(WriteError::Fenced(self.head.at));
        }
        if !self.has_room() {
            return Err(WriteError::Full);
        }
        self.end = epoch_start(&self.clusterset, epoch);
        self.queue.push_back(Queued::Epoch { token, epoch });
        Ok(())
    }

    /// Waits for an answer to a request that is asked from now on.
    pub(super) fn confirm(&mut self, token: Token, ids: &Ids) -> Result<(), WriteError> {
        if self.confirms.len() == WAITING_MAX {
            return Err(WriteError::Full);
        }
        self.confirms.push_back((token, ids.upcoming()));
        Ok(())
    }

    /// The next batch begins a segment.
    pub(super) fn begin_segment(&mut self) {
        self.begins_segment = true;
    }

    /// Removes the batches before a position, between two commits.
    pub(super) fn trim(&mut self, below: Position) {
        self.trim = Some(below);
    }

    /// Takes nothing more, and gives the lead up after what is queued.
    pub(super) fn resign(&mut self, next: Option<Replica>) {
        self.resigns.get_or_insert(next);
    }

    /// Asks what is due. Returns why the term ends, if it does.
    pub(super) fn step(&mut self, now: Now, ids: &mut Ids, out: &mut Vec<Output>) -> Option<TermEnd> {
        if now.ticks.saturating_sub(self.confirmed_at) >= UNCONFIRMED_MILLIS_MAX {
            return Some(TermEnd::Undecided);
        }
        if self.flight.is_none() {
            self.flight = self.next_write(now).map(|write| Flight {
                write,
                attempt: None,
                retry_at: now.ticks,
                is_uncertain: false,
            });
        }
        if let Some(flight) = &mut self.flight
            && flight.attempt.is_none()
            && now.ticks >= flight.retry_at
        {
            let ask = ids.next();
            flight.attempt = Some((ask, now.ticks));
            let request = match &flight.write {
                Write::Commit { commit, .. } => Request::Commit(commit.clone()),
                Write::Beat(beat) => Request::Pulse {
                    head: self.head.clone(),
                    beat: beat.clone(),
                },
                Write::Trim(below) => Request::Trim {
                    head: self.head.clone(),
                    below: *below,
                },
            };
            out.push(Output::Ask { ask, request });
        }
        // A request that was asked after the newest call will do as well.
        let last = self.confirms.back().map(|(_, after)| *after);
        let is_asked = last.is_none_or(|after| self.awaited().any(|ask| ask >= after));
        if !is_asked && self.question.is_none() && now.ticks >= self.question_at {
            let ask = ids.next();
            self.question = Some((ask, now.ticks, self.head.at));
            let request = Request::Read { from: None };
            out.push(Output::Ask { ask, request });
        }
        None
    }

    /// The requests whose answers would confirm the lead.
    fn awaited(&self) -> impl Iterator<Item = AskId> {
        let attempt = self.flight.as_ref().and_then(|flight| flight.attempt);
        let question = self.question.map(|(ask, ..)| ask);
        attempt.map(|(ask, _)| ask).into_iter().chain(question)
    }

    fn next_write(&mut self, now: Now) -> Option<Write> {
        if let Some(below) = self.trim.take() {
            return Some(Write::Trim(below));
        }
        match self.queue.pop_front() {
            Some(Queued::Epoch { token, epoch }) => Some(self.epoch_commit(token, epoch)),
            Some(Queued::Batch {
                token,
                before,
                after,
                payloads,
                bytes,
            }) => Some(self.batch_commit(before, vec![(token, after)], payloads, bytes)),
            None => {
                let term = self.head.term;
                let beat = match &self.resigns {
                    Some(next) => Beat::Resigned {
                        term,
                        next: next.clone(),
                    },
                    None if now.ticks >= self.beat_at => {
                        self.beats += 1;
                        let count = self.beats;
                        Beat::Alive { term, count }
                    }
                    None => return None,
                };
                Some(Write::Beat(beat))
            }
        }
    }

    fn epoch_commit(&self, token: Token, epoch: Epoch) -> Write {
        let over = self.head.at;
        let at = epoch_start(&self.clusterset, epoch);
        let next = Head {
            at,
            ..self.head.clone()
        };
        let commit = Commit {
            base: Some(Base { epoch, over }),
            ..Commit::seal(self.head.clone(), next)
        };
        Write::Commit {
            commit: Box::new(commit),
            calls: vec![(token, at)],
        }
    }

    /// One commit for the first call and those behind it that fit.
    fn batch_commit(
        &mut self,
        before: Cursor,
        mut calls: Vec<(Token, Cursor)>,
        mut payloads: Vec<Bytes>,
        mut size: usize,
    ) -> Write {
        while let Some(Queued::Batch {
            payloads: more,
            bytes,
            ..
        }) = self.queue.front()
            && payloads.len() + more.len() <= BATCH_EVENTS_MAX
            && size + bytes <= BATCH_BYTES_MAX
            && let Some(Queued::Batch {
                token,
                after,
                payloads: more,
                bytes,
                ..
            }) = self.queue.pop_front()
        {
            size += bytes;
            payloads.extend(more);
            calls.push((token, after));
        }
        let mark = std::mem::take(&mut self.begins_segment);
        let slices = payloads.iter().map(|payload| &payload[..]);
        let batch = EngineBatch::new(before, self.head.term, mark, slices).expect("it was measured");
        Write::Commit {
            commit: Box::new(Commit::append(&self.head, batch)),
            calls,
        }
    }

    /// Takes the outcome of a request. Returns why the term ends, if it does.
    pub(super) fn answered(
        &mut self,
        ask: AskId,
        outcome: Result<Answer, EngineError>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Option<TermEnd> {
        if let Some((question, asked_at, head)) = self.question
            && question == ask
        {
            self.question = None;
            return self.question_answered((ask, asked_at), head, outcome, now, out);
        }
        let flight = self
            .flight
            .take_if(|flight| matches!(flight.attempt, Some((attempt, _)) if attempt == ask))?;
        let asked_at = flight.attempt.map_or(now.ticks, |(_, asked_at)| asked_at);
        match flight.write {
            Write::Commit { .. } => self.commit_answered((ask, asked_at), flight, outcome, now, out),
            Write::Beat(_) => self.beat_answered((ask, asked_at), flight, outcome, now, out),
            Write::Trim(below) => self.trim_answered((ask, asked_at), below, &outcome, out),
        }
    }

    fn question_answered(
        &mut self,
        asked: (AskId, u64),
        head: Cursor,
        outcome: Result<Answer, EngineError>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Option<TermEnd> {
        let Ok(Answer::Read(seen)) = outcome else {
            self.question_at = now.ticks + RETRY_MILLIS;
            return None;
        };
        let is_ours = seen.head.is_some_and(|held| {
            // An earlier position than that at the time of the question: the engine's contents went back.
            held.is_of(&self.head) && (held.at.epoch, held.at.revision) >= (head.epoch, head.revision)
        });
        if !is_ours {
            return Some(TermEnd::Fenced);
        }
        self.confirmed(asked, out);
        None
    }

    fn commit_answered(
        &mut self,
        asked: (AskId, u64),
        mut flight: Flight,
        outcome: Result<Answer, EngineError>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Option<TermEnd> {
        let Write::Commit { commit, .. } = &flight.write else {
            return None;
        };
        let is_committed = match &outcome {
            Ok(Answer::Committed) => true,
            // An earlier attempt took effect.
            Ok(Answer::HeadIs(head)) => head.as_ref() == Some(&commit.next),
            _ => false,
        };
        if is_committed {
            self.confirmed_head(flight.write, now, out);
            self.confirmed(asked, out);
            return None;
        }
        let end = match outcome {
            Ok(Answer::HeadIs(head)) if head != commit.expected => Some(TermEnd::Fenced),
            // An earlier attempt may still take effect, whatever is said of this one.
            Err(EngineError::Refused(refusal)) if !flight.is_uncertain => Some(TermEnd::Refused(refusal)),
            _ => None,
        };
        flight.attempt = None;
        if end.is_none() {
            flight.is_uncertain = true;
            flight.retry_at = now.ticks + RETRY_MILLIS;
        }
        self.flight = Some(flight);
        end
    }

    fn beat_answered(
        &mut self,
        asked: (AskId, u64),
        mut flight: Flight,
        outcome: Result<Answer, EngineError>,
        now: Now,
        out: &mut Vec<Output>,
    ) -> Option<TermEnd> {
        let is_last = matches!(flight.write, Write::Beat(Beat::Resigned { .. }));
        match outcome {
            Ok(Answer::Done) => {
                self.beat_at = now.ticks + BEAT_MILLIS;
                self.confirmed(asked, out);
                is_last.then_some(TermEnd::Resigned)
            }
            Ok(Answer::HeadIs(head)) if head.as_ref() != Some(&self.head) => Some(TermEnd::Fenced),
            // Should it take effect late, it meets another head or says what is true.
            _ if is_last => {
                flight.attempt = None;
                flight.retry_at = now.ticks + RETRY_MILLIS;
                self.flight = Some(flight);
                None
            }
            _ => {
                self.beat_at = now.ticks + RETRY_MILLIS;
                None
            }
        }
    }

    /// A trim without an answer is tried again when the next one is due: late, it meets another head or removes the same.
    fn trim_answered(
        &mut self,
        asked: (AskId, u64),
        below: Position,
        outcome: &Result<Answer, EngineError>,
        out: &mut Vec<Output>,
    ) -> Option<TermEnd> {
        match outcome {
            Ok(Answer::Done) => {
                out.push(Output::Trimmed(below));
                self.confirmed(asked, out);
                None
            }
            Ok(Answer::HeadIs(head)) if head.as_ref() != Some(&self.head) => Some(TermEnd::Fenced),
            _ => None,
        }
    }

    /// A commit is in the engine: it goes to disk, then its calls are released.
    fn confirmed_head(&mut self, write: Write, now: Now, out: &mut Vec<Output>) {
        let Write::Commit { commit, calls } = write else {
            return;
        };
        let Commit {
            next, batch, base, ..
        } = *commit;
        self.head = next;
        self.beat_at = now.ticks + BEAT_MILLIS;
        out.extend(batch.map(Output::Apply));
        out.extend(base.map(Output::BeginEpoch));
        out.extend(calls.into_iter().map(|(token, at)| Output::Released {
            token,
            outcome: Ok(at),
        }));
    }

    /// The head was ours at some moment after this request was asked.
    fn confirmed(&mut self, (ask, asked_at): (AskId, u64), out: &mut Vec<Output>) {
        self.confirmed_at = self.confirmed_at.max(asked_at);
        while let Some((token, _)) = self.confirms.pop_front_if(|(_, after)| *after <= ask) {
            let outcome = Ok(self.head.at);
            out.push(Output::Released { token, outcome });
        }
    }

    /// Releases every call.
    pub(super) fn end(mut self, end: &TermEnd, out: &mut Vec<Output>) {
        let at = self.head.at;
        if let Some(Flight {
            write: Write::Commit { calls, .. },
            is_uncertain,
            attempt,
            ..
        }) = self.flight.take()
        {
            let error = match end {
                // Without an answer to each attempt nobody knows.
                _ if is_uncertain || attempt.is_some() => WriteError::Undecided(at),
                TermEnd::Refused(refusal) => WriteError::Refused(refusal.clone()),
                _ => WriteError::Fenced(at),
            };
            out.extend(calls.into_iter().map(|(token, _)| failed(token, error.clone())));
        }
        let queued = self.queue.drain(..).map(|queued| match queued {
            Queued::Batch { token, .. } | Queued::Epoch { token, .. } => token,
        });
        out.extend(queued.map(|token| failed(token, WriteError::Fenced(at))));
        let error = match end {
            TermEnd::Fenced => WriteError::Fenced(at),
            _ => WriteError::Undecided(at),
        };
        let confirms = self.confirms.drain(..);
        out.extend(confirms.map(|(token, _)| failed(token, error.clone())));
    }
}

fn failed(token: Token, error: WriteError) -> Output {
    Output::Released {
        token,
        outcome: Err(error),
    }
}
