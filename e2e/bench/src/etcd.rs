//! Owns: the peer: one etcd on the same cores and the same disk, synced as it is by default; puts of the same size with
//! many in flight beside ingest, and puts at a rate with watchers beside churn.
//! Never: is a client for anything else: it knows two requests.

use std::{
    net::TcpListener,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use futures::{StreamExt, stream};
use hdrhistogram::Histogram;
use tokio::{process::Child, sync::oneshot, task::JoinSet};
use tonic::{
    Streaming,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};

use super::{cores::UsedCores, hub::Setup, report::latencies};
use cluster::real::{build, module::Module};

/// Connections, and puts in flight on each: about as many as etcd's own benchmark uses.
const CONNECTIONS: usize = 8;
const IN_FLIGHT: usize = 128;
/// Keys of a transaction, as many as etcd takes by default, and transactions in flight on each connection: as many
/// keys together as ingest has facts.
const TRANSACTION_PUTS: u64 = 128;
const TRANSACTIONS_IN_FLIGHT: usize = 8;
/// Keys that are put in turn, as many as ingest has slices.
const KEYS: u64 = 8_000;
/// An etcd that does not answer after this long never will.
const READY_WAIT: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(50);

/// Prefix of the keys, and the first key behind them.
const PREFIX: &str = "/registry/endpointslices/team-0001/cart-";
const PREFIX_END: &str = "/registry/endpointslices/team-0001/cart.";
/// From the decision to churn until the first put is due: every watcher knows the time by then.
const CHURN_LEAD: Duration = Duration::from_millis(200);
/// Longest wait for the last event.
const WATCHED_WAIT: Duration = Duration::from_secs(60);

/// Tells our own etcd to end when its standard input closes, that is, when we are gone.
const EXIT_WITH_STDIN: &str = "CONTROL_PLANE_EXIT_WITH_STDIN";

/// etcd's PutRequest, as far as we use it.
#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Its answer; nothing of it is read.
#[derive(Clone, PartialEq, prost::Message)]
struct PutResponse {}

/// etcd's TxnRequest with nothing but puts.
#[derive(Clone, PartialEq, prost::Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "2")]
    success: Vec<PutOperation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutOperation {
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
}

/// etcd's WatchRequest with the only kind of request that we use.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreate>,
}

/// Keys from `key` until before `end`.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    end: Vec<u8>,
}

