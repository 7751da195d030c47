//! The content of a ClusterProfile (KEP-4322): values and their words. It derives none.

use std::sync::Arc;

use model::{ClusterId, ClusterProperty, PropertyValue, UnixMillis};

use super::Map;

/// The ClusterProfile of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The member; also the object's name.
    pub cluster: ClusterId,
    /// gitVersion of its API server; empty while unknown.
    pub kubernetes_version: Box<str>,
    /// At most one of each type, in the order of the types.
    pub conditions: Vec<ProfileCondition>,
    /// Its ClusterProperties as they are.
    pub properties: Properties,
    /// API servers that renew their identity Lease, of those expected; absent: none keeps one, or nobody says.
    pub api_servers: Option<(u32, u32)>,
}

/// ClusterProperties of a member, in order of names. One that changes costs that one, however many there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    all: Map<Box<str>, Arc<ClusterProperty>>,
    /// The properties whose value a ClusterProfile cannot carry, with the characters of their values: they are left out
    /// there, and the condition Joined names them.
    oversize: Map<Box<str>, u64>,
}

impl Properties {
    /// In order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ClusterProperty>> {
        self.all.values()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The properties that a ClusterProfile cannot carry, each with the characters of its value, and their number.
    pub(super) fn oversize(&self) -> (impl Iterator<Item = (&str, u64)>, usize) {
        let oversize = self.oversize.iter();
        (
            oversize.map(|(name, characters)| (&**name, *characters)),
            self.oversize.len(),
        )
    }

    /// From here on the one of this name is this, or none. False: it is so already.
    pub fn change(&mut self, name: &str, property: Option<&Arc<ClusterProperty>>) -> bool {
        let name: Box<str> = name.into();
        if self.all.get(&name) == property {
            return false;
        }
        self.oversize.remove(&name);
        match property {
            None => drop(self.all.remove(&name)),
            Some(property) => {
                if let PropertyValue::Oversize { characters, .. } = property.value {
                    self.oversize.insert(name.clone(), characters);
                }
                self.all.insert(name, property.clone());
            }
        }
        true
    }
}

impl FromIterator<Arc<ClusterProperty>> for Properties {
    fn from_iter<T: IntoIterator<Item = Arc<ClusterProperty>>>(all: T) -> Self {
        let mut properties = Self::default();
        for property in all {
            properties.change(&property.name, Some(&property));
        }
        properties
    }
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
    /// The member's control plane works.
    ControlPlaneHealthy,
    /// The cluster is a member.
    Joined,
    /// All nodes of the member are ready.
    AllNodesHealthy,
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
    /// The type, as in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlaneHealthy => "ControlPlaneHealthy",
            Self::Joined => "Joined",
            Self::AllNodesHealthy => "AllNodesHealthy",
        }
    }
}

impl ConditionStatus {
    /// The status, as in the condition.
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
        self.same_beside_properties(other) && self.properties == other.properties
    }

    /// The same, of everything but the properties.
    pub(super) fn same_beside_properties(&self, other: &Self) -> bool {
        let conditions = |profile: &Self| {
            let conditions = profile.conditions.iter();
            let content =
                conditions.map(|one| (one.condition_type, one.status, one.reason, one.message.clone()));
            content.collect::<Vec<_>>()
        };
        self.cluster == other.cluster
            && self.kubernetes_version == other.kubernetes_version
            && self.api_servers == other.api_servers
            && conditions(self) == conditions(other)
    }
}
