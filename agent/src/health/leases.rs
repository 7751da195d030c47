//! Owns: what the identity Leases of API servers (KEP-1965) say of these: which renew theirs, how many are expected, and
//! which start again and again or share a host name. A server is its host: of the Leases that releases before left of it
//! the best one counts.
//! Never: compares a time in a Lease with any clock. A Lease is judged by when it was seen to change.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use shared::model::{ApiServer, ApiServerState, health::API_SERVERS_NAMED_MAX};

/// So long after a renewal a server is fresh: two of its periods of 10 s, jitter, and what a watch takes.
pub const FRESH_FOR: Duration = Duration::from_secs(25);
/// After this long without a renewal it is dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// As many servers are expected as were there at one time within this.
pub const EXPECTED_WINDOW: Duration = Duration::from_secs(2 * 60 * 60);
/// Restarts within this count.
pub const RESTARTS_WINDOW: Duration = Duration::from_secs(10 * 60);
/// More restarts than this are flapping.
const RESTARTS_TOLERATED: usize = 3;
/// Most restarts of a server that are remembered.
const RESTARTS_MAX: usize = 16;
/// Two renewals closer than this are of two servers.
const QUICK: Duration = Duration::from_secs(7);
/// Shortest duration of such changes.
const SHARED_AFTER: Duration = Duration::from_secs(60);
/// Most Leases that are looked at, by name: a control plane has a handful of servers.
pub const LEASES_MAX: usize = 64;

/// Identity Leases by name.
pub type Picture = BTreeMap<Box<str>, IdentityLease>;

/// The Kubernetes releases that keep Leases of this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// 1.26 and before, by the label `k8s.io/component`.
    Old,
    /// 1.27 and later, by the label `apiserver.kubernetes.io/identity`.
    Current,
}

/// An identity Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityLease {
    /// Its uid.
    pub uid: Box<str>,
    /// Another one for every start, from 1.35 on.
    pub holder: Box<str>,
    /// Time at which it was renewed, by the server's clock: compared with itself only. In microseconds.
    pub renewed: Option<i64>,
    /// The label with the host's name; empty: it has none, as those before 1.26.
    pub host: Box<str>,
    /// By which label it was found.
    pub form: Form,
}

/// Memory of an existing Lease.
#[derive(Debug, Clone)]
struct Seen {
    lease: IdentityLease,
    /// Time at which it was first seen.
    since: Duration,
    /// Time at which it was last seen to change.
    moved: Option<Duration>,
    /// Since when renewals come closer than [`QUICK`], and when the last such pair came.
    quick: Option<(Duration, Duration)>,
}

/// Memory of a host.
#[derive(Debug, Clone, Default)]
struct History {
    /// Time at which its server started again, and whether that is inferred.
    restarts: VecDeque<(Duration, bool)>,
    /// Time at which its last Lease went.
    gone: Option<Duration>,
}

/// The identity Leases, as they were seen over time.
#[derive(Debug, Clone, Default)]
pub struct IdentityLeases {
    leases: BTreeMap<Box<str>, Seen>,
    histories: BTreeMap<Box<str>, History>,
    /// The most fresh servers at one time: falling numbers, each with when it last held.
    peaks: VecDeque<(Duration, u32)>,
    /// The first picture was taken: what appears now was written now.
    began: bool,
}

impl IdentityLeases {
    /// Takes the whole picture, by name.
    pub fn take(&mut self, now: Duration, found: &Picture) {
        self.forget_gone(now, found);
        for (name, lease) in found.iter().take(LEASES_MAX) {
            match self.leases.get_mut(name) {
                Some(seen) => {
                    let restart = seen.changes(now, lease);
                    let host = host(name, lease);
                    if let Some(inferred) = restart {
                        self.histories.entry(host).or_default().restarted(now, inferred);
                    }
                }
                None => self.appeared(now, name, lease),
            }
        }
        self.began = true;
        self.tick(now);
    }

    /// They cannot be read: what they said is forgotten.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Time passed.
    pub fn tick(&mut self, now: Duration) {
        let fresh = self.fresh(now);
        while self.peaks.back().is_some_and(|(_, peak)| *peak <= fresh) {
            self.peaks.pop_back();
        }
        self.peaks.push_back((now, fresh));
        while self
            .peaks
            .front()
            .is_some_and(|(at, _)| now.saturating_sub(*at) > EXPECTED_WINDOW)
        {
            self.peaks.pop_front();
        }
        let hosts: BTreeSet<Box<str>> = self.hosts().into_keys().collect();
        self.histories.retain(|host, history| {
            history
                .restarts
                .retain(|(at, _)| now.saturating_sub(*at) <= RESTARTS_WINDOW);
            let lately = history
                .gone
                .is_some_and(|at| now.saturating_sub(at) <= RESTARTS_WINDOW);
            hosts.contains(host) || lately
        });
    }

