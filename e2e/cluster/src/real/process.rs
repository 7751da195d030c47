//! Owns: one running component: its log file, whether it still runs, and that it never outlives the harness.
//! Never: knows what the component is or when it is ready.

use super::Error;
use super::programs::Program;
use crate::cost::{Meter, Spender};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of a log that an error shows.
const TAIL_LINES_MAX: usize = 25;
/// Bytes of a log that are read for them.
const TAIL_BYTES_MAX: u64 = 16 << 10;
/// A component that has not ended this long after its input closed is killed.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// Interval of looking at a stopping component.
const STOP_POLL: Duration = Duration::from_millis(5);
/// Tells our binary to end when its standard input closes.
const EXIT_WITH_STDIN: (&str, &str) = ("CONTROL_PLANE_EXIT_WITH_STDIN", "1");
/// Does the same for programs that do not know the variable: it kills its child when its input closes,
/// and ends with the child's code when the child ends first.
const GUARD_SCRIPT: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
child=$!
( read -r _ <&3; kill -KILL "$child" ) 2>/dev/null &
guard=$!
wait "$child"
code=$?
kill "$guard" 2>/dev/null
exit "$code""#;

/// A running component. Dropping it stops it.
pub(super) struct Process {
    child: Child,
    meter: Meter,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `program`, its output appended to the file `log`.
    pub(super) fn start(
        name: &str,
        program: &Program,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, Error> {
        let open = File::options().create(true).append(true).open(log);
        let output = open.map_err(Error::io("open", log))?;
        let errors = output.try_clone().map_err(Error::io("open", log))?;
        let mut command = if program.ends_with_stdin {
            let mut ours = Command::new(&program.path);
            ours.env(EXIT_WITH_STDIN.0, EXIT_WITH_STDIN.1);
            ours
        } else {
            let mut guarded = Command::new("/bin/sh");
            guarded.args(["-c", GUARD_SCRIPT, "guard"]).arg(&program.path);
            guarded
        };
        command
            .args(&program.leading_arguments)
            .args(arguments)
            // A Ctrl-C in the terminal is for whoever started it: clusters end last.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors);
        let child = command.spawn().map_err(Error::io("start", &program.path))?;
        let meter = Meter::of(Some(child.id()), Spender::Clusters);
        Ok(Self {
            child,
            meter,
            name: name.to_owned(),
            log: log.to_path_buf(),
        })
    }

    /// Its name and its process id.
    pub(super) fn who(&self) -> (String, u32) {
        (self.name.clone(), self.child.id())
    }

    /// An error with the end of the log when the component has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        match self.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(format!("ended with {status}"))),
            Err(source) => Err(Error::Io {
                action: format!("look at {}", self.name),
                source,
            }),
        }
    }

    /// An error about this component with the end of its log.
    pub(super) fn failure(&self, why: String) -> Error {
        let tail = tail(&self.log).unwrap_or_else(|error| format!("(the log cannot be read: {error})"));
        Error::Component {
            component: self.name.clone(),
            why,
            log: self.log.clone(),
            tail,
        }
    }

    /// Lets the component end without waiting for it, so that many can end at the same time.
    pub(super) fn close(&mut self) {
        self.child.stdin.take();
    }

    /// Stops the component at once, as a crash would, and waits until it is gone.
    pub(super) fn stop(&mut self) {
        self.close();
        let deadline = Instant::now() + STOP_WAIT;
        while Instant::now() < deadline {
            match self.try_wait() {
                Ok(None) => std::thread::sleep(STOP_POLL),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        self.meter.count();
        if self.child.kill().is_ok() {
            self.child.wait().ok();
            self.meter.reaped();
        }
    }

    /// Counts what it spent before the kernel forgets it.
    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.meter.count();
        let ended = self.child.try_wait();
        if matches!(ended, Ok(Some(_))) {
            self.meter.reaped();
        }
        ended
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn tail(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            path: PathBuf::from("/bin/sh"),
            leading_arguments: vec!["-c".to_owned(), script.to_owned()],
            ends_with_stdin: false,
        }
    }

    fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "never: {what}");
            std::thread::sleep(STOP_POLL);
        }
    }

    #[test]
    fn an_early_end_is_reported_with_the_end_of_the_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let program = shell("echo the reason is here; exit 3");
        let mut process = Process::start("etcd", &program, &[], &log).expect("it starts");
        wait_until("the end is seen", || process.check().is_err());
        let message = process.check().expect_err("it has ended").to_string();
        assert!(
            message.contains("the reason is here") && message.contains('3'),
            "{message}"
        );
    }

    #[test]
    fn a_guarded_program_dies_with_the_pipe() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let program = shell("echo $$; exec sleep 600");
        let mut process = Process::start("sleeper", &program, &[], &log).expect("it starts");
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        wait_until("the program says its id", || read().trim().parse::<u32>().is_ok());
        let running = PathBuf::from(format!("/proc/{}", read().trim()));
        assert!(running.exists());
        process.stop();
        wait_until("the program is gone", || !running.exists());
    }
}
