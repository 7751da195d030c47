//! `tributary-agent probe`: resolves names and opens connections from inside a pod, for `tributary verify`.
//!
//! The request is one argument, and the report is the termination message of the container: the API server has it in the
//! status of the pod, so that nobody needs the right to read logs.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io::Write,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use shared::process::{Threads, block_on};
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout},
};

/// The file of a container's termination message. Kubernetes keeps at most 4,096 bytes of it.
const TERMINATION_MESSAGE: &str = "/dev/termination-log";
/// Most names of one request. With the bounds below, a report fits into a termination message.
pub const NAMES_MAX: usize = 6;
/// Most connections of one request.
pub const DIALS_MAX: usize = 32;
/// Most addresses that are reported of a name.
const ADDRESSES_MAX: usize = 6;
/// Longest reason that is reported, in characters.
const REASON_CHARS_MAX: usize = 60;
/// Attempts at a connection. One failure is a failure; the fastest connection gives the latency.
const CONNECTIONS: u32 = 3;
/// The longest that a name is waited for: resolvers ask twice, for 5 s each.
const NAME_WAIT: Duration = Duration::from_secs(12);
/// The reason for a connection that nothing answered. `verify` advises by it.
pub const TIMED_OUT: &str = "no answer";

/// The work of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Names to resolve.
    pub names: Vec<String>,
    /// Addresses to open TCP connections to.
    pub dials: Vec<SocketAddr>,
    /// The longest that one connection is waited for.
    pub wait_millis: u64,
}

/// The results, in the order of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The addresses of each name, or the reason why there is none.
    pub names: Vec<Result<Vec<IpAddr>, String>>,
    /// The microseconds of the fastest connection to each address, or the reason why one was not opened.
    pub dials: Vec<Result<u64, String>>,
}

/// The request.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Names and addresses, as JSON
    #[arg(long, env = "TRIBUTARY_PROBE_REQUEST", value_name = "JSON", value_parser = request)]
    request: Request,
}

fn request(text: &str) -> Result<Request, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Runs the command: prints the report, and leaves it as the termination message if this is a container.
pub(crate) fn run(args: ProbeArgs) -> anyhow::Result<()> {
    block_on(Threads::One, async move {
        let report = serde_json::to_string(&carried_out(&args.request).await)?;
        println!("{report}");
        match OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(TERMINATION_MESSAGE)
        {
            Ok(mut file) => file
                .write_all(report.as_bytes())
                .with_context(|| format!("cannot write {TERMINATION_MESSAGE}")),
            // This is no container: the report was printed.
            Err(_) => Ok(()),
        }
    })
}

/// Carries out a request, everything at once.
async fn carried_out(request: &Request) -> Report {
    let wait = Duration::from_millis(request.wait_millis);
    let names = join_all(request.names.iter().take(NAMES_MAX).map(|name| resolved(name)));
    let dials = join_all(request.dials.iter().take(DIALS_MAX).map(|at| opened(*at, wait)));
    let (names, dials) = futures::join!(names, dials);
    Report { names, dials }
}

async fn resolved(name: &str) -> Result<Vec<IpAddr>, String> {
    let found = timeout(NAME_WAIT, lookup_host((name, 0))).await;
    let found = found.map_err(|_| TIMED_OUT.to_owned())?;
    let found = found.map_err(|error| short(&error.to_string()))?;
    let addresses: BTreeSet<IpAddr> = found.map(|at| at.ip().to_canonical()).collect();
    Ok(addresses.into_iter().take(ADDRESSES_MAX).collect())
}

async fn opened(at: SocketAddr, wait: Duration) -> Result<u64, String> {
    let mut fastest = u64::MAX;
    for _ in 0..CONNECTIONS {
        let began = Instant::now();
        match timeout(wait, TcpStream::connect(at)).await {
            Ok(Ok(_)) => {
                let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                fastest = fastest.min(took);
            }
            Ok(Err(error)) => return Err(short(&error.to_string())),
            Err(_) => return Err(TIMED_OUT.to_owned()),
        }
    }
    Ok(fastest)
}

/// The beginning of a reason, without the number of the system.
fn short(reason: &str) -> String {
    let reason = reason.split(" (os error").next().unwrap_or(reason);
    let reason = reason.rsplit(": ").next().unwrap_or(reason);
    reason.chars().take(REASON_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
