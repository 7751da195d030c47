//! Owns: the peer of ingest: one etcd on the same cores and the same disk, synced as it is by default, and puts
//! of the same size with many in flight.
//! Never: is a client for anything else: it knows one request.

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
use tokio::{process::Child, task::JoinSet};
use tonic::{
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};

use super::{cores::Place, hub::Setup};
use crate::real::{build, module::Module};

/// Connections, and puts in flight on each: about as many as etcd's own benchmark uses.
const CONNECTIONS: usize = 8;
const IN_FLIGHT: usize = 128;
/// Keys that are put in turn, as many as ingest has slices.
const KEYS: u64 = 8_000;
/// An etcd that does not answer after this long never will.
const READY_WAIT: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(50);

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

/// Puts a second over the given time.
pub(super) async fn puts(setup: &Setup, lasting: Duration, bytes: usize) -> anyhow::Result<f64> {
    let (mut etcd, url) = start(setup, bytes)?;
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(connect(&mut etcd, &url).await?);
    }
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for channel in channels.iter().cycle().take(CONNECTIONS * IN_FLIGHT) {
        tasks.spawn(put_until(channel.clone(), began + lasting, bytes, next.clone()));
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
    next: Arc<AtomicU64>,
) -> anyhow::Result<u64> {
    let mut client = Grpc::new(channel);
    let mut count = 0;
    while Instant::now() < until {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let mut value = vec![0x61; bytes];
        let written = number.to_be_bytes().len().min(bytes);
        value[..written].copy_from_slice(&number.to_be_bytes()[..written]);
        let key = format!("/registry/endpointslices/team-0001/cart-{:05}", number % KEYS).into_bytes();
        put(&mut client, PutRequest { key, value }).await?;
        count += 1;
    }
    Ok(count)
}

async fn put(client: &mut Grpc<Channel>, request: PutRequest) -> anyhow::Result<()> {
    client.ready().await?;
    let codec = tonic_prost::ProstCodec::<PutRequest, PutResponse>::default();
    let path = PathAndQuery::from_static("/etcdserverpb.KV/Put");
    client.unary(tonic::Request::new(request), path, codec).await?;
    Ok(())
}

fn start(setup: &Setup, bytes: usize) -> anyhow::Result<(Child, String)> {
    let (program, component) = match build::assets() {
        Some(directory) => (directory.join("etcd"), None),
        None => (Module::of_this_workspace().built()?, Some("etcd")),
    };
    let data = setup.data(&format!("etcd-{bytes}"))?;
    let log = std::fs::File::create(data.with_extension("log")).context("cannot write etcd's log")?;
    let (client, peer) = (free_url()?, free_url()?);
    let mut command = setup.cores.under_test(&program, Place::OwnCores);
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
