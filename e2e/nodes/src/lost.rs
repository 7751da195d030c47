//! Owns: what requests see of a member whose power is cut: they fail until its endpoints are withdrawn, and not after that;
//! when it is back, it answers again.
//! Never: reads what the hub says of it in the place of who answers.

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::{
    churn::{
        self,
        asking::{ANSWER_WAIT, Asked, Loop},
    },
    client::{Asking, Protocol, export},
    configuration::TOOLS_IMAGE,
    control::wait_for,
    installed::Installed,
    layout::{Directory, Place},
    lines::{Moment, now},
    node::Node,
    pair::{Asker, Pair, at_least_one},
    row::Wrong,
    running::Running,
};

/// The pods and the Service, in another namespace.
const OBJECTS: &str = include_str!("../churn.yaml");
/// Their namespace.
const NAMESPACE: &str = "lost";
/// The Service that both clusters have and export.
const SERVICE: &str = "web";
/// Its port.
const PORT: u16 = 80;
/// Requests after the withdrawal, none of which may fail.
pub(super) const REQUESTS: u32 = 500;
/// Requests that outlast a loss; they end when it is over.
const REQUESTS_MAX: u32 = 1_000_000;
/// The one node of the member that is lost. The hub is elsewhere.
const NODE: Place = Place { cluster: 2, node: 1 };
/// An answer of one of both clusters, as a shell knows it.
const ANYBODY: &str = "c[12]";
/// Time from a member's last sign of life until its withdrawal, by the applied policy.
const WITHDRAWN_AFTER: Duration = Duration::from_secs(15);
/// A request that begins so much later reaches nobody who is lost.
const LATER: Duration = Duration::from_secs(1);

/// Cuts the power of a member, asks on, and gives it back; so many times.
pub(super) fn lost(directory: &Directory, requests: u32, runs: u8) -> anyhow::Result<()> {
    at_least_one(requests, "requests")?;
    at_least_one(u32::from(runs), "runs")?;
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    installed.in_session()?;
    let planes = running.planes();
    let pair = Pair::of(&planes, NAMESPACE)?;
    let nodes = running.nodes()?;
    let node = nodes.iter().find(|node| node.name == NODE.name());
    let loss = Loss {
        running: &running,
        pair: &pair,
        node: node.context("the second cluster has a node")?,
        address: prepare(&pair)?,
    };
    let loss_after = format!("spec:\n  loss:\n    after: {}s\n", WITHDRAWN_AFTER.as_secs());
    installed.under_policy(&loss_after, || {
        let outcome = (1..=runs).try_for_each(|number| {
            let run = loss.run(requests)?;
            run.lines()
                .iter()
                .for_each(|line| println!("run {number}: {line}"));
            run.verdict()?;
            // The next one begins as this one did.
            installed.in_session()
        });
        // Whatever came of it: a cluster without power is of no use to anybody.
        let back = loss.power(true);
        outcome.and(back)
    })?;
    println!(
        "{runs} runs hold: requests failed no longer than {} s and 1 s more",
        WITHDRAWN_AFTER.as_secs()
    );
    Ok(())
}

/// Puts the Service into both clusters, and waits until both answer to who asks in the first one; its address there.
fn prepare(pair: &Pair<'_>) -> anyhow::Result<String> {
    pair.start_clients()?;
    let clusters = [&pair.exporter, &pair.importer];
    for cluster in clusters {
        let objects = OBJECTS
            .replace(
                &format!("namespace: {}", churn::NAMESPACE),
                &format!("namespace: {NAMESPACE}"),
            )
            .replace("@IMAGE@", TOOLS_IMAGE)
            .replace("@CLUSTER@", &cluster.plane.name);
        cluster.plane.apply(&objects, "lost.yaml")?;
    }
    for cluster in clusters {
        cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"])?;
        export(cluster, SERVICE)?;
    }
    let asks = &pair.exporter;
    let addresses = || {
        asks.field("serviceimport/web", ".spec.ips[*]")
            .unwrap_or_default()
    };
    wait_for("web has a clusterset IP", &asks.plane.directory, || {
        !addresses().is_empty()
    })?;
    addresses().into_iter().next().context("it has an address")
}

/// A member whose power is cut while somebody asks elsewhere.
struct Loss<'a> {
    running: &'a Running,
    pair: &'a Pair<'a>,
    node: &'a Node<'a>,
    /// The clusterset IP where who asks is.
    address: String,
}

/// Observations of a loss.
#[derive(Debug)]
struct Run {
    asked: Asked,
    cut: Moment,
    /// The importing cluster held nothing of it any more.
    gone: Moment,
    /// Requests from then on.
    afterwards: Asked,
    given: Moment,
    /// Both answered again.
    back: Moment,
}

