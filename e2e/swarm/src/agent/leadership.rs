//! Leadership of a world's agents: by the agent's own machines, on the world's time, which every agent reads off a
//! clock of its own pace.

use std::{future::Future, pin::Pin, sync::Arc, task::Poll, time::Duration};

use agent_engine::lease::{
    AgentLease, AnotherHolder, Attempt, Election, LeaseMetrics, Monotonic, WritePermit, hold::May,
    machine::PACE_ERROR_PERCENT_MAX,
};
use tokio::runtime::Runtime;

use super::{AGENT_NAMESPACE, Agent};
use crate::{draw::Draw, time::Time};

/// Interval of an agent's looks at its Lease or renewals, in milliseconds of the world's time.
const RETRY_MILLIS: u64 = 1_000;

/// Turns that a request has within one turn of the world: what waits for the world's time waits for the next one.
const POLLS: usize = 16;

/// A request for the Lease, under way.
pub(super) type AsksLease = Pin<Box<dyn Future<Output = Answered>>>;

/// The answer to it.
pub(super) enum Answered {
    /// It was to be renewed.
    Renewed(anyhow::Result<()>),
    /// Somebody wants it.
    Looked(Box<Election>, anyhow::Result<Attempt>),
}

/// The result of a look at the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Led {
    /// It was not its turn, or nothing changed.
    As,
    /// It leads from now on.
    Took,
    /// Another one leads: it ends.
    Lost,
}

/// The clock of an agent: it goes by as much too slow or too fast as one may.
pub(super) fn clock(time: &Time, instance: u64) -> Monotonic {
    let error = u64::from(PACE_ERROR_PERCENT_MAX) * 10;
    let (time, pace) = (time.clone(), 1_000 - error + instance % (2 * error + 1));
    Arc::new(move || Duration::from_micros(time.now() * pace))
}

/// One who wants to lead.
pub(super) fn election(client: api::server::Client, pod: &str, clock: Monotonic) -> Election {
    let clock = (clock, WritePermit::default());
    Election::new(client, AGENT_NAMESPACE, pod, clock, LeaseMetrics::default())
}

impl Agent {
    /// Returns true if it took the Lease and does not know of another holder.
    pub(crate) fn leads(&self) -> bool {
        self.lease.is_some()
    }

    /// Number of elections of another one at its own last election.
    pub(crate) fn transitions(&self) -> i64 {
        self.introduction.lease_transitions
    }

    /// The pod it runs in: who starts there again is the same holder.
    pub(crate) fn pod(&self) -> &str {
        &self.pod
    }

    /// Returns true if it is cut off from its API server.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.way.is_cut()
    }

    /// Nothing of its API server reaches it from now on, nor the other way.
    pub(crate) fn cut_off(&mut self) {
        self.way.cut(true);
    }

    /// Looks at the Lease or renews it, if it is time to.
    pub(crate) fn keep_lease(&mut self, runtime: &Runtime, now: u64) -> Led {
        if self.asks.is_none() {
            if self.looked.is_some_and(|at| now < at + RETRY_MILLIS) {
                return Led::As;
            }
            self.looked = Some(now);
            self.asks = self.ask();
        }
        match self.answered(runtime) {
            None => Led::As,
            Some(Answered::Renewed(Err(error))) if error.is::<AnotherHolder>() => Led::Lost,
            Some(Answered::Renewed(_)) => Led::As,
            Some(Answered::Looked(election, attempt)) => {
                self.election = Some(*election);
                match attempt {
                    Ok(Attempt::Taken(lease)) => self.took(*lease),
                    _ => Led::As,
                }
            }
        }
    }

    /// Asks for the Lease: to renew it, or to have it.
    fn ask(&mut self) -> Option<AsksLease> {
        if let Some(lease) = self.lease.clone() {
            return Some(Box::pin(async move { Answered::Renewed(lease.renew().await) }));
        }
        let mut election = self.election.take()?;
        Some(Box::pin(async move {
            let attempt = election.attempt().await;
            Answered::Looked(Box::new(election), attempt)
        }))
    }

    /// The answer, once it is there: at once, unless its API server is slow.
    fn answered(&mut self, runtime: &Runtime) -> Option<Answered> {
        let mut asks = self.asks.take()?;
        self.way.may_wait(true);
        let answered = runtime.block_on(async {
            if !self.way.is_slow() {
                return Some(asks.as_mut().await);
            }
            for _ in 0..POLLS {
                if let Poll::Ready(answered) = futures::poll!(asks.as_mut()) {
                    return Some(answered);
                }
                tokio::task::yield_now().await;
            }
            None
        });
        self.way.may_wait(false);
        if answered.is_none() {
            self.asks = Some(asks);
        }
        answered
    }

    fn took(&mut self, lease: AgentLease) -> Led {
        self.introduction.lease_transitions = lease.transitions();
        self.known_epoch = self.known_epoch.max(lease.epoch());
        self.way.leads(lease.transitions());
        self.lease = Some(lease);
        Led::Took
    }

    /// From now on requests for its Lease are answered after so many milliseconds, in turn.
    pub(crate) fn slow_down(&mut self, slow: Option<[u64; 2]>) {
        self.way.slow_down(slow);
    }

    /// Returns true if it may write now.
    pub(super) fn may_write(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.may() == May::Write)
    }

    /// It is reached again. What it had on its way when it was cut off arrives now: one write at most, planned from what
    /// it saw then. True: it sent one.
    pub(crate) fn comes_back(&mut self, runtime: &Runtime, draw: &mut Draw, now: u64) -> bool {
        let waiting: Vec<_> = self.driver.waiting().iter().cloned().collect();
        let late = waiting
            .get(draw.index(waiting.len()))
            .filter(|_| self.leads() && self.schema_read);
        if let Some(service) = late {
            self.way.let_one_through();
            self.permit.switch(true);
            runtime.block_on(self.driver.work(service, now));
            self.permit.switch(false);
        }
        self.way.cut(false);
        self.looked = None;
        late.is_some()
    }

    /// It ends in good order: the Lease goes back as its last act.
    pub(crate) fn ends(self, runtime: &Runtime) {
        if let Some(lease) = self.lease {
            runtime.block_on(lease.release());
        }
    }
}
