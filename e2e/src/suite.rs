//! Owns: registering the tests of the one e2e binary, what happens when real clusters cannot run, and the table
//! of scenarios at the end.
//! Never: knows what a scenario does.
//!
//! Rust's own harness cannot ignore a test while it runs; this one can. A test on real clusters that finds no
//! control plane is reported as ignored with the reason, never as passed; with `CI=true` it fails.

mod table;

use crate::real::{self, Counts, Error, Fleet, Unavailable};
use crate::rights::denied::{Asked, Watched};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use table::{Kind, TestResult};

/// A scenario that has not ended after this long is reported as failed.
const SCENARIO_WAIT: Duration = Duration::from_secs(180);
/// Tests at a time unless the command line says otherwise. Scenarios wait more than they compute, and one that waits
/// for its turn on the real clusters must not keep the others from running.
const TESTS_AT_A_TIME: usize = 4;
/// How long the tasks that a scenario left running may take to end.
const RUNTIME_END_WAIT: Duration = Duration::from_secs(5);

/// A test that needs no cluster of any kind.
pub fn plain_test<F>(name: &str, test: F) -> Trial
where
    F: FnOnce() -> anyhow::Result<()> + Send + 'static,
{
    Trial::test(name, move || test().map_err(failed))
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
        let began = Instant::now();
        let result =
            on_runtime(async move { Ok(bounded(SCENARIO_WAIT, scenario()).await) }).and_then(|result| result);
        let missing = result.as_ref().err().and_then(unavailable);
        let outcome = match &missing {
            Some(_) => TestResult::Ignored,
            None => TestResult::of(&result, began.elapsed(), None),
        };
        table::record(&recorded, Kind::Simulated, outcome);
        match missing {
            Some(missing) => when_unavailable(&missing, in_ci()),
            None => result.map(|()| Completion::Completed).map_err(failed),
        }
    });
    trial.with_kind("simulated")
}

/// A scenario on the shared real clusters. Scenarios take turns; the requests that are not the harness's own
/// are counted from the audit logs and shown in the table. One that denied anything to an account of the charts fails
/// the scenario. A scenario that returns `Unavailable` is ignored too.
pub fn real_test<F, Run>(name: &str, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    real_trial(name, Denials::FailIt, scenario)
}

/// A scenario that starts real clusters of its own. It waits for its turn all the same: more clusters at once than a machine
/// has cores for make others late. One that has not ended after `limit` is reported as failed. A scenario that returns `Unavailable` is ignored.
pub fn test_with_own_clusters<F, Run>(name: &str, limit: Duration, scenario: F) -> Trial
where
    F: FnOnce() -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let recorded = name.to_owned();
    let trial = Trial::ignorable_test(name, move || {
        let _turn = real::shared::turn();
        let began = Instant::now();
        let result = on_runtime(bounded(limit, scenario()));
        let (outcome, completion) = match result {
            Err(error) => match unavailable(&error) {
                Some(unavailable) => (TestResult::Ignored, when_unavailable(&unavailable, in_ci())),
                None => (TestResult::Failed, Err(failed(error))),
            },
            Ok(()) => (
                TestResult::of(&Ok(()), began.elapsed(), None),
                Ok(Completion::Completed),
            ),
        };
        table::record(&recorded, Kind::Real, outcome);
        completion
    });
    trial.with_kind("real")
}

/// The same for a scenario that takes rights away, and judges denials itself.
pub fn real_test_with_denials<F, Run>(name: &str, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    real_trial(name, Denials::AreWanted, scenario)
}

fn real_trial<F, Run>(name: &str, denials: Denials, scenario: F) -> Trial
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let recorded = name.to_owned();
    let trial = Trial::ignorable_test(name, move || {
        let (outcome, completion) = match on_shared_clusters(denials, scenario) {
            Ok(Ran {
                result: Err(error), ..
            })
            | Err(error) => match unavailable(&error) {
                Some(unavailable) => (TestResult::Ignored, when_unavailable(&unavailable, in_ci())),
                None => (TestResult::Failed, Err(failed(error))),
            },
            Ok(Ran {
                result,
                took,
                requests,
            }) => (TestResult::of(&result, took, requests), Ok(Completion::Completed)),
        };
        table::record(&recorded, Kind::Real, outcome);
        completion
    });
    trial.with_kind("real")
}

