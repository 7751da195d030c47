//! Owns: why bytes are no fact that can be taken.
//! Never: decodes any.

use model::sync::RefusalReason;

/// Bytes that are no fact to be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidFact {
    /// The kind of reason, as the refusal states it.
    pub reason: RefusalReason,
    /// The fault, its place, and the next step.
    pub message: String,
}

/// Bytes that are no message of protobuf.
pub(super) fn undecodable(error: &prost::DecodeError) -> InvalidFact {
    InvalidFact {
        reason: RefusalReason::Invalid,
        message: format!(
            "the bytes are no fact of tributary.v1: {error}; update agent or hub to the same release"
        ),
    }
}
