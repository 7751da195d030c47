//! Owns: whether requests from another cluster are lost while everything under them is replaced: not more than requests
//! from the same cluster are, which the same pods answer at the same time.
//! Never: says why one was lost, only what happened then.

pub(super) mod actions;
pub(super) mod asking;
mod report;

use anyhow::{Context, bail, ensure};

use self::{
    actions::{Actions, Kind, NODE, REPLICAS},
    asking::Loop,
    report::Run,
};
use super::{
    client::export,
    configuration::TOOLS_IMAGE,
    control::wait_for,
    layout::Directory,
    lines::now,
    pair::{Addresses, Pair, at_least_one},
    row::Wrong,
    running::Running,
};

/// The pods and the Service.
const OBJECTS: &str = include_str!("../../churn.yaml");
/// Their namespace.
pub(super) const NAMESPACE: &str = "churn";
/// Requests of a run, at least: they go on until everything has happened once.
pub(super) const REQUESTS: u32 = 10_000;
/// More than so many times as many are not asked for that.
const REQUESTS_FACTOR_MAX: u32 = 20;
/// The Service that only the first cluster has and exports.
const SERVICE: &str = "web";

/// Asks so many times from both clusters while pods, a kubelet, the hub and the agents are replaced; all of it `runs`
/// times.
pub(super) fn churn(directory: &Directory, requests: u32, runs: u8) -> anyhow::Result<()> {
    at_least_one(requests, "requests")?;
    at_least_one(u32::from(runs), "runs")?;
    let running = Running::of(directory)?;
    let planes = running.planes();
    let pair = Pair::of(&planes, NAMESPACE)?;
    let nodes = running.nodes()?;
    let node = nodes.iter().find(|node| node.name == NODE.name());
    let actions = Actions {
        pair: &pair,
        node: node.context("the first cluster has a second node")?,
    };
    let addresses = prepare(&pair)?;
    let mut lost = 0;
    for number in 1..=runs {
        actions.settled(REPLICAS)?;
        let run = run(&pair, &addresses, &actions, requests)
            .with_context(|| format!("run {number} of {runs} shows nothing"))?;
        run.lines()
            .iter()
            .for_each(|line| println!("run {number}: {line}"));
        lost += u8::from(!run.holds());
    }
    if lost > 0 {
        let why = format!(
            "in {lost} of {runs} runs more requests across clusters failed than the control allows; what happened \
             then is above, logs are in {}",
            directory.path().display()
        );
        return Err(Wrong(why).into());
    }
    println!("{runs} runs hold: requests across clusters fail no more than those within one");
    Ok(())
}

/// Puts everything there, and waits until both clusters get answers.
pub(super) fn prepare(pair: &Pair<'_>) -> anyhow::Result<Addresses> {
    let exporter = &pair.exporter;
    pair.start_clients()?;
    let objects = OBJECTS
        .replace("@IMAGE@", TOOLS_IMAGE)
        .replace("@CLUSTER@", &exporter.plane.name);
    exporter.plane.apply(&objects, "churn.yaml")?;
    // What is imported first is right, so that only what becomes of it shows.
    exporter.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"])?;
    export(exporter, SERVICE)?;
    let addresses = pair.addresses(SERVICE)?;
    for (asker, address) in [
        (pair.there()?, &addresses.across),
        (pair.here()?, &addresses.local),
    ] {
        let plane = asker.cluster.plane;
        let question = asking::question(address);
        let answered = || {
            let said = asker.cluster.in_pod(&asker.client, &question);
            said.is_ok_and(|said| said.starts_with(&exporter.plane.name))
        };
        let what = format!("{address} answers in {}", plane.name);
        wait_for(&what, &plane.directory, answered)?;
    }
    Ok(addresses)
}

/// Asks from both clusters, and does one thing after another for as long as somebody asks.
fn run(pair: &Pair<'_>, addresses: &Addresses, actions: &Actions<'_>, requests: u32) -> anyhow::Result<Run> {
    let answer = &pair.exporter.plane.name;
    let bounds = requests..=requests.saturating_mul(REQUESTS_FACTOR_MAX);
    let mut across = Loop::start(&pair.there()?, &addresses.across, answer, &bounds)?;
    let mut control = Loop::start(&pair.here()?, &addresses.local, answer, &bounds)?;
    across.began()?;
    control.began()?;
    let began = now();
    let mut done = Vec::new();
    for kind in Kind::ALL.into_iter().cycle() {
        if !across.asks()? && !control.asks()? {
            break;
        }
        let action = actions.carry_out(kind)?;
        println!("{}", action.shown(began));
        done.push(action);
        if done.len() == Kind::ALL.len() {
            for asker in [pair.there()?, pair.here()?] {
                Loop::enough(&asker)?;
            }
        }
    }
    let run = Run {
        across: across.finish()?,
        control: control.finish()?,
        actions: done,
    };
    if run.is_given_up() {
        // What has not happened yet would change nothing.
        return Ok(run);
    }
    for (which, asked) in [("across clusters", &run.across), ("the control", &run.control)] {
        ensure!(
            asked.requests >= requests,
            "{which}: {} requests were asked instead of {requests}",
            asked.requests
        );
    }
    match run.missing() {
        missing if missing.is_empty() => Ok(run),
        missing => bail!(
            "the requests ended before everything had happened once while both asked ({}); ask for more",
            missing.join(", ")
        ),
    }
}
