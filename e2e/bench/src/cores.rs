//! Owns: which cores the process under test and the generator run on.
//! Never: pins anything by itself: `taskset` does, and where it is missing the report says so.

use std::{
    ffi::OsString,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

use super::args::Arguments;

/// The two sets of cores.
#[derive(Debug, Clone)]
pub(super) struct Cores {
    pinned: Option<Pinned>,
    /// For the report.
    pub(super) note: String,
}

#[derive(Debug, Clone)]
struct Pinned {
    hub: String,
    generator: String,
}

impl Pinned {
    fn all(&self) -> String {
        format!("{},{}", self.hub, self.generator)
    }
}

/// The cores of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsedCores {
    /// Hub or generator: on its own cores, beside the other.
    OwnCores,
    /// On all cores: the other waits meanwhile, or there are many processes.
    AllCores,
}

impl Cores {
    /// Chooses.
    pub(super) fn choose(arguments: &Arguments) -> anyhow::Result<Self> {
        let allowed = allowed()?;
        if allowed.len() < 2 && (arguments.hub_cores.is_none() || arguments.generator_cores.is_none()) {
            return Ok(Self::unpinned("hub and generator share the only core"));
        }
        let found = Command::new("taskset")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            return Ok(Self::unpinned(
                "hub and generator are not pinned: taskset is missing (util-linux)",
            ));
        }
        let (first, second) = allowed.split_at(allowed.len() / 2);
        let pinned = Pinned {
            hub: arguments.hub_cores.clone().unwrap_or_else(|| list(first)),
            generator: arguments.generator_cores.clone().unwrap_or_else(|| list(second)),
        };
        Ok(Self {
            note: format!(
                "hub on core {}, generator on core {}",
                pinned.hub, pinned.generator
            ),
            pinned: Some(pinned),
        })
    }

    /// Puts this process, all its threads and what it starts from now on at a place.
    pub(super) fn place_generator(&self, place: UsedCores) -> anyhow::Result<()> {
        let Some(pinned) = &self.pinned else { return Ok(()) };
        let cores = match place {
            UsedCores::OwnCores => pinned.generator.clone(),
            UsedCores::AllCores => pinned.all(),
        };
        let mut command = Command::new("taskset");
        command
            .args(["-a", "-c", "-p", &cores, &std::process::id().to_string()])
            .stdout(Stdio::null());
        let status = command.status().context("cannot run taskset")?;
        ensure!(status.success(), "taskset does not take the cores {cores}");
        Ok(())
    }

    pub(super) fn unpinned(note: &str) -> Self {
        Self {
            pinned: None,
            note: note.to_owned(),
        }
    }

    /// A command that begins with these words, at its place and under its own process id.
    pub(super) fn under_test(&self, line: &[OsString], place: UsedCores) -> tokio::process::Command {
        let Some(pinned) = &self.pinned else {
            let mut words = line.iter();
            let mut command = tokio::process::Command::new(words.next().map_or("".as_ref(), |word| &**word));
            command.args(words);
            return command;
        };
        let cores = match place {
            UsedCores::OwnCores => pinned.hub.clone(),
            UsedCores::AllCores => pinned.all(),
        };
        let mut command = tokio::process::Command::new("taskset");
        command.args(["-c", &cores]).args(line);
        command
    }
}

/// The cores that this process may use.
fn allowed() -> anyhow::Result<Vec<usize>> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    parse(line.context("the kernel does not say which cores we may use")?)
}

fn parse(list: &str) -> anyhow::Result<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    Ok(cores)
}

fn list(cores: &[usize]) -> String {
    cores
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        assert_eq!(parse("\t0-2,5\n").expect("valid"), [0, 1, 2, 5]);
        assert_eq!(list(&[1, 2]), "1,2");
        parse("x").expect_err("no number");
    }
}
