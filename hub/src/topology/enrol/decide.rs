//! Owns: what is done for one Cluster so that it becomes a member, and leaves before it goes: a function of its life, of
//! where its membership stands, and of the time.
//! Never: does it.

use shared::{api::names::ENROLLED_BEFORE, model::TokenHash, model::UnixMillis};

use super::standing::{Standing, Token};
use crate::topology::observe::Life;

/// How long a token is good that the hub makes for a Cluster, in milliseconds. One that nobody used by then is replaced.
pub const TOKEN_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing, and nothing is waited for.
    Rest,
    /// Nothing now: this is waited for.
    Wait(Awaited),
    /// These tokens are taken back, which nobody was given; another one is made and delivered.
    Deliver {
        /// Their hashes.
        revoked: Vec<TokenHash>,
    },
    /// What is known of its enrolment is written down, and from then on it does not go before its member left.
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
    /// It may go, or is not looked after any more. These tokens are taken back.
    Release {
        /// Their hashes.
        revoked: Vec<TokenHash>,
    },
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// That its control plane answers.
    ControlPlane,
    /// That it joins with the token that it was given.
    Join,
    /// That its member has left.
    Departure,
}

/// What enrolment is like in a hub, as far as decisions depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The agent is installed into the cluster, which must answer for that.
    pub installs: bool,
    /// How long a Cluster that is deleted is kept from going, at most, in milliseconds.
    pub drain_millis: u64,
}

/// What is done for a Cluster.
pub fn act(life: &Life, standing: &Standing, terms: Terms, now: UnixMillis) -> Act {
    match life.deleted_at {
        Some(deleted_at) => going(
            life,
            standing,
            deleted_at.0.saturating_add(terms.drain_millis),
            now,
        ),
        None if life.off || !life.stamped => stopped(life, unused(standing)),
        None => coming(life, standing, terms),
    }
}

/// One that is there, and is to be a member.
fn coming(life: &Life, standing: &Standing, terms: Terms) -> Act {
    match standing {
        Standing::Member { .. } => held(life, None),
        // An operator ended it: whether it comes again is an operator's to say.
        Standing::Former { free: false, .. } => stopped(life, Vec::new()),
        Standing::Stranger { tokens } => invited(life, tokens, terms, |token| token.used),
        Standing::Former { tokens, .. } => {
            let waits = |token: &Token| !token.used && is_given(life, token);
            // It left after the hub had enrolled it: whether it comes again is for people to say.
            if life.enrolled.is_some() && !tokens.iter().any(waits) {
                return stopped(life, Vec::new());
            }
            invited(life, tokens, terms, |_| false)
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
fn invited(life: &Life, tokens: &[Token], terms: Terms, came: impl Fn(&Token) -> bool) -> Act {
    if let Some(token) = tokens.iter().find(|token| came(token) || is_given(life, token)) {
        return match held(life, Some(token.hash.id())) {
            Act::Rest => Act::Wait(Awaited::Join),
            act => act,
        };
    }
    let unused = || tokens.iter().filter(|token| !token.used);
    if unused().any(|token| !token.ours) {
        // An operator made one for it, and is at it.
        return Act::Wait(Awaited::Join);
    }
    if terms.installs && !life.initialized {
        return Act::Wait(Awaited::ControlPlane);
    }
    Act::Deliver {
        revoked: unused().map(|token| token.hash).collect(),
    }
}

fn held(life: &Life, token: Option<String>) -> Act {
    let known = life.enrolled.clone().filter(|said| !said.is_empty());
    let enrolled = token.or(known).unwrap_or_else(|| ENROLLED_BEFORE.to_owned());
    if life.held && life.enrolled.as_ref() == Some(&enrolled) {
        return Act::Rest;
    }
    Act::Hold { enrolled }
}

/// One that is being deleted; it goes at `until` in any case, so that a member that is gone holds up nothing.
fn going(life: &Life, standing: &Standing, until: u64, now: UnixMillis) -> Act {
    let left = until.saturating_sub(now.0);
    match standing {
        Standing::Member { leaves, exports } if left > 0 => {
            // Who exports nothing has nothing that others let go first.
            let after_millis = if *exports { left } else { 0 };
            match (life.held && !life.paused && *exports, leaves) {
                (true, _) => Act::Pause,
                (false, true) => Act::Wait(Awaited::Departure),
                (false, false) => Act::Leave { after_millis },
            }
        }
        Standing::Member { leaves: false, .. } => Act::Leave { after_millis: 0 },
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
