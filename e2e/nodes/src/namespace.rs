//! Owns: a set of namespaces with a process that keeps it: everything that runs in it ends with that process.
//! Never: knows what runs there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The file with the process that keeps a set of namespaces.
const KEEPER: &str = "keeper";
/// A keeper that is not there after this long never will be.
const KEEPER_WAIT: Duration = Duration::from_secs(10);
/// Interval of looking at that: no event tells from outside.
const KEEPER_POLL: Duration = Duration::from_millis(10);

/// A process by its number and when it began, for numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keeper {
    pid: i32,
    began: u64,
}

impl Keeper {
    /// The process with this number, if there is one.
    fn running(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        began(&stat).map(|began| Self { pid, began })
    }

    fn lives(self) -> bool {
        Self::running(self.pid) == Some(self)
    }

    fn text(self) -> String {
        format!("{} {}", self.pid, self.began)
    }

    fn parse(text: &str) -> Option<Self> {
        let (pid, began) = text.trim().split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok()?,
            began: began.parse().ok()?,
        })
    }
}

/// Start of a process, in ticks since the machine's start: the 22nd field, behind a name that may hold anything.
fn began(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(19)?.parse().ok()
}

/// Namespaces for mounts, network, name, memory between processes, and process numbers.
#[derive(Debug, Clone)]
pub(super) struct Namespace {
    directory: PathBuf,
    keeper: Keeper,
}

impl Namespace {
    /// Makes one, kept by `pause`, and notes in `directory` which process that is.
    pub(super) fn create(directory: &Path, pause: &Path) -> anyhow::Result<Self> {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--net", "--uts", "--ipc", "--pid", "--fork"])
            .args(["--kill-child", "--mount-proc", "--propagation", "private"])
            .arg(pause);
        let unshare = detached(&mut unshare, None)?;
        let keeper = child_of(unshare)?;
        let path = directory.join(KEEPER);
        fs::write(&path, keeper.text()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            keeper,
        })
    }

    /// The one that was made for this directory, if its keeper lives.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let text = fs::read_to_string(directory.join(KEEPER)).ok()?;
        let keeper = Keeper::parse(&text).filter(|keeper| keeper.lives())?;
        let directory = directory.to_path_buf();
        Some(Self { directory, keeper })
    }

    /// Its keeper's process number, as devices are moved to it.
    pub(super) fn pid(&self) -> String {
        self.keeper.pid.to_string()
    }

    /// A program that runs in it.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter
            .args(["--target", &self.pid()])
            .args(["--mount", "--net", "--uts", "--ipc", "--pid", "--"])
            .arg(program.as_ref());
        nsenter
    }

    /// Runs a script in it, line after line, until one fails.
    pub(super) fn script(&self, script: &str) -> anyhow::Result<()> {
        let mut shell = self.command("sh");
        shell.args(["-ec", script]);
        let output = shell
            .stdin(Stdio::null())
            .output()
            .context("cannot run nsenter")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} in {}:\n{script}", said.trim(), self.directory.display());
        }
        Ok(())
    }

    /// Ends everything that runs in it.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        if let Some(pid) = Pid::from_raw(self.keeper.pid).filter(|_| self.keeper.lives()) {
            kill_process(pid, Signal::KILL).context("cannot end the processes of a node")?;
        }
        wait_for("the processes of a node end", || {
            (!self.keeper.lives()).then_some(())
        })
    }
}

/// Starts a program that goes on when we end, with its words in a file.
pub(super) fn detached(command: &mut Command, log: Option<&Path>) -> anyhow::Result<i32> {
    use std::os::unix::process::CommandExt;
    let output = |log: Option<&Path>| match log {
        Some(log) => {
            let file = fs::File::options().create(true).append(true).open(log);
            let file = file.with_context(|| format!("cannot open {}", log.display()))?;
            anyhow::Ok(Stdio::from(file))
        }
        None => Ok(Stdio::null()),
    };
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output(log)?)
        .stderr(output(log)?);
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    Ok(i32::try_from(child.id())?)
}

fn child_of(parent: i32) -> anyhow::Result<Keeper> {
    let children = format!("/proc/{parent}/task/{parent}/children");
    wait_for("unshare makes namespaces (it needs root)", || {
        let children = fs::read_to_string(&children).ok()?;
        let child = children.split_whitespace().next()?.parse().ok()?;
        Keeper::running(child)
    })
}

fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + KEEPER_WAIT;
    loop {
        if let Some(found) = condition() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{} s passed, and not yet: {what}", KEEPER_WAIT.as_secs());
        }
        std::thread::sleep(KEEPER_POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_when_it_began() {
        let stat = "42 (a ) name) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20";
        assert_eq!(began(stat), Some(777));
        assert_eq!(began("42 (cut"), None);
        let own = Keeper::running(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(own.lives());
        assert_eq!(Keeper::parse(&own.text()), Some(own));
        let another = Keeper {
            began: own.began + 1,
            ..own
        };
        assert!(!another.lives(), "its number is used again");
    }
}
