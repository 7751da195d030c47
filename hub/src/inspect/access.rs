//! Who may read and who may decide: from the certificate alone, before anything is looked up.
//! Pure: it is given what TLS verified, and answers with a reason that says whose certificate it was.

use shared::{
    identity::Role,
    model::{ClusterId, Clusterset, KeyFingerprint, advice},
    tls::PeerIdentity,
};

/// Longest part of a request's clusterset that a refusal repeats, in characters.
const NAMED_CHARACTERS_MAX: usize = 80;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It looks.
    Read,
    /// It changes who is a member.
    Decide,
    /// It takes everything: the log as it is stored.
    Copy,
}

/// Who asks, and may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A person or a tool, by the name in the certificate.
    Operator(Box<str>),
    /// A member.
    Member(ClusterId),
}

impl Caller {
    /// The member, if it is one.
    pub(super) fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Operator(_) => None,
            Self::Member(cluster) => Some(cluster),
        }
    }
}

/// Admits a caller, or says whose certificate it is and what would do instead.
pub(super) fn check(
    served: &Clusterset,
    peer: &PeerIdentity,
    named: &str,
    need: Need,
) -> Result<Caller, String> {
    let identity = &peer.identity;
    if identity.clusterset != *served {
        return Err(format!(
            "this certificate is {identity}, of clusterset {}, and this hub serves clusterset {served}: connect to \
             the hub of {0}, or come with a certificate of {served}",
            identity.clusterset
        ));
    }
    if !names(served, named) {
        let named: String = named.chars().take(NAMED_CHARACTERS_MAX).collect();
        return Err(format!(
            "the request names clusterset {named:?}, and this certificate is {identity}, of clusterset {served}: \
             leave clusterset empty, or ask the hub of {named:?} with a certificate of it"
        ));
    }
    match (&identity.role, need) {
        (Role::Operator(name), _) => Ok(Caller::Operator(name.clone())),
        (Role::Cluster(cluster), Need::Read) => Ok(Caller::Member(cluster.clone())),
        (Role::Cluster(cluster), Need::Decide) => Err(format!(
            "this certificate is {identity}, the member {cluster}'s: a member may read, and only an operator decides \
             about members (`{}` makes such a certificate)",
            advice::certs_operator("DIR")
        )),
        (Role::Cluster(cluster), Need::Copy) => Err(format!(
            "this certificate is {identity}, the member {cluster}'s: a member may read, and only an operator copies the \
             log (`{}` makes such a certificate)",
            advice::certs_operator("DIR")
        )),
        (Role::Hub(_), _) => Err(format!(
            "this certificate is {identity}, a hub's: come with an operator's (`{}` makes one) or a member's",
            advice::certs_operator("DIR")
        )),
    }
}

/// What a cluster hears whose membership ended.
pub(super) fn former_member(cluster: &ClusterId, key: KeyFingerprint) -> String {
    format!(
        "this certificate is the cluster {cluster}'s, and its key {key} belongs to a membership that ended: come \
         with an operator's certificate, or join again with a new key"
    )
}

/// What everybody hears who comes with a revoked key.
pub(super) fn revoked_key(key: KeyFingerprint) -> String {
    format!(
        "key {key} was revoked by an operator, and stays refused: come with a certificate of another key \
         (`{}` makes one for an operator)",
        advice::certs_operator("DIR")
    )
}

/// Whether a request that names this clusterset means ours: nothing, the name, or trust domain and name.
fn names(served: &Clusterset, named: &str) -> bool {
    named.is_empty() || named == served.name() || named == served.to_string()
}