impl Loss<'_> {
    fn run(&self, requests: u32) -> anyhow::Result<Run> {
        let asker = self.pair.here()?;
        self.both_answer(&asker)?;
        let asking = self.asking(&asker, 1, REQUESTS_MAX)?;
        let cut = now();
        self.power(false)?;
        let asks = &self.pair.exporter;
        wait_for(
            "what came from the lost member is withdrawn",
            &asks.plane.directory,
            || self.imported().is_ok_and(|slices| slices.trim().is_empty()),
        )?;
        let gone = now();
        let afterwards = self.asking(&asker, requests, requests)?.finish()?;
        Loop::enough(&asker)?;
        let asked = asking.finish()?;
        let given = now();
        self.power(true)?;
        self.both_answer(&asker)?;
        Ok(Run {
            asked,
            cut,
            gone,
            afterwards,
            given,
            back: now(),
        })
    }

    fn asking(&self, asker: &Asker<'_>, least: u32, most: u32) -> anyhow::Result<Loop> {
        let asking = Loop::start(asker, &self.address, ANYBODY, &(least..=most))?;
        asking.began()?;
        Ok(asking)
    }

    /// The slices of the second cluster in the first one.
    fn imported(&self) -> anyhow::Result<String> {
        let Asking { plane, .. } = self.pair.importer;
        let source = format!("multicluster.kubernetes.io/source-cluster={}", plane.name);
        let get = ["get", "endpointslices", "--selector", &source, "--output=name"];
        self.pair.exporter.kubectl(&get)
    }

    fn both_answer(&self, asker: &Asker<'_>) -> anyhow::Result<()> {
        let both = [&self.pair.exporter, &self.pair.importer].map(|cluster| &cluster.plane.name);
        wait_for(
            "pods of both clusters answer",
            &asker.cluster.plane.directory,
            || {
                let answers = asker
                    .cluster
                    .answers(&asker.client, &self.address, PORT, Protocol::Tcp);
                answers.is_ok_and(|answers| {
                    both.iter()
                        .all(|name| answers.iter().any(|answer| answer.cluster == **name))
                        && answers.iter().all(|answer| both.contains(&&answer.cluster))
                })
            },
        )
    }

    /// Nothing reaches the member's node, and nothing comes from it; or it does again.
    fn power(&self, on: bool) -> anyhow::Result<()> {
        let link = if on { "up" } else { "down" };
        self.running
            .control
            .script(&format!("ip link set {} {link}", self.node.name))
    }
}

impl Run {
    /// Start of the last failed request, since the power was cut.
    fn last_failure(&self) -> Option<Duration> {
        let last = self.asked.failures.last()?;
        let began = last
            .at
            .saturating_sub(Duration::from_secs(u64::from(ANSWER_WAIT)));
        Some(began.saturating_sub(self.cut))
    }

    fn lines(&self) -> Vec<String> {
        let seconds = |from: Moment, to: Moment| to.saturating_sub(from).as_secs_f64();
        let Self {
            asked, afterwards, ..
        } = self;
        let last = self.last_failure().unwrap_or_default().as_secs_f64();
        vec![
            format!(
                "{} of {} requests failed, the last one began {last:.1} s after the power was cut",
                asked.failures.len(),
                asked.requests
            ),
            format!(
                "its endpoints were gone after {:.1} s; of {} requests from then on {} failed",
                seconds(self.cut, self.gone),
                afterwards.requests,
                afterwards.failures.len()
            ),
            format!(
                "with power it answered again after {:.1} s",
                seconds(self.given, self.back)
            ),
        ]
    }

    /// An error says what is wrong with it, or that it shows nothing.
    fn verdict(&self) -> anyhow::Result<()> {
        let Some(last) = self.last_failure() else {
            bail!("no request failed though a member was lost that answered before: this shows nothing");
        };
        ensure!(
            self.asked.failures[0].at >= self.cut,
            "requests failed before the power was cut: this shows nothing"
        );
        let most = WITHDRAWN_AFTER + LATER;
        let mut wrong = Vec::new();
        if last > most {
            wrong.push(format!(
                "a request began {:.1} s after the power was cut and failed; {} s are the most",
                last.as_secs_f64(),
                most.as_secs()
            ));
        }
        if !self.afterwards.failures.is_empty() {
            wrong.push("requests failed that began after its endpoints were gone".to_owned());
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Wrong(wrong.join("; ")).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::asking::Failure;

    fn asked(failures: &[u64]) -> Asked {
        let failure = |at: &u64| Failure {
            number: 1,
            at: Duration::from_millis(*at),
        };
        Asked {
            requests: 100,
            failures: failures.iter().map(failure).collect(),
            from: Duration::from_secs(90),
            to: Duration::from_secs(130),
        }
    }

    fn verdict(failures: &[u64], afterwards: &[u64]) -> Result<(), String> {
        let run = Run {
            asked: asked(failures),
            cut: Duration::from_secs(100),
            gone: Duration::from_secs(115),
            afterwards: asked(afterwards),
            given: Duration::from_secs(130),
            back: Duration::from_secs(131),
        };
        run.verdict().map_err(|error| error.to_string())
    }

    #[test]
    fn requests_fail_until_the_withdrawal_and_a_second_more() {
        // Given up two seconds after they began.
        assert_eq!(verdict(&[102_500, 117_900], &[]), Ok(()));
        let late = verdict(&[102_500, 118_100], &[]).unwrap_err();
        assert_eq!(
            late,
            "a request began 16.1 s after the power was cut and failed; 16 s are the most"
        );
        let after = verdict(&[102_500], &[120_000]).unwrap_err();
        assert!(after.contains("after its endpoints were gone"), "{after}");
        for shows_nothing in [&[][..], &[99_000, 102_500]] {
            let error = verdict(shows_nothing, &[]).unwrap_err();
            assert!(error.ends_with("this shows nothing"), "{error}");
        }
    }
}
