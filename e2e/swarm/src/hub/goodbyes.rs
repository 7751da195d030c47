//! Owns: the law on members whose agents said goodbye: they are not silent for ten minutes; an own reading of who said so, and
//! of who has come back.
//! Never: says who is withdrawn when, or looks into what the writer remembers.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, policy::LOSS_DETECTED_MILLIS};

use crate::network::StreamId;
use oracle::laws::{Guarded, Law};

/// For how long a goodbye counts, in milliseconds.
const COUNTS_MILLIS: u64 = 10 * 60 * 1_000;

/// Somebody who said goodbye and is away.
#[derive(Debug)]
struct Away {
    since: u64,
    /// Nobody has come in its name since; who comes may have been heard without our knowing.
    is_certain: bool,
}

/// Goodbyes in the life of one process.
#[derive(Debug, Default)]
pub(super) struct Goodbyes {
    /// The last stream that was opened in the name of each member.
    streams: BTreeMap<ClusterId, StreamId>,
    /// Members that said goodbye on that one, with the time; the writer has not been told yet.
    said: BTreeMap<ClusterId, u64>,
    away: BTreeMap<ClusterId, Away>,
}

impl Goodbyes {
    /// A stream is opened in the name of a member.
    pub(super) fn opened(&mut self, stream: StreamId, cluster: &ClusterId) {
        self.streams.insert(cluster.clone(), stream);
        self.said.remove(cluster);
        if let Some(away) = self.away.get_mut(cluster) {
            away.is_certain = false;
        }
    }

    /// A member was heard that counts.
    pub(super) fn heard(&mut self, cluster: &ClusterId) -> bool {
        self.away.remove(cluster).is_some()
    }

    /// An agent says goodbye on a stream that counts for its member.
    pub(super) fn said(&mut self, stream: StreamId, cluster: &ClusterId, now: u64) {
        if self.streams.get(cluster) == Some(&stream) {
            self.said.insert(cluster.clone(), now);
        }
    }

    /// The writer is told of a goodbye. Whether it counts there is certain only of the last stream of a member.
    pub(super) fn told(&mut self, cluster: &ClusterId, now: u64) {
        let said = self.said.remove(cluster);
        let away = Away {
            since: said.unwrap_or(now),
            is_certain: said.is_some(),
        };
        self.away.insert(cluster.clone(), away);
    }

    /// Returns true if a member may be away for what it said.
    pub(super) fn excuse(&self, cluster: &ClusterId) -> bool {
        self.away.contains_key(cluster)
    }

    /// Of who is no member any more nothing is known.
    pub(super) fn keep(&mut self, is_member: impl Fn(&ClusterId) -> bool) {
        self.away.retain(|cluster, _| is_member(cluster));
        self.said.retain(|cluster, _| is_member(cluster));
    }

    /// **Who says goodbye is not lost**: the writer has looked at the time, and by that these are missed newly.
    pub(super) fn look<'a>(
        &self,
        mut missed: impl Iterator<Item = &'a ClusterId>,
        present: &BTreeSet<ClusterId>,
        now: u64,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let counts = |away: &Away| away.is_certain && now < away.since + COUNTS_MILLIS;
        let long = |(cluster, away): &(&ClusterId, &Away)| {
            counts(away) && now > away.since + LOSS_DETECTED_MILLIS && !present.contains(*cluster)
        };
        guarded.count(Law::Goodbye, self.away.iter().filter(long).count() as u64);
        match missed.find(|cluster| self.away.get(*cluster).is_some_and(counts)) {
            None => Ok(()),
            Some(cluster) => Err(Law::Goodbye.broken(format!(
                "{cluster} said so {} ms ago, and is missed",
                now - self.away[cluster].since
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn east() -> ClusterId {
        ClusterId::new("east").expect("valid")
    }

    /// It said goodbye at one second, and the writer knows.
    fn away() -> Goodbyes {
        let mut goodbyes = Goodbyes::default();
        goodbyes.opened(1, &east());
        goodbyes.said(1, &east(), 1_000);
        goodbyes.told(&east(), 1_200);
        goodbyes
    }

    fn missed(goodbyes: &Goodbyes, now: u64) -> (Result<(), String>, Guarded) {
        let mut guarded = Guarded::default();
        let looked = goodbyes.look([&east()].into_iter(), &BTreeSet::new(), now, &mut guarded);
        (looked, guarded)
    }

    #[test]
    fn who_said_goodbye_is_not_missed_for_ten_minutes() {
        let (looked, guarded) = missed(&away(), 999 + COUNTS_MILLIS);
        assert!(looked.unwrap_err().contains("east"));
        assert_eq!(guarded.of(Law::Goodbye), 1);
        assert_eq!(missed(&away(), 1_000 + COUNTS_MILLIS).0, Ok(()));
        let soon = missed(&away(), 1_000 + LOSS_DETECTED_MILLIS);
        assert_eq!(soon.1.of(Law::Goodbye), 0, "nobody would miss it yet");
    }

    #[test]
    fn who_is_back_or_was_followed_is_missed_as_everybody_is() {
        let mut back = away();
        back.opened(2, &east());
        assert!(back.excuse(&east()));
        assert_eq!(missed(&back, 20_000).0, Ok(()));
        assert!(back.heard(&east()) && !back.heard(&east()) && !back.excuse(&east()));
        let mut followed = Goodbyes::default();
        followed.opened(1, &east());
        followed.opened(2, &east());
        followed.said(1, &east(), 1_000);
        followed.told(&east(), 1_000);
        assert_eq!(missed(&followed, 20_000).0, Ok(()));
        let mut gone = away();
        gone.keep(|_| false);
        assert_eq!(missed(&gone, 20_000).0, Ok(()));
    }
}
