//! Owns: which sockets have not finished their handshake, how many there may be, and who of them goes for a new one.
//! Never: performs a handshake.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use super::heard::Pulse;

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

    /// Lets one more in. Where there are as many as there may be, one goes for it: the oldest that has said nothing,
    /// and if all have spoken, the oldest. Whoever begins its handshake at once is the last to go.
    pub(super) fn enter(&self, pulse: Pulse) -> Turn {
        let mut sockets = self.lock();
        while sockets.open.len() >= sockets.most {
            let silent = sockets.open.iter().find(|(_, socket)| socket.pulse.is_silent());
            let number = silent.or_else(|| sockets.open.iter().next());
            let number = number.map(|(number, _)| *number);
            let Some(gone) = number.and_then(|number| sockets.open.remove(&number)) else {
                break;
            };
            gone.shown_out.cancel();
        }
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
