//! The last writer of an object, as its cluster's API server noted it: the parts that may be carried. It rides beside a
//! fact and is no part of it: no decision ever depends on it.

use std::sync::Arc;

use super::{UnixMillis, position::CREATED_AT_SECONDS_MAX};

/// Longest name of a field manager that is carried, in bytes: the API server's own bound, in characters.
pub const MANAGER_BYTES_MAX: usize = 128;

/// The last writer of the object that a fact was read from, and the time: reported by the member, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBy {
    manager: Arc<str>,
    at: UnixMillis,
}

impl ChangedBy {
    /// `None` for a name that is empty, longer than [`MANAGER_BYTES_MAX`] or has anything but printable ASCII, because
    /// it is shown on terminals; and for a time that is not in whole seconds of the years 1970 to 9999.
    pub fn new(manager: &str, at: UnixMillis) -> Option<Self> {
        let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let named =
            !manager.is_empty() && manager.len() <= MANAGER_BYTES_MAX && manager.bytes().all(printable);
        let timed = at.0.is_multiple_of(1_000) && at.0 / 1_000 <= CREATED_AT_SECONDS_MAX as u64;
        (named && timed).then(|| Self {
            manager: manager.into(),
            at,
        })
    }

    /// The field manager, as metadata.managedFields names it (Kubernetes, server-side apply).
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Time by the clock of the member's API server.
    pub fn at(&self) -> UnixMillis {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_or_a_log_would_swell_with_is_not_carried() {
        let carried = |manager: &str, at: u64| ChangedBy::new(manager, UnixMillis(at)).is_some();
        let longest = "m".repeat(MANAGER_BYTES_MAX);
        for manager in ["kubectl-edit", "Mozilla 5", "kube-controller-manager", &longest] {
            assert!(carried(manager, 1_000), "{manager}");
        }
        let too_long = "m".repeat(MANAGER_BYTES_MAX + 1);
        for manager in ["", "a\nb", "\u{1b}[2J", "a\u{7f}", "\u{202e}live", "é", &too_long] {
            assert!(!carried(manager, 1_000), "{manager}");
        }
        let last = CREATED_AT_SECONDS_MAX as u64 * 1_000;
        for (at, taken) in [(0, true), (last, true), (999, false), (last + 1_000, false)] {
            assert_eq!(carried("kubectl", at), taken, "{at}");
        }
    }
}
