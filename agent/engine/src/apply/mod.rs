//! Apply: brings the cluster to what the hub desires, service by service, and touches only what is ours.
//! The decisions are `plan`'s; here are the queue, the requests, and what to do when they fail.
//!
//! * [`Driver`]: the loop; `work`: whose turn it is; [`Handle`]: how the link feeds it and the rest of the agent
//!   asks it;
//! * `perform`: the requests; `failure`: what an error means; `failing`: messages about failing writes;
//! * `refusals`: what the API server did not take in derived Services, and for how long;
//! * `seen`: which version of an object a write is made for;
//! * `adopt`: what came back from a backup becomes ours again;
//! * `contention`: what somebody else changes back again and again;
//! * `patience`: what is not written yet, because the hub is about to answer;
//! * `withdrawals`: what stays for now although the hub takes it away, with too much else;
//! * `expire`: what goes because the Lease of its source expired;
//! * `served_fields`: which fields the cluster's ServiceImport has; `definition`: when to look again.

mod adopt;
mod contention;
mod driver;
mod event;
mod expire;
mod failing;
mod failure;
mod handle;
mod lock;
#[cfg(any(test, feature = "simulated"))]
mod manual_driver;
mod metrics;
mod patience;
mod perform;
mod refusals;
mod seen;
mod served_fields;
mod step;
mod view;
mod withdrawals;
mod work;

pub use adopt::{Orphan, adopt};
pub use contention::Contention;
pub use driver::{CONCURRENT_SERVICES_MAX, Definitions, Driver};
pub use expire::Expiring;
pub use handle::{Applied, DriverConfig, Handle};
#[cfg(any(test, feature = "simulated"))]
pub use manual_driver::ManualDriver;
pub use metrics::ApplyMetrics;
pub use perform::ONLY_IF_ABSENT;
