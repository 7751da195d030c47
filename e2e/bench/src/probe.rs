//! Owns: what the kernel and the admin port say about a process under test, and the kernel about this one.
//! Never: changes it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Clock ticks of /proc a second: the same on every Linux that programs see.
const TICKS_PER_SECOND: f64 = 100.0;
/// Longest wait for the admin port.
const SCRAPE_WAIT: Duration = Duration::from_secs(10);

/// Processor time and memory of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// Seconds of processor time since it started.
    pub(super) cpu_seconds: f64,
    /// Resident bytes now.
    pub(super) resident: u64,
    /// The most there were.
    pub(super) resident_peak: u64,
}

impl Usage {
    /// Asks the kernel.
    pub(super) fn of(pid: u32) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {path}: has the process ended?"))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        let kilobytes = |name: &str| field(&status, name).map(|kilobytes| kilobytes * 1024);
        Ok(Self {
            cpu_seconds: cpu_ticks(&stat).context("/proc/PID/stat has another form")? as f64
                / TICKS_PER_SECOND,
            resident: kilobytes("VmRSS:").context("the kernel does not say how much memory is used")?,
            resident_peak: kilobytes("VmHWM:").unwrap_or_default(),
        })
    }
}

/// This process, which plays everybody but the process under test, from a moment on.
pub(super) struct Generator {
    began: Instant,
    cpu_seconds: f64,
}

/// Processor time of the generator: if it used all that it was given, the generator is the limit and not what it
/// measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeneratorTime {
    /// Seconds of processor time.
    pub(super) cpu_seconds: f64,
    /// The seconds in which it took them.
    pub(super) seconds: f64,
}

impl Generator {
    /// From now on.
    pub(super) fn begin() -> anyhow::Result<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu_seconds: Usage::of(std::process::id())?.cpu_seconds,
        })
    }

    /// Processor time used until now.
    pub(super) fn spent(&self) -> anyhow::Result<GeneratorTime> {
        Ok(GeneratorTime {
            cpu_seconds: Usage::of(std::process::id())?.cpu_seconds - self.cpu_seconds,
            seconds: self.began.elapsed().as_secs_f64(),
        })
    }
}

impl GeneratorTime {
    /// Cores that it kept busy.
    pub(super) fn cores(self) -> f64 {
        self.cpu_seconds / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// utime and stime: the 14th and 15th word; the second one, in parentheses, may hold blanks.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A hub's counters, as far as reports use them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) events: f64,
    pub(super) syncs: f64,
    pub(super) payload_bytes: f64,
    pub(super) disk_bytes: f64,
    pub(super) append_seconds: f64,
}

impl Counters {
    /// Reads /metrics.
    pub(super) async fn scrape(admin: SocketAddr) -> anyhow::Result<Self> {
        let text = tokio::time::timeout(SCRAPE_WAIT, get(admin, "/metrics")).await;
        let text = text.context("the admin port does not answer")??;
        let value = |name: &str| {
            let name = format!("tributary_hub_{name}");
            metric(&text, &name).with_context(|| format!("the hub's metrics have no {name}"))
        };
        Ok(Self {
            events: value("events_recorded_total")?,
            syncs: value("log_syncs_total")?,
            payload_bytes: value("log_appended_bytes_total")?,
            disk_bytes: value("log_on_disk_bytes")?,
            append_seconds: value("log_append_seconds_sum")?,
        })
    }
}

fn metric(text: &str, name: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// A plain GET.
pub(super) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let socket = TcpStream::connect(address)
        .await
        .context("the admin port cannot be reached")?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let driving = tokio::spawn(connection);
    let request = http::Request::get(path)
        .header(http::header::HOST, address.to_string())
        .body(Empty::<bytes::Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status().is_success(), "{path} answers {}", answer.status());
    let body = answer.into_body().collect().await?.to_bytes();
    drop(sender);
    // It ends because nobody sends any more.
    let _ = driving.await;
    Ok(String::from_utf8(body.to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_counted_after_the_name() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(field("Name:\tx\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12));
        assert!(Usage::of(std::process::id()).expect("we run").resident > 0);
    }

    #[test]
    fn only_what_the_generator_took_meanwhile_counts() {
        let generator = Generator {
            began: Instant::now(),
            cpu_seconds: 0.0,
        };
        let since_its_start = generator.spent().expect("we run").cpu_seconds;
        let generator = Generator::begin().expect("we run");
        assert!(generator.cpu_seconds >= since_its_start);
        assert!(generator.spent().expect("we run").cpu_seconds >= 0.0);
        let half = GeneratorTime {
            cpu_seconds: 1.0,
            seconds: 2.0,
        };
        assert!((half.cores() - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# TYPE x counter\nx_total 3\nx_total_more 4\nx_total{a=\"b\"} 5\n";
        assert_eq!(metric(text, "x_total"), Some(3.0));
        assert_eq!(metric(text, "x"), None);
    }
}