/// The parts of a watch's message that are read.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchResponse {
    #[prost(bool, tag = "3")]
    created: bool,
    #[prost(message, repeated, tag = "11")]
    events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchEvent {
    #[prost(message, optional, tag = "2")]
    pair: Option<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

/// Puts at a rate, each seen by so many watchers: microseconds from a put's due time until a watcher has it.
pub(super) async fn churn(setup: &Setup, churn: Churn) -> anyhow::Result<Histogram<u64>> {
    let (mut etcd, url) = start(setup, &format!("churn-{}-{}", churn.keys, churn.rate))?;
    let count = churn.rate * u32::try_from(churn.lasting.as_secs().max(1))?;
    let putting = connect(&mut etcd, &url).await?;
    let mut watching = JoinSet::new();
    let mut starts = Vec::new();
    for _ in 0..churn.watchers {
        let channel = connect(&mut etcd, &url).await?;
        let mut client = Grpc::new(channel);
        client.ready().await?;
        let codec = tonic_prost::ProstCodec::<WatchRequest, WatchResponse>::default();
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let create = WatchRequest {
            create: Some(WatchCreate {
                key: PREFIX.into(),
                end: PREFIX_END.into(),
            }),
        };
        // The stream of requests stays open: etcd ends a watch with it.
        let requests = stream::once(async { create }).chain(stream::pending());
        let answer = client
            .streaming(tonic::Request::new(requests), path, codec)
            .await?;
        let mut events = answer.into_inner();
        let created = events.message().await?.context("etcd ended the watch")?;
        anyhow::ensure!(created.created, "etcd did not create the watch");
        let (start, started) = oneshot::channel();
        starts.push(start);
        watching.spawn(watch(events, started, churn.interval(), count));
    }
    let start = Instant::now() + CHURN_LEAD;
    for told in starts {
        // A watcher that ended says why below.
        let _ = told.send(start);
    }
    let mut puts = JoinSet::new();
    for number in 0..count {
        tokio::time::sleep_until((start + churn.interval() * number).into()).await;
        let mut value = vec![0x61; churn.bytes];
        value[..4].copy_from_slice(&number.to_be_bytes());
        let key = format!("{PREFIX}{:05}", number as usize % churn.keys).into_bytes();
        let mut client = Grpc::new(putting.clone());
        puts.spawn(async move { put(&mut client, PutRequest { key, value }).await });
        while let Some(done) = puts.try_join_next() {
            done??;
        }
    }
    while let Some(done) = puts.join_next().await {
        done??;
    }
    let mut latency = latencies()?;
    while let Some(seen) = tokio::time::timeout(WATCHED_WAIT, watching.join_next()).await? {
        latency.add(seen??)?;
    }
    etcd.kill().await.context("etcd cannot be ended")?;
    Ok(latency)
}

/// A churn of shape churn-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct Churn {
    /// Puts a second.
    pub(super) rate: u32,
    /// Duration.
    pub(super) lasting: Duration,
    /// Bytes of a value, at least four.
    pub(super) bytes: usize,
    /// Keys, put in turn.
    pub(super) keys: usize,
    /// Watchers, each with a connection of its own.
    pub(super) watchers: usize,
}

impl Churn {
    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.rate
    }
}

async fn watch(
    mut events: Streaming<WatchResponse>,
    started: oneshot::Receiver<Instant>,
    interval: Duration,
    count: u32,
) -> anyhow::Result<Histogram<u64>> {
    let start = started.await.context("the puts never began")?;
    let (mut latency, mut seen) = (latencies()?, 0);
    while seen < count {
        let heard = events.message().await?.context("etcd ended the watch")?;
        let now = Instant::now();
        for pair in heard.events.into_iter().filter_map(|event| event.pair) {
            let number = pair
                .value
                .first_chunk()
                .context("etcd tells of a value that is not ours")?;
            let due = start + interval * u32::from_be_bytes(*number);
            latency.saturating_record(now.saturating_duration_since(due).as_micros() as u64);
            seen += 1;
        }
    }
    Ok(latency)
}

/// The way in which keys are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Puts {
    /// One key a request.
    Single,
    /// As many keys a transaction as etcd takes by default.
    Transactions,
}

impl Puts {
    /// As the directory of its data is called.
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Transactions => "transactions",
        }
    }

    /// Keys of one request, and requests in flight on each connection.
    fn sizes(self) -> (u64, usize) {
        match self {
            Self::Single => (1, IN_FLIGHT),
            Self::Transactions => (TRANSACTION_PUTS, TRANSACTIONS_IN_FLIGHT),
        }
    }
}

/// Puts a second over the given time.
pub(super) async fn puts(setup: &Setup, lasting: Duration, bytes: usize, how: Puts) -> anyhow::Result<f64> {
    let (mut etcd, url) = start(setup, &format!("{bytes}-{}", how.name()))?;
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(connect(&mut etcd, &url).await?);
    }
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    let (_, in_flight) = how.sizes();
    for channel in channels.iter().cycle().take(CONNECTIONS * in_flight) {
        tasks.spawn(put_until(
            channel.clone(),
            began + lasting,
            bytes,
            how,
            next.clone(),
        ));
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done??;
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    etcd.kill().await.context("etcd cannot be ended")?;
    Ok(rate)
}