    /// Servers whose Lease moves, of those expected.
    pub fn counts(&self, now: Duration) -> (u32, u32) {
        let expected = self.peaks.iter().map(|(_, peak)| *peak).max().unwrap_or_default();
        (self.fresh(now), expected.max(self.present(now)))
    }

    /// Returns true if one of them moves.
    pub fn any_fresh(&self, now: Duration) -> bool {
        self.fresh(now) > 0
    }

    /// Returns true if one was seen to move since the agent reads them.
    pub fn any_moved(&self) -> bool {
        self.leases.values().any(|seen| seen.moved.is_some())
    }

    /// Returns true if one may move yet.
    pub fn any_unknown(&self, now: Duration) -> bool {
        let mut states = self.leases.values().map(|seen| seen.state(now));
        states.any(|state| state == ApiServerState::Unknown)
    }

    /// Returns true if some moved, and all are dead now.
    pub fn all_died(&self, now: Duration) -> bool {
        let mut states = self.leases.values().map(|seen| seen.state(now));
        self.any_moved() && states.all(|state| state == ApiServerState::Dead)
    }

    /// Returns true if a server starts again and again.
    pub fn any_flaps(&self) -> bool {
        self.histories
            .values()
            .any(|history| history.restarts.len() > RESTARTS_TOLERATED)
    }

    /// Returns true if two servers keep one Lease.
    pub fn any_shared(&self, now: Duration) -> bool {
        self.leases.values().any(|seen| seen.is_shared(now))
    }

    /// The servers by host; at most [`API_SERVERS_NAMED_MAX`].
    pub fn servers(&self, now: Duration) -> Vec<ApiServer> {
        let hosts = self.hosts();
        let counted = hosts.iter().filter(|(_, leases)| self.counts_in(leases, now));
        let servers = counted.map(|(host, leases)| {
            let restarts = self.histories.get(host).map(|history| &history.restarts);
            ApiServer {
                host: host.clone(),
                state: best(leases, now),
                restarts: restarts.map_or(0, |restarts| u32::try_from(restarts.len()).unwrap_or(u32::MAX)),
                restarts_inferred: restarts
                    .is_some_and(|restarts| restarts.iter().any(|(_, inferred)| *inferred)),
                shared: leases.iter().any(|seen| seen.is_shared(now)),
            }
        });
        servers.take(API_SERVERS_NAMED_MAX).collect()
    }

    fn appeared(&mut self, now: Duration, name: &str, lease: &IdentityLease) {
        let history = self.histories.entry(host(name, lease)).or_default();
        if history.gone.take().is_some() {
            history.restarted(now, false);
        }
        let seen = Seen {
            lease: lease.clone(),
            since: now,
            moved: self.began.then_some(now),
            quick: None,
        };
        self.leases.insert(name.into(), seen);
    }

    /// A server that takes its Lease along is not expected any more.
    fn forget_gone(&mut self, now: Duration, found: &Picture) {
        let gone: Vec<Box<str>> = self
            .leases
            .keys()
            .filter(|name| !found.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            let Some(host) = self.leases.get(&name).map(|seen| host(&name, &seen.lease)) else {
                continue;
            };
            let of_host = self.hosts().remove(&host).unwrap_or_default();
            let counted = of_host.iter().any(|seen| seen.moved.is_some());
            self.leases.remove(&name);
            if self.hosts().contains_key(&host) {
                continue; // another Lease of the same server stays
            }
            if counted {
                self.peaks
                    .iter_mut()
                    .for_each(|(_, peak)| *peak = peak.saturating_sub(1));
            }
            self.histories.entry(host).or_default().gone = Some(now);
        }
    }

    fn hosts(&self) -> BTreeMap<Box<str>, Vec<&Seen>> {
        let mut hosts: BTreeMap<Box<str>, Vec<&Seen>> = BTreeMap::new();
        for (name, seen) in &self.leases {
            hosts.entry(host(name, &seen.lease)).or_default().push(seen);
        }
        hosts
    }

