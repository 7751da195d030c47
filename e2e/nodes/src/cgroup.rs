//! Owns: the control groups of a node, in each hierarchy of the first version: made, and taken away with all in them.
//! Never: sets a limit.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

/// Root of the hierarchies.
const ROOT: &str = "/sys/fs/cgroup";
/// The hierarchies that containerd and the kubelet write to.
const HIERARCHIES: [&str; 9] = [
    "blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids", "systemd",
];
/// If there is one of the second version beside them, runc makes its groups there too.
const BESIDE: &str = "unified";
/// A group without a set of its own takes no process.
const INHERITED: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];
/// A group whose processes were killed is empty a moment later.
const EMPTY_WAIT: Duration = Duration::from_secs(10);
/// Interval of trying that.
const EMPTY_POLL: Duration = Duration::from_millis(50);

/// Checks that this machine has the hierarchies that are used here; else one line.
pub(super) fn check() -> Result<(), String> {
    let missing: Vec<&str> = HIERARCHIES
        .into_iter()
        .filter(|name| !Path::new(ROOT).join(name).is_dir())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        return Err("this machine has cgroups of the second version, on which nodes were never tried".into());
    }
    Err(format!("{ROOT} has no {}", missing.join(", ")))
}

fn groups(name: &str) -> impl Iterator<Item = PathBuf> {
    HIERARCHIES
        .map(|hierarchy| Path::new(ROOT).join(hierarchy).join(name))
        .into_iter()
}

/// Makes the groups with this name.
pub(super) fn create(name: &str) -> anyhow::Result<()> {
    for group in groups(name) {
        fs::create_dir_all(&group).with_context(|| format!("cannot create {}", group.display()))?;
        let above = group.parent().unwrap_or(Path::new(ROOT));
        for file in INHERITED.iter().filter(|file| above.join(file).exists()) {
            fs::copy(above.join(file), group.join(file))
                .with_context(|| format!("cannot set {file} of {}", group.display()))?;
        }
    }
    Ok(())
}

/// Removes the groups with this name and all in them, once their processes are gone.
pub(super) fn remove(name: &str) -> anyhow::Result<()> {
    let beside = Path::new(ROOT).join(BESIDE).join(name);
    for group in groups(name).chain([beside]).filter(|group| group.exists()) {
        let deadline = Instant::now() + EMPTY_WAIT;
        while let Err(error) = remove_tree(&group) {
            if Instant::now() >= deadline {
                bail!("cannot remove {}: {error}", group.display());
            }
            std::thread::sleep(EMPTY_POLL);
        }
    }
    Ok(())
}

/// The files of a group go with it: only directories are removed.
fn remove_tree(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
