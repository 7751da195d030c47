//! Owns: registering the tests of the one e2e binary, how many of each kind run at a time, what happens when real clusters
//! cannot run, and the table of scenarios at the end.
//! Never: knows what a scenario does.
//!
//! Rust's own harness cannot ignore a test while it runs; this one can. A test on real clusters that finds no
//! control plane is reported as ignored with the reason, never as passed; with `CI=true` it fails.
//!
//! Every test has a thread from the beginning and waits there for a permit of its kind: a scenario that waits for real
//! clusters keeps no simulated one from running.

mod gate;
mod left;
mod runtime;
mod table;

pub use cluster::clusterset::shop::{LABEL_STORY, RUNNING, unique_name};
use cluster::cost::Counter;
use cluster::real::{self, Counts, Error, Fleet, Unavailable, shared::Lease};
use cluster::rights::denied::{Asked, Watched};
pub use gate::check as check_release_only;
pub use left::empty_namespaces;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime::{bounded, on_runtime};
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use table::{Kind, Measured, TestResult};
use tokio::sync::{Semaphore, SemaphorePermit};

/// A scenario that has not ended after this long is reported as failed.
pub const SCENARIO_WAIT: Duration = Duration::from_secs(180);
/// Simulated scenarios at a time. They wait for more than they compute.
const SIMULATED_AT_A_TIME: usize = 5;
/// Scenarios at a time that start clusters of their own.
const OWN_CLUSTERS_AT_A_TIME: usize = 2;
/// Tests at a time that need no cluster. They compute all the time: one for each of two cores.
const PLAIN_AT_A_TIME: usize = 2;
/// The kind of tests that begin first.
const LONE: &str = "alone";
/// Threads for tests, which wait there until they may run: more than there are tests.
const THREADS_MAX: usize = 1_024;

static SIMULATED: Semaphore = Semaphore::const_new(SIMULATED_AT_A_TIME);
static OWN_CLUSTERS: Semaphore = Semaphore::const_new(OWN_CLUSTERS_AT_A_TIME);
static PLAIN: Semaphore = Semaphore::const_new(PLAIN_AT_A_TIME);

/// Waits for a permit, blocking this thread. Nobody closes these semaphores.
fn permit(of: &'static Semaphore) -> Option<SemaphorePermit<'static>> {
    futures::executor::block_on(of.acquire()).ok()
}

/// A test that needs no cluster of any kind.
pub fn plain_test<F>(name: &str, test: F) -> Trial
where
    F: FnOnce() -> anyhow::Result<()> + Send + 'static,
{
    Trial::test(name, move || {
        let _permit = permit(&PLAIN);
        test().map_err(failed)
    })
}

/// A test that floods a program and asks how soon others are answered: it begins first, and without other tests beside it
/// but those on leased clusters.
pub fn lone_test<F>(name: &str, test: F) -> Trial
where
    F: FnOnce() -> anyhow::Result<()> + Send + 'static,
{
    let trial = Trial::test(name, move || {
        let all = |of: &'static Semaphore, permits: usize| {
            let permits = u32::try_from(permits).unwrap_or(u32::MAX);
            futures::executor::block_on(of.acquire_many(permits)).ok()
        };
        let _permits = (
            all(&SIMULATED, SIMULATED_AT_A_TIME),
            all(&OWN_CLUSTERS, OWN_CLUSTERS_AT_A_TIME),
            all(&PLAIN, PLAIN_AT_A_TIME),
        );
        test().map_err(failed)
    });
    trial.with_kind(LONE)
}

/// A scenario on simulated clusters. One that returns `Unavailable`, because a program that it needs is not
/// installed, is ignored with the reason; with `CI=true` it fails.
pub fn sim_test<F, Run>(name: &str, scenario: F) -> Trial
where
    F: FnOnce() -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let recorded = name.to_owned();
    let trial = Trial::ignorable_test(name, move || {
        let asked = Instant::now();
        let _permit = permit(&SIMULATED);
        let counter = Arc::new(Counter::default());
        let waited = asked.elapsed();
        let result = on_runtime(Some(&counter), async move {
            Ok(bounded(SCENARIO_WAIT, scenario()).await)
        });
        let measured = Measured::new(asked, waited, &counter);
        ended(
            &recorded,
            Kind::Simulated,
            result.and_then(|result| result),
            measured,
        )
    });
    trial.with_kind("simulated")
}