    fn fresh(&self, now: Duration) -> u32 {
        let hosts = self.hosts();
        let fresh = hosts
            .values()
            .filter(|leases| best(leases, now) == ApiServerState::Fresh);
        u32::try_from(fresh.count()).unwrap_or(u32::MAX)
    }

    /// Servers that exist as far as anybody can tell: the fresh ones, and those that never moved, which may have died
    /// before the first look.
    fn present(&self, now: Duration) -> u32 {
        let hosts = self.hosts();
        let present = hosts.values().filter(|leases| {
            let unproven = leases.iter().all(|seen| seen.moved.is_none() && seen.is_new(now));
            best(leases, now) == ApiServerState::Fresh || (unproven && self.counts_in(leases, now))
        });
        u32::try_from(present.count()).unwrap_or(u32::MAX)
    }

    /// Returns true if a server's Leases are no leftovers: of an older release that nobody collects, or, without a
    /// host's name, of an earlier start.
    fn counts_in(&self, leases: &[&Seen], now: Duration) -> bool {
        let state = best(leases, now);
        if state == ApiServerState::Fresh || state == ApiServerState::Unknown {
            return true;
        }
        let current_moves = || {
            let mut others = self.leases.values();
            others.any(|seen| seen.lease.form == Form::Current && seen.moved.is_some())
        };
        let has_host = leases.iter().any(|seen| !seen.lease.host.is_empty());
        let old_and_never_moved = leases
            .iter()
            .all(|seen| seen.lease.form == Form::Old && seen.moved.is_none());
        has_host && !(old_and_never_moved && current_moves())
    }
}

impl Seen {
    /// Takes its newer state; says whether its server started again, and then whether that is inferred.
    fn changes(&mut self, now: Duration, lease: &IdentityLease) -> Option<bool> {
        if self.lease == *lease {
            return None;
        }
        let replaced = self.lease.uid != lease.uid || self.lease.holder != lease.holder;
        let gap = self.moved.map(|at| now.saturating_sub(at));
        let restart = if replaced {
            Some(false)
        } else {
            gap.filter(|gap| *gap > FRESH_FOR).map(|_| true)
        };
        if let (None, Some(gap), Some(before)) = (restart, gap, self.moved)
            && gap < QUICK
        {
            let since = self.quick_run(now).unwrap_or(before);
            self.quick = Some((since, now));
        }
        self.lease = lease.clone();
        self.moved = Some(now);
        restart
    }

    /// Since when renewals come too close, if they still do.
    fn quick_run(&self, now: Duration) -> Option<Duration> {
        let (since, last) = self.quick?;
        (now.saturating_sub(last) <= FRESH_FOR).then_some(since)
    }

    fn is_shared(&self, now: Duration) -> bool {
        self.quick_run(now)
            .is_some_and(|since| now.saturating_sub(since) >= SHARED_AFTER)
    }

    fn state(&self, now: Duration) -> ApiServerState {
        let age = now.saturating_sub(self.moved.unwrap_or(self.since));
        match self.moved {
            _ if age > DEAD_AFTER => ApiServerState::Dead,
            _ if age > FRESH_FOR => ApiServerState::Late,
            Some(_) => ApiServerState::Fresh,
            None => ApiServerState::Unknown,
        }
    }

    fn is_new(&self, now: Duration) -> bool {
        now.saturating_sub(self.since) <= EXPECTED_WINDOW
    }
}

impl History {
    fn restarted(&mut self, now: Duration, inferred: bool) {
        if self.restarts.len() == RESTARTS_MAX {
            self.restarts.pop_front();
        }
        self.restarts.push_back((now, inferred));
    }
}

fn host(name: &str, lease: &IdentityLease) -> Box<str> {
    if lease.host.is_empty() {
        name.into()
    } else {
        lease.host.clone()
    }
}

/// The best of a server's Leases: only one is its own, the others are left over.
fn best(leases: &[&Seen], now: Duration) -> ApiServerState {
    let rank = |state: &ApiServerState| match state {
        ApiServerState::Fresh => 0,
        ApiServerState::Unknown => 1,
        ApiServerState::Late => 2,
        ApiServerState::Dead => 3,
    };
    let states = leases.iter().map(|seen| seen.state(now));
    states.min_by_key(rank).unwrap_or(ApiServerState::Unknown)
}

#[cfg(test)]
mod tests;
