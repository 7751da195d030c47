//! Owns: a program whose lines are read while it runs, each with the time when it was read; and times as such programs
//! print them.
//! Never: knows what the lines mean.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Digits of `%N`.
const NANOS_DIGITS: usize = 9;

/// A time, since the epoch of Unix: pods and this program have one clock.
pub(super) type Moment = Duration;

/// The time now.
pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A clock that shows a year before 1970 measures nothing anyway.
    since.unwrap_or_default()
}

/// Reads what `date +%s.%N` prints.
pub(super) fn moment(text: &str) -> anyhow::Result<Moment> {
    let parse = || {
        let (seconds, nanos) = text.split_once('.')?;
        let nanos = Some(nanos).filter(|nanos| nanos.len() == NANOS_DIGITS)?;
        Some(Moment::new(seconds.parse().ok()?, nanos.parse().ok()?))
    };
    parse().with_context(|| format!("{text} is no time"))
}

/// A line, and when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: Moment,
    pub(super) text: String,
}

/// A program that runs; what is dropped is ended.
pub(super) struct Telling {
    child: Child,
    lines: Receiver<Line>,
}

impl Telling {
    /// Starts it, with a thread that reads what it prints.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            // All that it starts can be ended with it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let output = child.stdout.take().context("a program has an output")?;
        let (sender, lines) = channel();
        thread::spawn(move || read(output, &sender));
        Ok(Self { child, lines })
    }

    /// The next line, if there is one within this time.
    pub(super) fn next(&self, within: Duration) -> Option<Line> {
        self.lines.recv_timeout(within).ok()
    }

    /// Returns true if it still runs.
    pub(super) fn runs(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end; the lines that nobody took yet.
    pub(super) fn rest(mut self) -> anyhow::Result<Vec<Line>> {
        let lines = self.lines.iter().collect();
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut said)?;
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{status}: {}", said.trim());
        }
        Ok(lines)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // The number of one that has ended may be another one's already.
        if self.runs().is_ok_and(|runs| runs) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn read(output: ChildStdout, lines: &Sender<Line>) {
    for text in BufReader::new(output).lines().map_while(Result::ok) {
        if lines.send(Line { at: now(), text }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::wait_for;

    fn shell(script: &str) -> Telling {
        Telling::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn lines_come_with_their_times_and_failures_with_their_words() {
        let began = now();
        let telling = shell("echo began; date +%s.%N; echo done");
        let first = telling.next(Duration::from_secs(10)).unwrap();
        assert_eq!(first.text, "began");
        let rest = telling.rest().unwrap();
        assert!(began <= first.at && first.at <= rest[1].at && rest[1].at <= now());
        let printed = moment(&rest[0].text).unwrap();
        assert!(began <= printed && printed <= rest[1].at, "there is one clock");
        let error = shell("echo no such pod >&2; exit 3").rest().unwrap_err();
        assert_eq!(error.to_string(), "exit status: 3: no such pod");
    }

    #[test]
    fn what_is_dropped_ends_with_what_it_started() {
        let telling = shell("echo $$; sleep 1000 & echo $!; wait");
        let pids: Vec<String> = (0..2)
            .map(|_| telling.next(Duration::from_secs(10)).unwrap().text)
            .collect();
        drop(telling);
        let gone = |pid: &String| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Whoever takes it over may not have looked yet.
            stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
        };
        let all_gone = || pids.iter().all(gone);
        wait_for("they end", std::path::Path::new("/proc"), all_gone).unwrap();
    }

    #[test]
    fn times_are_read_with_all_their_digits() {
        let read = moment("1795472267.047962361").unwrap();
        assert_eq!(read, Duration::new(1_795_472_267, 47_962_361));
        for text in ["1795472267", "1795472267.5", "soon.047962361", ""] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
