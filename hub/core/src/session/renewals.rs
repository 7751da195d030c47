//! Owns: how often a member may ask for certificates in one session, and the pending answer.
//! Never: signs, or says who may be given one. Pure: time is an argument.

use std::collections::VecDeque;

use model::sync::Renewed;

/// Requests of one session that are looked at in a minute: an agent asks once in a certificate's life.
pub(super) const REQUESTS_A_MINUTE_MAX: usize = 6;
const MINUTE_MILLIS: u64 = 60_000;

/// The answer to a request: a certificate, or why there is none.
pub(super) type Answered = Result<Box<Renewed>, Box<str>>;

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is looked at.
    Open,
    /// It is refused: there were too many.
    TooOften,
    /// The one before is not answered yet.
    Twice,
}

/// The requests of one session.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    is_open: bool,
    asked_at: VecDeque<u64>,
    answer: Option<Answered>,
}

impl Renewals {
    /// The member asks.
    pub(super) fn asked(&mut self, now: u64) -> Asked {
        if self.is_open || self.answer.is_some() {
            return Asked::Twice;
        }
        self.asked_at.retain(|at| now.saturating_sub(*at) < MINUTE_MILLIS);
        if self.asked_at.len() >= REQUESTS_A_MINUTE_MAX {
            self.answer = Some(Err(format!(
                "more than {REQUESTS_A_MINUTE_MAX} certificates were asked for within a minute: ask again in one"
            )
            .into()));
            return Asked::TooOften;
        }
        self.asked_at.push_back(now);
        self.is_open = true;
        Asked::Open
    }

    /// Takes the outcome of the request.
    pub(super) fn answered(&mut self, answer: Answered) {
        self.is_open = false;
        self.answer = Some(answer);
    }

    /// The answer to send now.
    pub(super) fn take(&mut self) -> Option<Answered> {
        self.answer.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_is_open_at_a_time() {
        let mut renewals = Renewals::default();
        assert_eq!(renewals.asked(1), Asked::Open);
        assert_eq!(renewals.asked(2), Asked::Twice);
        renewals.answered(Err("no".into()));
        assert_eq!(renewals.asked(3), Asked::Twice, "the answer was not said yet");
        assert_eq!(renewals.take(), Some(Err("no".into())));
        assert_eq!(renewals.take(), None);
        assert_eq!(renewals.asked(4), Asked::Open);
    }

    #[test]
    fn whoever_asks_all_the_time_is_refused_until_a_minute_has_passed() {
        let mut renewals = Renewals::default();
        let asked = |renewals: &mut Renewals, now| {
            let asked = renewals.asked(now);
            if asked == Asked::Open {
                renewals.answered(Err("no".into()));
            }
            (asked, renewals.take())
        };
        for now in 0..REQUESTS_A_MINUTE_MAX as u64 {
            assert_eq!(asked(&mut renewals, now).0, Asked::Open);
        }
        let (refused, answer) = asked(&mut renewals, MINUTE_MILLIS - 1);
        assert_eq!(refused, Asked::TooOften);
        let why = answer.expect("it is answered").expect_err("with a refusal");
        assert!(why.contains("within a minute"), "{why}");
        assert_eq!(
            asked(&mut renewals, MINUTE_MILLIS).0,
            Asked::Open,
            "the first is a minute ago"
        );
    }
}
