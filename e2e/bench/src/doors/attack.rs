//! Owns: the attacks by name, and who plays which.
//! Never: judges what came of one.

use std::{fmt, time::Duration};

use shared::tls::{DoorBounds, MEMBER_CONNECTIONS_MAX};

use super::{
    attacker::Attacker,
    floods::{self, Flood},
    played::Played,
    size::Size,
    sockets, streams, trickles,
};

/// A socket that trickles never finishes, and is closed after ten seconds: a lockout must show in less.
const TRICKLED_FOR: Duration = Duration::from_secs(8);

/// The kinds of attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// Sockets that say nothing, by somebody without a certificate.
    SilentSockets,
    /// Sockets that say a true TLS hello, a byte at a time, by somebody without a certificate.
    TrickledHellos,
    /// Connections of one member, a call over each.
    Connections,
    /// Members that take all places there are together, of a hub that has few file descriptors.
    Crowd,
    /// Streams of one member that never say Hello.
    Streams,
    /// Streams of one member that begin a message of 4 MiB and never end it.
    HalfOpen,
    /// Connections that say the same thing as fast as they can.
    Flood(Flood),
}

impl Attack {
    /// The attacks on one hub, in the order of the table; the crowd has a hub of its own.
    pub(super) const ALL: [Self; 13] = [
        Self::SilentSockets,
        Self::TrickledHellos,
        Self::Connections,
        Self::Streams,
        Self::HalfOpen,
        Self::Flood(Flood::Resets),
        Self::Flood(Flood::Headers),
        Self::Flood(Flood::Continuations),
        Self::Flood(Flood::Settings),
        Self::Flood(Flood::Pings),
        Self::Flood(Flood::Pongs),
        Self::Flood(Flood::Windows),
        Self::Flood(Flood::Priorities),
    ];

    /// Members that play it beside the first: with as many connections each as one may have they would take all there
    /// are, and a quarter more.
    pub(super) fn crowd(self, size: Size) -> usize {
        match self {
            Self::Crowd => crowded(size).connections * 5 / 4 / MEMBER_CONNECTIONS_MAX,
            _ => 0,
        }
    }

    /// Less than this is no attack.
    pub(super) fn least(self, size: Size) -> u64 {
        let least = match self {
            Self::SilentSockets => size.sockets,
            Self::TrickledHellos => size.trickles,
            Self::Connections => size.connections,
            // Every place that is not kept for operators.
            Self::Crowd => crowded(size).connections - crowded(size).reserve,
            Self::Streams => size.streams,
            Self::HalfOpen => size.messages,
            Self::Flood(_) => size.frames,
        };
        least as u64
    }

    /// Duration of the attack.
    pub(super) fn lasting(self, size: Size) -> Duration {
        match self {
            Self::TrickledHellos => TRICKLED_FOR,
            _ => size.lasting,
        }
    }

    /// Plays it until its time is over; says what was done.
    pub(super) async fn play(self, attacker: Attacker) -> anyhow::Result<Played> {
        match self {
            Self::SilentSockets => sockets::silent(attacker).await,
            Self::TrickledHellos => trickles::hellos(attacker).await,
            Self::Connections => sockets::connections(attacker).await,
            Self::Crowd => sockets::crowd(attacker).await,
            Self::Streams => streams::without_hello(attacker).await,
            Self::HalfOpen => streams::half_open(attacker).await,
            Self::Flood(flood) => floods::play(attacker, flood).await,
        }
    }
}

/// The bounds of the hub that a crowd comes to.
fn crowded(size: Size) -> DoorBounds {
    DoorBounds::within(size.hub_files)
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SilentSockets => f.write_str("silent sockets"),
            Self::TrickledHellos => f.write_str("trickled hellos"),
            Self::Connections => f.write_str("connections"),
            Self::Crowd => f.write_str("crowd of members"),
            Self::Streams => f.write_str("streams"),
            Self::HalfOpen => f.write_str("half-open streams"),
            Self::Flood(flood) => write!(f, "{flood}"),
        }
    }
}
