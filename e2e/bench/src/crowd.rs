//! Owns: all members of a shape, each a task with its own session, and waves of updates through them: sent on
//! schedule, latencies read where they arrive.
//! Never: slows down for a slow hub: an update that is sent late counts its lateness as latency.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use hdrhistogram::Histogram;
use prost::Message as _;
use proto::v1::{self, desired_item::Item};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::{
    facts::{NUMBERS_MAX, number_of},
    hub::{HubProcess, Setup},
    load_shape::{LoadShape, SliceAt},
    player::{Heard, Player, Session},
    report::latencies,
    series::{ARRIVALS_MAX, Arrival},
    traffic::Traffic,
};

/// Members that connect at the same time.
const CONNECTING_MAX: usize = 64;
/// Orders that may wait for one member.
const ORDERS_MAX: usize = 4_096;
/// Longest wait until everybody has received everything, after the last update was sent.
const ARRIVAL_WAIT: Duration = Duration::from_secs(300);
/// From the decision to send a wave until its first update is due: every member looks out by then.
const WAVE_LEAD: Duration = Duration::from_millis(200);

/// A wave's arrivals at members.
#[derive(Debug)]
pub(super) struct Tally {
    /// Microseconds from an update's due time until a member received it.
    pub(super) latency: Histogram<u64>,
    /// Updates received, by all members together.
    pub(super) received: u64,
    /// Encoded bytes of them.
    pub(super) item_bytes: u64,
    /// Times of arrival with delays, for the plot.
    pub(super) arrivals: Vec<Arrival>,
}

impl Tally {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            latency: latencies()?,
            received: 0,
            item_bytes: 0,
            arrivals: Vec::new(),
        })
    }

    fn note(&mut self, since_start: Duration, late: Duration, bytes: usize) {
        self.received += 1;
        self.item_bytes += bytes as u64;
        self.latency.saturating_record(late.as_micros() as u64);
        if self.arrivals.len() < ARRIVALS_MAX {
            let late = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
            self.arrivals.push((since_start.as_millis() as u32, late));
        }
    }

    fn add(&mut self, other: Self) -> anyhow::Result<()> {
        self.latency.add(&other.latency)?;
        self.received += other.received;
        self.item_bytes += other.item_bytes;
        self.arrivals.extend(other.arrivals);
        Ok(())
    }
}

/// A numbered run of updates, due at regular moments.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    first: u32,
    count: u32,
    start: Instant,
    interval: Duration,
}

impl Schedule {
    fn due(&self, number: u32) -> Instant {
        self.start + self.interval * (number - self.first)
    }

    fn covers(&self, number: u32) -> bool {
        number >= self.first && number - self.first < self.count
    }
}

enum Order {
    Report { slice: usize, number: u32 },
    Watch(Box<Watch>, oneshot::Sender<()>),
}

/// A member's awaited update, and the channel for its arrival.
struct Watch {
    schedule: Schedule,
    awaited: HashSet<u32>,
    tally: Tally,
    done: Option<oneshot::Sender<Tally>>,
}

/// All members, connected and listed.
pub(super) struct Crowd {
    world: LoadShape,
    orders: Vec<mpsc::Sender<Order>>,
    traffic: Vec<Traffic>,
    tasks: JoinSet<anyhow::Result<()>>,
    next_number: u32,
    /// From the first connection until everybody had received everything.
    pub(super) settled_after: Duration,
}

/// The result of a wave.
pub(super) struct WaveResult {
    /// All members' tallies together.
    pub(super) tally: Tally,
    /// Updates sent.
    pub(super) sent: u32,
    /// Updates times receivers: what would arrive if none were superseded by a later one.
    pub(super) expected: u64,
    /// Bytes that all members received on the wire, TLS, HTTP/2 and heartbeats included.
    pub(super) wire_bytes: u64,
    /// From the first due time until everybody had everything.
    pub(super) elapsed: Duration,
}

