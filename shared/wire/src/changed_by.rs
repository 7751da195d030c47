//! The last writer ↔ protobuf. An invalid one is dropped, and the fact beside it is taken without it.

use prost_types::Timestamp;
use proto::v1;

use super::common::timestamp;
use model::{ChangedBy, UnixMillis};

pub(super) fn to_proto(changed_by: &ChangedBy) -> v1::ChangedBy {
    v1::ChangedBy {
        manager: changed_by.manager().to_owned(),
        at: Some(timestamp(changed_by.at())),
    }
}

pub(super) fn from_proto(changed_by: Option<v1::ChangedBy>) -> Option<ChangedBy> {
    let v1::ChangedBy { manager, at } = changed_by?;
    let Timestamp { seconds, nanos: 0 } = at? else {
        return None;
    };
    let at = u64::try_from(seconds).ok()?.checked_mul(1_000)?;
    ChangedBy::new(&manager, UnixMillis(at))
}
