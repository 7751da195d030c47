//! Owns: what a run says: how many requests failed, what happened then, and whether that is well. Pure.
//! Never: asks, or makes anything happen.

use std::time::Duration;

use super::{
    actions::{Action, Kind},
    asking::{ANSWER_WAIT, Asked, Failure},
};
use crate::lines::Moment;

/// Requests across clusters that may fail beyond those of the control: both are single runs of chance.
const MORE_THAN_CONTROL: usize = 10;
/// Failures that are shown one by one, of each of the two.
const SHOWN: usize = 40;

/// A run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) across: Asked,
    /// The same pods, asked from their own cluster at the same time.
    pub(super) control: Asked,
    /// The actions, in order.
    pub(super) actions: Vec<Action>,
}

impl Run {
    /// Returns true if few enough requests failed across clusters.
    pub(super) fn holds(&self) -> bool {
        self.across.failures.len() <= self.control.failures.len() + MORE_THAN_CONTROL
    }

    /// Returns true if so many requests failed across clusters that the others were not asked, and too many for the
    /// control.
    pub(super) fn is_given_up(&self) -> bool {
        self.across.gave_up() && !self.holds()
    }

    /// Number of times that an action happened, from begin to end while both asked.
    fn times(&self, kind: Kind) -> usize {
        let from = self.across.from.max(self.control.from);
        let to = self.across.to.min(self.control.to);
        let actions = self.actions.iter().filter(|action| action.kind == kind);
        actions
            .filter(|action| from <= action.begin && action.end <= to)
            .count()
    }

    /// Actions that did not happen while both asked.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing = Kind::ALL.into_iter().filter(|kind| self.times(*kind) == 0);
        missing.map(|kind| kind.to_string()).collect()
    }

    /// As people read it: the figures, what happened, each failure, and the verdict.
    pub(super) fn lines(&self) -> Vec<String> {
        let times = Kind::ALL.map(|kind| format!("{} × {kind}", self.times(kind)));
        let mut lines = vec![
            format!("across clusters {}", figures(&self.across)),
            format!("the control {}", figures(&self.control)),
            format!("while both asked: {}", times.join(", ")),
        ];
        lines.extend(self.failures("across clusters", &self.across));
        lines.extend(self.failures("the control", &self.control));
        let verdict = if self.holds() { "holds" } else { "does not hold" };
        if self.is_given_up() {
            lines.push("so many failed across clusters that no more were asked".to_owned());
        }
        lines.push(format!(
            "it {verdict}: {} across clusters, {} of the control, {MORE_THAN_CONTROL} more are allowed",
            self.across.failures.len(),
            self.control.failures.len()
        ));
        lines
    }

    fn failures(&self, which: &str, asked: &Asked) -> Vec<String> {
        let line = |failure: &Failure| {
            format!(
                "{which}: request {} failed {:.1} s after the first one, {}",
                failure.number,
                failure.at.saturating_sub(asked.from).as_secs_f64(),
                happened(&self.actions, failure.at)
            )
        };
        let mut lines: Vec<String> = asked.failures.iter().take(SHOWN).map(line).collect();
        let others = asked.failures.len().saturating_sub(SHOWN);
        if others > 0 {
            lines.push(format!("{which}: {others} other requests failed"));
        }
        lines
    }
}

fn figures(asked: &Asked) -> String {
    let seconds = asked.to.saturating_sub(asked.from).as_secs_f64();
    format!(
        "{} of {} requests failed, in {seconds:.1} s, {:.0} a second",
        asked.failures.len(),
        asked.requests,
        f64::from(asked.requests) / seconds
    )
}

/// Actions during a request that was given up at this time; otherwise the one that ended last.
fn happened(actions: &[Action], at: Moment) -> String {
    let asked = at.saturating_sub(Duration::from_secs(u64::from(ANSWER_WAIT)));
    let during = actions
        .iter()
        .filter(|action| action.begin <= at && asked <= action.end);
    let during: Vec<String> = during.map(|action| action.kind.to_string()).collect();
    if !during.is_empty() {
        return format!("during: {}", during.join(", "));
    }
    match actions.iter().rfind(|action| action.end < asked) {
        Some(Action { kind, end, .. }) => {
            let since = at.saturating_sub(*end).as_secs_f64();
            format!("{since:.1} s after the end of: {kind}")
        }
        None => "before anything happened".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(kind: Kind, begin: u64, end: u64) -> Action {
        Action {
            kind,
            begin: Duration::from_secs(begin),
            end: Duration::from_secs(end),
        }
    }

    fn asked(failures: u32, from: u64, to: u64) -> Asked {
        let failure = |number| Failure {
            number,
            at: Duration::from_secs(from + 1),
        };
        Asked {
            requests: 1_000,
            failures: (1..=failures).map(failure).collect(),
            from: Duration::from_secs(from),
            to: Duration::from_secs(to),
        }
    }

    #[test]
    fn a_failure_belongs_to_what_happened_while_it_was_asked() {
        let actions = [action(Kind::Restart, 10, 20), action(Kind::Scale, 21, 30)];
        for (at, said) in [
            (5, "before anything happened"),
            (15, "during: restart of all pods"),
            (22, "during: restart of all pods, change of the number of pods"),
            (32, "during: change of the number of pods"),
            (35, "5.0 s after the end of: change of the number of pods"),
        ] {
            assert_eq!(happened(&actions, Duration::from_secs(at)), said, "{at}");
        }
    }

    #[test]
    fn what_happens_counts_while_both_ask() {
        let times = |control: Asked| {
            let run = Run {
                across: asked(0, 100, 200),
                control,
                actions: vec![action(Kind::Hub, 110, 120), action(Kind::Hub, 150, 160)],
            };
            (run.times(Kind::Hub), run.missing().len())
        };
        assert_eq!(times(asked(0, 100, 200)), (2, 5));
        assert_eq!(times(asked(0, 100, 155)), (1, 5));
        assert_eq!(times(asked(0, 115, 155)), (0, 6));
    }

    #[test]
    fn across_clusters_a_few_more_may_fail() {
        let run = |across, control| Run {
            across: asked(across, 100, 200),
            control: asked(control, 100, 150),
            actions: Vec::new(),
        };
        assert!(run(10, 0).holds() && run(13, 3).holds() && run(0, 50).holds());
        assert!(!run(11, 0).holds());
        let lines = run(42, 0).lines();
        assert_eq!(
            lines[0],
            "across clusters 42 of 1000 requests failed, in 100.0 s, 10 a second"
        );
        assert_eq!(
            lines[1],
            "the control 0 of 1000 requests failed, in 50.0 s, 20 a second"
        );
        assert_eq!(
            lines[3],
            "across clusters: request 1 failed 1.0 s after the first one, before anything happened"
        );
        assert_eq!(lines[lines.len() - 2], "across clusters: 2 other requests failed");
        assert!(!run(49, 0).is_given_up() && run(50, 0).is_given_up());
        assert!(!run(50, 45).is_given_up(), "the control is no better");
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("it does not hold: 42 across clusters")
        );
    }
}
