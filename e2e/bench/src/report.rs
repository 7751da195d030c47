//! Owns: what was measured, as a table for people and as JSON for machines.
//! Never: measures; never hides a missed aim.

use std::{fmt::Write as _, path::Path, process::Command};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    disk::Disk,
    figure::{Aim, Figure},
    probe::GeneratorTime,
    series::{Latencies, Sample},
};

/// Everything of one invocation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    commit: String,
    command: String,
    at: String,
    machine: Machine,
    /// One for each shape and step.
    pub(super) sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    memory_bytes: u64,
    kernel: String,
    disk: Disk,
    cores_note: String,
    /// Of the generator.
    profile: &'static str,
    /// The measured programs' versions, in their own words.
    programs: String,
}

/// One shape, or one step of it, in one run or in several.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// For example "churn-8, 1,500 slices, 50 updates/s".
    pub(super) title: String,
    /// Number of runs.
    runs: usize,
    /// Load average of the machine when the first run began.
    pub(super) load_average: f64,
    /// Notes for the reader.
    pub(super) notes: Vec<String>,
    /// The figures.
    pub(super) figures: Vec<Figure>,
    /// The process under test, over time, in the first run.
    pub(super) samples: Vec<Sample>,
    /// Latencies of the first run, second by second.
    pub(super) latencies: Vec<Latencies>,
    /// The step's place among others of its kind.
    pub(super) point: Option<Point>,
}

/// A step as a point in a plot over several.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    /// Members of the clusterset.
    pub(super) members: usize,
    /// Exports of the clusterset.
    pub(super) services: usize,
    /// Updates a second.
    pub(super) rate: u32,
    /// 99th percentile of the updates' delays.
    pub(super) p99_millis: f64,
    /// Memory of the hub.
    pub(super) megabytes: f64,
    /// Its processor time.
    pub(super) cores: f64,
}

/// The longest latency that is told from longer ones, in microseconds, and the digits of each that are kept.
const LATENCY_MICROS_MAX: u64 = 600_000_000;
const LATENCY_DIGITS: u8 = 3;

/// A histogram for latencies in microseconds.
pub(super) fn latencies() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, LATENCY_DIGITS)?)
}

impl Section {
    /// A section that begins now.
    pub(super) fn begin(title: impl Into<String>) -> Self {
        let title = title.into();
        eprintln!("measuring {title}");
        Self {
            title,
            runs: 1,
            load_average: load_average(),
            notes: Vec::new(),
            figures: Vec::new(),
            samples: Vec::new(),
            latencies: Vec::new(),
            point: None,
        }
    }

    /// Adds a value.
    pub(super) fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure::new(name, value, unit, None));
    }

    /// Adds a value that has an aim.
    pub(super) fn aimed(&mut self, name: impl Into<String>, value: f64, unit: &'static str, aim: Aim) {
        self.figures.push(Figure::new(name, value, unit, Some(aim)));
    }

    /// Processor time of the generator during the measurement.
    pub(super) fn generator(&mut self, time: GeneratorTime) {
        self.figure("generator processor time", time.cores(), "cores");
    }

    /// Duration of a sync of the disk, seen beside the latencies of this step: a slow disk explains a slow p99.
    pub(super) fn beside_the_disk(&mut self, directory: &Path) -> anyhow::Result<()> {
        let disk = Disk::of(directory)?;
        self.figure(
            "the disk beside it: sync of 4 KiB p50",
            disk.sync_p50_micros as f64 / 1e3,
            "ms",
        );
        self.figure(
            "the disk beside it: sync of 4 KiB p99",
            disk.sync_p99_micros as f64 / 1e3,
            "ms",
        );
        Ok(())
    }

    /// Takes another run of the same step.
    fn take_run(&mut self, other: Self) {
        self.runs += other.runs;
        for figure in other.figures {
            match self.figures.iter_mut().find(|known| known.name == figure.name) {
                Some(known) => known.take_run(figure),
                None => self.figures.push(figure),
            }
        }
        let new = |note: &String| !self.notes.contains(note);
        let notes: Vec<_> = other.notes.into_iter().filter(new).collect();
        self.notes.extend(notes);
    }

    /// Adds a remark.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// Puts the runs of each step together, in the order in which the steps were first played.
