//! Owns: which sockets have not finished their handshake, how many there may be, and who of them goes for a new one.
//! Never: performs a handshake.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::heard::Pulse;

/// How long somebody who has spoken may take for the next word before it can go for another: a few round trips.
const STALLED_AFTER: Duration = Duration::from_millis(200);

/// The sockets whose handshake is not finished; clones are the same ones.
#[derive(Clone)]
pub(super) struct Unfinished(Arc<Mutex<Sockets>>);

struct Sockets {
    most: usize,
    next: u64,
    /// In the order in which they came.
    open: BTreeMap<u64, Socket>,
}

struct Socket {
    pulse: Pulse,
    shown_out: CancellationToken,
}

/// One socket's place among them, until it is dropped.
pub(super) struct Turn {
    number: u64,
    sockets: Unfinished,
    shown_out: CancellationToken,
}

impl Unfinished {
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Sockets {
            most,
            next: 0,
            open: BTreeMap::new(),
        })))
    }

    /// Sees to it that there is a place for the next one, and false if there is none now. Where there would be none, one
    /// goes: the oldest that has said nothing, or else the one that is stalled for longest. Whoever waits for us stays:
    /// when a thousand honest members come at once, they are served in their order.
    pub(super) fn make_room(&self) -> bool {
        let mut sockets = self.lock();
        if sockets.open.len() < sockets.most {
            return true;
        }
        let awaited = || {
            let sockets = sockets.open.iter();
            sockets.filter(|(_, socket)| socket.pulse.is_awaited())
        };
        let silent = awaited().find(|(_, socket)| socket.pulse.is_silent());
        let stalled = || {
            awaited()
                .filter(|(_, socket)| socket.pulse.last().elapsed() >= STALLED_AFTER)
                .min_by_key(|(_, socket)| socket.pulse.last())
        };
        let number = silent.or_else(stalled).map(|(number, _)| *number);
        let gone = number.and_then(|number| sockets.open.remove(&number));
        if let Some(gone) = &gone {
            gone.shown_out.cancel();
        }
        gone.is_some()
    }

    /// Lets one in for which there is room.
    pub(super) fn enter(&self, pulse: Pulse) -> Turn {
        let mut sockets = self.lock();
        let (number, shown_out) = (sockets.next, CancellationToken::new());
        sockets.next += 1;
        let socket = Socket {
            pulse,
            shown_out: shown_out.clone(),
        };
        sockets.open.insert(number, socket);
        Turn {
            number,
            sockets: self.clone(),
            shown_out,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        // Nothing in here can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Done when the socket is to be closed for another.
    pub(super) fn shown_out(&self) -> CancellationToken {
        self.shown_out.clone()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.sockets.lock().open.remove(&self.number);
    }
}
