//! Owns: a writer over a log on disk that is stepped here, with a wall clock that goes as fast as it is told.
//! Never: decides what is taken, appended or answered.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use hub::{
    bounds::Bounds,
    clock::Moment,
    fold::Command,
    log,
    metrics::WriterMetrics,
    replay::replay,
    writer::{Completed, Options, Request, SessionEvent, SessionSink, TICK_MILLIS, Work, Writer},
};
use shared::{
    model::{Clusterset, Epoch, SessionId, UnixMillis, sync::Observation},
    wire::read_policy,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout_at,
};

use super::reporter::Reporter;
use crate::unbounded;

/// Start of the simulated clock.
const BEGINS: UnixMillis = UnixMillis(1_700_000_000_000);
/// Observations that are handed over at once at full speed.
const HANDED_OVER: u64 = 256;
/// Longest wait for the disk before it is looked at again whether anything else is to be done.
const DISK_WAIT: Duration = Duration::from_millis(100);

/// An operator's word that nothing the member says is too much.
fn lifted_budgets() -> anyhow::Result<Work> {
    let (reply, _) = oneshot::channel();
    let command = Command::ApplyPolicy {
        policy: Arc::new(read_policy(&unbounded::policy())?),
        operator: "load".into(),
    };
    Ok(Work::Operate {
        command,
        confirm: true,
        describe: |_, _, _| Vec::new(),
        reply,
    })
}

/// The writer, and a member that reports to it.
pub(super) struct Driven {
    writer: Writer,
    completed: mpsc::UnboundedReceiver<Completed>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    heard_at: Arc<AtomicU64>,
    reporter: Reporter,
    session: SessionId,
    /// The member's messages that the writer has not taken.
    waiting: VecDeque<Observation>,
    began: Instant,
    ticked: Instant,
    /// Up to when the simulated clock has gone on.
    looked: Instant,
    wall: UnixMillis,
}

impl Driven {
    /// Makes the log and has the member admitted.
    pub(super) async fn start(data: &Path, clusterset: &Clusterset) -> anyhow::Result<Self> {
        let log =
            log::open(data, clusterset, Epoch::default().next(BEGINS, 1)).context("cannot make the log")?;
        let (state, _) = replay(&log.reader())?;
        let options = Options {
            hub: "hub".into(),
            hub_version: env!("CARGO_PKG_VERSION").into(),
            adopt_epoch: false,
            bounds: Bounds::default(),
        };
        let began = Instant::now();
        let at = Moment {
            micros: 0,
            wall: BEGINS,
        };
        let (mut writer, _, completed) = Writer::new(state, log, options, WriterMetrics::default(), at);
        writer.begin(at);
        let (reporter, heard_at) = (Reporter::new()?, Arc::new(AtomicU64::new(0)));
        let (sender, events) = mpsc::unbounded_channel();
        let sink = SessionSink {
            cluster: reporter.cluster.clone(),
            events: sender,
            heard_at: heard_at.clone(),
        };
        let (reply, answer) = oneshot::channel();
        let request = Box::new(reporter.introduction());
        writer.take(lifted_budgets()?, at);
        writer.take(Work::Admit { request, sink, reply }, at);
        let mut driven = Self {
            writer,
            completed,
            events,
            heard_at,
            reporter,
            session: SessionId(0),
            waiting: VecDeque::new(),
            began,
            ticked: began,
            looked: began,
            wall: BEGINS,
        };
        driven.settle().await?;
        let admitted = answer.await.context("the writer does not answer")?;
        let admission = admitted.ok().context("the member is not admitted")?;
        driven.session = admission.welcome.session;
        Ok(driven)
    }

