//! Owns: the way of one agent to its API server: open, cut, or cut but for a request that was on its way when it broke.
//! Never: answers a request itself.

use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use api::{
    names::AGENT_MANAGER,
    server::{Client, NoAnswer},
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;

use crate::time::Time;
use sim::SimCluster;

/// Clones are the same way.
#[derive(Debug, Clone, Default)]
pub(super) struct Way(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    cut: bool,
    /// Writes that still arrive though it is cut.
    late: u32,
    /// The number of the hold under which the agent writes; 0 before it led.
    term: i64,
    /// True if its next requests are due to Leases of sources, leading or not.
    by_lease: bool,
    /// Milliseconds after which its requests are answered in turn.
    slow: Option<[u64; 2]>,
    /// Requests that were slow.
    asked: usize,
    /// True while it asks what may wait.
    may_wait: bool,
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.lock().cut
    }

    pub(super) fn cut(&self, cut: bool) {
        self.lock().cut = cut;
    }

    /// One write arrives that was on its way when the way was cut.
    pub(super) fn let_one_through(&self) {
        self.lock().late = 1;
    }

    /// From now on it writes under this number.
    pub(super) fn leads(&self, term: i64) {
        self.lock().term = term;
    }

    /// Sets whether later requests are due to Leases of sources.
    pub(super) fn by_lease(&self, by_lease: bool) {
        self.lock().by_lease = by_lease;
    }

    /// From now on requests that may wait are answered after so many milliseconds, in turn.
    pub(super) fn slow_down(&self, slow: Option<[u64; 2]>) {
        self.lock().slow = slow;
    }

    pub(super) fn is_slow(&self) -> bool {
        self.lock().slow.is_some()
    }

    /// From now on what it asks may wait, or not any more.
    pub(super) fn may_wait(&self, may_wait: bool) {
        self.lock().may_wait = may_wait;
    }

    /// Half of the time that the next request takes, in milliseconds.
    fn half(&self) -> u64 {
        let mut state = self.lock();
        let Some(slow) = state.slow.filter(|_| state.may_wait) else {
            return 0;
        };
        state.asked += 1;
        slow[state.asked % slow.len()] / 2
    }

    /// Waits for a time of the world, unless the API server is slow no more.
    async fn wait(&self, time: &Time, millis: u64) {
        let at = time.now() + millis;
        poll_fn(|_| {
            let is_over = time.now() >= at || !self.is_slow();
            if is_over { Poll::Ready(()) } else { Poll::Pending } // whoever asks polls again
        })
        .await;
    }

    /// The name of the agent in its requests, if this one arrives.
    fn name(&self, writes: bool) -> io::Result<String> {
        let mut state = self.lock();
        if state.cut {
            if !writes || state.late == 0 {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the way is cut"));
            }
            state.late -= 1;
        }
        if state.by_lease {
            return Ok(format!("{AGENT_MANAGER}/leases"));
        }
        Ok(format!("{AGENT_MANAGER}/{}", state.term))
    }

    /// An API server that is reached this way.
    pub(super) fn client(&self, cluster: &SimCluster, time: &Time) -> Client {
        let (cluster, way, time) = (cluster.clone(), self.clone(), time.clone());
        Client::new(move |request: Request<Bytes>| {
            let (cluster, way, time) = (cluster.clone(), way.clone(), time.clone());
            async move { way.ask(&cluster, &time, request).await.map_err(NoAnswer::from) }
        })
    }

    async fn ask(
        &self,
        cluster: &SimCluster,
        time: &Time,
        mut request: Request<Bytes>,
    ) -> io::Result<Response<Bytes>> {
        let half = self.half();
        self.wait(time, half).await;
        let name = self.name(*request.method() != Method::GET)?;
        let name = HeaderValue::from_str(&name).map_err(io::Error::other)?;
        request.headers_mut().insert(header::USER_AGENT, name);
        let answer = cluster.respond(request).await;
        self.wait(time, half).await;
        if half > 0 && self.is_cut() {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the way was cut"));
        }
        let (parts, body) = answer?.into_parts();
        let Ok(body) = body.collect().await;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}
