//! The bytes that a member was not acknowledged yet: how much of it, and of all members together, the hub holds in
//! memory at once. It only counts; the reader of the stream stops while it is full, and continues when the writer has
//! caught up.

use std::collections::VecDeque;

use prometheus_client::metrics::gauge::Gauge;

use model::sync::{Observation, ObservedItem};

use super::machine::Effect;
use crate::writer::taken_back;

/// Bytes of facts of one session that may wait to be durable before reading stops. Large facts reach it long before the
/// number of observations that the member may have unacknowledged; one message may go beyond it.
pub(super) const UNACKNOWLEDGED_BYTES_MAX: usize = 1024 * 1024;

/// Items of one session that are with the writer at once, and bytes of them: its share of a batch. A session with more
/// facts hands them over as the writer deals with the first, so that nobody's facts wait behind many of one member's.
pub(super) const SHARE_ITEMS: usize = 128;
const SHARE_BYTES: usize = 64 * 1024;

/// A message in shares, and if there is more than one, the withdrawals of all before the first. A message with most of
/// a member's exports puts them on hold before any of them is gone.
pub(super) fn shares(mut observations: Vec<Observation>) -> Vec<Effect> {
    let mut shares = Vec::new();
    if observations.len() > SHARE_ITEMS {
        let services = taken_back(&observations);
        shares.extend((!services.is_empty()).then_some(Effect::Withdraw(services)));
    }
    while observations.len() > SHARE_ITEMS {
        let rest = observations.split_off(SHARE_ITEMS);
        shares.push(Effect::Observe(std::mem::replace(&mut observations, rest)));
    }
    shares.push(Effect::Observe(observations));
    shares
}

/// Bytes of facts of all sessions together that may wait to be durable. A session that finds it reached is read from
/// only while nothing of its own waits: so each comes on, a message at a time, and one is woken by its own answer.
pub(super) const IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The bytes of all sessions that are not acknowledged. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(pub(super) Gauge);

impl InFlight {
    fn bytes(&self) -> usize {
        usize::try_from(self.0.get()).unwrap_or_default()
    }