impl Crowd {
    /// Connects all members, has them list, and waits until everybody has received everything.
    pub(super) async fn gather(setup: &Setup, hub: &HubProcess, world: LoadShape) -> anyhow::Result<Self> {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        let (mut orders, mut connected, mut done) = (Vec::new(), Vec::new(), Vec::new());
        let turn = Arc::new(Semaphore::new(CONNECTING_MAX));
        // The listing is wave zero: each slice carries its own place as number.
        let schedule = Schedule {
            first: 0,
            count: world.slices.len() as u32,
            start: began,
            interval: Duration::ZERO,
        };
        let mut awaited = awaited(&world, world.slices.iter().zip(0..));
        let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); world.members.len()];
        for (at, number) in world.slices.iter().zip(0..) {
            numbers[at.member].push(number);
        }
        for (index, member) in world.members.iter().enumerate() {
            let player = Player {
                cluster: member.cluster.clone(),
                credentials: setup.member(&member.cluster)?,
                interest: member.interest.clone(),
                // With every namespace in every member the generator has no room for all of it.
                takes_differences: !world.measures.all,
            };
            let (order, inbox) = mpsc::channel(ORDERS_MAX);
            let (tell_connected, told_connected) = oneshot::channel();
            let (tell_done, told_done) = oneshot::channel();
            orders.push(order);
            connected.push(told_connected);
            done.push(told_done);
            let watch = Watch {
                schedule,
                awaited: std::mem::take(&mut awaited[index]),
                tally: Tally::new()?,
                done: Some(tell_done),
            };
            let playing = Playing {
                members: world.members.clone(),
                index,
                numbers: std::mem::take(&mut numbers[index]),
                watch,
            };
            let (hub, turn) = (hub.address.clone(), turn.clone());
            tasks.spawn(async move {
                let session = {
                    let _turn = turn.acquire().await?;
                    player.connect(&hub).await?
                };
                // Whoever gathers may have given up.
                let _ = tell_connected.send(session.traffic.clone());
                playing.play(session, inbox).await
            });
        }
        let mut crowd = Self {
            next_number: schedule.count,
            world,
            orders,
            traffic: Vec::new(),
            tasks,
            settled_after: Duration::ZERO,
        };
        crowd.traffic = crowd.all(connected, "connect").await?;
        crowd.all(done, "receive what the others listed").await?;
        crowd.settled_after = began.elapsed();
        Ok(crowd)
    }

    /// The shape.
    pub(super) fn world(&self) -> &LoadShape {
        &self.world
    }

    /// Bytes that all members have received on the wire.
    pub(super) fn wire_bytes(&self) -> u64 {
        self.traffic.iter().map(Traffic::read).sum()
    }

    /// Sends updates at this rate for so long, round robin over all slices, and waits until the last ones have
    /// arrived everywhere.
    pub(super) async fn wave(&mut self, rate: u32, lasting: Duration) -> anyhow::Result<WaveResult> {
        let count = (f64::from(rate) * lasting.as_secs_f64()).ceil() as u32;
        if count == 0 || self.next_number + count >= NUMBERS_MAX {
            bail!("a hub takes {NUMBERS_MAX} updates in a run, and a wave has at least one");
        }
        let first = self.next_number;
        self.next_number += count;
        let slices = self.world.slices.len() as u32;
        let at = |number: u32| self.world.slices[(number % slices) as usize];
        let sending: Vec<(SliceAt, u32)> = (first..first + count)
            .map(|number| (at(number), number))
            .collect();
        let last = sending[sending.len().saturating_sub(slices as usize)..].iter();
        let mut awaited = awaited(&self.world, last.map(|(at, number)| (at, *number)));
        let expected: usize = sending
            .iter()
            .map(|(at, _)| self.world.receivers(at).count())
            .sum();
        let before = self.wire_bytes();
        let start = Instant::now() + WAVE_LEAD;
        let schedule = Schedule {
            first,
            count,
            start,
            interval: Duration::from_secs(1) / rate,
        };
        let (mut done, mut watching) = (Vec::new(), Vec::new());
        for (order, awaited) in self.orders.iter().zip(&mut awaited) {
            let (tell_done, told_done) = oneshot::channel();
            let (tell_watching, told_watching) = oneshot::channel();
            done.push(told_done);
            watching.push(told_watching);
            let awaited = std::mem::take(awaited);
            let watch = Watch {
                schedule,
                awaited,
                tally: Tally::new()?,
                done: Some(tell_done),
            };
            let order_sent = order.send(Order::Watch(Box::new(watch), tell_watching)).await;
            order_sent.context("a member's task has ended")?;
        }
        self.all(watching, "look out for updates").await?;
        for (at, number) in sending {
            tokio::time::sleep_until(schedule.due(number).into()).await;
            let order = Order::Report {
                slice: at.slice,
                number,
            };
            if self.orders[at.member].send(order).await.is_err() {
                return Err(self.failure().await);
            }
        }
        let tallies = self.all(done, "receive the last updates").await?;
        let mut tally = Tally::new()?;
        for one in tallies {
            tally.add(one)?;
        }
        Ok(WaveResult {
            tally,
            sent: count,
            expected: expected as u64,
            wire_bytes: self.wire_bytes() - before,
            elapsed: start.elapsed(),
        })
    }

    /// Waits for a word of every member.
    async fn all<T>(&mut self, told: Vec<oneshot::Receiver<T>>, what: &str) -> anyhow::Result<Vec<T>> {
        let count = told.len();
        match timeout(ARRIVAL_WAIT, futures::future::try_join_all(told)).await {
            Ok(Ok(all)) => Ok(all),
            Ok(Err(_)) => Err(self.failure().await),
            Err(_) => {
                let seconds = ARRIVAL_WAIT.as_secs();
                bail!("after {seconds} s some of {count} members still did not {what}: the hub is overloaded")
            }
        }
    }

    /// Why a member's task ended.
    async fn failure(&mut self) -> anyhow::Error {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(panicked) => return panicked.into(),
            }
        }
        anyhow::anyhow!("all members have ended without a reason")
    }
}

