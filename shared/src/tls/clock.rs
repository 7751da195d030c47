//! The time that certificates are judged by. It reads the system's clock and keeps nothing.

use crate::model::UnixMillis;

/// Now.
pub(super) fn now() -> UnixMillis {
    UnixMillis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0))
}
