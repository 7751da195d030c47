//! Owns: the gRPC status with which a session ends. The end of a membership is a trailer, on which the agent acts;
//! everything else is in words.
//! Never: decides that a session ends.

use hub_core::session::{EndCode, SessionEnd};
use shared::wire;
use tonic::{Code, Status, metadata::MetadataValue};

/// Returns the status for the agent.
pub(super) fn session_status(end: SessionEnd) -> Status {
    let code = match end.code {
        EndCode::AlreadyExists => Code::AlreadyExists,
        EndCode::FailedPrecondition => Code::FailedPrecondition,
        EndCode::InvalidArgument => Code::InvalidArgument,
        EndCode::PermissionDenied => Code::PermissionDenied,
        EndCode::Unavailable => Code::Unavailable,
    };
    let mut status = Status::new(code, end.message);
    if let Some(ended) = end.membership {
        let bytes = MetadataValue::from_bytes(&wire::encode_membership_ended(&ended));
        status
            .metadata_mut()
            .insert_bin(wire::MEMBERSHIP_ENDED_TRAILER, bytes);
    }
    status
}

#[cfg(test)]
mod tests {
    use shared::model::{ClusterId, Epoch, KeyFingerprint, sync::MembershipEnded};

    use super::*;

    fn end(membership: Option<MembershipEnded>) -> SessionEnd {
        SessionEnd {
            code: EndCode::PermissionDenied,
            reason: "membership",
            message: "it left".into(),
            membership,
        }
    }

    /// The agent acts on the trailer, never on words: only the end of its membership carries it.
    #[test]
    fn only_the_end_of_a_membership_is_said_in_a_trailer() {
        let ended = MembershipEnded {
            cluster: ClusterId::new("east").expect("valid"),
            key: KeyFingerprint([1; 32]),
            epoch: Epoch::default(),
        };
        let status = session_status(end(Some(ended.clone())));
        assert_eq!(
            (status.code(), status.message()),
            (Code::PermissionDenied, "it left")
        );
        let trailer = status.metadata().get_bin(wire::MEMBERSHIP_ENDED_TRAILER);
        let bytes = trailer.and_then(|trailer| trailer.to_bytes().ok());
        let said = wire::decode_membership_ended(&bytes.expect("a trailer")).expect("its word");
        assert_eq!(said, ended);
        assert!(session_status(end(None)).metadata().is_empty());
    }
}
