//! The hub's own edge to protobuf. What members and hub say to each other is converted in `shared::wire`.
//!
//! * [`snapshot`]: rows of a snapshot, as the log stores them.

pub mod snapshot;

use proto::v1::sync_server::SERVICE_NAME;

/// The only method whose streams introduce themselves, after its service's name.
const STREAM: &str = "/Stream";

/// Whether the calls of this path begin with Hello.
pub(crate) fn introduces_itself(path: &str) -> bool {
    let service = path.strip_prefix('/');
    service.and_then(|path| path.strip_prefix(SERVICE_NAME)) == Some(STREAM)
}