    fn add(&self, bytes: usize) {
        self.0.inc_by(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn remove(&self, bytes: usize) {
        self.0.dec_by(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// Messages that were read and are not acknowledged. Bounded: each of them has a sequence number of its own.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    messages: VecDeque<Message>,
    items: usize,
    bytes: usize,
    all: InFlight,
}

#[derive(Debug)]
struct Message {
    last_sequence: u64,
    items: usize,
    bytes: usize,
}

impl Unacknowledged {
    /// Nothing yet, of a session among others.
    pub(super) fn among(all: InFlight) -> Self {
        Self {
            messages: VecDeque::new(),
            items: 0,
            bytes: 0,
            all,
        }
    }

    /// These were read and go to the writer.
    pub(super) fn took(&mut self, observations: &[Observation]) {
        let Some(last) = observations.last() else { return };
        let bytes = observations.iter().map(bytes_of).sum::<usize>();
        self.items += observations.len();
        self.bytes += bytes;
        self.all.add(bytes);
        self.messages.push_back(Message {
            last_sequence: last.sequence,
            items: observations.len(),
            bytes,
        });
    }

    /// Everything up to the sequence number is durable.
    pub(super) fn acknowledged(&mut self, sequence: u64) {
        while let Some(message) = self
            .messages
            .pop_front_if(|first| first.last_sequence <= sequence)
        {
            self.items -= message.items;
            self.bytes -= message.bytes;
            self.all.remove(message.bytes);
        }
    }

    /// Returns true if nothing more is to be read.
    pub(super) fn is_full(&self) -> bool {
        let all_are = self.bytes > 0 && self.all.bytes() >= IN_FLIGHT_BYTES_MAX;
        all_are || self.bytes >= UNACKNOWLEDGED_BYTES_MAX
    }

    /// Returns true if the writer holds as much of one session as it may.
    pub(super) fn is_a_share(&self) -> bool {
        self.items >= SHARE_ITEMS || self.bytes >= SHARE_BYTES
    }
}

impl Drop for Unacknowledged {
    /// A session that ends waits for nothing any more.
    fn drop(&mut self) {
        self.all.remove(self.bytes);
    }
}

/// Bytes of one item, with who changed it.
pub(super) fn bytes_of(observation: &Observation) -> usize {
    let manager = observation.changed_by.as_ref().map_or(0, |by| by.manager().len());
    manager
        + match &observation.item {
            ObservedItem::Fact(fact) => fact.bytes.len(),
            ObservedItem::Invalid(refused) => refused.message.len(),
            ObservedItem::ListingCompleted(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::{
        EncodedFact, Fact,
        sync::{RefusalReason, Refused},
    };

    use super::*;

    fn observation(sequence: u64, bytes: usize) -> Observation {
        let fact = EncodedFact {
            bytes: Bytes::from(vec![0; bytes]),
            ..wire::encode_fact(&Fact::MemberLeft)
        };
        let item = ObservedItem::Fact(fact);
        Observation::new(sequence, item)
    }

    #[test]
    fn it_is_full_from_the_bound_on_until_enough_is_acknowledged() {
        let mut unacknowledged = Unacknowledged::default();
        let half = UNACKNOWLEDGED_BYTES_MAX / 2;
        unacknowledged.took(&[observation(1, half - 1), observation(2, 0)]);
        unacknowledged.took(&[observation(3, half)]);
        assert!(!unacknowledged.is_full());
        unacknowledged.took(&[observation(4, 1)]);
        assert!(unacknowledged.is_full());
        unacknowledged.acknowledged(1);
        assert!(
            unacknowledged.is_full(),
            "a message counts until all of it is durable"
        );
        unacknowledged.acknowledged(2);
        assert!(!unacknowledged.is_full());
    }

    #[test]
    fn what_is_to_be_refused_waits_for_the_writer_as_facts_do() {
        let mut unacknowledged = Unacknowledged::default();
        let item = ObservedItem::Invalid(Refused {
            sequence: 1,
            reason: RefusalReason::Invalid,
            message: "x".repeat(UNACKNOWLEDGED_BYTES_MAX).into(),
        });
        unacknowledged.took(&[Observation::new(1, item)]);
        assert!(unacknowledged.is_full());
        unacknowledged.acknowledged(1);
        assert!(!unacknowledged.is_full());
    }

    #[test]
    fn all_together_are_bounded_and_nobody_waits_for_another() {
        let all = InFlight::default();
        let session = || Unacknowledged::among(all.clone());
        let mut large: Vec<_> = (0..IN_FLIGHT_BYTES_MAX / UNACKNOWLEDGED_BYTES_MAX)
            .map(|_| session())
            .collect();
        let mut small = session();
        small.took(&[observation(1, 1)]);
        assert!(!small.is_full());
        for one in &mut large {
            one.took(&[observation(1, UNACKNOWLEDGED_BYTES_MAX)]);
        }
        assert!(small.is_full(), "what others have in flight counts");
        assert!(!session().is_full(), "a message of each is always taken");
        small.acknowledged(1);
        assert!(!small.is_full(), "its own answer lets it go on");
        drop(large);
        assert_eq!(all.bytes(), 0, "a session that ends gives back what it had");
    }

    #[test]
    fn a_share_is_so_many_items_or_so_many_bytes() {
        let mut few = Unacknowledged::default();
        few.took(&[observation(1, SHARE_BYTES - 1)]);
        assert!(!few.is_a_share());
        few.took(&[observation(2, 1)]);
        assert!(few.is_a_share());
        few.acknowledged(1);
        assert!(!few.is_a_share());
        let mut many = Unacknowledged::default();
        let items: Vec<_> = (1..=SHARE_ITEMS as u64)
            .map(|sequence| observation(sequence, 0))
            .collect();
        many.took(&items[1..]);
        assert!(!many.is_a_share());
        many.took(&items[..1]);
        assert!(many.is_a_share());
    }

    #[test]
    fn one_message_beyond_the_bound_is_taken_and_given_back_whole() {
        let mut unacknowledged = Unacknowledged::default();
        unacknowledged.took(&[observation(1, 3 * UNACKNOWLEDGED_BYTES_MAX)]);
        assert!(unacknowledged.is_full());
        unacknowledged.acknowledged(1);
        assert!(!unacknowledged.is_full() && unacknowledged.bytes == 0 && unacknowledged.messages.is_empty());
    }
}
