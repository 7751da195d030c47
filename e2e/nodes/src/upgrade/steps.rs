//! Owns: steps that are carried out while two pods ask, one across clusters and one inside: no more requests may fail
//! across than inside.
//! Never: knows what a step does.

use anyhow::{Context, ensure};

use crate::{
    churn::{
        self,
        actions::{Actions, Kind, NODE, REPLICAS},
        asking::{Asked, Failure, Loop},
    },
    lines::{Moment, now},
    pair::Pair,
    running::Running,
};

/// Failures that are shown one by one.
const SHOWN: usize = 20;

/// Something that is done, until it is over.
pub(super) struct Step<'a> {
    what: String,
    does: Box<dyn Fn() -> anyhow::Result<()> + 'a>,
}

impl<'a> Step<'a> {
    pub(super) fn new(what: impl Into<String>, does: impl Fn() -> anyhow::Result<()> + 'a) -> Self {
        Self {
            what: what.into(),
            does: Box::new(does),
        }
    }
}

/// A step that was carried out.
#[derive(Debug)]
struct Done<'a> {
    what: &'a str,
    begin: Moment,
    end: Moment,
}

/// Carries out every step while pods of the first two clusters ask for a service of the first; after each, all pods of
/// that service are replaced, so that what changes has to cross between the versions that stand there.
pub(super) fn under_requests(running: &Running, requests: u32, steps: &[Step<'_>]) -> anyhow::Result<()> {
    let planes = running.planes();
    let pair = Pair::of(&planes, churn::NAMESPACE)?;
    let nodes = running.nodes()?;
    let node = nodes.iter().find(|node| node.name == NODE.name());
    let actions = Actions {
        pair: &pair,
        node: node.context("the first cluster has a second node")?,
    };
    let addresses = churn::prepare(&pair)?;
    actions.settled(REPLICAS)?;
    let answer = &pair.exporter.plane.name;
    let requests = 1..=requests;
    let across = Loop::start(&pair.there()?, &addresses.across, answer, &requests)?;
    let control = Loop::start(&pair.here()?, &addresses.local, answer, &requests)?;
    across.began()?;
    control.began()?;
    let began = now();
    let mut done = Vec::new();
    for step in steps {
        let begin = now();
        (step.does)().with_context(|| format!("{} does not come to its end", step.what))?;
        let changed = actions.carry_out(Kind::Restart)?;
        let end = now();
        println!(
            "{:6.1} s  {}: {:.1} s",
            begin.saturating_sub(began).as_secs_f64(),
            step.what,
            changed.begin.saturating_sub(begin).as_secs_f64()
        );
        println!("{}", changed.shown(began));
        done.push(Done {
            what: &step.what,
            begin,
            end,
        });
    }
    for asker in [pair.there()?, pair.here()?] {
        Loop::enough(&asker)?;
    }
    let (across, control) = (across.finish()?, control.finish()?);
    lines(&across, &control, &done)
        .iter()
        .for_each(|line| println!("{line}"));
    verdict(&across, &control, &done)
}

/// An error says what is wrong with a run.
fn verdict(across: &Asked, control: &Asked, done: &[Done<'_>]) -> anyhow::Result<()> {
    ensure!(
        across.failures.len() <= control.failures.len(),
        "{} requests failed across clusters, and {} inside",
        across.failures.len(),
        control.failures.len()
    );
    let (from, to) = (across.from.max(control.from), across.to.min(control.to));
    for step in done {
        ensure!(
            from <= step.begin && step.end <= to,
            "the requests ended before this was over: {}; ask for more",
            step.what
        );
    }
    Ok(())
}

fn lines(across: &Asked, control: &Asked, done: &[Done<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for (which, asked) in [("across clusters", across), ("inside", control)] {
        lines.push(format!(
            "{which}: {} of {} requests failed",
            asked.failures.len(),
            asked.requests
        ));
        let failures = asked.failures.iter().take(SHOWN);
        lines.extend(failures.map(|failure| format!("{which}: {}", shown(failure, asked.from, done))));
    }
    lines
}

fn shown(failure: &Failure, from: Moment, done: &[Done<'_>]) -> String {
    let step = done
        .iter()
        .find(|step| step.begin <= failure.at && failure.at <= step.end);
    format!(
        "request {} failed {:.1} s after the first one, {}",
        failure.number,
        failure.at.saturating_sub(from).as_secs_f64(),
        step.map_or("when nothing happened".to_owned(), |step| format!(
            "during: {}",
            step.what
        ))
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked(failures: u32, from: u64, to: u64) -> Asked {
        let failure = |number| Failure {
            number,
            at: Duration::from_secs(from + 5),
        };
        Asked {
            requests: 1_000,
            failures: (1..=failures).map(failure).collect(),
            from: Duration::from_secs(from),
            to: Duration::from_secs(to),
        }
    }

    fn done(begin: u64, end: u64) -> Done<'static> {
        Done {
            what: "the hub",
            begin: Duration::from_secs(begin),
            end: Duration::from_secs(end),
        }
    }

    #[test]
    fn no_more_may_fail_across_than_inside() {
        let steps = [done(103, 110)];
        let of = |across, control| {
            verdict(&asked(across, 100, 200), &asked(control, 101, 190), &steps).map_err(|e| e.to_string())
        };
        assert_eq!(of(0, 0), Ok(()));
        assert_eq!(of(2, 2), Ok(()));
        assert_eq!(
            of(1, 0).unwrap_err(),
            "1 requests failed across clusters, and 0 inside"
        );
    }

    #[test]
    fn a_step_counts_only_while_both_ask() {
        for (begin, end) in [(99, 110), (150, 195), (195, 199)] {
            let said = verdict(&asked(0, 100, 200), &asked(0, 100, 190), &[done(begin, end)]).unwrap_err();
            assert!(said.to_string().ends_with("the hub; ask for more"), "{said}");
        }
    }

    #[test]
    fn a_failure_says_what_was_done_then() {
        let said = lines(&asked(1, 100, 200), &asked(0, 100, 200), &[done(103, 110)]);
        assert_eq!(
            said,
            [
                "across clusters: 1 of 1000 requests failed",
                "across clusters: request 1 failed 5.0 s after the first one, during: the hub",
                "inside: 0 of 1000 requests failed",
            ]
        );
    }
}
