//! What a ClusterProfile (KEP-4322) says: values and their words. It derives none.

use std::sync::Arc;

use shared::model::{ClusterId, ClusterProperty, UnixMillis};

/// What a ClusterProfile says of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The member; also the object's name.
    pub cluster: ClusterId,
    /// gitVersion of its API server; empty while unknown.
    pub kubernetes_version: Box<str>,
    /// One of each type, in the order of the types.
    pub conditions: [ProfileCondition; 2],
    /// Its ClusterProperties as they are, sorted by name. An oversize one has no value that a ClusterProfile
    /// may carry: it is left out there, and the condition Joined names it.
    pub properties: Vec<Arc<ClusterProperty>>,
}

/// A condition of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileCondition {
    /// Its type.
    pub condition_type: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: Arc<str>,
    /// Time of the event that last changed the status.
    pub last_transition: UnixMillis,
}

/// The conditions that a profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// Whether the member's control plane works.
    ControlPlaneHealthy,
    /// Whether the cluster is a member.
    Joined,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

impl ConditionType {
    /// The type as it stands in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlaneHealthy => "ControlPlaneHealthy",
            Self::Joined => "Joined",
        }
    }
}

impl ConditionStatus {
    /// The status as it stands in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl Profile {
    /// Equality of content: times are none.
    pub fn same_content(&self, other: &Self) -> bool {
        let condition = |profile: &Self, index: usize| {
            let condition = &profile.conditions[index];
            (condition.status, condition.reason, condition.message.clone())
        };
        self.cluster == other.cluster
            && self.kubernetes_version == other.kubernetes_version
            && self.properties == other.properties
            && (0..self.conditions.len()).all(|index| condition(self, index) == condition(other, index))
    }
}