async fn put_until(
    channel: Channel,
    until: Instant,
    bytes: usize,
    how: Puts,
    next: Arc<AtomicU64>,
) -> anyhow::Result<u64> {
    let mut client = Grpc::new(channel);
    let mut count = 0;
    let (keys, _) = how.sizes();
    let request = |number: u64| {
        let mut value = vec![0x61; bytes];
        let written = number.to_be_bytes().len().min(bytes);
        value[..written].copy_from_slice(&number.to_be_bytes()[..written]);
        let key = format!("{PREFIX}{:05}", number % KEYS).into_bytes();
        PutRequest { key, value }
    };
    while Instant::now() < until {
        let first = next.fetch_add(keys, Ordering::Relaxed);
        match how {
            Puts::Single => put(&mut client, request(first)).await?,
            Puts::Transactions => {
                let puts = (first..first + keys).map(|number| PutOperation {
                    put: Some(request(number)),
                });
                transact(
                    &mut client,
                    TxnRequest {
                        success: puts.collect(),
                    },
                )
                .await?;
            }
        }
        count += keys;
    }
    Ok(count)
}

async fn transact(client: &mut Grpc<Channel>, request: TxnRequest) -> anyhow::Result<()> {
    client.ready().await?;
    let codec = tonic_prost::ProstCodec::<TxnRequest, PutResponse>::default();
    let path = PathAndQuery::from_static("/etcdserverpb.KV/Txn");
    client.unary(tonic::Request::new(request), path, codec).await?;
    Ok(())
}

async fn put(client: &mut Grpc<Channel>, request: PutRequest) -> anyhow::Result<()> {
    client.ready().await?;
    let codec = tonic_prost::ProstCodec::<PutRequest, PutResponse>::default();
    let path = PathAndQuery::from_static("/etcdserverpb.KV/Put");
    client.unary(tonic::Request::new(request), path, codec).await?;
    Ok(())
}

fn start(setup: &Setup, name: &str) -> anyhow::Result<(Child, String)> {
    let (program, component) = match build::assets() {
        Some(directory) => (directory.join("etcd"), None),
        None => (Module::of_this_workspace().built()?, Some("etcd")),
    };
    let data = setup.data(&format!("etcd-{name}"))?;
    let log = std::fs::File::create(data.with_extension("log")).context("cannot write etcd's log")?;
    let (client, peer) = (free_url()?, free_url()?);
    let mut command = setup
        .cores
        .under_test(&[program.clone().into()], UsedCores::OwnCores);
    command.args(component);
    command
        .arg("--name=peer")
        .arg(format!("--data-dir={}", data.display()))
        .arg("--log-level=warn");
    for flag in ["listen-client-urls", "advertise-client-urls"] {
        command.arg(format!("--{flag}={client}"));
    }
    for flag in ["listen-peer-urls", "initial-advertise-peer-urls"] {
        command.arg(format!("--{flag}={peer}"));
    }
    command.arg(format!("--initial-cluster=peer={peer}"));
    command
        .env(EXIT_WITH_STDIN, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok((child, client))
}

/// A port that was free just now. Should another take it first, etcd ends and we say so.
fn free_url() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(format!("http://{}", listener.local_addr()?))
}

async fn connect(etcd: &mut Child, url: &str) -> anyhow::Result<Channel> {
    let deadline = Instant::now() + READY_WAIT;
    let mut poll = tokio::time::interval(READY_POLL);
    loop {
        poll.tick().await;
        if let Some(status) = etcd.try_wait()? {
            bail!("etcd ended with {status}; its log lies beside its data (--keep)");
        }
        let endpoint = Endpoint::from_shared(url.to_owned())?.tcp_nodelay(true);
        if let Ok(channel) = endpoint.connect().await {
            let first = PutRequest {
                key: b"ready".to_vec(),
                value: Vec::new(),
            };
            if put(&mut Grpc::new(channel.clone()), first).await.is_ok() {
                return Ok(channel);
            }
        }
        if Instant::now() >= deadline {
            bail!("etcd does not answer after {} s", READY_WAIT.as_secs());
        }
    }
}
