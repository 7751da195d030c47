//! Owns: what kind of disk a directory lies on, and how long a sync takes there.
//! Never: leaves a file behind.

use std::{
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;

/// Kinds of file systems that forget everything with the power.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];
/// Writes of the probe, and the bytes of each.
const PROBE_WRITES: usize = 200;
const PROBE_BYTES: usize = 4 * 1024;

/// A directory's disk.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Disk {
    /// For example "ext4".
    pub(super) filesystem: String,
    /// True when nothing on it survives the power.
    pub(super) in_memory: bool,
    /// Microseconds for a write of 4 KiB and a sync, the median.
    pub(super) sync_p50_micros: u64,
    /// The slowest but one of a hundred.
    pub(super) sync_p99_micros: u64,
}

impl Disk {
    /// Looks at the disk under `directory`, which must exist.
    pub(super) fn of(directory: &Path) -> anyhow::Result<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
        let place = directory
            .canonicalize()
            .with_context(|| format!("cannot find {}", directory.display()))?;
        let filesystem = filesystem(&mounts, &place).unwrap_or("unknown").to_owned();
        let mut took =
            probe(directory).with_context(|| format!("cannot write in {}", directory.display()))?;
        took.sort();
        let micros = |share: usize| took[took.len() * share / 100].as_micros() as u64;
        Ok(Self {
            in_memory: IN_MEMORY.contains(&&*filesystem),
            filesystem,
            sync_p50_micros: micros(50),
            sync_p99_micros: micros(99),
        })
    }
}

fn probe(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let path = directory.join(format!("sync-probe-{}", std::process::id()));
    let mut file = File::create(&path)?;
    let mut write = || {
        let began = Instant::now();
        file.write_all(&[0x5a; PROBE_BYTES])?;
        file.sync_data()?;
        Ok(began.elapsed())
    };
    let took = (0..PROBE_WRITES).map(|_| write()).collect();
    std::fs::remove_file(&path)?;
    took
}

/// The type of the innermost mount above `place`.
fn filesystem<'a>(mounts: &'a str, place: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = mounts.filter(|(point, _)| place.starts_with(point));
    // Of two mounts on one point the later one hides the earlier.
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\nnone /tmp tmpfs rw 0 0\n/dev/b /tmp/disk xfs rw 0 0\n";
        let kind = |place: &str| filesystem(mounts, Path::new(place));
        assert_eq!(kind("/var/x"), Some("ext4"));
        assert_eq!(kind("/tmp/x"), Some("tmpfs"));
        assert_eq!(kind("/tmp/disk/x"), Some("xfs"));
        assert_eq!(kind("/tmpfoo"), Some("ext4"));
    }

    #[test]
    fn a_disk_is_probed_and_left_clean() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disk = Disk::of(directory.path()).expect("probed");
        assert!(disk.sync_p50_micros <= disk.sync_p99_micros);
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}
