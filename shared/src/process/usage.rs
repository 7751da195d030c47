//! The metrics that every Prometheus client library has of its process: processor, memory, files, threads, start. They
//! are read from /proc at each scrape; elsewhere than on Linux there are none.

#[cfg(target_os = "linux")]
use prometheus_client::registry::Registry;

/// A metric of the process: its name as it is scraped, its kind, and its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMetric {
    /// The name, without the prefix of a program: dashboards look for it.
    pub name: &'static str,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    /// The description.
    pub help: &'static str,
}

/// All of them, in the order in which they are written.
pub const PROCESS_METRICS: [ProcessMetric; 7] = [
    ProcessMetric {
        name: "process_cpu_seconds_total",
        kind: "counter",
        help: "Processor time of this process, in user and system mode, in seconds",
    },
    ProcessMetric {
        name: "process_resident_memory_bytes",
        kind: "gauge",
        help: "Memory of this process that is in RAM, in bytes",
    },
    ProcessMetric {
        name: "process_virtual_memory_bytes",
        kind: "gauge",
        help: "Address space of this process, in bytes",
    },
    ProcessMetric {
        name: "process_open_fds",
        kind: "gauge",
        help: "Files and sockets that this process has open",
    },
    ProcessMetric {
        name: "process_max_fds",
        kind: "gauge",
        help: "Most files and sockets that this process may have open",
    },
    ProcessMetric {
        name: "process_threads",
        kind: "gauge",
        help: "Threads of this process",
    },
    ProcessMetric {
        name: "process_start_time_seconds",
        kind: "gauge",
        help: "Time at which this process started, in seconds since 1970",
    },
];

/// Registers them.
#[cfg(target_os = "linux")]
pub(super) fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(linux::Usage));
}

#[cfg(target_os = "linux")]
mod linux {
    use procfs::{
        ProcResult, WithCurrentSystemInfo,
        process::{LimitValue, Process},
    };
    use prometheus_client::{
        collector::Collector,
        encoding::{DescriptorEncoder, EncodeMetric},
        metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    };
    use tracing::debug;

    use super::PROCESS_METRICS;

    #[derive(Debug)]
    pub(super) struct Usage;

    /// The value of each metric, in their order.
    fn read() -> ProcResult<[f64; PROCESS_METRICS.len()]> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let ticks = procfs::ticks_per_second() as f64;
        let most = match process.limits()?.max_open_files.soft_limit {
            LimitValue::Value(most) => most as f64,
            LimitValue::Unlimited => f64::INFINITY,
        };
        Ok([
            (stat.utime + stat.stime) as f64 / ticks,
            stat.rss_bytes().get() as f64,
            stat.vsize as f64,
            process.fd_count()? as f64,
            most,
            stat.num_threads as f64,
            procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
        ])
    }

    impl Collector for Usage {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
            let values = match read() {
                Ok(values) => values,
                // A scrape has everything else: a container may hide /proc.
                Err(error) => {
                    debug!(%error, "the metrics of the process cannot be read");
                    return Ok(());
                }
            };
            for (metric, value) in PROCESS_METRICS.iter().zip(values) {
                let (name, help) = (metric.name, metric.help);
                match name.strip_suffix("_total") {
                    Some(name) => {
                        let kind = MetricType::Counter;
                        let encoder = encoder.encode_descriptor(name, help, None, kind)?;
                        ConstCounter::new(value).encode(encoder)?;
                    }
                    None => {
                        let kind = MetricType::Gauge;
                        let encoder = encoder.encode_descriptor(name, help, None, kind)?;
                        ConstGauge::new(value).encode(encoder)?;
                    }
                }
            }
            Ok(())
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::process::{Metrics, encode_metrics};

    use super::*;

    #[test]
    fn a_scrape_has_each_under_the_name_that_dashboards_look_for() {
        let text = encode_metrics(&Metrics::new("tributary_test", "1").finish()).expect("text");
        let value = |name: &str| -> f64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} ")));
            let value = line.unwrap_or_else(|| panic!("no {name} in {text}"));
            value.parse().expect("a number")
        };
        for metric in PROCESS_METRICS {
            let name = metric.name.trim_end_matches("_total");
            assert!(
                text.contains(&format!("# TYPE {name} {}\n", metric.kind)),
                "{text}"
            );
            // Two hundredths of a second of the processor may not have passed.
            let least = if metric.kind == "counter" { 0.0 } else { 1.0 };
            assert!(value(metric.name) >= least, "{text}");
        }
        assert!(value("process_resident_memory_bytes") < value("process_virtual_memory_bytes"));
        assert!(value("process_open_fds") < value("process_max_fds"));
        assert!(value("process_start_time_seconds") > 1.7e9, "after 2023");
    }
}
