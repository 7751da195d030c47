//! Owns: what was measured, as a table for people and as JSON for machines.
//! Never: measures; never hides a missed aim.

use std::{fmt::Write as _, path::Path, process::Command};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    disk::Disk,
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
    profile: &'static str,
}

/// One shape, or one step of it.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// For example "churn-8, 1,500 slices, 50 updates/s".
    pub(super) title: String,
    /// Load average of the machine when it began.
    pub(super) load_average: f64,
    /// What else a reader must know.
    pub(super) notes: Vec<String>,
    /// What was measured.
    pub(super) figures: Vec<Figure>,
    /// The process under test, over time.
    pub(super) samples: Vec<Sample>,
    /// Latencies, second by second.
    pub(super) latencies: Vec<Latencies>,
    /// Where the step stands among others of its kind.
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
    /// What 99 of 100 updates took at most.
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

/// One measured value.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    aim: Option<Aim>,
}

/// What a figure is to be.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum Aim {
    /// Not less.
    AtLeast(f64),
    /// Less.
    Below(f64),
}

impl Aim {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(aim) => value >= aim,
            Self::Below(aim) => value < aim,
        }
    }
}

impl Section {
    /// A section that begins now.
    pub(super) fn begin(title: impl Into<String>) -> Self {
        let title = title.into();
        eprintln!("measuring {title}");
        Self {
            title,
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
        self.figures.push(Figure {
            name: name.into(),
            value,
            unit,
            aim: None,
        });
    }

    /// Adds a value that has an aim.
    pub(super) fn aimed(&mut self, name: impl Into<String>, value: f64, unit: &'static str, aim: Aim) {
        self.figures.push(Figure {
            name: name.into(),
            value,
            unit,
            aim: Some(aim),
        });
    }

    /// Adds a remark.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

impl Report {
    /// An empty report about this machine and this invocation.
    pub(super) fn new(disk: Disk, cores_note: &str) -> Self {
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
            },
            sections: Vec::new(),
        }
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
                "\n{}  (load average {:.1})",
                section.title, section.load_average
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

impl Figure {
    fn line(&self) -> String {
        let verdict = match self.aim {
            None => String::new(),
            Some(aim) => {
                let (word, bound) = match aim {
                    Aim::AtLeast(bound) => ("at least", bound),
                    Aim::Below(bound) => ("below", bound),
                };
                let met = if aim.met(self.value) { "met" } else { "MISSED" };
                format!("aim {word} {}: {met}", number(bound))
            }
        };
        let line = format!(
            "  {:<46} {:>14} {:<12} {verdict}",
            self.name,
            number(self.value),
            self.unit
        );
        line.trim_end().to_owned()
    }
}

/// Three digits or more, thousands set apart.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
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
    fn numbers_are_readable() {
        let cases = [
            (0.0, "0"),
            (0.123, "0.12"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.0, "1,234,567"),
            (-1_234.0, "-1,234"),
            (-123_456.0, "-123,456"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

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
    fn a_missed_aim_is_said_loudly() {
        let mut section = Section::begin("x");
        section.aimed("rate", 5.0, "facts/s", Aim::AtLeast(10.0));
        section.aimed("latency", 5.0, "ms", Aim::Below(10.0));
        assert!(section.figures[0].line().ends_with("MISSED"));
        assert!(section.figures[1].line().ends_with(": met"));
    }
}
