//! Wakes sessions: each listens to the rooms of its member, so that a change costs nothing to those whom it does not
//! concern. It holds names and bells, never content; a bell that rings twice rings once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::sync::Namespaces;
use tokio::sync::Notify;

use super::Room;

/// All listeners of one view. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Listeners(Arc<Mutex<Register>>);

/// Numbers of listeners, by what they listen to.
#[derive(Debug, Default)]
struct Register {
    next: u64,
    bells: BTreeMap<u64, Arc<Notify>>,
    rooms: BTreeMap<Room, BTreeSet<u64>>,
    /// Those that listen to every namespace.
    everywhere: BTreeSet<u64>,
}

/// One session's ear. It listens until it is dropped.
#[derive(Debug)]
pub struct Listener {
    listeners: Listeners,
    number: u64,
    bell: Arc<Notify>,
    own: Option<Room>,
    namespaces: Namespaces,
}

impl Listeners {
    pub(super) fn add(&self, own: Option<Room>, namespaces: &Namespaces) -> Listener {
        let mut register = self.lock();
        register.next += 1;
        let (number, bell) = (register.next, Arc::new(Notify::new()));
        register.bells.insert(number, bell.clone());
        if let Some(room) = &own {
            register.rooms.entry(room.clone()).or_default().insert(number);
        }
        register.enter(number, namespaces);
        Listener {
            listeners: self.clone(),
            number,
            bell,
            own,
            namespaces: namespaces.clone(),
        }
    }

    /// Wakes all listeners of these rooms.
    pub(super) fn wake(&self, rooms: &BTreeSet<Room>) {
        let register = self.lock();
        let mut concerned = BTreeSet::new();
        for room in rooms {
            concerned.extend(register.rooms.get(room).into_iter().flatten());
            if matches!(room, Room::Namespace(_)) {
                concerned.extend(&register.everywhere);
            }
        }
        let bells = concerned
            .into_iter()
            .filter_map(|number| register.bells.get(number));
        bells.for_each(|bell| bell.notify_one());
    }

    /// Wakes everyone.
    pub(super) fn wake_all(&self) {
        self.lock().bells.values().for_each(|bell| bell.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Register {
    fn enter(&mut self, number: u64, namespaces: &Namespaces) {
        match namespaces {
            Namespaces::All => drop(self.everywhere.insert(number)),
            Namespaces::Only(names) => {
                for name in names {
                    let room = Room::Namespace(name.clone());
                    self.rooms.entry(room).or_default().insert(number);
                }
            }
        }
    }

    fn leave(&mut self, number: u64, namespaces: &Namespaces) {
        match namespaces {
            Namespaces::All => drop(self.everywhere.remove(&number)),
            Namespaces::Only(names) => {
                for name in names {
                    self.leave_room(number, &Room::Namespace(name.clone()));
                }
            }
        }
    }

    fn leave_room(&mut self, number: u64, room: &Room) {
        if let Some(listening) = self.rooms.get_mut(room) {
            listening.remove(&number);
            if listening.is_empty() {
                self.rooms.remove(room);
            }
        }
    }
}

impl Listener {
    /// Waits until something changed that concerns it, since it was last woken.
    pub async fn woken(&self) {
        self.bell.notified().await;
    }

    /// Listens to these namespaces from now on. Earlier changes in them are not announced: look after this.
    pub fn follow(&mut self, namespaces: &Namespaces) {
        if self.namespaces == *namespaces {
            return;
        }
        let mut register = self.listeners.lock();
        register.leave(self.number, &self.namespaces);
        register.enter(self.number, namespaces);
        drop(register);
        self.namespaces = namespaces.clone();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut register = self.listeners.lock();
        register.bells.remove(&self.number);
        register.leave(self.number, &self.namespaces);
        if let Some(room) = &self.own {
            register.leave_room(self.number, room);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn only(name: &str) -> Namespaces {
        Namespaces::Only(BTreeSet::from([name.into()]))
    }

    fn wake(listeners: &Listeners, name: &str) {
        listeners.wake(&BTreeSet::from([Room::Namespace(name.into())]));
    }

    fn rang(listener: &Listener) -> bool {
        listener.woken().now_or_never().is_some()
    }

    #[test]
    fn a_change_wakes_those_whom_it_concerns_and_nobody_else() {
        let listeners = Listeners::default();
        let (shop, bank) = (
            listeners.add(None, &only("shop")),
            listeners.add(None, &only("bank")),
        );
        let all = listeners.add(None, &Namespaces::All);
        wake(&listeners, "shop");
        wake(&listeners, "shop");
        assert!(rang(&shop) && rang(&all) && !rang(&bank));
        assert!(!rang(&shop), "two changes ring once");
        listeners.wake_all();
        assert!(rang(&shop) && rang(&all) && rang(&bank));
    }

    #[test]
    fn an_interest_moves_and_nothing_stays_behind() {
        let listeners = Listeners::default();
        let mut listener = listeners.add(None, &only("shop"));
        listener.follow(&only("bank"));
        wake(&listeners, "shop");
        assert!(!rang(&listener));
        wake(&listeners, "bank");
        assert!(rang(&listener));
        listener.follow(&Namespaces::All);
        wake(&listeners, "anything");
        assert!(rang(&listener));
        drop(listener);
        let register = listeners.lock();
        assert!(register.bells.is_empty() && register.rooms.is_empty() && register.everywhere.is_empty());
    }
}
