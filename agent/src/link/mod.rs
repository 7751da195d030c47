//! The link to the hub: the session machine, and the dialling and streaming around it.

mod certificates;
mod complaints;
mod dial;
pub mod machine;
mod waits;

pub use certificates::CertificateWish;
pub use complaints::Complaints;
pub use dial::{Link, LinkMetrics};
pub use waits::Waits;
