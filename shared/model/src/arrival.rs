//! In which clusters of the clusterset an export arrived, for people. It is never recorded, and nothing is decided by it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{ClusterId, ServiceKey};

/// Most clusters that the words name for each reason.
const NAMED_MAX: usize = 5;

/// Why a cluster does not hold the import of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lack {
    /// It has no namespace of that name.
    NoNamespace,
    /// The policy of the clusterset withholds the import from it.
    Withheld,
    /// Its agent could not write it.
    NotWritten,
    /// Its agent has not said to have applied it.
    Waits,
    /// Its agent has not reported since the hub started.
    NotKnown,
}

/// The members of a clusterset by what became of an export in each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Those that hold the import, the exporting one included.
    pub clusters: BTreeSet<ClusterId>,
    /// The others.
    pub lacking: BTreeMap<ClusterId, Lack>,
}

/// Services that arrived in the same clusters: the whole word on each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedServices {
    /// The services.
    pub services: BTreeSet<ServiceKey>,
    /// The clusters that they reached.
    pub arrival: Arc<Arrival>,
}

impl Arrival {
    /// Every member holds it.
    pub fn is_everywhere(&self) -> bool {
        self.lacking.is_empty()
    }

    /// Returns true if a cluster lacks it for this reason.
    pub fn has(&self, lack: Lack) -> bool {
        self.lacking.values().any(|other| *other == lack)
    }

    /// The same, with what was known before of the clusters of which nothing is known now.
    pub fn or_as_before(mut self, before: &Self) -> Self {
        let unknown = self.lacking.extract_if(.., |_, lack| *lack == Lack::NotKnown);
        let unknown: Vec<ClusterId> = unknown.map(|(cluster, _)| cluster).collect();
        for cluster in unknown {
            if before.clusters.contains(&cluster) {
                self.clusters.insert(cluster);
            } else {
                let lack = before.lacking.get(&cluster).copied();
                self.lacking.insert(cluster, lack.unwrap_or(Lack::NotKnown));
            }
        }
        self
    }

    /// Says it in words: "in 2 of 3 clusters; not yet in west". Names are bounded.
    pub fn words(&self) -> String {
        let all = self.clusters.len() + self.lacking.len();
        let noun = if all == 1 { "cluster" } else { "clusters" };
        let mut words = format!("in {} of {all} {noun}", self.clusters.len());
        let reasons = [
            (Lack::NoNamespace, "no such namespace in"),
            (Lack::Withheld, "withheld by policy from"),
            (Lack::NotWritten, "not written by the agent of"),
            (Lack::Waits, "not yet in"),
            (Lack::NotKnown, "not known of"),
        ];
        for (reason, said) in reasons {
            let lacking = self.lacking.iter().filter(|(_, lack)| **lack == reason);
            let names: Vec<&str> = lacking.map(|(cluster, _)| cluster.as_str()).collect();
            if !names.is_empty() {
                words += &format!("; {said} {}", bounded(&names));
            }
        }
        words
    }
}

fn bounded(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(NAMED_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ClusterId {
        ClusterId::new(name).expect("valid")
    }

    fn arrival(clusters: &[&str], lacking: &[(&str, Lack)]) -> Arrival {
        Arrival {
            clusters: clusters.iter().map(|name| id(name)).collect(),
            lacking: lacking.iter().map(|(name, lack)| (id(name), *lack)).collect(),
        }
    }

    #[test]
    fn the_words_count_all_members_and_name_a_bounded_number() {
        assert_eq!(arrival(&["east"], &[]).words(), "in 1 of 1 cluster");
        let partly = arrival(
            &["east", "north"],
            &[("south", Lack::NoNamespace), ("west", Lack::Waits)],
        );
        assert_eq!(
            partly.words(),
            "in 2 of 4 clusters; no such namespace in south; not yet in west"
        );
        let names: Vec<String> = (0..7).map(|number| format!("c{number}")).collect();
        let many: Vec<(&str, Lack)> = names.iter().map(|name| (&**name, Lack::Withheld)).collect();
        assert_eq!(
            arrival(&[], &many).words(),
            "in 0 of 7 clusters; withheld by policy from c0, c1, c2, c3, c4 and 2 more"
        );
    }

    #[test]
    fn what_is_not_known_stays_as_it_was_known_before() {
        let before = arrival(&["east", "west"], &[("south", Lack::NoNamespace)]);
        let unknown = Lack::NotKnown;
        let now = arrival(
            &["east"],
            &[("new", unknown), ("south", unknown), ("west", unknown)],
        );
        let expected = arrival(
            &["east", "west"],
            &[("new", unknown), ("south", Lack::NoNamespace)],
        );
        assert_eq!(now.or_as_before(&before), expected);
        let left = arrival(&["east"], &[("west", Lack::Waits)]);
        assert_eq!(left.clone().or_as_before(&before), left, "news win");
    }
}
