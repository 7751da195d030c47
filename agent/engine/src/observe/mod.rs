//! From what the cluster shows to facts: the join of ServiceExport, Service, EndpointSlices and Namespace.
//!
//! * [`join`]: one service's facts from its objects, pure.
//! * `observer`: looks at services whose objects changed and states their facts to the outbox.
//!
//! Nothing is stated before every watch that it depends on has finished its first listing.

pub mod join;
mod observer;

pub use crate::outbox::removal;
pub use observer::Observer;
