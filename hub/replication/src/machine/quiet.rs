//! For how long head and pulse have not changed, as far as the engine told.

use crate::engine::{Beat, Head};

/// Most milliseconds that two answered polls add: a pause of this process is nobody's death.
const STEP_MILLIS_MAX: u64 = 200;

/// Counts the silence of a leader.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet {
    seen: Option<(Head, Option<Beat>)>,
    answered_at: Option<u64>,
    millis: u64,
}

impl Quiet {
    /// A poll was answered.
    pub(super) fn answered(&mut self, now: u64, head: &Head, beat: Option<&Beat>) {
        let is_same = matches!(&self.seen, Some((known, last)) if known == head && last.as_ref() == beat);
        if !is_same {
            self.seen = Some((head.clone(), beat.cloned()));
            self.millis = 0;
        } else if let Some(before) = self.answered_at {
            self.millis += now.saturating_sub(before).min(STEP_MILLIS_MAX);
        }
        self.answered_at = Some(now);
    }

    /// A poll was not answered: nothing is counted until two in a row are.
    pub(super) fn unanswered(&mut self) {
        self.answered_at = None;
    }

    /// Milliseconds of silence.
    pub(super) fn millis(&self) -> u64 {
        self.millis
    }

    /// Head and pulse as they were seen last.
    pub(super) fn seen(&self) -> Option<(&Head, Option<&Beat>)> {
        self.seen.as_ref().map(|(head, beat)| (head, beat.as_ref()))
    }
}