    /// Has so many events recorded as fast as they can be, the simulated clock going on by `millis` with each.
    pub(super) async fn record(&mut self, events: u64, millis: u64) -> anyhow::Result<()> {
        let mut left = events;
        while left > 0 {
            let piece = left.min(HANDED_OVER);
            for _ in 0..piece {
                let observation = self.reporter.observation()?;
                self.waiting.push_back(observation);
            }
            self.wall.0 += piece * millis;
            left -= piece;
            self.hand_over();
            self.tick_if_due();
            while self.writer.step(self.moment(), rand::random)? {}
            while let Ok(completed) = self.completed.try_recv() {
                self.writer.on_completed(completed, self.moment())?;
            }
            while !self.waiting.is_empty() {
                self.go_on(None).await?;
            }
        }
        self.settle().await?;
        self.acknowledged();
        // The simulated clock went with the events: what it took in real time must not be added.
        self.looked = Instant::now();
        Ok(())
    }

    /// The member says one more thing; its sequence number.
    pub(super) fn say_one(&mut self) -> anyhow::Result<u64> {
        let observation = self.reporter.observation()?;
        self.waiting.push_back(observation);
        self.hand_over();
        Ok(self.reporter.sequence)
    }

    /// The simulated clock is so many milliseconds later at once.
    pub(super) fn jump(&mut self, millis: u64) {
        self.wall.0 += millis;
    }

    /// Goes on until a moment: the sequence numbers that were acknowledged up to, each with when.
    pub(super) async fn acknowledged_by(&mut self, until: Instant) -> anyhow::Result<Vec<(u64, Instant)>> {
        let mut acknowledged = Vec::new();
        while Instant::now() < until {
            let passed = self.looked.elapsed().as_millis();
            self.looked += Duration::from_millis(u64::try_from(passed)?);
            self.wall.0 += u64::try_from(passed)?;
            self.tick_if_due();
            self.go_on(Some(until)).await?;
            acknowledged.extend(self.acknowledged());
        }
        Ok(acknowledged)
    }

    /// Ends in good order.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.settle().await?;
        tokio::task::spawn_blocking(move || self.writer.finish()).await??;
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment {
            micros: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            wall: self.wall,
        }
    }

    /// Hands waiting messages to the writer, if it takes anything now.
    fn hand_over(&mut self) {
        if self.waiting.is_empty() || !self.writer.has_room() {
            return;
        }
        let request = Request::Observe {
            session: self.session,
            cluster: self.reporter.cluster.clone(),
            observations: self.waiting.drain(..).collect(),
        };
        self.writer.take(Work::Request(request), self.moment());
    }

    /// The member is alive, and the writer looks at its log.
    fn tick_if_due(&mut self) {
        if self.ticked.elapsed() >= Duration::from_millis(TICK_MILLIS) && self.writer.has_room() {
            self.ticked = Instant::now();
            let at = self.moment();
            self.heard_at.store(at.now(), Ordering::Relaxed);
            self.writer.take(Work::Tick, at);
        }
    }

    /// The writer does what it can; then the disk is waited for, if there is anything to wait for, until a moment.
    async fn go_on(&mut self, until: Option<Instant>) -> anyhow::Result<()> {
        self.hand_over();
        while self.writer.step(self.moment(), rand::random)? {}
        let patience = until.unwrap_or_else(|| Instant::now() + DISK_WAIT);
        let tick = self.ticked + Duration::from_millis(TICK_MILLIS);
        let until = if until.is_some() {
            patience.min(tick)
        } else {
            patience
        };
        match timeout_at(until.into(), self.completed.recv()).await {
            Ok(Some(completed)) => self.writer.on_completed(completed, self.moment())?,
            Ok(None) => bail!("the log is gone"),
            Err(_) => {}
        }
        while self.writer.step(self.moment(), rand::random)? {}
        Ok(())
    }

    /// Everything that was said is durable.
    async fn settle(&mut self) -> anyhow::Result<()> {
        while self.writer.step(self.moment(), rand::random)? {}
        while !self.waiting.is_empty() || !self.writer.is_idle() {
            self.go_on(None).await?;
        }
        Ok(())
    }

    /// Acknowledgements since the last look.
    fn acknowledged(&mut self) -> Vec<(u64, Instant)> {
        let mut acknowledged = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let SessionEvent::Acknowledged(dealt) = event {
                acknowledged.push((dealt.sequence, Instant::now()));
            }
        }
        acknowledged
    }
}
