//! Owns: how many nodes are not ready for longer than is tolerated, by when the agent saw them so.
//! Never: believes a time in a Node, or says more of one than its name.

use std::{collections::BTreeMap, time::Duration};

use shared::model::{NodesHealth, health::NODES_NAMED_MAX};

/// Default time for which a node may be not ready.
pub const TOLERANCE_DEFAULT: Duration = Duration::from_secs(60);

/// Nodes, as they were seen over time.
#[derive(Debug, Clone)]
pub struct Nodes {
    tolerance: Duration,
    total: u32,
    /// Time at which they were first seen.
    began: Option<Duration>,
    /// Since when each is seen not to be ready.
    not_ready: BTreeMap<Box<str>, Duration>,
}

impl Nodes {
    /// With this tolerance.
    pub fn new(tolerance: Duration) -> Self {
        Self {
            tolerance,
            total: 0,
            began: None,
            not_ready: BTreeMap::new(),
        }
    }

    /// Takes all nodes, each with whether it is ready.
    pub fn take<'a>(&mut self, now: Duration, nodes: impl IntoIterator<Item = (&'a str, bool)>) {
        self.began.get_or_insert(now);
        let before = std::mem::take(&mut self.not_ready);
        self.total = 0;
        for (name, ready) in nodes {
            self.total = self.total.saturating_add(1);
            if !ready {
                let since = before.get(name).copied().unwrap_or(now);
                self.not_ready.insert(name.into(), since);
            }
        }
    }

    /// Returns the verdict on all nodes. A node that was not ready when it was first seen may have been so for days: before the tolerance
    /// has passed once nobody can say.
    pub fn health(&self, now: Duration) -> NodesHealth {
        let over = |since: &Duration| now.saturating_sub(*since) >= self.tolerance;
        let is_unclear = |since: &Duration| Some(*since) == self.began && !over(since);
        let mut since = self.not_ready.values();
        if !since.clone().any(over) && since.any(is_unclear) {
            return NodesHealth::Starting;
        }
        let not_ready = self.not_ready.iter().filter(|(_, since)| over(since));
        NodesHealth::Counted {
            total: self.total,
            not_ready: u32::try_from(not_ready.clone().count()).unwrap_or(u32::MAX),
            named: not_ready
                .map(|(name, _)| name.clone())
                .take(NODES_NAMED_MAX)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn counted(nodes: &Nodes, seconds: u64) -> (u32, u32, String) {
        match nodes.health(at(seconds)) {
            NodesHealth::Counted {
                total,
                not_ready,
                named,
            } => (total, not_ready, named.join(" ")),
            other => panic!("they are counted: {other:?}"),
        }
    }

    #[test]
    fn a_node_counts_when_it_was_not_ready_for_the_whole_tolerance() {
        let mut nodes = Nodes::new(TOLERANCE_DEFAULT);
        nodes.take(at(0), [("a", true), ("b", true)]);
        nodes.take(at(1), [("a", true), ("b", false)]);
        assert_eq!(counted(&nodes, 60), (2, 0, String::new()));
        nodes.take(at(30), [("a", false), ("b", false)]);
        assert_eq!(counted(&nodes, 61), (2, 1, "b".to_owned()));
        nodes.take(at(70), [("a", false), ("b", true)]);
        assert_eq!(counted(&nodes, 89), (2, 0, String::new()));
        assert_eq!(counted(&nodes, 90), (2, 1, "a".to_owned()));
        nodes.take(at(95), [("b", false)]);
        assert_eq!(counted(&nodes, 154), (1, 0, String::new()), "b counts anew");
        nodes.take(at(155), []);
        assert_eq!(counted(&nodes, 999), (0, 0, String::new()));
    }

    /// A node that has not been ready for days is as new to an agent that starts as one that fell over just now.
    #[test]
    fn who_has_just_begun_to_look_does_not_say_that_all_nodes_are_healthy() {
        let mut nodes = Nodes::new(TOLERANCE_DEFAULT);
        nodes.take(at(10), [("a", true), ("b", false), ("c", true)]);
        assert_eq!(nodes.health(at(69)), NodesHealth::Starting);
        assert_eq!(counted(&nodes, 70), (3, 1, "b".to_owned()));
        nodes.take(at(100), [("a", true), ("b", true), ("c", false)]);
        assert_eq!(
            counted(&nodes, 101),
            (3, 0, String::new()),
            "c was seen ready before"
        );
        let mut nodes = Nodes::new(TOLERANCE_DEFAULT);
        nodes.take(at(10), [("a", true)]);
        assert_eq!(counted(&nodes, 10), (1, 0, String::new()), "nothing is unclear");
    }

    #[test]
    fn a_few_are_named_and_all_are_counted() {
        let names: Vec<String> = (10..30).map(|number| format!("n{number}")).collect();
        let mut nodes = Nodes::new(Duration::ZERO);
        nodes.take(at(0), names.iter().map(|name| (&**name, false)));
        assert_eq!(counted(&nodes, 0), (20, 20, "n10 n11 n12 n13 n14".to_owned()));
    }
}
