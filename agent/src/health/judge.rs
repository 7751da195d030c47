//! Owns: the verdict on a control plane: which of its signs says what, in which order, and how long it takes to believe
//! that it is well again.
//! Never: asks anybody, or takes silence of its own for a failure: what cannot be read is not observed.

use std::time::Duration;

use shared::model::{ControlPlaneReason as Reason, ControlPlaneVerdict};

use super::{
    leader::Leader,
    leases::{IdentityLeases, Picture},
    probes::{Answer, Probes},
};

/// So long an agent that has just started looks before it says that it does not know.
pub const STARTING: Duration = Duration::from_secs(30);
/// Good answers in a row before a control plane that failed counts as well again.
pub const GOOD_IN_A_ROW: u32 = 2;
/// So long it is well before it counts as well again.
pub const GOOD_FOR: Duration = Duration::from_secs(20);

/// The judge of a control plane.
#[derive(Debug, Clone)]
pub struct Judge {
    started: Duration,
    probes: Probes,
    leases: IdentityLeases,
    /// True if the Leases can be read; absent: they were not listed yet.
    leases_readable: Option<bool>,
    /// The API server had no time for the last question for them: that they stand still says nothing.
    blind: bool,
    controller_manager: Leader,
    scheduler: Leader,
    reason: Option<Reason>,
    /// Time at which an answer was last not good.
    failed_at: Duration,
    /// Since when nothing else speaks against one that failed.
    good_since: Option<Duration>,
}

impl Judge {
    /// One that starts now and knows nothing.
    pub fn new(now: Duration) -> Self {
        Self {
            started: now,
            probes: Probes::default(),
            leases: IdentityLeases::default(),
            leases_readable: None,
            blind: false,
            controller_manager: Leader::default(),
            scheduler: Leader::default(),
            reason: None,
            failed_at: now,
            good_since: None,
        }
    }

    /// Takes the answers of /readyz and /livez.
    pub fn answered(&mut self, now: Duration, readyz: Answer, livez: &Answer) {
        self.probes.take(readyz, livez);
        if self.probes.good() == 0 {
            self.failed_at = now;
        }
    }

    /// The identity Leases, whole; `None`: they cannot be read.
    pub fn leases(&mut self, now: Duration, found: Option<&Picture>) {
        self.leases_readable = Some(found.is_some());
        match found {
            Some(found) => self.leases.take(now, found),
            None => self.leases.forget(),
        }
    }

    /// Notes whether the API server had no time to list them.
    pub fn blind(&mut self, blind: bool) {
        self.blind = blind;
    }

    /// The Lease of the controller manager's leader, by its version; `None`: there is none, or it may not be read.
    pub fn controller_manager(&mut self, now: Duration, version: Option<&str>) {
        self.controller_manager.take(now, version);
    }

    /// The same of the scheduler's.
    pub fn scheduler(&mut self, now: Duration, version: Option<&str>) {
        self.scheduler.take(now, version);
    }

    /// Returns true if some Lease has not moved for too long, so that it is worth listing all of them.
    pub fn misses_renewals(&self, now: Duration) -> bool {
        let (fresh, expected) = self.leases.counts(now);
        fresh < expected
    }

    /// Returns true if it was found to fail.
    pub fn has_failed(&self) -> bool {
        self.reason
            .is_some_and(|reason| reason.is_healthy() == Some(false))
    }

    /// Names of the checks that failed last.
    pub fn failed_checks(&self) -> &[Box<str>] {
        self.probes.failed_checks()
    }

    /// The verdict; `None`: it is too early for one.
    pub fn verdict(&mut self, now: Duration) -> Option<ControlPlaneVerdict> {
        self.leases.tick(now);
        let concluded = self.conclude(now);
        self.reason = self.settle(now, concluded);
        let reason = self.reason?;
        let (api_servers_fresh, api_servers_expected) = self.leases.counts(now);
        Some(ControlPlaneVerdict {
            reason,
            api_servers_fresh,
            api_servers_expected,
            api_servers: self.leases.servers(now),
        })
    }

    /// Returns true if the last look failed or got no answer, so that the control plane was not known to be well.
    fn was_not_well(&self) -> bool {
        let known = self.reason.filter(|reason| *reason != Reason::Starting);
        known.is_some_and(|reason| reason.is_healthy() != Some(true))
    }

    /// Keeps to what was not well until the control plane was well for a while.
    fn settle(&mut self, now: Duration, concluded: Option<Reason>) -> Option<Reason> {
        let Some(reason) = concluded else {
            // An uncertain sign changes nothing; a status that was never certain is unknown after a while.
            self.good_since = None;
            let waits = now.saturating_sub(self.started) < STARTING;
            return self.reason.or((!waits).then_some(Reason::Starting));
        };
        let recovers = self.was_not_well() && reason.is_healthy() == Some(true);
        if !recovers {
            self.good_since = None;
            return Some(reason);
        }
        // Findings of the probes are over with the last failed one.
        let by_probes = !matches!(
            self.reason,
            Some(
                Reason::IdentityLeasesStale
                    | Reason::ControllerManagerLeaderLost
                    | Reason::SchedulerLeaderLost
            )
        );
        let begun = if by_probes { self.failed_at } else { now };
        let since = *self.good_since.get_or_insert(begun);
        // Some that were not good say that others are well: an API server that is silent beside one that is not.
        let since = since.max(self.failed_at);
        if self.probes.good() >= GOOD_IN_A_ROW && now.saturating_sub(since) >= GOOD_FOR {
            self.good_since = None;
            return Some(reason);
        }
        self.reason
    }

    /// Verdict of the signs now: the first rule that holds. `None`: none does.
    fn conclude(&self, now: Duration) -> Option<Reason> {
        let last = self.probes.last()?;
        let well = *last == Answer::Passed;
        match last {
            Answer::NoNetwork => return Some(Reason::AgentIsolated),
            Answer::NotReadable => return Some(Reason::HealthNotReadable),
            Answer::Silent if self.probes.fails() => {
                return Some(if self.leases.any_fresh(now) {
                    Reason::ApiServersDegraded // others write their Leases, and the watch shows them
                } else {
                    Reason::ApiServerUnreachable
                });
            }
            _ if self.probes.fails() => return Some(Reason::ApiServerNotReady),
            _ => {}
        }
        if well && !self.blind && self.leases.all_died(now) {
            return Some(Reason::IdentityLeasesStale);
        }
        if self.probes.etcd_fails() {
            return Some(Reason::EtcdUnhealthy);
        }
        if self.controller_manager.is_lost() {
            return Some(Reason::ControllerManagerLeaderLost);
        }
        if self.scheduler.is_lost() {
            return Some(Reason::SchedulerLeaderLost);
        }
        (well && self.probes.good() > 0)
            .then(|| self.conclude_well(now))
            .flatten()
    }

    /// The same, of a control plane whose probes pass.
    fn conclude_well(&self, now: Duration) -> Option<Reason> {
        let early = now.saturating_sub(self.started) < STARTING;
        if early && (self.leases_readable.is_none() || self.leases.any_unknown(now)) {
            return None; // what the agent before this one said holds until more is known
        }
        if !self.leases.any_moved() {
            return Some(Reason::HealthyNoIdentity);
        }
        let (fresh, expected) = self.leases.counts(now);
        Some(if fresh < expected || fresh == 0 {
            Reason::ApiServersDegraded
        } else if self.leases.any_flaps() {
            Reason::ApiServerFlapping
        } else if self.leases.any_shared(now) {
            Reason::SharedIdentity
        } else {
            Reason::Healthy
        })
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
