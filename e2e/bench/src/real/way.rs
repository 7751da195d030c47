//! Owns: one namespace whose slices are changed in the first cluster at a rate, and when each change is seen in the
//! second, decoded.
//! Never: waits for a slow cluster: a change that is written late counts its lateness as latency.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use futures::TryStreamExt;
use hdrhistogram::Histogram;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Client,
    api::Api,
    runtime::watcher::{self, watcher},
};
use tokio::{
    sync::{Notify, Semaphore},
    task::JoinSet,
};

use super::{
    super::report::latencies,
    objects::{change, create, export, name_of, number_of, service, slice},
    relay,
};

/// Slices of each namespace, updated in turn.
pub(super) const SLICES: usize = 200;
/// Writes under way at a time; a pool of connections as a busy cluster has.
const WRITES_MAX: usize = 64;
/// Longest wait until the last update has arrived.
const ARRIVAL_WAIT: Duration = Duration::from_secs(120);

/// The carrier of a change from the first cluster to the second.
#[derive(Clone)]
pub(super) enum Carrier {
    /// Hub and agents.
    Tributary,
    /// The bare relay, by its clients in the two clusters.
    Relay([Client; 2]),
}

/// A wave of changes: how many there were, and how long those that arrived took, in microseconds from the moment
/// that each was due.
pub(super) struct Wave {
    pub(super) asked_for: u32,
    pub(super) latency: Histogram<u64>,
}

/// One namespace whose slices are changed in the first cluster and watched in the second.
pub(super) struct Way {
    namespace: &'static str,
    next: u32,
    arrivals: Arc<Arrivals>,
    watching: JoinSet<anyhow::Result<()>>,
}

/// Arrivals in the second cluster.
#[derive(Default)]
pub(super) struct Arrivals {
    seen: Mutex<Seen>,
    changed: Notify,
}

#[derive(Default)]
struct Seen {
    at: BTreeMap<u32, Instant>,
}

impl Arrivals {
    fn note(&self, number: u32) {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.at.entry(number).or_insert_with(Instant::now);
        drop(seen);
        self.changed.notify_one();
    }

    /// The arrivals, once all of `awaited` are there.
    pub(super) async fn all(&self, awaited: &BTreeSet<u32>) -> anyhow::Result<BTreeMap<u32, Instant>> {
        let deadline = Instant::now() + ARRIVAL_WAIT;
        loop {
            let changed = self.changed.notified();
            let missing = {
                let mut seen = self
                    .seen
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                let missing = awaited
                    .iter()
                    .filter(|number| !seen.at.contains_key(number))
                    .count();
                if missing == 0 {
                    return Ok(std::mem::take(&mut seen.at));
                }
                missing
            };
            if tokio::time::timeout_at(deadline.into(), changed).await.is_err() {
                bail!(
                    "after {} s {missing} updates have not arrived",
                    ARRIVAL_WAIT.as_secs()
                );
            }
        }
    }
}

impl Way {
    /// Makes the slices and waits until all of them have arrived.
    pub(super) async fn open(
        namespace: &'static str,
        carrier: Carrier,
        east: &Client,
        west: &Client,
    ) -> anyhow::Result<Self> {
        let arrivals = Arc::new(Arrivals::default());
        let mut watching = JoinSet::new();
        watching.spawn(watch(Api::namespaced(west.clone(), namespace), arrivals.clone()));
        if let Carrier::Relay([from, to]) = &carrier {
            watching.spawn(relay::relay(from.clone(), to.clone(), namespace));
        }
        for index in 0..SLICES {
            let name = name_of(index as u32, SLICES);
            if matches!(carrier, Carrier::Tributary) {
                create(east, Some(namespace), service(namespace, &name)).await?;
                create(east, Some(namespace), export(namespace, &name)).await?;
            }
            create(east, Some(namespace), slice(namespace, &name, index as u32)).await?;
        }
        let first: BTreeSet<u32> = (0..SLICES as u32).collect();
        arrivals
            .all(&first)
            .await
            .with_context(|| format!("in namespace {namespace}"))?;
        Ok(Self {
            namespace,
            next: SLICES as u32,
            arrivals,
            watching,
        })
    }

    /// Changes slices at this rate for so long, and waits until the last change of each slice has arrived.
    pub(super) async fn wave(&mut self, east: &Client, rate: u32, lasting: Duration) -> anyhow::Result<Wave> {
        let count = rate * u32::try_from(lasting.as_secs())?;
        ensure!(count > 0, "a wave has at least one update");
        let first = self.next;
        self.next += count;
        let (start, interval) = (Instant::now() + interval_of(rate), interval_of(rate));
        let due = |number: u32| start + interval * (number - first);
        let api: Api<EndpointSlice> = Api::namespaced(east.clone(), self.namespace);
        let (mut writing, turn) = (JoinSet::new(), Arc::new(Semaphore::new(WRITES_MAX)));
        for number in first..first + count {
            tokio::time::sleep_until(due(number).into()).await;
            let turn = turn.clone().acquire_owned().await?;
            let api = api.clone();
            writing.spawn(async move {
                let _turn = turn;
                change(&api, &name_of(number, SLICES), number).await
            });
        }
        while let Some(written) = writing.join_next().await {
            written??;
        }
        let last = (first + count).saturating_sub(SLICES as u32).max(first);
        let awaited: BTreeSet<u32> = (last..first + count).collect();
        let seen = tokio::select! {
            seen = self.arrivals.all(&awaited) => seen?,
            Some(ended) = self.watching.join_next() => {
                ended??;
                bail!("the watch in the second cluster ended")
            }
        };
        let mut latency = latencies()?;
        for (number, at) in seen.into_iter().filter(|(number, _)| *number >= first) {
            latency.saturating_record(at.saturating_duration_since(due(number)).as_micros() as u64);
        }
        Ok(Wave {
            asked_for: count,
            latency,
        })
    }
}

fn interval_of(rate: u32) -> Duration {
    Duration::from_secs(1) / rate
}

/// Notes every number that appears.
pub(super) async fn watch(api: Api<EndpointSlice>, arrivals: Arc<Arrivals>) -> anyhow::Result<()> {
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.try_next().await? {
        if let watcher::Event::Apply(slice) | watcher::Event::InitApply(slice) = event
            && let Some(number) = number_of(&slice)
        {
            arrivals.note(number);
        }
    }
    Ok(())
}
