//! Owns: what one who took the agent's Lease may do: write, keep its session and what it knows, or end. Time is an
//! argument, by one monotonic clock, and counts from where a renewal began.
//! Never: takes the Lease from anybody (`machine`), or asks an API server.

use std::time::Duration;

use super::machine::{RENEW_DEADLINE, Record};

/// The Lease's verdict on the holder that took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is held as it was taken.
    Held,
    /// It was deleted or emptied by somebody: it is to be put back.
    Gone,
    /// Somebody else took it, under this name; it may be a newer start at the same place.
    Lost(Box<str>),
}

/// Returns the state of hold number `transitions` of `holder`.
pub fn standing(holder: &str, transitions: i32, found: Option<&Record>) -> Standing {
    match found {
        None => Standing::Gone,
        Some(found) if found.holder.is_empty() && found.transitions <= transitions => Standing::Gone,
        Some(found) if *found.holder == *holder && found.transitions == transitions => Standing::Held,
        Some(found) => Standing::Lost(found.holder.clone()),
    }
}

/// Rights of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum May {
    /// Nothing: another one leads, or it gave the Lease back. It ends.
    End,
    /// It could not renew for [`RENEW_DEADLINE`], so that another one may lead soon: it keeps its session with the hub
    /// and what it knows, and writes nothing until it has renewed.
    Keep,
    /// Everything.
    Write,
}

/// The Lease in the hands of the one who took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Time at which the last renewal began that succeeded: it may have landed at once.
    renewed: Duration,
    over: bool,
}

impl Hold {
    /// It was taken by a request that began then.
    pub fn taken(began: Duration) -> Self {
        Self {
            renewed: began,
            over: false,
        }
    }

    /// It was renewed by a request that began then. Answers may come in any order.
    pub fn renewed(&mut self, began: Duration) {
        self.renewed = self.renewed.max(began);
    }

    /// Returns true if a request that began at `since` or later has renewed it.
    pub fn is_renewed_since(&self, since: Duration) -> bool {
        self.renewed >= since
    }

    /// Another one has it, or it is given back: nothing makes this hold good again.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Until when writing is allowed if it is not renewed; absent when it is not allowed ever again.
    pub fn writes_until(&self) -> Option<Duration> {
        (!self.over).then_some(self.renewed + RENEW_DEADLINE)
    }

    /// The holder's rights `now`.
    pub fn may(&self, now: Duration) -> May {
        match self.writes_until() {
            None => May::End,
            Some(until) if now < until => May::Write,
            Some(_) => May::Keep,
        }
    }
}

#[cfg(test)]
mod tests;
