//! Owns: the processor time of a scenario, counted where it is spent: by the threads of this process that run it, by the
//! hubs and agents that it starts, by the clusters that it starts.
//! Never: knows what a scenario is; it uses no other room, so every room may count.
//!
//! A [`Counter`] belongs to the threads of one runtime ([`enter`], [`leave`]). Whoever starts a process on such a thread
//! makes a [`Meter`] of it, which adds to that counter.

use std::{
    cell::RefCell,
    fs,
    ops::{AddAssign, Range},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Clock ticks of /proc a second: the same on every Linux that programs see.
const TICKS_PER_SECOND: u64 = 100;
/// The fields of /proc/PID/stat behind the name, from the state on: user and system time.
const OWN: Range<usize> = 11..13;
/// And that of the children that the process has reaped.
const WITH_CHILDREN: Range<usize> = 11..15;

/// A kind of process that spends processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spender {
    /// Hubs and agents.
    Programs,
    /// etcd, API servers and controllers.
    Clusters,
}

/// Processor time of one scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// The scenario itself and the clusters that it simulates.
    pub harness: Duration,
    /// Its hubs and agents.
    pub programs: Duration,
    /// Its real clusters.
    pub clusters: Duration,
}

impl Spent {
    /// The sum of all three.
    pub fn total(&self) -> Duration {
        self.harness + self.programs + self.clusters
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.harness += more.harness;
        self.programs += more.programs;
        self.clusters += more.clusters;
    }
}

/// The processor time of a scenario so far, in microseconds.
#[derive(Debug, Default)]
pub struct Counter {
    harness: AtomicU64,
    programs: AtomicU64,
    clusters: AtomicU64,
}

impl Counter {
    /// The counts until now.
    pub fn spent(&self) -> Spent {
        let read = |part: &AtomicU64| Duration::from_micros(part.load(Ordering::Relaxed));
        Spent {
            harness: read(&self.harness),
            programs: read(&self.programs),
            clusters: read(&self.clusters),
        }
    }

    /// Adds what clusters spent that were started for somebody else too.
    pub fn add_clusters(&self, time: Duration) {
        add(&self.clusters, time);
    }
}

fn add(part: &AtomicU64, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    part.fetch_add(micros, Ordering::Relaxed);
}

thread_local! {
    /// The counter of this thread, and the thread's processor time when it was entered.
    static CURRENT: RefCell<Option<(Arc<Counter>, Duration)>> = const { RefCell::new(None) };
}

/// From now on this thread works for the counter.
pub fn enter(counter: Arc<Counter>) {
    CURRENT.set(Some((counter, thread_time())));
}

/// Adds what this thread spent since it entered; it works for no counter any more.
pub fn leave() {
    if let Some((counter, before)) = CURRENT.take() {
        add(&counter.harness, thread_time().saturating_sub(before));
    }
}

fn thread_time() -> Duration {
    // To the kernel, a thread has the children of its process.
    of("thread-self", OWN).unwrap_or_default()
}

/// Counts a process that this thread starts for its counter, if it has one.
#[derive(Debug)]
pub struct Meter {
    counter: Option<Arc<Counter>>,
    spender: Spender,
    process: Option<u32>,
    counted: Duration,
}

impl Meter {
    /// For the process of this id, which the caller has started and not yet reaped.
    pub fn of(process: Option<u32>, spender: Spender) -> Self {
        let counter = CURRENT.with_borrow(|current| current.as_ref().map(|(counter, _)| Arc::clone(counter)));
        Self {
            counter,
            spender,
            process,
            counted: Duration::ZERO,
        }
    }

    /// Adds what the process spent since the last call. Call it while the process runs, or has ended and is not yet reaped;
    /// later it adds nothing.
    pub fn count(&mut self) {
        let (Some(counter), Some(process)) = (&self.counter, self.process) else {
            return;
        };
        let Some(spent) = of_process(process) else { return };
        let part = match self.spender {
            Spender::Programs => &counter.programs,
            Spender::Clusters => &counter.clusters,
        };
        add(part, spent.saturating_sub(self.counted));
        self.counted = spent.max(self.counted);
    }

    /// The process was reaped: its id may belong to another one from now on.
    pub fn reaped(&mut self) {
        self.process = None;
    }
}

/// Blocks until a child of ours has ended, and does not reap it: what it spent can still be read.
pub fn await_end(process: u32) {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // An error means that there is no such child any more, which is an end as well.
        let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }
}

/// The processor time of a process, with that of its children that ended. `None`: there is no such process.
pub fn of_process(process: u32) -> Option<Duration> {
    of(&process.to_string(), WITH_CHILDREN)
}

fn of(name: &str, times: Range<usize>) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    ticks(&stat, times).map(|ticks| Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

/// The name of a process, in brackets, may hold blanks and brackets itself.
fn ticks(stat: &str, times: Range<usize>) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let times = fields.get(times)?;
    times.iter().map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn ticks_are_read_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 99 88 0 0 12 3 40 5 20 0 1 0 71 0\n";
        assert_eq!(ticks(stat, OWN), Some(15));
        assert_eq!(ticks(stat, WITH_CHILDREN), Some(60));
        assert_eq!(ticks("7 (a", OWN), None);
    }

    #[test]
    fn a_thread_and_the_processes_that_it_starts_count_for_its_counter() {
        let counter = Arc::new(Counter::default());
        enter(Arc::clone(&counter));
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh")
            .args(["-c", busy])
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut meter = Meter::of(Some(child.id()), Spender::Programs);
        await_end(child.id());
        meter.count();
        meter.count();
        child.wait().expect("reaped");
        meter.reaped();
        let programs = counter.spent().programs;
        assert!(programs > Duration::ZERO, "{programs:?}");
        meter.count();
        while thread_time() == Duration::ZERO {
            std::hint::spin_loop();
        }
        leave();
        let spent = counter.spent();
        assert_eq!(spent.programs, programs, "what is reaped is counted no more");
        assert!(spent.harness > Duration::ZERO && spent.clusters == Duration::ZERO);
        // Another thread works for nobody.
        let other = std::thread::spawn(|| Meter::of(Some(std::process::id()), Spender::Clusters).counter);
        assert!(other.join().expect("it ended").is_none());
    }
}
