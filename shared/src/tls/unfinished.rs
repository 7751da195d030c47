//! Owns: which sockets have shown nothing yet that earns them their place, how many there may be, and who of them goes
//! for a new one: sockets whose handshake is not finished, and connections with nobody in particular.
//! Never: performs a handshake.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::heard::Pulse;

/// A peer that makes no progress for this long may be evicted: a few round trips.
const STALLED_AFTER: Duration = Duration::from_millis(200);
/// A source with so many times the sockets of the smallest one is a crowd: it alone makes room, and at once.
const CROWD_FACTOR: usize = 4;

/// Sockets that may have to go; clones are the same ones.
#[derive(Clone)]
pub(super) struct Unfinished(Arc<Mutex<Sockets>>);

struct Sockets {
    most: usize,
    next: u64,
    /// In the order in which they came.
    open: BTreeMap<u64, Socket>,
    /// The number of sockets from each source.
    of_source: BTreeMap<Option<IpAddr>, usize>,
}

struct Socket {
    pulse: Pulse,
    source: Option<IpAddr>,
    shown_out: CancellationToken,
}

/// One socket's place among them, until it is dropped.
pub(super) struct Turn {
    number: u64,
    sockets: Unfinished,
    shown_out: CancellationToken,
}

/// The address for which a socket counts: in IPv6 the network of 64 bits, because one host has all of it.
fn source_of(remote: Option<SocketAddr>) -> Option<IpAddr> {
    Some(match remote?.ip().to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        v4 => v4,
    })
}

