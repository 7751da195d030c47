//! Owns: who has which established connections, how many each may have and all together, and which of its own one
//! goes for a new one.
//! Never: closes a socket by itself: it cuts a [`Lifetime`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    bounds::DoorBounds,
    calls::{Calls, Holder},
    heard::Pulse,
    lifetime::{ConnectionEnd, Lifetime},
};
use crate::identity::Identity;

/// The established connections of a port; clones are the same ones.
#[derive(Clone)]
pub(super) struct Places(Arc<Mutex<Taken>>);

struct Taken {
    bounds: DoorBounds,
    next: u64,
    connections: usize,
    holders: BTreeMap<Identity, Connections>,
}

#[derive(Default)]
struct Connections {
    holder: Arc<Holder>,
    /// In the order in which they came.
    open: BTreeMap<u64, Connection>,
}

struct Connection {
    calls: Calls,
    pulse: Pulse,
    lifetime: Lifetime,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlace {
    /// The identity has as many as it may have, and all of them are in use.
    #[error(
        "this certificate has as many connections as it may have ({0}), and calls are open over each: close some, or \
         use one for several calls"
    )]
    Crowded(usize),
    /// There are as many as there may be for its kind.
    #[error(
        "the hub has as many connections as it may have: try again later, or give it more file descriptors"
    )]
    Full,
}

/// A connection's place, until it is dropped.
pub(super) struct Place {
    number: u64,
    identity: Identity,
    places: Places,
    /// The calls over it.
    pub(super) calls: Calls,
    /// Another connection of the same holder was closed for it.
    pub(super) displaced: bool,
}

impl Places {
    /// None yet.
    pub(super) fn new(bounds: DoorBounds) -> Self {
        Self(Arc::new(Mutex::new(Taken {
            bounds,
            next: 0,
            connections: 0,
            holders: BTreeMap::new(),
        })))
    }

    /// Takes a place. An identity with its maximum loses the one that is idle for longest, or dead: it can never lock
    /// itself out, nor anybody else.
    pub(super) fn take(
        &self,
        identity: &Identity,
        pulse: Pulse,
        lifetime: Lifetime,
    ) -> Result<Place, NoPlace> {
        let mut taken = self.lock();
        let displaced = taken.make_room(identity)?;
        let (number, bounds) = (taken.next, taken.bounds);
        if taken.connections >= bounds.of_all(&identity.role) {
            return Err(NoPlace::Full);
        }
        taken.next += 1;
        taken.connections += 1;
        let connections = taken.holders.entry(identity.clone()).or_default();
        let calls = Calls::of(connections.holder.clone());
        let connection = Connection {
            calls: calls.clone(),
            pulse,
            lifetime,
        };
        connections.open.insert(number, connection);
        Ok(Place {
            number,
            identity: identity.clone(),
            places: self.clone(),
            calls,
            displaced,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing in here can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Makes room for one more of this holder; true if one had to go for it.
    fn make_room(&mut self, identity: &Identity) -> Result<bool, NoPlace> {
        let (most, silence) = (self.bounds.of(&identity.role), self.bounds.connection_silence);
        let Some(connections) = self.holders.get_mut(identity) else {
            return Ok(false);
        };
        if connections.open.len() < most {
            return Ok(false);
        }
        let spare = connections.open.iter().filter(|(_, connection)| {
            connection.calls.open() == 0 || connection.pulse.last().elapsed() > silence
        });
        let longest = spare.min_by_key(|(_, connection)| connection.pulse.last());
        let number = longest.map(|(number, _)| *number);
        let gone = number.and_then(|number| connections.open.remove(&number));
        let gone = gone.ok_or(NoPlace::Crowded(most))?;
        self.connections -= 1;
        gone.lifetime.end(ConnectionEnd::Displaced);
        gone.lifetime.cut().cancel();
        Ok(true)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        let Some(connections) = taken.holders.get_mut(&self.identity) else {
            return;
        };
        // One that was displaced has given its place back already.
        let gone = connections.open.remove(&self.number);
        let last = connections.open.is_empty();
        taken.connections -= usize::from(gone.is_some());
        if last {
            taken.holders.remove(&self.identity);
        }
    }
}
