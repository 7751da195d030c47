//! Owns: what is measured again and again while a step runs: processor time and memory of a process, latencies by
//! second.
//! Never: disturbs what it looks at more often than it says.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde::Serialize;
use tokio::{sync::oneshot, task::JoinHandle, time::MissedTickBehavior};

use super::probe::Usage;

/// Interval of sampling a process.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Samples of one step; a longer step keeps the first ones.
const SAMPLES_MAX: usize = 10_000;
/// Arrivals of one member in one step whose latency is kept for the plot; the histogram has all of them.
pub(super) const ARRIVALS_MAX: usize = 1_000_000;

/// A process at one moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Sample {
    /// Seconds since the step began.
    pub(super) seconds: f64,
    /// Cores that were busy since the sample before.
    pub(super) cores: f64,
    /// Resident memory.
    pub(super) megabytes: f64,
}

/// The latencies of one second.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Latencies {
    /// Seconds since the step began.
    pub(super) seconds: f64,
    /// Milliseconds, the median.
    pub(super) p50: f64,
    /// Milliseconds, the slowest but one of a hundred.
    pub(super) p99: f64,
}

/// Time of an arrival, in milliseconds since the step began, and its delay, in microseconds.
pub(super) type Arrival = (u32, u32);

/// Looks at a process until it is ended.
pub(super) struct Sampler {
    looking: JoinHandle<anyhow::Result<Vec<Sample>>>,
    stop: oneshot::Sender<()>,
}

impl Sampler {
    /// Starts to look at the process with this id; seconds count from `began`.
    pub(super) fn start(pid: u32, began: Instant) -> Self {
        let (stop, stopped) = oneshot::channel();
        let looking = tokio::spawn(look(pid, began, stopped));
        Self { looking, stop }
    }

    /// Returns the samples.
    pub(super) async fn end(self) -> anyhow::Result<Vec<Sample>> {
        // A process that is gone has ended it already.
        let _ = self.stop.send(());
        self.looking.await.context("the sampler panicked")?
    }
}

async fn look(pid: u32, began: Instant, mut stopped: oneshot::Receiver<()>) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut before, mut at) = (Usage::of(pid)?, Instant::now());
    loop {
        tokio::select! {
            _ = &mut stopped => return Ok(samples),
            _ = ticks.tick() => {}
        }
        let (usage, now) = (Usage::of(pid)?, Instant::now());
        if samples.len() < SAMPLES_MAX {
            samples.push(Sample {
                seconds: now.saturating_duration_since(began).as_secs_f64(),
                cores: (usage.cpu_seconds - before.cpu_seconds) / now.duration_since(at).as_secs_f64(),
                megabytes: usage.resident as f64 / 1e6,
            });
        }
        (before, at) = (usage, now);
    }
}

/// Arrivals, second by second.
pub(super) fn by_second(arrivals: &[Arrival]) -> Vec<Latencies> {
    let mut seconds: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(millis, late) in arrivals {
        seconds.entry(millis / 1_000).or_default().push(late);
    }
    let latencies = seconds.into_iter().map(|(second, mut late)| {
        late.sort_unstable();
        let millis = |percent: usize| f64::from(late[(late.len() - 1) * percent / 100]) / 1e3;
        Latencies {
            seconds: f64::from(second) + 0.5,
            p50: millis(50),
            p99: millis(99),
        }
    });
    latencies.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_gathered_by_second() {
        let arrivals: Vec<Arrival> = (0..200).map(|index| (index * 10, index * 1_000)).collect();
        let seconds = by_second(&arrivals);
        assert_eq!(seconds.len(), 2);
        assert_eq!(
            (seconds[0].p50, seconds[0].p99, seconds[1].p50),
            (49.0, 98.0, 149.0)
        );
    }

    #[tokio::test]
    async fn a_process_that_is_gone_is_an_error() {
        let sampler = Sampler::start(u32::MAX, Instant::now());
        sampler.end().await.expect_err("no such process");
    }
}