impl Unfinished {
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Sockets {
            most,
            next: 0,
            open: BTreeMap::new(),
            of_source: BTreeMap::new(),
        })))
    }

    /// Makes a place for the next one, and returns false if there is none now. The source that has most sockets makes the
    /// place. A crowd loses its oldest socket at once. Else one goes that has said nothing, or to which we had no answer
    /// for a while. A socket that waits for us stays: when a thousand honest members come at once, they are served in
    /// their order.
    pub(super) fn make_room(&self) -> bool {
        self.lock().make_room(None)
    }

    /// Lets one in for which there is room.
    pub(super) fn enter(&self, pulse: Pulse, remote: Option<SocketAddr>) -> Turn {
        let (number, shown_out) = self.lock().enter(pulse, source_of(remote));
        Turn {
            number,
            sockets: self.clone(),
            shown_out,
        }
    }

    /// Makes room for one and lets it in, if that can be.
    pub(super) fn try_enter(&self, pulse: Pulse, remote: Option<SocketAddr>) -> Option<Turn> {
        let (mut sockets, source) = (self.lock(), source_of(remote));
        if !sockets.make_room(Some(source)) {
            return None;
        }
        let (number, shown_out) = sockets.enter(pulse, source);
        drop(sockets);
        Some(Turn {
            number,
            sockets: self.clone(),
            shown_out,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        // Nothing in here can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sockets {
    /// `next`: the source of the one that is to enter, where it is known.
    fn make_room(&mut self, next: Option<Option<IpAddr>>) -> bool {
        if self.open.len() < self.most {
            return true;
        }
        let number = match self.crowd(next) {
            // Nobody else goes for what a crowd takes.
            Some(crowd) => self.oldest_of(crowd),
            None => self.oldest_that_may_go(),
        };
        let gone = number.and_then(|number| self.remove(number));
        if let Some(gone) = &gone {
            gone.shown_out.cancel();
        }
        gone.is_some()
    }

    /// The source that has most sockets, if it has many more than the smallest one.
    fn crowd(&self, next: Option<Option<IpAddr>>) -> Option<Option<IpAddr>> {
        let (source, most) = self.of_source.iter().max_by_key(|(_, count)| **count)?;
        let of_next = next.map(|next| self.count(next) + 1);
        let smallest = self.of_source.values().copied().chain(of_next).min()?;
        (*most >= smallest * CROWD_FACTOR).then_some(*source)
    }

    fn count(&self, source: Option<IpAddr>) -> usize {
        self.of_source.get(&source).copied().unwrap_or_default()
    }

    /// Sockets whose peers we wait for.
    fn awaited(&self) -> impl Iterator<Item = (u64, &Socket)> {
        let open = self.open.iter().filter(|(_, socket)| socket.pulse.is_awaited());
        open.map(|(number, socket)| (*number, socket))
    }

    fn oldest_of(&self, source: Option<IpAddr>) -> Option<u64> {
        let of_source = self.awaited().filter(|(_, socket)| socket.source == source);
        let oldest = of_source.min_by_key(|(_, socket)| socket.pulse.progressed());
        oldest.map(|(number, _)| number)
    }

    /// Out of the silent or stalled ones: those of the source with most sockets, a silent one first, the oldest first.
    fn oldest_that_may_go(&self) -> Option<u64> {
        let may_go = self.awaited().filter(|(_, Socket { pulse, .. })| {
            pulse.is_silent() || pulse.progressed().elapsed() >= STALLED_AFTER
        });
        let oldest = may_go.min_by_key(|(_, socket)| {
            let pulse = &socket.pulse;
            (
                Reverse(self.count(socket.source)),
                !pulse.is_silent(),
                pulse.progressed(),
            )
        });
        oldest.map(|(number, _)| number)
    }

    fn enter(&mut self, pulse: Pulse, source: Option<IpAddr>) -> (u64, CancellationToken) {
        let (number, shown_out) = (self.next, CancellationToken::new());
        self.next += 1;
        let socket = Socket {
            pulse,
            source,
            shown_out: shown_out.clone(),
        };
        self.open.insert(number, socket);
        *self.of_source.entry(source).or_default() += 1;
        (number, shown_out)
    }

    fn remove(&mut self, number: u64) -> Option<Socket> {
        let gone = self.open.remove(&number)?;
        if let Some(count) = self.of_source.get_mut(&gone.source) {
            *count -= 1;
            if *count == 0 {
                self.of_source.remove(&gone.source);
            }
        }
        Some(gone)
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
        self.sockets.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().expect("an address"), 1))
    }

    /// One that is waited for, and has said something if it `spoke`.
    fn pulse(spoke: bool) -> Pulse {
        let pulse = Pulse::new();
        if spoke {
            pulse.beat();
        }
        pulse.wait();
        pulse
    }

    fn is_out(turn: &Turn) -> bool {
        turn.shown_out().is_cancelled()
    }

    async fn pass(millis: u64) {
        tokio::time::advance(Duration::from_millis(millis)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_its_hello_byte_by_byte_goes_for_others() {
        let sockets = Unfinished::new(2);
        let trickling = [pulse(true), pulse(true)];
        let turns = trickling
            .clone()
            .map(|pulse| sockets.try_enter(pulse, from("10.0.0.1")).expect("room"));
        for _ in 0..3 {
            assert!(!sockets.make_room(), "it has had no time");
            pass(STALLED_AFTER.as_millis() as u64 / 3).await;
            for pulse in &trickling {
                pulse.beat();
                pulse.wait();
            }
        }
        pass(10).await;
        assert!(sockets.make_room(), "there was nothing to answer");
        assert!(is_out(&turns[0]) && !is_out(&turns[1]));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_answered_just_now_stays() {
        let sockets = Unfinished::new(1);
        let honest = pulse(true);
        let turn = sockets.try_enter(honest.clone(), from("10.0.0.1")).expect("room");
        pass(500).await;
        honest.answer();
        assert!(sockets.try_enter(pulse(true), from("10.0.0.2")).is_none());
        assert!(!is_out(&turn));
    }

    #[tokio::test(start_paused = true)]
    async fn the_source_that_has_most_loses_its_own_first_however_old_others_are() {
        for spoke in [false, true] {
            let sockets = Unfinished::new(4);
            let enter = |address| sockets.try_enter(pulse(spoke), from(address)).expect("room");
            let honest = enter("10.0.0.9");
            pass(1).await;
            let crowd = ["fd00::1", "fd00::2", "fd00::3"].map(enter);
            pass(500).await;
            assert!(sockets.make_room());
            let out = crowd.each_ref().map(is_out);
            assert_eq!((out, is_out(&honest)), ([true, false, false], false));
        }
    }

    /// One address fills the places byte by byte and comes again and again; another one has said nothing yet.
    #[tokio::test(start_paused = true)]
    async fn one_address_pushes_out_its_own_sockets_and_nobody_elses() {
        let sockets = Unfinished::new(8);
        let enter = |spoke, address| sockets.try_enter(pulse(spoke), from(address)).expect("room");
        let mut crowd: Vec<Turn> = (0..8).map(|_| enter(true, "10.0.0.1")).collect();
        let honest = enter(false, "10.0.0.9");
        assert!(is_out(&crowd[0]), "another address has its place at once");
        for _ in 0..100 {
            crowd.push(enter(true, "10.0.0.1"));
            assert!(!is_out(&honest));
        }
        crowd.retain(|turn| !is_out(turn));
        assert_eq!(crowd.len(), 7);
        // If all of the crowd wait for us, none is closed.
        let busy = Unfinished::new(4);
        let answered = [(); 3].map(|()| {
            let pulse = pulse(true);
            pulse.beat();
            busy.try_enter(pulse, from("10.0.0.1")).expect("room")
        });
        let silent = busy.try_enter(pulse(false), from("10.0.0.9")).expect("room");
        let fifth = busy.try_enter(pulse(true), from("10.0.0.1"));
        assert!(fifth.is_some() && is_out(&silent), "three are no crowd");
        drop((fifth, silent));
        let fourth = pulse(true);
        fourth.beat();
        let fourth = busy.try_enter(fourth, from("10.0.0.1")).expect("room");
        assert!(busy.try_enter(pulse(true), from("10.0.0.9")).is_none());
        assert!(!is_out(&fourth) && !answered.iter().any(is_out));
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_given_back_and_sources_forgotten() {
        let sockets = Unfinished::new(2);
        for _ in 0..5 {
            let turns = ["10.0.0.1", "10.0.0.2"]
                .map(|address| sockets.try_enter(pulse(true), from(address)).expect("room"));
            assert!(sockets.try_enter(pulse(true), from("10.0.0.3")).is_none());
            drop(turns);
            assert!(sockets.lock().of_source.is_empty());
        }
    }
}
