//! A hub that takes the lead: one commit, repeated until the engine says what the head is.

use super::{
    leading::{Ids, RETRY_MILLIS, UNCONFIRMED_MILLIS_MAX},
    types::{AskId, Now, Output},
};
use crate::engine::{Answer, Commit, EngineError, Request};

/// The attempt to take the lead.
pub(super) struct Sealing {
    pub(super) commit: Commit,
    /// The attempt whose answer is awaited, and when it was asked.
    attempt: Option<(AskId, u64)>,
    retry_at: u64,
    gives_up_at: u64,
}

/// The outcome of the attempt.
pub(super) enum Sealed {
    /// This hub leads, by a request asked at this time.
    Leads(u64),
    /// Another hub does, or nobody knows.
    Not,
    /// The engine says it at the next attempt.
    Unknown,
}

impl Sealing {
    pub(super) fn new(commit: Commit, now: Now) -> Self {
        Self {
            commit,
            attempt: None,
            retry_at: now.ticks,
            gives_up_at: now.ticks + UNCONFIRMED_MILLIS_MAX,
        }
    }

    /// Asks if that is due; false: it is over. The commit may still take effect then: a leader of whom nothing is
    /// heard, and another hub takes over.
    pub(super) fn step(&mut self, now: Now, ids: &mut Ids, out: &mut Vec<Output>) -> bool {
        if now.ticks >= self.gives_up_at {
            return false;
        }
        if self.attempt.is_none() && now.ticks >= self.retry_at {
            let ask = ids.next();
            self.attempt = Some((ask, now.ticks));
            let request = Request::from(self.commit.clone());
            out.push(Output::Ask { ask, request });
        }
        true
    }

    /// Takes the outcome of a request.
    pub(super) fn answered(&mut self, ask: AskId, outcome: &Result<Answer, EngineError>, now: Now) -> Sealed {
        let Some((_, asked_at)) = self.attempt.take_if(|(attempt, _)| *attempt == ask) else {
            return Sealed::Unknown;
        };
        match outcome {
            Ok(Answer::Committed) => Sealed::Leads(asked_at),
            // An earlier attempt took effect.
            Ok(Answer::HeadIs(head)) if head.as_ref() == Some(&self.commit.next) => Sealed::Leads(asked_at),
            Ok(Answer::HeadIs(_)) | Err(EngineError::Refused(_)) => Sealed::Not,
            _ => {
                self.retry_at = now.ticks + RETRY_MILLIS;
                Sealed::Unknown
            }
        }
    }
}
