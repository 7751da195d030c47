//! Decides what a failed list or watch means: when a kind becomes unknown, and when it stays as it was last listed.

use std::time::Duration;

/// The longest time for which refusals leave a listed kind known. An API server that has just started refuses everybody
/// for some seconds, until it has read roles and tokens.
pub const DENIAL_PATIENCE: Duration = Duration::from_secs(60);

/// The meaning of a failed list or watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The kind does not exist: it is unknown at once.
    NotServed,
    /// The agent may not read the kind, and this lasts: it is unknown.
    Denied,
    /// The watch can continue where it was.
    Interrupted,
}

impl Failure {
    /// Returns true if the kind is unknown until it is listed again.
    pub fn makes_unknown(self) -> bool {
        self != Self::Interrupted
    }
}

/// The refusals of one kind since its last success.
#[derive(Debug, Default)]
pub struct Denials {
    /// The first of the refusals in a row.
    since: Option<Duration>,
}

impl Denials {
    /// Judges a failed list or watch by its HTTP status, 0 if there was none. `now` counts from any fixed moment.
    pub fn judged(&mut self, code: u16, is_listed: bool, now: Duration) -> Failure {
        match code {
            404 => {
                self.since = None;
                Failure::NotServed
            }
            401 | 403 => {
                let since = *self.since.get_or_insert(now);
                if is_listed && now.saturating_sub(since) < DENIAL_PATIENCE {
                    Failure::Interrupted
                } else {
                    Failure::Denied
                }
            }
            _ => {
                self.since = None;
                Failure::Interrupted
            }
        }
    }

    /// The kind can be watched.
    pub fn succeeded(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_refusal_that_passes_leaves_a_listed_kind_known() {
        for code in [401, 403] {
            let mut denials = Denials::default();
            assert_eq!(denials.judged(code, true, at(100)), Failure::Interrupted);
            assert_eq!(denials.judged(code, true, at(159)), Failure::Interrupted);
            denials.succeeded();
            assert_eq!(denials.judged(code, true, at(170)), Failure::Interrupted);
            assert_eq!(denials.judged(500, true, at(200)), Failure::Interrupted);
            assert_eq!(denials.judged(code, true, at(231)), Failure::Interrupted);
        }
    }

    #[test]
    fn a_refusal_that_lasts_makes_the_kind_unknown() {
        let mut denials = Denials::default();
        assert_eq!(denials.judged(403, true, at(100)), Failure::Interrupted);
        assert_eq!(denials.judged(401, true, at(160)), Failure::Denied);
        assert_eq!(denials.judged(403, true, at(161)), Failure::Denied);
    }

    #[test]
    fn a_kind_that_was_never_listed_or_does_not_exist_is_unknown_at_once() {
        assert_eq!(Denials::default().judged(403, false, at(0)), Failure::Denied);
        assert_eq!(Denials::default().judged(404, true, at(0)), Failure::NotServed);
    }
}
