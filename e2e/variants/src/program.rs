//! Owns: running a program that was built as one variant: a test program, or any other.
//! Never: builds; judges what a failure means.

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};

use anyhow::Context;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use super::{Number, VARIABLE};

/// Most failed tests that are named.
const FAILED_TESTS_MAX: usize = 1_000;

/// A test program as cargo built it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestProgram {
    /// Its file.
    pub path: PathBuf,
    /// Working directory of its tests: that of their package.
    pub directory: PathBuf,
}

/// The tests to run, and the way.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Those whose path has this in it.
    pub filter: &'a str,
    /// But none whose path has this in it; empty: all.
    pub but: &'a str,
    /// One after the other, as when several programs run at once.
    pub one_thread: bool,
    /// The first that fails ends it.
    pub first_failure: bool,
}

/// The end of a run of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All passed.
    Passed,
    /// These failed.
    Failed(Vec<String>),
    /// They did not come to an end.
    Hung,
    /// They ended the process: a panic in a thread of their own, an abort.
    Died(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("all passed"),
            Self::Failed(tests) => write!(f, "failed: {}", tests.join(", ")),
            Self::Hung => f.write_str("they did not come to an end"),
            Self::Died(how) => write!(f, "the process ended: {how}"),
        }
    }
}

impl TestProgram {
    /// Returns true if it has a test of the selection.
    pub async fn has(&self, selection: &Selection<'_>) -> anyhow::Result<bool> {
        let mut list = self.command(selection);
        list.args(["--list", "--format", "terse"]);
        let listed = list
            .output()
            .await
            .with_context(|| self.path.display().to_string())?;
        Ok(String::from_utf8_lossy(&listed.stdout).contains(": test"))
    }

    /// Runs tests as a variant.
    pub async fn run(
        &self,
        variant: Number,
        selection: &Selection<'_>,
        longest: Duration,
    ) -> anyhow::Result<Ended> {
        let mut run = as_variant(self.command(selection), variant);
        run.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = run.spawn().with_context(|| self.path.display().to_string())?;
        let said = running.stdout.take().context("its output is piped")?;
        let judged = timeout(longest, async {
            let failed = failed(BufReader::new(said), selection.first_failure).await?;
            if selection.first_failure && !failed.is_empty() {
                running.start_kill()?;
            }
            let status = running.wait().await?;
            anyhow::Ok(ended(failed, status))
        });
        match judged.await {
            Ok(ended) => ended,
            Err(_) => {
                // Waited for, so that it takes nothing from those that run next.
                running.kill().await?;
                Ok(Ended::Hung)
            }
        }
    }

    fn command(&self, selection: &Selection<'_>) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.directory)
            .kill_on_drop(true)
            .stdin(Stdio::null());
        if !selection.filter.is_empty() {
            command.arg(selection.filter);
        }
        if !selection.but.is_empty() {
            command.args(["--skip", selection.but]);
        }
        if selection.one_thread {
            command.arg("--test-threads=1");
        }
        // A scenario that cannot run for want of a program sees nothing: it is to fail, not to be ignored.
        command.env("CI", "true");
        // A new snapshot would be no part of the copy, and nobody reads the smallest input that fails.
        command.env("INSTA_UPDATE", "no");
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command
    }
}

fn ended(failed: Vec<String>, status: ExitStatus) -> Ended {
    if !failed.is_empty() {
        Ended::Failed(failed)
    } else if status.success() {
        Ended::Passed
    } else {
        Ended::Died(status.to_string())
    }
}

/// The tests that failed, as libtest names them; only the first if that is enough.
async fn failed(
    said: impl tokio::io::AsyncBufRead + Unpin,
    first_is_enough: bool,
) -> anyhow::Result<Vec<String>> {
    let mut failed = Vec::new();
    let mut lines = said.split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        let line = String::from_utf8_lossy(&line);
        // What a test prints by itself may stand in front of its name.
        let test = line
            .strip_suffix(" ... FAILED")
            .and_then(|line| line.rsplit("test ").next());
        if let Some(test) = test
            && failed.len() < FAILED_TESTS_MAX
        {
            // Names that are shorter than the longest one are filled up with spaces.
            failed.push(test.trim_end().to_owned());
            if first_is_enough {
                break;
            }
        }
    }
    Ok(failed)
}

/// Output of a program as a variant, unless it takes too long; then, and when this is dropped, it is killed.
pub async fn output(
    program: &Path,
    variant: Number,
    arguments: &[impl AsRef<OsStr>],
    longest: Duration,
) -> anyhow::Result<Option<Output>> {
    let mut command = as_variant(Command::new(program), variant);
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
    match timeout(longest, command.output()).await {
        Ok(output) => output
            .map(Some)
            .with_context(|| format!("cannot run {}", program.display())),
        Err(_) => Ok(None),
    }
}

fn as_variant(mut command: Command, variant: Number) -> Command {
    command.env(VARIABLE, variant.to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script that says what a test program would say.
    async fn run(text: &str, first_failure: bool, longest: Duration) -> Ended {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        std::fs::write(&script, text).unwrap();
        let selection = Selection {
            filter: script.to_str().unwrap(),
            first_failure,
            ..Selection::default()
        };
        let program = TestProgram {
            path: "/bin/sh".into(),
            directory: directory.path().to_owned(),
        };
        program.run(3, &selection, longest).await.unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_run_says_which_tests_failed_or_how_else_it_ended() {
        let two =
            "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; echo 'test a::d   ... FAILED'; exit 101";
        let names = |names: &[&str]| Ended::Failed(names.iter().map(ToString::to_string).collect());
        assert_eq!(run(two, false, LONG).await, names(&["a::c", "a::d"]));
        assert_eq!(run("echo 'test a::b ... ok'", false, LONG).await, Ended::Passed);
        let variant = format!("test ${VARIABLE} = 3");
        assert_eq!(
            run(&variant, false, LONG).await,
            Ended::Passed,
            "it knows its variant"
        );
        assert!(matches!(run("exit 7", false, LONG).await, Ended::Died(how) if how.contains('7')));
    }

    #[tokio::test]
    async fn a_run_ends_with_its_first_failure_or_its_time() {
        let endless = "echo 'test a::c ... FAILED'; exec sleep 600";
        assert_eq!(
            run(endless, true, LONG).await,
            Ended::Failed(vec!["a::c".to_owned()])
        );
        assert_eq!(
            run("exec sleep 600", false, Duration::from_millis(50)).await,
            Ended::Hung
        );
    }
}
