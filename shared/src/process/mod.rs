//! The common surroundings of every process: logs, metrics, readiness, the admin port, shutdown and supervision.
//!
//! A `main` reads: `install_crypto_provider`, parse flags, [`LogArgs::init`], build the parts with a
//! [`Readiness`] handle each, [`Supervisor::spawn`] them, [`Supervisor::run`], all
//! within [`block_on`], and [`exit_code`].
//! Nothing here knows what the process is for.

mod admin;
mod http;
mod log;
mod metrics;
mod place;
mod ready;
mod runtime;
mod shutdown;
mod supervise;
mod usage;
mod visitors;

pub use crate::api_client::{FileError, Foreign, io_words, reason};
pub use admin::{AdminServer, router as admin_router};
pub use http::serve_http;
pub use log::{LogArgs, LogFormat, LogInitError};
pub use metrics::{Metrics, encode as encode_metrics};
pub use pace::{Backoff, Monotonic, monotonic, random, seed_thread};
pub use place::{host_name, own_namespace};
pub use ready::{Readiness, ReadyHandle};
pub use runtime::{Threads, block_on};
pub use shutdown::{Shutdown, on_signals};
pub use supervise::{DRAIN_TIMEOUT, Supervisor, exit_code};
pub use usage::{PROCESS_METRICS, ProcessMetric};
pub use visitors::HTTP_CONNECTIONS_MAX;
