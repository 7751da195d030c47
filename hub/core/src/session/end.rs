//! Owns: how the hub ends a session: the code, the reason as a word, the message, and the end of a membership, on which
//! the agent acts. The shell makes a gRPC status of it.
//! Never: decides who is admitted (the writer does).

use model::{ClusterId, KeyFingerprint, sync::MembershipEnded};

use crate::writer::{Gone, Holder, NotAdmitted};

/// The gRPC code with which a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCode {
    /// Another session holds the member.
    AlreadyExists,
    /// The hub does not serve this member in its present state.
    FailedPrecondition,
    /// The member broke the protocol.
    InvalidArgument,
    /// The member is refused.
    PermissionDenied,
    /// The member may connect again at once.
    Unavailable,
}

/// The end of a session, by the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// Its gRPC code.
    pub code: EndCode,
    /// The reason as a word, as the metric of rejected sessions counts it.
    pub reason: &'static str,
    /// The cause and the next step, for people.
    pub message: String,
    /// The membership that has ended, for the agent.
    pub membership: Option<MembershipEnded>,
}

impl SessionEnd {
    pub(super) fn new(code: EndCode, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            membership: None,
        }
    }

    /// The writer has stopped.
    pub(super) fn stopping() -> Self {
        Self::new(EndCode::Unavailable, "closed", Gone.to_string())
    }

    /// The end for the agent of `cluster` that came with this key.
    pub(super) fn not_admitted(not: NotAdmitted, cluster: &ClusterId, key: KeyFingerprint) -> Self {
        let reason = word(&not);
        let (code, message) = match not {
            NotAdmitted::Held(holder) => (EndCode::AlreadyExists, held(&holder, cluster)),
            NotAdmitted::NewEpoch | NotAdmitted::JudgedBefore => {
                let message = "a new epoch begins: connect again".to_owned();
                (EndCode::Unavailable, message)
            }
            NotAdmitted::Refused(why) | NotAdmitted::Duplicate(why) => (EndCode::PermissionDenied, why),
            NotAdmitted::Ended(message, epoch) => {
                let cluster = cluster.clone();
                let membership = Some(MembershipEnded { cluster, key, epoch });
                return Self {
                    membership,
                    ..Self::new(EndCode::PermissionDenied, reason, message)
                };
            }
            NotAdmitted::NotServing(why) | NotAdmitted::Doubted(why) => (EndCode::FailedPrecondition, why),
        };
        Self::new(code, reason, message)
    }
}

fn word(not: &NotAdmitted) -> &'static str {
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

fn held(holder: &Holder, cluster: &ClusterId) -> String {
    let (session, instance) = (holder.session.0, &holder.instance);
    if holder.is_copied {
        format!(
            "cluster {cluster} is held by session {session} of agent instance {instance}, and both agents lead in their \
             clusters: one cluster is a copy of the other, for example restored from a backup. The hub keeps the session \
             that it has. Stop the agent of the copy, and let it join under an id of its own"
        )
    } else {
        format!(
            "cluster {cluster} is held by session {session} of agent instance {instance}, which is alive. Stop that \
             agent, or give each of the two clusters a certificate of its own"
        )
    }
}
