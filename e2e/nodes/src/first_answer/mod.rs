//! Owns: how long it takes from a pod's readiness in one cluster to its first answer in another, beside the same in its
//! own cluster: figures that are shown, of pods that all must answer.
//! Never: asserts a figure.

mod asking;
mod figures;
mod readiness;

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, ensure};

use self::{
    asking::{First, Service, Waiting},
    figures::{Micros, shown, signed},
    readiness::Watch,
};
use super::{
    client::export,
    configuration::TOOLS_IMAGE,
    control::wait_for,
    layout::Directory,
    lines::Moment,
    pair::{Asker, Pair, at_least_one},
    running::Running,
};

/// A Deployment and its Service, by number.
const OBJECTS: &str = include_str!("../../first-answer.yaml");
/// Their namespace.
const NAMESPACE: &str = "first-answer";
/// Number of services, and so of the pods of a round.
const SERVICES: u16 = 10;
/// A pod that is ready must have answered after this.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Starts so many pods, ten at a time, and shows how long the first answer of each took.
///
/// A pod is ready when a watch of the API server says so to this program, which stamps it with the clock that the pods
/// have too. The watch's own delay shortens the figures, so that one may even be below zero.
pub(super) fn first_answer(directory: &Directory, pods: u16) -> anyhow::Result<()> {
    at_least_one(u32::from(pods), "pods")?;
    let running = Running::of(directory)?;
    let planes = running.planes();
    let pair = Pair::of(&planes, NAMESPACE)?;
    let rounds = Rounds::prepare(&pair)?;
    let mut all = Round::default();
    let mut left = pods;
    for number in 1.. {
        if left == 0 {
            break;
        }
        let count = left.min(SERVICES);
        let round = rounds.round(count).with_context(|| format!("round {number}"))?;
        println!("round {number}: across clusters {}", shown(&round.across));
        println!("round {number}: the control {}", shown(&round.control));
        all.add(round);
        left -= count;
    }
    println!(
        "from readiness to the first answer, across clusters: {}",
        shown(&all.across)
    );
    println!(
        "from readiness to the first answer, the control: {}",
        shown(&all.control)
    );
    Ok(())
}

/// From readiness to the first answer, a figure for each pod.
#[derive(Debug, Default)]
struct Round {
    across: Vec<Micros>,
    /// In the pods' own cluster.
    control: Vec<Micros>,
}

impl Round {
    fn add(&mut self, other: Self) {
        self.across.extend(other.across);
        self.control.extend(other.control);
    }
}

/// Everything that rounds need.
struct Rounds<'a> {
    pair: &'a Pair<'a>,
    there: Asker<'a>,
    here: Asker<'a>,
    /// Clusterset IPs, by the number of their service.
    across: Vec<Service>,
    /// Cluster IPs in the pods' own cluster.
    local: Vec<Service>,
}

impl<'a> Rounds<'a> {
    /// Puts everything there, without pods yet, and waits for addresses.
    fn prepare(pair: &'a Pair<'a>) -> anyhow::Result<Self> {
        let exporter = &pair.exporter;
        pair.start_clients()?;
        let objects: Vec<String> = (0..SERVICES)
            .map(|number| OBJECTS.replace("@NUMBER@", &number.to_string()))
            .collect();
        let objects = objects
            .join("---\n")
            .replace("@IMAGE@", TOOLS_IMAGE)
            .replace("@CLUSTER@", &exporter.plane.name);
        exporter.plane.apply(&objects, "first-answer.yaml")?;
        let mut rounds = Self {
            pair,
            there: pair.there()?,
            here: pair.here()?,
            across: Vec::new(),
            local: Vec::new(),
        };
        (0..SERVICES).try_for_each(|number| export(exporter, &name(number)))?;
        for number in 0..SERVICES {
            let addresses = pair.addresses(&name(number))?;
            rounds.across.push(Service {
                number,
                address: addresses.across,
            });
            rounds.local.push(Service {
                number,
                address: addresses.local,
            });
        }
        rounds.nobody_answers()?;
        Ok(rounds)
    }

    /// Starts a pod of each of so many services while both clusters ask, and ends them again.
    fn round(&self, count: u16) -> anyhow::Result<Round> {
        let services = usize::from(count);
        let mut watch = Watch::start(&self.pair.exporter)?;
        let across = Waiting::start(&self.there, &self.across[..services])?;
        let control = Waiting::start(&self.here, &self.local[..services])?;
        self.scale(count, 1)?;
        let across = across.finish()?;
        let control = control.finish()?;
        let ready = watch.readiness_of(across.iter().chain(&control).map(|first| &*first.pod))?;
        drop(watch);
        self.scale(count, 0)?;
        self.nobody_answers()?;
        Ok(Round {
            across: figures(&across, &ready)?,
            control: figures(&control, &ready)?,
        })
    }

    fn scale(&self, count: u16, replicas: u8) -> anyhow::Result<()> {
        let replicas = format!("--replicas={replicas}");
        let deployments: Vec<String> = (0..count)
            .map(|number| format!("deployment/{}", name(number)))
            .collect();
        let deployments = deployments.iter().map(String::as_str);
        let arguments: Vec<&str> = ["scale", &replicas].into_iter().chain(deployments).collect();
        self.pair.exporter.kubectl(&arguments).map(drop)
    }

    /// Waits until no pod is left, and none is asked any more.
    fn nobody_answers(&self) -> anyhow::Result<()> {
        let exporter = &self.pair.exporter;
        wait_for("no pod is left", &exporter.plane.directory, || {
            exporter.pods("one").is_ok_and(|pods| pods.is_empty())
        })?;
        for (asker, services) in [(&self.there, &self.across), (&self.here, &self.local)] {
            let plane = asker.cluster.plane;
            wait_for(
                &format!("nobody answers in {}", plane.name),
                &plane.directory,
                || asking::is_silent(asker, services),
            )?;
        }
        Ok(())
    }
}

fn name(number: u16) -> String {
    format!("one-{number}")
}

fn figures(answers: &[First], ready: &BTreeMap<String, Moment>) -> anyhow::Result<Vec<Micros>> {
    let figure = |first: &First| {
        let ready = ready
            .get(&first.pod)
            .with_context(|| format!("{} answered and was never ready", first.pod))?;
        let took = signed(*ready, first.at);
        ensure!(
            took <= signed(Moment::ZERO, ANSWER_MAX),
            "{} was ready and answered no sooner than {:.1} s later",
            first.pod,
            first.at.saturating_sub(*ready).as_secs_f64()
        );
        Ok(took)
    };
    answers.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_answers_late_or_was_never_ready_is_an_error() {
        let answer = |pod: &str, at| {
            [First {
                number: 0,
                at: Duration::from_secs(at),
                pod: pod.into(),
            }]
        };
        let ready = BTreeMap::from([("one-0-a".to_owned(), Duration::from_secs(100))]);
        assert_eq!(figures(&answer("one-0-a", 101), &ready).unwrap(), [1_000_000]);
        assert_eq!(figures(&answer("one-0-a", 99), &ready).unwrap(), [-1_000_000]);
        assert!(figures(&answer("one-0-a", 131), &ready).is_err());
        assert!(figures(&answer("one-0-b", 101), &ready).is_err());
    }
}