/// A scenario on shared real clusters, which nobody else uses meanwhile. The requests that are not the harness's own
/// are counted from the audit logs and shown in the table. One that denied anything to an account of the charts fails
/// the scenario; so does what the scenario leaves in the clusters. A scenario that returns `Unavailable` is ignored too.
pub fn real_test<F, Run>(name: &str, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    real_trial(name, Denials::FailIt, scenario)
}

/// The same for a scenario that takes rights away, and judges denials itself.
pub fn real_test_with_denials<F, Run>(name: &str, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    real_trial(name, Denials::AreWanted, scenario)
}

/// A scenario that starts real clusters of its own. One that has not ended after `limit` is reported as failed. A scenario
/// that returns `Unavailable` is ignored; so is one for which nothing is built that clusters run.
pub fn test_with_own_clusters<F, Run>(name: &str, limit: Duration, scenario: F) -> Trial
where
    F: FnOnce() -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let recorded = name.to_owned();
    let trial = Trial::ignorable_test(name, move || {
        let asked = Instant::now();
        let _permit = permit(&OWN_CLUSTERS);
        let counter = Arc::new(Counter::default());
        let waited = asked.elapsed();
        let available = real::shared::available().map_err(anyhow::Error::from);
        let result = available.and_then(|()| on_runtime(Some(&counter), bounded(limit, scenario())));
        let measured = Measured::new(asked, waited, &counter);
        ended(&recorded, Kind::Real, result, measured)
    });
    trial.with_kind("real")
}

fn real_trial<F, Run>(name: &str, denials: Denials, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let recorded = name.to_owned();
    let trial = Trial::ignorable_test(name, move || {
        let asked = Instant::now();
        let counter = Arc::new(Counter::default());
        // The start of a fleet is nobody's in particular: it counts for no scenario.
        let leased = on_runtime(None, async { Ok(real::shared::lease().await) });
        let waited = asked.elapsed();
        let mut requests = None;
        let result = leased
            .and_then(|leased| leased.map_err(anyhow::Error::from))
            .and_then(|lease| {
                let ran = on_lease(lease, denials, &counter, scenario)?;
                requests = ran.requests;
                ran.result
            });
        let mut measured = Measured::new(asked, waited, &counter);
        measured.requests = requests;
        ended(&recorded, Kind::Real, result, measured)
    });
    trial.with_kind("real")
}

/// Notes how a scenario ended, and says it to the harness.
fn ended(
    name: &str,
    kind: Kind,
    result: anyhow::Result<()>,
    measured: Measured,
) -> Result<Completion, Failed> {
    let missing = result.as_ref().err().and_then(unavailable);
    let outcome = match (&result, &missing) {
        (Ok(()), _) => TestResult::Passed,
        (Err(_), Some(_)) => TestResult::Ignored,
        (Err(_), None) => TestResult::Failed,
    };
    table::record(name, kind, outcome, measured);
    match missing {
        Some(missing) => when_unavailable(&missing, in_ci()),
        None => result.map(|()| Completion::Completed).map_err(failed),
    }
}

/// Runs the registered tests with the arguments of the command line, stops the shared clusters, prints the table.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    let (mut trials, left_out) = match gate::of_environment(trials) {
        Ok(divided) => divided,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    trials.sort_by_key(|trial| trial.kind() != LONE);
    let mut arguments = Arguments::from_args();
    arguments
        .test_threads
        .get_or_insert(trials.len().clamp(1, THREADS_MAX));
    let conclusion = libtest_mimic::run(&arguments, trials);
    real::shared::stop();
    if !arguments.list {
        let version = real::shared::git_version();
        print!("{}{}{left_out}", table::shown(version), asked_in_all());
    }
    conclusion.exit_code()
}

/// The meaning of a denied request of a chart's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denials {
    FailIt,
    AreWanted,
}

/// Requests of the charts' accounts that were looked at, and those that were denied, where none should be.
static ASKED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The sum of requests, once there are any.
fn asked_in_all() -> String {
    let [asked, denied] = [0, 1].map(|index| ASKED[index].load(Ordering::Relaxed));
    match asked {
        0 => String::new(),
        _ => format!("{denied} of {asked} requests of the charts' accounts were denied\n"),
    }
}

/// The end of a scenario on real clusters.
struct Ran {
    result: anyhow::Result<()>,
    requests: Option<Counts>,
}

