//! Owns: how fast one member may talk, and how often it may come: more than a cluster has to say, and so little that the
//! others do not notice one that says as much as it can.
//! Never: refuses a message; unread ones wait in the member's own stream.

use std::collections::BTreeMap;

use model::{
    ClusterId,
    sync::{AgentMessage, Observation},
};

use super::unacknowledged::bytes_of;

/// Messages of one session a second.
const MESSAGES_PER_SECOND: u64 = 2_000;
/// Items of one session a second.
const ITEMS_PER_SECOND: u64 = 12_500;
/// Bytes of items of one session a second.
const BYTES_PER_SECOND: u64 = 16 * 1024 * 1024;
/// Deliveries a second that one session may cause: events, each counted once per session. So the more members must hear
/// of changes, the slower a member that repeats them is read: in a fleet of 250 it may make 2,000 changes a second; in
/// a fleet of eight only the other limits matter.
const DELIVERIES_PER_SECOND: u64 = 500_000;
/// So much may be sent at once.
const ADVANCE_NANOS: u64 = NANOS_PER_SECOND;
/// Sessions that a member may begin at once, and then one a second.
pub const SESSIONS_AT_ONCE: u64 = 20;
/// Members with a remembered time of connection; the oldest are forgotten.
const COMINGS_MAX: usize = 4_096;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Time at which everything read so far is paid for, without any advance, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Due(u64);

impl Due {
    /// Takes what costs so much.
    fn take(&mut self, cost: u64, now: u64) {
        let now = now.saturating_mul(NANOS_PER_MILLI);
        self.0 = self.0.max(now).saturating_add(cost);
    }

    /// The millisecond from which at most `advance` is unpaid.
    fn millis(self, advance: u64) -> u64 {
        self.0.saturating_sub(advance).div_ceil(NANOS_PER_MILLI)
    }
}

/// The reading rate of one session.
#[derive(Debug, Default)]
pub(super) struct Pace {
    messages: Due,
    items: Due,
    bytes: Due,
    deliveries: Due,
}

impl Pace {
    /// A message was read, at this time in monotonic milliseconds.
    pub(super) fn took(&mut self, message: &AgentMessage, now: u64) {
        let observations: &[Observation] = match message {
            AgentMessage::Observations(observations) => observations,
            _ => &[],
        };
        let bytes: usize = observations.iter().map(bytes_of).sum();
        for (due, amount, rate) in [
            (&mut self.messages, 1, MESSAGES_PER_SECOND),
            (&mut self.items, observations.len() as u64, ITEMS_PER_SECOND),
            (&mut self.bytes, bytes as u64, BYTES_PER_SECOND),
        ] {
            due.take(cost(amount, rate), now);
        }
    }

    /// So much came of what it said that the others have to hear, at this time in monotonic milliseconds.
    pub(super) fn gave(&mut self, deliveries: u64, now: u64) {
        self.deliveries.take(cost(deliveries, DELIVERIES_PER_SECOND), now);
    }

    /// Time from which more may be read, in monotonic milliseconds.
    pub(super) fn due(&self) -> u64 {
        let all = [self.messages, self.items, self.bytes, self.deliveries];
        all.into_iter()
            .map(|due| due.millis(ADVANCE_NANOS))
            .max()
            .unwrap_or_default()
    }
}

/// Nanoseconds that so much takes at this rate a second.
fn cost(amount: u64, rate: u64) -> u64 {
    amount.saturating_mul(NANOS_PER_SECOND) / rate
}

/// Numbers of recent connections by member.
#[derive(Debug, Default)]
pub struct Comings(BTreeMap<ClusterId, Due>);

impl Comings {
    /// A member wants to begin a session. An error: in so many milliseconds it may.
    pub fn comes(&mut self, cluster: &ClusterId, now: u64) -> Result<(), u64> {
        if self.0.len() >= COMINGS_MAX {
            self.0.retain(|_, due| due.millis(0) > now);
        }
        let due = self.0.entry(cluster.clone()).or_default();
        let advance = (SESSIONS_AT_ONCE - 1) * NANOS_PER_SECOND;
        let wait = due.millis(advance).saturating_sub(now);
        if wait > 0 {
            return Err(wait);
        }
        due.take(NANOS_PER_SECOND, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn heartbeats(pace: &mut Pace, count: u64, now: u64) {
        for _ in 0..count {
            pace.took(&AgentMessage::Heartbeat(None), now);
        }
    }

    #[test]
    fn a_second_of_everything_may_be_said_at_once_and_then_it_is_paced() {
        let mut pace = Pace::default();
        heartbeats(&mut pace, MESSAGES_PER_SECOND, NOW);
        assert!(pace.due() <= NOW, "it is said in advance");
        heartbeats(&mut pace, MESSAGES_PER_SECOND, NOW);
        assert_eq!(pace.due(), NOW + 1_000);
        let later = NOW + 10_000;
        heartbeats(&mut pace, MESSAGES_PER_SECOND + 2, later);
        assert_eq!(pace.due(), later + 1, "what was not said is not owed");
    }

    #[test]
    fn who_gives_the_others_too_much_to_hear_is_read_later() {
        let mut pace = Pace::default();
        pace.gave(DELIVERIES_PER_SECOND, NOW);
        assert!(pace.due() <= NOW, "it is given in advance");
        pace.gave(DELIVERIES_PER_SECOND / 2, NOW);
        assert_eq!(pace.due(), NOW + 500);
    }

    #[test]
    fn a_member_that_comes_again_and_again_has_to_wait_and_no_other() {
        let (east, west) = ("east", "west");
        let id = |name: &str| ClusterId::new(name).expect("valid");
        let mut comings = Comings::default();
        for _ in 0..SESSIONS_AT_ONCE {
            assert_eq!(comings.comes(&id(east), NOW), Ok(()));
        }
        assert_eq!(comings.comes(&id(east), NOW), Err(1_000));
        assert_eq!(comings.comes(&id(west), NOW), Ok(()));
        assert_eq!(comings.comes(&id(east), NOW + 1_000), Ok(()));
        assert_eq!(comings.comes(&id(east), NOW + 1_001), Err(999));
        assert_eq!(comings.comes(&id(east), NOW + 60_000), Ok(()));
    }

    #[test]
    fn who_came_long_ago_is_forgotten() {
        let mut comings = Comings::default();
        for index in 0..COMINGS_MAX {
            let id = ClusterId::new(&format!("member-{index}")).expect("valid");
            assert_eq!(comings.comes(&id, NOW), Ok(()));
        }
        let id = ClusterId::new("east").expect("valid");
        assert_eq!(comings.comes(&id, NOW + 60_000), Ok(()));
        assert_eq!(comings.0.len(), 1);
    }
}
