//! Owns: the number of connections to a hub's port, and their times: the bounds of [`super::accept`].
//! Never: counts anybody.

use std::time::Duration;

use crate::{identity::Role, process::HTTP_CONNECTIONS_MAX};

/// Sockets at the same time whose handshake is not finished. The last place is kept free: the oldest silent one goes.
pub const HANDSHAKES_MAX: usize = 512;
/// Established connections at the same time; one more is refused after its handshake.
pub const CONNECTIONS_MAX: usize = 16_384;
/// The part of them that only operators may have.
pub const OPERATORS_RESERVE: usize = 256;
/// Connections of one member at the same time. An agent has one; the rest is for one that comes back before its old
/// ones are found dead, and for people with its certificate.
pub const MEMBER_CONNECTIONS_MAX: usize = 8;
/// Connections of one operator at the same time: tools open one for each call.
pub const OPERATOR_CONNECTIONS_MAX: usize = 64;
/// Connections of one reader at the same time: fewer than an operator's, and never of the operators' reserve.
pub const READER_CONNECTIONS_MAX: usize = 16;
/// Time for which a socket may be silent before its handshake is finished.
pub const HANDSHAKE_SILENCE_MAX: Duration = Duration::from_secs(2);
/// Longest time for a handshake.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was silent for so long is dead or nearly: a probe went unanswered.
const CONNECTION_SILENCE_MAX: Duration = Duration::from_secs(30);
/// File descriptors that a hub uses for other things than its port: the log, the admin port, that of an admission webhook,
/// its own cluster's API.
const OTHER_DESCRIPTORS: usize = 256;
const _: () = assert!(3 * HTTP_CONNECTIONS_MAX <= OTHER_DESCRIPTORS);
/// With fewer descriptors handshakes get this part of them …
const HANDSHAKES_PART: usize = 8;
/// … and operators this part of the connections …
const OPERATORS_PART: usize = 4;
/// … but there are never fewer than this of either.
const LEAST: usize = 16;

/// Bounds of a port. The defaults are the product's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorBounds {
    /// Sockets whose handshake is not finished.
    pub handshakes: usize,
    /// Time for which such a socket may be silent …
    pub handshake_silence: Duration,
    /// … and how long its handshake may take.
    pub handshake: Duration,
    /// Established connections, of everybody …
    pub connections: usize,
    /// … and how many of those are kept for operators.
    pub reserve: usize,
    /// Connections of one member.
    pub of_member: usize,
    /// Connections of one operator.
    pub of_operator: usize,
    /// Connections of one reader.
    pub of_reader: usize,
    /// Time for which a connection with open calls may be silent before it goes for a newer one of its holder.
    pub connection_silence: Duration,
}

impl Default for DoorBounds {
    fn default() -> Self {
        Self {
            handshakes: HANDSHAKES_MAX,
            handshake_silence: HANDSHAKE_SILENCE_MAX,
            handshake: HANDSHAKE_TIMEOUT,
            connections: CONNECTIONS_MAX,
            reserve: OPERATORS_RESERVE,
            of_member: MEMBER_CONNECTIONS_MAX,
            of_operator: OPERATOR_CONNECTIONS_MAX,
            of_reader: READER_CONNECTIONS_MAX,
            connection_silence: CONNECTION_SILENCE_MAX,
        }
    }
}

impl DoorBounds {
    /// Bounds that so many file descriptors allow: each socket takes one, and one that is being closed has it a
    /// moment longer.
    pub fn within(descriptors: usize) -> Self {
        let handshakes = (descriptors / HANDSHAKES_PART / 2).clamp(LEAST, HANDSHAKES_MAX);
        let rest = descriptors.saturating_sub(OTHER_DESCRIPTORS + 2 * handshakes);
        let connections = rest.clamp(LEAST, CONNECTIONS_MAX);
        Self {
            handshakes,
            connections,
            reserve: (connections / OPERATORS_PART).min(OPERATORS_RESERVE),
            ..Self::default()
        }
    }

    /// Connections of one holder of such a certificate.
    pub(super) fn of(&self, role: &Role) -> usize {
        match role {
            Role::Operator(_) => self.of_operator,
            Role::Reader(_) => self.of_reader,
            Role::Cluster(_) | Role::Hub(_) => self.of_member,
        }
    }

    /// Connections of all of its kind and the others together.
    pub(super) fn of_all(&self, role: &Role) -> usize {
        match role {
            Role::Operator(_) => self.connections,
            Role::Cluster(_) | Role::Hub(_) | Role::Reader(_) => {
                self.connections.saturating_sub(self.reserve)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_there_are_descriptors() {
        assert_eq!(DoorBounds::within(1 << 20), DoorBounds::default());
        for descriptors in [1_024, 4_096, 16_384, 20_000] {
            let bounds = DoorBounds::within(descriptors);
            let used = bounds.connections + 2 * bounds.handshakes + OTHER_DESCRIPTORS;
            assert!(used <= descriptors, "{descriptors}: {bounds:?}");
            assert!(bounds.reserve >= LEAST && bounds.reserve < bounds.connections);
        }
        assert_eq!(DoorBounds::within(0).connections, LEAST);
    }

    #[test]
    fn a_reader_has_a_share_and_nothing_of_the_operators_reserve() {
        let (bounds, dashboard) = (DoorBounds::default(), Role::Reader("dashboard".into()));
        assert_eq!(bounds.of(&dashboard), READER_CONNECTIONS_MAX);
        assert_eq!(bounds.of_all(&dashboard), CONNECTIONS_MAX - OPERATORS_RESERVE);
        assert_eq!(bounds.of_all(&Role::Operator("alice".into())), CONNECTIONS_MAX);
    }
}
