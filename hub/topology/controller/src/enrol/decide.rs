//! Owns: the steps for one Cluster so that it becomes a member, and leaves before it goes: a function of its life, of
//! its membership's state, and of the time.
//! Never: does it.

use shared::{api::names::ENROLLED_BEFORE, model::TokenHash, model::UnixMillis};

use super::standing::{Standing, Token};
use crate::observe::Life;

/// Lifetime of a token that the hub makes for a Cluster, in milliseconds. An unused one is then replaced.
pub const TOKEN_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// A step for a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing, and nothing is waited for.
    Rest,
    /// Nothing now: this is waited for.
    Wait(Awaited),
    /// These tokens, which were never delivered, are revoked; another one is made and delivered.
    Deliver {
        /// Their hashes.
        revoked: Vec<TokenHash>,
    },
    /// Records its enrolment in the Cluster and adds the finalizer: from then on it does not go before its member left.
    Hold {
        /// The name of the token that it was given, or [`ENROLLED_BEFORE`].
        enrolled: String,
    },
    /// Nothing of it is deleted for now.
    Pause,
    /// Its member is to leave, and does after so many milliseconds.
    Leave {
        /// From now on.
        after_millis: u64,
    },
    /// It may go, or is not looked after any more. These tokens are revoked.
    Release {
        /// Their hashes.
        revoked: Vec<TokenHash>,
    },
}

/// The event that a Cluster waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// Its control plane answers.
    ControlPlane,
    /// It joins with the token that it was given.
    Join,
    /// Its member has left.
    Departure,
}

/// The settings of enrolment that decisions depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The agent is installed into the cluster, which must answer for that.
    pub installs: bool,
    /// Longest time for which a deleted Cluster is kept, in milliseconds.
    pub drain_millis: u64,
}

/// Decides the next step for a Cluster. `sealed`: it is proven to be the member that it names.
pub fn act(life: &Life, standing: &Standing, sealed: bool, terms: Terms, now: UnixMillis) -> Act {
    match life.deleted_at {
        Some(deleted_at) => {
            let until = deleted_at.0.saturating_add(terms.drain_millis);
            going(life, standing, sealed, until.saturating_sub(now.0))
        }
        None if life.off || !life.stamped => stopped(life, unused(standing)),
        None => coming(life, standing, sealed, terms),
    }
}

/// One that is there, and is to be a member.
fn coming(life: &Life, standing: &Standing, sealed: bool, terms: Terms) -> Act {
    match standing {
        Standing::Member { ours, .. } if sealed || *ours => held(life, sealed, None),
        // Another's member, as far as anybody knows.
        Standing::Member { .. } => Act::Rest,
        Standing::Nobodys => Act::Rest,
        // An operator ended it: whether it comes again is an operator's to say.
        Standing::Former { free: false, .. } => stopped(life, Vec::new()),
        Standing::Stranger { tokens } => invited(life, tokens, sealed, terms, |token| token.used),
        Standing::Former { tokens, .. } => {
            let waits = |token: &Token| !token.used && is_given(life, token);
            // It left after the hub had enrolled it: whether it comes again is for people to say.
            if life.enrolled.is_some() && !tokens.iter().any(waits) {
                return stopped(life, Vec::new());
            }
            invited(life, tokens, sealed, terms, |_| false)
        }
    }
}

/// Nothing is done for it any more.
fn stopped(life: &Life, revoked: Vec<TokenHash>) -> Act {
    if life.held {
        return Act::Release { revoked };
    }
    Act::Rest
}

fn is_given(life: &Life, token: &Token) -> bool {
    life.enrolled.as_deref() == Some(&*token.hash.id())
}

/// One that may join: it waits for that, or is given what it needs.
fn invited(life: &Life, tokens: &[Token], sealed: bool, terms: Terms, came: impl Fn(&Token) -> bool) -> Act {
    let ours = || tokens.iter().filter(|token| token.ours);
    if let Some(token) = ours().find(|token| came(token) || is_given(life, token)) {
        return match held(life, sealed, Some(token.hash.id())) {
            Act::Rest => Act::Wait(Awaited::Join),
            act => act,
        };
    }
    if tokens.iter().any(|token| !token.ours) {
        // An operator made one for it, and is at it.
        return Act::Wait(Awaited::Join);
    }
    if terms.installs && !life.initialized {
        return Act::Wait(Awaited::ControlPlane);
    }
    Act::Deliver {
        revoked: ours()
            .filter(|token| !token.used)
            .map(|token| token.hash)
            .collect(),
    }
}

/// Records its enrolment, unless it is recorded already.
fn held(life: &Life, sealed: bool, token: Option<String>) -> Act {
    let known = life.enrolled.clone().filter(|said| !said.is_empty());
    let enrolled = token.or(known).unwrap_or_else(|| ENROLLED_BEFORE.to_owned());
    if life.held && sealed && life.enrolled.as_ref() == Some(&enrolled) {
        return Act::Rest;
    }
    Act::Hold { enrolled }
}

/// One that is being deleted, and goes in so many milliseconds in any case, so that a member that is gone holds up nothing.
fn going(life: &Life, standing: &Standing, sealed: bool, left: u64) -> Act {
    let is_its = matches!(standing, Standing::Member { ours, .. } if sealed || *ours);
    match standing {
        Standing::Nobodys if life.held && left > 0 => Act::Wait(Awaited::Departure),
        Standing::Member { leaves, exports, .. } if is_its && left > 0 => {
            // A member without exports has nothing to drain first.
            let after_millis = if *exports { left } else { 0 };
            match (life.held && !life.paused && *exports, leaves) {
                (true, _) => Act::Pause,
                (false, true) => Act::Wait(Awaited::Departure),
                (false, false) => Act::Leave { after_millis },
            }
        }
        Standing::Member { leaves: false, .. } if is_its => Act::Leave { after_millis: 0 },
        _ if life.held => Act::Release {
            revoked: unused(standing),
        },
        _ => match unused(standing) {
            none if none.is_empty() => Act::Rest,
            revoked => Act::Release { revoked },
        },
    }
}

/// The tokens of the hub's own that nobody joined with.
fn unused(standing: &Standing) -> Vec<TokenHash> {
    let (Standing::Stranger { tokens } | Standing::Former { tokens, .. }) = standing else {
        return Vec::new();
    };
    let unused = tokens.iter().filter(|token| token.ours && !token.used);
    unused.map(|token| token.hash).collect()
}
