//! The domain's vocabulary: identities, log positions, facts, derived objects and limits.
//! Pure values only; it never does IO, reads a clock, or knows protobuf, Kubernetes or serde.

pub mod derived_name;
pub mod name;
pub mod position;

pub use name::{ClusterId, Clusterset, InvalidName, ServiceKey};
pub use position::{ChainHash, Cursor, Epoch, Revision, UnixMillis};
