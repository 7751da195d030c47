//! The rules that what a member reports must keep, stated once for both edges: the agent judges what it read
//! from Kubernetes by them, the hub what came over the wire.
//! Pure checks of values; they change nothing and repair nothing.

mod endpoint;
mod export;
mod metadata;
mod property;
mod text;

use std::fmt;

use super::Fact;

pub use endpoint::{endpoint_slice, slice_key};
pub use export::{export, ip_families};
pub use metadata::{
    annotation_key, is_another_controllers_key, is_reserved_key, label_key, label_value, leave_out_metadata,
    metadata, object_label,
};
pub use property::{cluster_property, health, property_name};
pub use text::{bounded_text, identity};

/// Characters of a refused value that a message repeats.
pub const SHOWN_VALUE_CHARACTERS_MAX: usize = 80;

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidValue {
    /// The field, for example `ports[2].name`.
    pub field: String,
    /// Problem and next step.
    pub problem: String,
}

impl InvalidValue {
    /// States a problem of a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// The same problem, seen from the object that holds the field.
    #[must_use]
    pub fn within(self, parent: impl fmt::Display) -> Self {
        Self {
            field: format!("{parent}.{}", self.field),
            problem: self.problem,
        }
    }
}

/// A value as messages repeat it: quoted, control characters escaped, cut.
pub fn shown(value: &str) -> String {
    let head: String = value.chars().take(SHOWN_VALUE_CHARACTERS_MAX).collect();
    let dots = if head.len() < value.len() { "…" } else { "" };
    format!("{head:?}{dots}")
}

/// Checks a fact of the kinds that members report one by one. Decisions of the hub pass: their shape is all
/// there is to them.
pub fn fact(fact: &Fact) -> Result<(), InvalidValue> {
    match fact {
        Fact::ExportUpserted(value) => export(value),
        Fact::EndpointSliceUpserted(slice) => endpoint_slice(slice),
        Fact::EndpointSliceRemoved(key) => slice_key(key),
        Fact::ClusterPropertyUpserted(property) => cluster_property(property),
        Fact::ClusterPropertyRemoved(name) => property_name(name),
        Fact::HealthReported(value) => health(value),
        // A ServiceKey is valid by construction.
        Fact::ExportRemoved(_) => Ok(()),
        Fact::ListingCompleted(_)
        | Fact::MemberJoined { .. }
        | Fact::MemberLeft
        | Fact::MemberLeaving { .. }
        | Fact::MemberStays { .. }
        | Fact::MemberEvicted { .. }
        | Fact::MemberRekeyed { .. }
        | Fact::MemberForgotten { .. }
        | Fact::MemberKeyRevoked { .. }
        | Fact::OperatorKeyRevoked { .. }
        | Fact::MemberKeyContested { .. }
        | Fact::MemberKeyCertified { .. }
        | Fact::MemberLive
        | Fact::MemberSuspect
        | Fact::MemberLost
        | Fact::MemberWithdrawn
        | Fact::SelfPreservationEntered { .. }
        | Fact::SelfPreservationLeft { .. }
        | Fact::BrakeEngaged { .. }
        | Fact::BrakeReleased { .. }
        | Fact::FoldVersionChanged { .. }
        | Fact::LeaderChanged { .. }
        | Fact::TombstonesBounded { .. }
        | Fact::PolicyApplied { .. }
        | Fact::PrecedenceContested { .. }
        | Fact::PrecedenceReleased { .. }
        | Fact::JoinTokenCreated { .. }
        | Fact::JoinTokenUsed { .. }
        | Fact::JoinTokenRevoked { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_wild_value_is_shown_cut_and_escaped() {
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        let long = "x".repeat(500);
        assert_eq!(shown(&long).chars().count(), SHOWN_VALUE_CHARACTERS_MAX + 3);
    }

    #[test]
    fn a_problem_keeps_its_words_when_its_place_becomes_more_exact() {
        let problem = InvalidValue::new("port", "is 0; use 1 to 65535").within("ports[3]");
        assert_eq!(problem.to_string(), "ports[3].port: is 0; use 1 to 65535");
    }
}
