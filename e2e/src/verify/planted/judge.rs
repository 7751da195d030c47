//! Owns: building the copy and running what may catch the bug in it.
//! Never: changes the copy.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use tokio::{process::Command, time::timeout};

use super::{
    bug::{Bug, Tests},
    copy::Copy,
};

/// The longest build; the first one builds every dependency.
const BUILD_TIME_MAX: Duration = Duration::from_secs(30 * 60);
/// The longest run of tests.
const TEST_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// Most failed tests that are named.
const NAMED_TESTS_MAX: usize = 2;
/// Most lines of a compiler that are repeated.
const ERROR_LINES_MAX: usize = 20;

/// What became of a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// These tests failed.
    Failed(Vec<String>),
    /// The tests did not come to an end.
    Hung,
    /// The tests ended the process: a panic in a thread of their own, an abort.
    Died(String),
    /// Nothing noticed it.
    Survived,
    /// Its text is not in the product any more.
    DoesNotApply(String),
    /// The product does not build with it.
    DoesNotBuild(String),
}

impl Verdict {
    /// Whether the product was built with the bug.
    pub(super) fn was_built(&self) -> bool {
        !matches!(self, Self::DoesNotApply(_) | Self::DoesNotBuild(_))
    }

    /// Whether the bug was seen.
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Hung | Self::Died(_))
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Failed(tests) => {
                let named = tests.iter().take(NAMED_TESTS_MAX).map(String::as_str);
                let named = named.collect::<Vec<_>>().join(", ");
                match tests.len().saturating_sub(NAMED_TESTS_MAX) {
                    0 => named,
                    more => format!("{named} and {more} more"),
                }
            }
            Self::Hung => format!("the tests did not end within {} s", TEST_TIME_MAX.as_secs()),
            Self::Died(how) => format!("the tests died: {how}"),
            Self::Survived => "SURVIVED".to_owned(),
            Self::DoesNotApply(why) => format!("DOES NOT APPLY: {why}"),
            Self::DoesNotBuild(why) => format!("DOES NOT BUILD: {why}"),
        }
    }
}

/// Builds and runs in one copy.
pub(super) struct Judge<'a> {
    copy: &'a Copy,
}

impl<'a> Judge<'a> {
    /// A judge over a copy.
    pub(super) fn new(copy: &'a Copy) -> Self {
        Self { copy }
    }

    /// Requires that everything that may catch one of these bugs passes in the copy as it is.
    pub(super) async fn is_green(&self, bugs: &[Bug]) -> anyhow::Result<()> {
        let tests: BTreeSet<&Tests> = bugs.iter().map(|bug| &bug.tests).collect();
        for tests in tests {
            let program = match self.build(tests).await? {
                Ok(program) => program,
                Err(errors) => bail!("{} does not build:\n{errors}", tests.package),
            };
            ensure!(
                self.has_tests(&program, tests).await?,
                "{} has no test whose path contains {:?}: correct the planted bugs that name it",
                tests.package,
                tests.filter
            );
            let verdict = self.run(&program, tests).await?;
            ensure!(
                verdict == Verdict::Survived,
                "{}: {}",
                tests.package,
                verdict.words()
            );
        }
        Ok(())
    }

    /// Builds the copy with a bug, and runs what may catch it.
    pub(super) async fn judge(&self, bug: &Bug) -> anyhow::Result<Verdict> {
        match self.build(&bug.tests).await? {
            Ok(program) => self.run(&program, &bug.tests).await,
            Err(errors) => Ok(Verdict::DoesNotBuild(errors)),
        }
    }

    /// The program of the tests; else what the compiler says.
    async fn build(&self, tests: &Tests) -> anyhow::Result<Result<PathBuf, String>> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
        cargo.args(["--package", &tests.package]);
        match &tests.target {
            Some(target) => cargo.args(["--test", target]),
            None => cargo.arg("--lib"),
        };
        cargo.current_dir(self.copy.root());
        cargo.env("CARGO_TARGET_DIR", self.copy.target());
        let Some(built) = output(cargo, BUILD_TIME_MAX).await? else {
            bail!("the build did not end within {} s", BUILD_TIME_MAX.as_secs());
        };
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            let errors = said.lines().skip_while(|line| !line.starts_with("error"));
            let errors: Vec<&str> = errors.take(ERROR_LINES_MAX).collect();
            return Ok(Err(errors.join("\n")));
        }
        let program = executable(&String::from_utf8_lossy(&built.stdout));
        program.map(Ok).context("cargo names no program of the tests")
    }

    async fn has_tests(&self, program: &Path, tests: &Tests) -> anyhow::Result<bool> {
        let mut list = Command::new(program);
        list.args(["--list", "--format", "terse", &tests.filter]);
        let listed = output(list, TEST_TIME_MAX).await?;
        let listed = listed.context("listing the tests did not end")?;
        Ok(String::from_utf8_lossy(&listed.stdout).contains(": test"))
    }

    async fn run(&self, program: &Path, tests: &Tests) -> anyhow::Result<Verdict> {
        let mut run = Command::new(program);
        let package = tests.package.trim_start_matches("tributary-");
        run.arg(&tests.filter).current_dir(self.copy.root().join(package));
        // A new snapshot would be no part of the copy, and nobody reads the smallest input that fails.
        run.env("INSTA_UPDATE", "no")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0");
        let Some(ran) = output(run, TEST_TIME_MAX).await? else {
            return Ok(Verdict::Hung);
        };
        if ran.status.success() {
            return Ok(Verdict::Survived);
        }
        let failed = failed(&String::from_utf8_lossy(&ran.stdout));
        Ok(match failed.is_empty() {
            true => Verdict::Died(ran.status.to_string()),
            false => Verdict::Failed(failed),
        })
    }
}

/// What a program said, unless it took too long; then, and when this is dropped, it is killed.
pub(super) async fn output(mut command: Command, longest: Duration) -> anyhow::Result<Option<Output>> {
    command.kill_on_drop(true).stdin(Stdio::null());
    let named = command.as_std().get_program().to_owned();
    match timeout(longest, command.output()).await {
        Ok(output) => Ok(Some(
            output.with_context(|| format!("cannot run {}", named.display()))?,
        )),
        Err(_) => Ok(None),
    }
}

/// The one program that cargo's messages name.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["profile"]["test"] == true)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The tests that failed, as libtest names them.
fn failed(said: &str) -> Vec<String> {
    said.lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_failed_tests_are_found_in_what_is_said() {
        let messages = "{\"reason\":\"compiler-artifact\",\"profile\":{\"test\":false},\"executable\":\"/a\"}\n\
                        {\"reason\":\"compiler-artifact\",\"profile\":{\"test\":true},\"executable\":\"/b\"}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/b")));
        assert_eq!(executable("no message"), None);
        let said = "test a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        assert_eq!(failed(said), ["a::c"]);
    }

    #[test]
    fn only_what_was_seen_is_caught() {
        let many = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(Verdict::Failed(many).words(), "a, b and 1 more");
        assert!(Verdict::Hung.is_caught());
        for missed in [
            Verdict::Survived,
            Verdict::DoesNotApply(String::new()),
            Verdict::DoesNotBuild(String::new()),
        ] {
            assert!(!missed.is_caught(), "{missed:?}");
        }
    }
}