fn gather(played: Vec<Section>) -> Vec<Section> {
    let mut gathered: Vec<Section> = Vec::new();
    for section in played {
        match gathered.iter_mut().find(|known| known.title == section.title) {
            Some(known) => known.take_run(section),
            None => gathered.push(section),
        }
    }
    gathered
}

impl Report {
    /// The programs that are measured unless others are named.
    pub(super) const THIS_BUILD: &str = "of the same build as the generator";

    /// An empty report about this machine and this invocation.
    pub(super) fn new(disk: Disk, cores_note: &str, programs: String) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (cpuinfo, meminfo) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let after = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split(':').nth(1))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let kilobytes = after(&meminfo, "MemTotal")
            .split(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok());
        let mut words = std::env::args();
        words.next();
        Self {
            commit: commit(),
            command: std::iter::once("cargo load".to_owned())
                .chain(words)
                .collect::<Vec<_>>()
                .join(" "),
            at: jiff::Timestamp::now().to_string(),
            machine: Machine {
                processor: after(&cpuinfo, "model name"),
                cores: cpuinfo
                    .lines()
                    .filter(|line| line.starts_with("processor"))
                    .count(),
                memory_bytes: kilobytes.unwrap_or_default() * 1024,
                kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
                disk,
                cores_note: cores_note.to_owned(),
                profile: if cfg!(debug_assertions) {
                    "DEBUG"
                } else {
                    "release"
                },
                programs,
            },
            sections: Vec::new(),
        }
    }

    /// Puts the runs of each step together: before anything is printed or written.
    pub(super) fn gather(&mut self) {
        self.sections = gather(std::mem::take(&mut self.sections));
    }

    /// Writes the JSON file.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }

    /// Everything as a table.
    pub(super) fn table(&self) -> String {
        let mut table = String::new();
        let machine = &self.machine;
        let gigabytes = machine.memory_bytes as f64 / f64::from(1 << 30);
        let disk = &machine.disk;
        // Writing to a text cannot fail.
        let _ = writeln!(table, "{} at commit {}, {}", self.command, self.commit, self.at);
        let _ = writeln!(
            table,
            "{} cores ({}), {gigabytes:.0} GiB, Linux {}, {} build, {}",
            machine.cores, machine.processor, machine.kernel, machine.profile, machine.cores_note
        );
        let _ = writeln!(table, "hub and agents: {}", machine.programs);
        let _ = writeln!(
            table,
            "log on {}: write and sync of 4 KiB p50 {} us, p99 {} us{}",
            disk.filesystem,
            disk.sync_p50_micros,
            disk.sync_p99_micros,
            if disk.in_memory {
                "  ** IN MEMORY: NOTHING BELOW IS DURABLE **"
            } else {
                ""
            }
        );
        for section in &self.sections {
            let _ = writeln!(
                table,
                "\n{}  ({}, load average {:.1})",
                section.title,
                runs(section.runs),
                section.load_average
            );
            for figure in &section.figures {
                let _ = writeln!(table, "{}", figure.line());
            }
            for note in &section.notes {
                let _ = writeln!(table, "  note: {note}");
            }
        }
        table
    }
}

fn runs(count: usize) -> String {
    match count {
        1 => "one run".to_owned(),
        count => format!("{count} runs: minimum – median – maximum"),
    }
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default()
}

/// The commit that is measured, with a mark when files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    format!("{head}{}", if changed { " with changes" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_keeps_three_digits() {
        let mut histogram = latencies().expect("valid");
        for micros in [7, 1_500, 123_456, 10_000_000, u64::MAX] {
            histogram.saturating_record(micros);
        }
        assert_eq!(histogram.value_at_quantile(0.5), 123_519);
        assert!(histogram.max() >= LATENCY_MICROS_MAX);
    }

    #[test]
    fn runs_of_one_step_become_one_section() {
        let run = |value| {
            let mut section = Section::begin("churn-8");
            section.figure("p50", value, "ms");
            section.note("shared cores");
            section
        };
        let other = Section::begin("replay");
        let gathered = gather(vec![run(1.0), other, run(3.0), run(2.0)]);
        let titles: Vec<_> = gathered.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["churn-8", "replay"]);
        assert_eq!(gathered[0].runs, 3);
        assert_eq!(gathered[0].notes, ["shared cores"]);
        assert!(gathered[0].figures[0].line().contains("1.00 – 2.00 – 3.00"));
    }
}