/// Runs the scenario on its fleet. An error is one of the clusters, not of the scenario. A fleet on which something went
/// wrong, or in which something is left, is not used again.
fn on_lease<F, Run>(
    mut lease: Lease,
    denials: Denials,
    counter: &Arc<Counter>,
    scenario: F,
) -> anyhow::Result<Ran>
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let fleet = Arc::clone(lease.leased());
    let before = fleet.spent();
    // When this runtime has ended, every task has that the scenario left running.
    let ran = on_runtime(Some(counter), watched(Arc::clone(&fleet), denials, scenario));
    counter.add_clusters(fleet.spent().saturating_sub(before));
    let usable = |result: &anyhow::Result<()>| {
        let missing = |error: &anyhow::Error| unavailable(error).is_some();
        result.as_ref().err().is_none_or(missing)
    };
    if !ran.as_ref().is_ok_and(|ran| usable(&ran.result)) {
        lease.retire();
        return ran;
    }
    let mut ran = ran?;
    let cleared = on_runtime(None, async move { left::clear(&fleet).await });
    let wrong = match cleared {
        Ok(left) if left.is_empty() => return Ok(ran),
        Ok(left) => anyhow::anyhow!("left in the shared clusters: {}", left.join(", ")),
        Err(error) => error.context("the shared clusters cannot be cleared"),
    };
    lease.retire();
    if ran.result.is_ok() {
        ran.result = Err(wrong);
    }
    Ok(ran)
}

async fn watched<F, Run>(fleet: Arc<Fleet>, denials: Denials, scenario: F) -> anyhow::Result<Ran>
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let watched = Watched::begin(&fleet).await?;
    let result = bounded(SCENARIO_WAIT, scenario(Arc::clone(&fleet))).await;
    // A component that died is the better explanation of whatever the scenario saw.
    fleet.check()?;
    let requests = watched.requests(&fleet).await;
    let (result, requests) = match (result, requests) {
        (result, Ok(requests)) => (judged(result, denials, &requests), Some(counts(requests))),
        (Ok(()), Err(unread)) => return Err(unread),
        (failed, Err(_)) => (failed, None),
    };
    Ok(Ran { result, requests })
}

/// The reason when an error says that real clusters, or something a scenario needs of them, are not there.
fn unavailable(error: &anyhow::Error) -> Option<Unavailable> {
    if let Some(unavailable) = error.downcast_ref::<Unavailable>() {
        return Some(unavailable.clone());
    }
    let shared = error.downcast_ref::<Arc<Error>>().map(|error| &**error);
    match shared.or_else(|| error.downcast_ref::<Error>()) {
        Some(Error::Unavailable(unavailable)) => Some(unavailable.clone()),
        _ => None,
    }
}

/// A denial is the better explanation of whatever followed from it.
fn judged(result: anyhow::Result<()>, denials: Denials, requests: &[real::Request]) -> anyhow::Result<()> {
    if denials == Denials::AreWanted {
        return result;
    }
    let asked = Asked::of(requests);
    ASKED[0].fetch_add(asked.requests, Ordering::Relaxed);
    ASKED[1].fetch_add(asked.denied.len() as u64, Ordering::Relaxed);
    match (result, asked.nothing_denied()) {
        (result, Ok(())) => result,
        (Ok(()), denied) => denied,
        (Err(error), Err(denied)) if unavailable(&error).is_none() => Err(error.context(denied)),
        (missing, Err(_)) => missing,
    }
}

fn counts(mut requests: Vec<real::Request>) -> Counts {
    requests.retain(|request| !request.is_lease() && !request.is_review());
    Counts::of_the_tested(&requests)
}

fn failed(error: anyhow::Error) -> Failed {
    Failed::from(format!("{error:#}"))
}

fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Ignored on a developer's machine; where everything must have run, a failure.
fn when_unavailable(unavailable: &Unavailable, ci: bool) -> Result<Completion, Failed> {
    if ci {
        return Err(Failed::from(format!(
            "nothing may be left out when CI=true, but {unavailable}"
        )));
    }
    Ok(Completion::ignored_with(unavailable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_clusters_ignore_a_test_and_fail_it_in_ci() {
        let unavailable = Unavailable {
            reason: "no control plane is built".to_owned(),
        };
        let ignored = when_unavailable(&unavailable, false);
        assert!(
            matches!(ignored, Ok(Completion::Ignored { reason: Some(reason) }) if reason.contains("built"))
        );
        let failed = when_unavailable(&unavailable, true)
            .map(|_| ())
            .expect_err("a failure");
        assert!(
            failed
                .message()
                .is_some_and(|message| message.contains("no control plane is built"))
        );
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let result: anyhow::Result<()> =
            on_runtime(None, bounded(SCENARIO_WAIT, async { panic!("the reason") }));
        assert!(
            result
                .expect_err("it panicked")
                .to_string()
                .contains("the reason")
        );
    }
}
