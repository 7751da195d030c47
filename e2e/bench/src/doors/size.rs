//! Owns: how much of everything is played, and whether this process may open so many sockets.
//! Never: plays.

use std::{fmt, time::Duration};

use anyhow::ensure;

/// Descriptors of this process for other things than the sockets of an attack.
const OTHER_DESCRIPTORS: usize = 512;

/// The amounts to play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Silent sockets.
    pub(super) sockets: usize,
    /// Sockets that say a byte each now and then.
    pub(super) trickles: usize,
    /// Connections of one member.
    pub(super) connections: usize,
    /// Streams of one member.
    pub(super) streams: usize,
    /// Messages that begin and never end.
    pub(super) messages: usize,
    /// Frames of each flood.
    pub(super) frames: usize,
    /// File descriptors of the hub that a crowd comes to.
    pub(super) hub_files: usize,
    /// Duration of each attack.
    pub(super) lasting: Duration,
    /// Time for an operator's call, connection and handshake included.
    pub(super) answer: Duration,
}

/// Three times as many as there are places for handshakes.
const TRICKLES: usize = 1_500;
/// The requirement on a hub.
const ANSWER_MAX: Duration = Duration::from_secs(3);

impl Size {
    /// The requirement on a hub.
    pub(crate) const FULL: Self = Self {
        sockets: 10_000,
        trickles: TRICKLES,
        connections: 1_000,
        streams: 20_000,
        messages: 1_000,
        frames: 20_000,
        hub_files: 1_024,
        lasting: Duration::from_secs(15),
        answer: ANSWER_MAX,
    };
    /// Enough to see that it works.
    pub(crate) const SHORT: Self = Self {
        sockets: 3_000,
        trickles: TRICKLES,
        connections: 200,
        streams: 4_000,
        messages: 1_000,
        frames: 4_000,
        hub_files: 1_024,
        lasting: Duration::from_secs(5),
        answer: ANSWER_MAX,
    };
    /// Amounts that a test has time for; more silent sockets than a hub has places for them. No machine is too slow for
    /// it: a call may take far longer than the attack.
    pub(super) const REHEARSAL: Self = Self {
        sockets: 1_500,
        trickles: TRICKLES,
        connections: 40,
        streams: 400,
        messages: 100,
        frames: 400,
        hub_files: 512,
        lasting: Duration::from_secs(3),
        answer: Duration::from_secs(30),
    };

    /// Raises the limit of open files, and refuses what would not fit.
    pub(super) fn ensure_descriptors(self) -> anyhow::Result<()> {
        let (allowed, needed) = (hub::descriptors::raise(), self.sockets + OTHER_DESCRIPTORS);
        ensure!(
            allowed >= needed,
            "{} silent sockets need {needed} open files here and as many in the hub, and {allowed} are allowed: raise \
             the hard limit (ulimit -Hn), or play less with --short",
            self.sockets
        );
        Ok(())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sockets,
            connections,
            streams,
            lasting,
            ..
        } = self;
        let seconds = lasting.as_secs();
        write!(
            f,
            "{sockets} silent sockets, {connections} connections and {streams} streams of one member, {seconds} s each"
        )
    }
}