/// For each member the numbers that it is to receive.
fn awaited<'a>(world: &LoadShape, sent: impl Iterator<Item = (&'a SliceAt, u32)>) -> Vec<HashSet<u32>> {
    let mut awaited = vec![HashSet::new(); world.members.len()];
    for (at, number) in sent {
        for member in world.receivers(at).collect::<BTreeSet<_>>() {
            awaited[member].insert(number);
        }
    }
    awaited
}

struct Playing {
    members: Arc<[super::load_shape::ShapeMember]>,
    index: usize,
    numbers: Vec<u32>,
    watch: Watch,
}

impl Playing {
    async fn play(mut self, mut session: Session, mut orders: mpsc::Receiver<Order>) -> anyhow::Result<()> {
        let members = self.members.clone();
        let member = &members[self.index];
        let slices = member
            .slices
            .iter()
            .zip(&self.numbers)
            .map(|(slice, &number)| slice.numbered(number));
        let facts = member.exports.iter().cloned().chain(slices).collect();
        self.watch.tell_if_done();
        let mut broken = None;
        let listing = session.list(facts, |heard| {
            if let Err(error) = self.watch.take(&heard) {
                broken.get_or_insert(error);
            }
        });
        listing.await?;
        if let Some(error) = broken {
            return Err(error);
        }
        loop {
            tokio::select! {
                heard = session.hear() => self.watch.take(&heard?)?,
                order = orders.recv() => match order {
                    None => return Ok(()),
                    Some(Order::Watch(watch, watching)) => {
                        self.watch = *watch;
                        self.watch.tell_if_done();
                        // Whoever waits may have given up.
                        let _ = watching.send(());
                    }
                    Some(Order::Report { slice, number }) => {
                        while session.room() == 0 {
                            self.watch.take(&session.hear().await?)?;
                        }
                        session.report(vec![member.slices[slice].numbered(number)]).await?;
                    }
                },
            }
        }
    }
}

/// An object that arrived, and when: a member has it once it is decoded, so the clock is read behind that.
fn decoded(bytes: &Bytes, clock: impl FnOnce() -> Instant) -> anyhow::Result<(v1::DesiredItem, Instant)> {
    let item = v1::DesiredItem::decode(bytes.clone()).context("the hub pushed what is no object")?;
    Ok((item, clock()))
}

impl Watch {
    fn take(&mut self, heard: &Heard) -> anyhow::Result<()> {
        let Heard::Desired(items) = heard else {
            return Ok(());
        };
        for bytes in items {
            let (item, now) = decoded(bytes, Instant::now)?;
            let Some(Item::ImportedSlice(slice)) = item.item else {
                continue;
            };
            let Some(number) = number_of(&slice).filter(|&number| self.schedule.covers(number)) else {
                continue;
            };
            let due = self.schedule.due(number);
            let since_start = due.saturating_duration_since(self.schedule.start);
            self.tally
                .note(since_start, now.saturating_duration_since(due), bytes.len());
            self.awaited.remove(&number);
        }
        self.tell_if_done();
        Ok(())
    }

    fn tell_if_done(&mut self) {
        if self.awaited.is_empty()
            && let Some(done) = self.done.take()
        {
            let empty = Tally {
                latency: Histogram::new_from(&self.tally.latency),
                received: 0,
                item_bytes: 0,
                arrivals: Vec::new(),
            };
            // Whoever waits may have given up.
            let _ = done.send(std::mem::replace(&mut self.tally, empty));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_when_the_object_is_decoded() {
        let at = Instant::now();
        let bytes = v1::DesiredItem::default().encode_to_vec().into();
        let (item, decoded_at) = decoded(&bytes, || at).expect("an object");
        assert_eq!((item, decoded_at), (v1::DesiredItem::default(), at));
        let broken = Bytes::from_static(b"\xff");
        let early = || panic!("the clock was read before anything was decoded");
        decoded(&broken, early).expect_err("no object");
    }
}
