//! Owns: how a Hello that is not admitted is counted and answered. The end of a membership is a trailer, on which the
//! agent acts; everything else is in words.
//! Never: decides who is admitted (the writer does).

use shared::{
    model::{ClusterId, Epoch, KeyFingerprint, sync::MembershipEnded},
    wire,
};
use tonic::{Status, metadata::MetadataValue};

use crate::writer::{Holder, NotAdmitted};

/// The word that counts it.
pub(super) fn word(not: &NotAdmitted) -> &'static str {
    match not {
        NotAdmitted::Held(Holder { is_copied: false, .. }) => "held",
        NotAdmitted::NewEpoch | NotAdmitted::JudgedBefore => "new_epoch",
        NotAdmitted::Refused(_) => "membership",
        NotAdmitted::Ended(..) => "membership_ended",
        NotAdmitted::Held(Holder { is_copied: true, .. }) | NotAdmitted::Duplicate(_) => "duplicate_identity",
        NotAdmitted::NotServing(_) => "not_serving",
        NotAdmitted::Doubted(_) => "doubted",
    }
}

/// Returns the refusal for the agent that came with this key.
pub(super) fn status(not: NotAdmitted, cluster: &ClusterId, key: KeyFingerprint) -> Status {
    match not {
        NotAdmitted::Held(holder) if holder.is_copied => Status::already_exists(format!(
            "cluster {cluster} is held by session {} of agent instance {}, and both agents lead in their clusters: one cluster \
             is a copy of the other, for example restored from a backup. The hub keeps the session that it has. Stop the \
             agent of the copy, and let it join under an id of its own",
            holder.session.0, holder.instance
        )),
        NotAdmitted::Held(holder) => Status::already_exists(format!(
            "cluster {cluster} is held by session {} of agent instance {}, which is alive. Stop that agent, or \
             give each of the two clusters a certificate of its own",
            holder.session.0, holder.instance
        )),
        NotAdmitted::NewEpoch | NotAdmitted::JudgedBefore => {
            Status::unavailable("a new epoch begins: connect again")
        }
        NotAdmitted::Refused(why) | NotAdmitted::Duplicate(why) => Status::permission_denied(why),
        NotAdmitted::Ended(why, epoch) => ended(why, cluster.clone(), key, epoch),
        NotAdmitted::NotServing(why) | NotAdmitted::Doubted(why) => Status::failed_precondition(why),
    }
}

fn ended(why: String, cluster: ClusterId, key: KeyFingerprint, epoch: Epoch) -> Status {
    let mut status = Status::permission_denied(why);
    let ended = MembershipEnded { cluster, key, epoch };
    let bytes = MetadataValue::from_bytes(&wire::encode_membership_ended(&ended));
    status
        .metadata_mut()
        .insert_bin(wire::MEMBERSHIP_ENDED_TRAILER, bytes);
    status
}
