//! Owns: who may ask what, from the certificate alone, before anything is looked up. Pure: it is given what TLS verified,
//! and answers with a reason that says whose certificate it was.
//! Never: tells an unauthenticated peer what it did not say. A peer from another clusterset is told its own name and no
//! other.

use shared::{
    identity::{Identity, Role},
    model::{ClusterId, Clusterset, KeyFingerprint, advice},
    tls::PeerIdentity,
};

use super::concern::Sight;

/// Longest part of a request's clusterset that a refusal repeats, in characters.
const NAMED_CHARACTERS_MAX: usize = 80;

/// The right that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It considers everything that may concern a member, and shows only what does.
    Read,
    /// It looks at what concerns the clusterset as a whole: its policy.
    ReadAll,
    /// It decides, or tries a decision.
    Decide,
    /// It takes everything: the log as it is stored.
    Copy,
}

/// An authorized caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// A person or a tool that decides, by the name in the certificate.
    Operator(Box<str>),
    /// A person or a tool that reads.
    Reader(Box<str>),
    /// A member.
    Member(ClusterId),
}

impl Caller {
    /// The member, if it is one.
    pub(super) fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Operator(_) | Self::Reader(_) => None,
            Self::Member(cluster) => Some(cluster),
        }
    }

    /// The part of the state shown to it.
    pub(crate) fn sight(&self) -> Sight {
        match self {
            Self::Operator(_) | Self::Reader(_) => Sight::Everything,
            Self::Member(cluster) => Sight::Of(cluster.clone()),
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
            "this certificate is {identity}, and this hub does not serve clusterset {}: connect to the hub that does, or \
             come with a certificate of the clusterset that this one serves",
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
        (Role::Reader(name), Need::Read | Need::ReadAll) => Ok(Caller::Reader(name.clone())),
        (Role::Cluster(cluster), Need::Read) => Ok(Caller::Member(cluster.clone())),
        (Role::Reader(_), Need::Decide | Need::Copy) => Err(refused(identity, "reader", need)),
        (Role::Cluster(_), Need::ReadAll | Need::Decide | Need::Copy) => {
            Err(refused(identity, "member", need))
        }
        (Role::Hub(_), _) => Err(format!(
            "this certificate is {identity}, a hub's: come with an operator's (`{}` makes one) or a reader's (`{}`)",
            advice::certs_operator("DIR"),
            advice::certs_reader("DIR")
        )),
    }
}

/// The refusal to a caller whose role is not enough.
fn refused(identity: &Identity, role: &str, need: Need) -> String {
    let (operator, reader) = (advice::certs_operator("DIR"), advice::certs_reader("DIR"));
    let rule = match need {
        Need::Read | Need::ReadAll => format!(
            "only operators and readers see what is not about one member (`{reader}` makes such a certificate)"
        ),
        Need::Decide => {
            format!("only an operator decides, and tries decisions (`{operator}` makes such a certificate)")
        }
        Need::Copy => format!("only an operator copies the log (`{operator}` makes such a certificate)"),
    };
    format!("this certificate is {identity}, a {role}'s: {rule}")
}

/// The refusal to a member that asks for another cluster by name; it is the same whether there is one of that name.
pub(super) fn of_another(own: &ClusterId, asked: &ClusterId) -> String {
    format!(
        "this certificate is the cluster {own}'s, and a member is shown what is its own, not what is {asked}'s: leave the \
         cluster out, or come with a reader's certificate (`{}` makes one)",
        advice::certs_reader("DIR")
    )
}

/// The refusal to a cluster whose membership ended.
pub(super) fn former_member(cluster: &ClusterId, key: KeyFingerprint) -> String {
    format!(
        "this certificate is the cluster {cluster}'s, and its key {key} belongs to a membership that ended: come \
         with an operator's certificate, or join again with a new key"
    )
}

/// The refusal to anybody with a revoked key.
pub(super) fn revoked_key(key: KeyFingerprint) -> String {
    format!(
        "key {key} was revoked by an operator, and stays refused: come with a certificate of another key \
         (`{}` makes one for an operator, `{}` for a reader)",
        advice::certs_operator("DIR"),
        advice::certs_reader("DIR")
    )
}

/// Returns true if the clusterset in a request is ours: empty, the name, or trust domain and name.
fn names(served: &Clusterset, named: &str) -> bool {
    named.is_empty() || named == served.name() || named == served.to_string()
}