/// Runs the registered tests with the arguments of the command line, stops the shared clusters, prints the table.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TESTS_AT_A_TIME);
    let conclusion = libtest_mimic::run(&arguments, trials);
    let version = on_runtime(async {
        let version = real::shared::git_version().await;
        real::shared::stop().await;
        Ok(version)
    });
    match version {
        Ok(version) => print!("{}{}", table::render(version.as_deref()), asked_in_all()),
        Err(error) => eprintln!("the shared clusters could not be stopped: {error:#}"),
    }
    conclusion.exit_code()
}

/// Marks the namespaces of stories on shared clusters, so that a later one finds what one left that was killed.
pub const LABEL_STORY: &str = "e2e.tributary.dev/story";
/// Its value while the namespace holds something.
pub const RUNNING: &str = "running";

/// A name that no other test of this process has: for namespaces on the shared clusters.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What a request means that an account of the charts was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denials {
    FailIt,
    AreWanted,
}

/// Requests of the charts' accounts that were looked at, and those that were denied, where none should be.
static ASKED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// What became of them, once there are any.
fn asked_in_all() -> String {
    let [asked, denied] = [0, 1].map(|index| ASKED[index].load(Ordering::Relaxed));
    match asked {
        0 => String::new(),
        _ => format!("{denied} of {asked} requests of the charts' accounts were denied\n"),
    }
}

/// How a scenario on real clusters ended.
struct Ran {
    result: anyhow::Result<()>,
    took: Duration,
    requests: Option<Counts>,
}

/// Waits for the turn and runs the scenario. An error is one of the clusters, not of the scenario.
fn on_shared_clusters<F, Run>(denials: Denials, scenario: F) -> anyhow::Result<Ran>
where
    F: FnOnce(Arc<Fleet>) -> Run + Send + 'static,
    Run: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let fleet = on_runtime(async { Ok(real::shared::fleet().await) })?.map_err(anyhow::Error::from)?;
    // Kept until the runtime has ended, and with it every task that the scenario left running.
    let _turn = real::shared::turn();
    on_runtime(async move {
        let watched = Watched::begin(&fleet).await?;
        let began = Instant::now();
        let result = bounded(SCENARIO_WAIT, scenario(Arc::clone(&fleet))).await;
        let took = began.elapsed();
        // A component that died is the better explanation of whatever the scenario saw.
        fleet.check()?;
        let requests = watched.requests(&fleet).await;
        let (result, requests) = match (result, requests) {
            (result, Ok(requests)) => (judged(result, denials, &requests), Some(counts(requests))),
            (Ok(()), Err(unread)) => return Err(unread),
            (failed, Err(_)) => (failed, None),
        };
        Ok(Ran {
            result,
            took,
            requests,
        })
    })
}

/// The reason when an error says that real clusters, or something a scenario needs of them, are not there.
fn unavailable(error: &anyhow::Error) -> Option<Unavailable> {
    if let Some(unavailable) = error.downcast_ref::<Unavailable>() {
        return Some(unavailable.clone());
    }
    match error.downcast_ref::<Arc<Error>>().map(|error| &**error) {
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

/// Runs a scenario as a task of its own, but not for ever; its panic is an error with the panic's message.
async fn bounded(
    limit: Duration,
    scenario: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> anyhow::Result<()> {
    let mut running = tokio::spawn(scenario);
    match tokio::time::timeout(limit, &mut running).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => Err(panicked(error)),
        Err(_) => {
            running.abort();
            anyhow::bail!("has not ended after {} s", limit.as_secs())
        }
    }
}

/// Runs to the end on a runtime of its own, which takes the tasks that are left with it.
fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(RUNTIME_END_WAIT);
    result
}

fn panicked(error: tokio::task::JoinError) -> anyhow::Error {
    let Ok(payload) = error.try_into_panic() else {
        return anyhow::anyhow!("was cancelled");
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    anyhow::anyhow!("panicked: {}", text.unwrap_or("without a message"))
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
        let result: anyhow::Result<()> = on_runtime(bounded(SCENARIO_WAIT, async { panic!("the reason") }));
        assert!(
            result
                .expect_err("it panicked")
                .to_string()
                .contains("the reason")
        );
    }
}
