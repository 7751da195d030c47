//! Owns: the queries to a reader of topologies, and its answers.
//! Never: reads one.

use futures::future::BoxFuture;

/// The reader of topologies in the hub's own cluster.
pub trait ExplainsTopologies: Send + Sync {
    /// Explains the topology of this Cluster.
    fn explain(
        &self,
        namespace: String,
        name: String,
    ) -> BoxFuture<'_, Result<TopologyExplained, NotExplained>>;
}

/// Why a topology is not explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotExplained {
    /// There is no such Cluster, or it has no topology.
    NoTopology,
    /// The hub's own cluster does not say; why.
    Unread(String),
}

/// The explanation of a topology.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologyExplained {
    /// Namespace and name of its class.
    pub class: String,
    /// The version that it wants.
    pub version: String,
    /// Steps of an upgrade under way.
    pub upgrade: Vec<String>,
    /// Names of variables, and values of those that the class publishes.
    pub variables: Vec<(String, Option<String>)>,
    /// In the order in which they are written.
    pub objects: Vec<ObjectExplained>,
    /// Findings, without any value.
    pub findings: Vec<String>,
}

/// The explanation of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectExplained {
    /// Its place in the topology.
    pub place: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The action on it.
    pub action: &'static str,
    /// Patches in their order: the name, which definition of it, whether it changed anything.
    pub patches: Vec<(String, usize, bool)>,
}
