//! The hub's word that a membership has ended ↔ the trailer of the stream that it refuses.

use prost::Message as _;
use proto::v1;

use super::common::{Taken, epoch_from_proto, epoch_to_proto, required};
use model::{ClusterId, sync::MembershipEnded, validate::InvalidValue};

/// The trailer's name. Names that end with `-bin` carry bytes.
pub const MEMBERSHIP_ENDED_TRAILER: &str = "tributary-membership-ended-bin";

/// The bytes of the trailer.
pub fn encode_membership_ended(ended: &MembershipEnded) -> Vec<u8> {
    let message = v1::MembershipEnded {
        cluster: ended.cluster.to_string(),
        key_fingerprint: ended.key.to_string(),
        epoch: Some(epoch_to_proto(ended.epoch)),
    };
    message.encode_to_vec()
}

/// Decodes the word; returns nothing for other bytes, on which nobody may act.
pub fn decode_membership_ended(bytes: &[u8]) -> Option<MembershipEnded> {
    let message = v1::MembershipEnded::decode(bytes).ok()?;
    from_proto(message).ok()
}

fn from_proto(message: v1::MembershipEnded) -> Taken<MembershipEnded> {
    let invalid = |problem: String| InvalidValue::new("membershipEnded", problem);
    Ok(MembershipEnded {
        cluster: ClusterId::new(&message.cluster).map_err(|error| invalid(error.to_string()))?,
        key: message
            .key_fingerprint
            .parse()
            .map_err(|error: model::InvalidKeyFingerprint| invalid(error.to_string()))?,
        epoch: epoch_from_proto(required("membershipEnded.epoch", message.epoch)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Epoch, KeyFingerprint, UnixMillis};

    #[test]
    fn the_word_is_read_as_it_was_written_and_nothing_else_is() {
        let ended = MembershipEnded {
            cluster: ClusterId::new("east").unwrap(),
            key: KeyFingerprint([7; 32]),
            epoch: Epoch {
                created_at: UnixMillis(1_767_323_045_000),
                random: 42,
            },
        };
        let bytes = encode_membership_ended(&ended);
        assert_eq!(decode_membership_ended(&bytes), Some(ended));
        assert_eq!(decode_membership_ended(b""), None, "no cluster, key or epoch");
        assert_eq!(decode_membership_ended(&bytes[..bytes.len() - 3]), None);
        assert_eq!(decode_membership_ended(b"membership ended"), None);
    }
}
