//! etcd as the engine of a replicated log: transactions that compare the head, over one connection for each endpoint.
//!
//! * `requests`: transactions, as values. `answers`: what they answered, and what each failure means.
//! * `client`: sends them. A request is tried once, on one endpoint; the next one goes to the next endpoint if that failed.
//!
//! It uses no watch, and no lease decides who writes. One lease lets announcements end.

mod answers;
mod client;
mod requests;
#[cfg(test)]
mod tests;

pub use client::{EtcdEngine, EtcdSettings, InvalidSettings, Tls};

/// Messages and clients of etcd, compiled from `proto/etcd.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub(crate) mod rpc {
    tonic::include_proto!("etcdserverpb");
}
