//! A member's departure ↔ its part of a row.

use model::UnixMillis;
use proto::v1;

use fold::Leaving;

/// As a row has it.
pub(super) fn to_proto(leaving: &Leaving) -> v1::SnapshotLeaving {
    v1::SnapshotLeaving {
        operator: leaving.operator.to_string(),
        since_unix_millis: leaving.since.0,
        until_unix_millis: leaving.until.0,
        evicts: leaving.evicts,
    }
}

/// As it was in a row.
pub(super) fn from_proto(leaving: v1::SnapshotLeaving) -> Leaving {
    Leaving {
        operator: leaving.operator.into(),
        since: UnixMillis(leaving.since_unix_millis),
        until: UnixMillis(leaving.until_unix_millis),
        evicts: leaving.evicts,
    }
}
