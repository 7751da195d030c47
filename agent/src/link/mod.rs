//! The link to the hub: the dialling and streaming around the session machine, which agent-core has.

mod certificates;
mod complaints;
mod dial;
mod waits;

pub use agent_core::link as machine;
pub use certificates::CertificateWish;
pub use complaints::Complaints;
pub use dial::{Link, LinkMetrics};
pub use waits::Waits;
