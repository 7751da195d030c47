//! Owns: the log lines that say who asked for what, from where, and what became of it: each decision and each copy of
//! the log, and every request that was refused. Bounded: a peer that is refused again and again fills no disk.
//! Never: decides what is refused, nor repeats more of a request than its kind.

use std::{
    any::type_name,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use shared::{identity::Identity, tls::PeerIdentity};
use tonic::Status;
use tracing::{info, warn};

use super::access::Need;

/// Refusals of one identity that are logged in a minute, of decisions and of reads each; of the others the next line says
/// how many they were.
pub(super) const REFUSALS_A_MINUTE: u32 = 20;
/// Identities with a share of their own. Beyond it all of one role have one together, so the log grows by so many lines
/// a minute at most, whoever is refused.
const SHARES_MAX: usize = 128;
const MINUTE_MILLIS: u64 = 60_000;

/// The audit of one clusterset. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Audit(Arc<Mutex<Refusals>>);

/// The refusals that were logged, by identity. Nobody's hide another's, and reads hide no decisions.
#[derive(Debug, Default)]
struct Refusals {
    of_one: BTreeMap<(&'static str, Kind, String), Minute>,
    of_role: BTreeMap<(&'static str, Kind), Minute>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reads,
    Decides,
}

#[derive(Debug, Default)]
struct Minute {
    began_at: u64,
    logged: u32,
    left_out: u64,
}

impl Refusals {
    /// Returns the number of this identity's refusals that were not logged before this one, or nothing if this one is
    /// not logged either.
    fn logs(&mut self, who: &Identity, need: Need, now: u64) -> Option<u64> {
        let (role, kind) = (who.role.word(), Kind::of(need));
        let one = (role, kind, who.to_string());
        if !self.of_one.contains_key(&one) && self.of_one.len() >= SHARES_MAX {
            self.forget(now);
        }
        if self.of_one.len() < SHARES_MAX || self.of_one.contains_key(&one) {
            return self.of_one.entry(one).or_default().logs(now);
        }
        self.of_role.entry((role, kind)).or_default().logs(now)
    }

    /// Whoever was not refused for a minute needs no share. What was left out of it is told of its role.
    fn forget(&mut self, now: u64) {
        let of_role = &mut self.of_role;
        self.of_one.retain(|(role, kind, _), minute| {
            let is_over = minute.is_over(now);
            if is_over && minute.left_out > 0 {
                of_role.entry((role, *kind)).or_default().left_out += minute.left_out;
            }
            !is_over
        });
    }
}

impl Kind {
    fn of(need: Need) -> Self {
        match need {
            Need::Read | Need::ReadAll => Self::Reads,
            Need::Decide | Need::Copy => Self::Decides,
        }
    }
}

impl Minute {
    fn is_over(&self, now: u64) -> bool {
        now.saturating_sub(self.began_at) >= MINUTE_MILLIS
    }

    fn logs(&mut self, now: u64) -> Option<u64> {
        if self.is_over(now) {
            (self.began_at, self.logged) = (now, 0);
        }
        if self.logged >= REFUSALS_A_MINUTE {
            self.left_out += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Audit {
    /// A caller sent a message of this kind, and may continue or gets the reason why not.
    pub(super) fn asked<M, T>(
        &self,
        peer: &PeerIdentity,
        need: Need,
        admitted: &Result<T, Status>,
        now: u64,
    ) {
        let (who, key, request) = (&peer.identity, peer.key_fingerprint, kind::<M>());
        let from = peer.remote.map(|remote| remote.to_string()).unwrap_or_default();
        match admitted {
            Ok(_) if Kind::of(need) == Kind::Decides => {
                info!(%who, %key, from, request, "asked for a decision or a copy, and may");
            }
            Ok(_) => {}
            Err(status) => {
                // It guards what is only counted.
                let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let logs = refusals.logs(who, need, now);
                drop(refusals);
                if let Some(left_out) = logs {
                    let why = status.message();
                    warn!(%who, %key, from, request, why, left_out, "refused a request");
                }
            }
        }
    }
}

/// The name of a message of the contract.
fn kind<M>() -> &'static str {
    let name = type_name::<M>();
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proto::v1;

    use super::*;

    #[test]
    fn a_request_is_named_as_the_contract_names_it() {
        assert_eq!(kind::<v1::EvictMemberRequest>(), "EvictMemberRequest");
    }

    fn identity(name: &str) -> Identity {
        Identity::parse(&format!("spiffe://example.org/clusterset/default/{name}")).expect(name)
    }

    #[test]
    fn so_many_refusals_are_logged_in_a_minute_and_the_next_says_how_many_were_not() {
        let mut refusals = Refusals::default();
        let mut logs = |now| refusals.logs(&identity("cluster/east"), Need::Read, now);
        for now in 0..u64::from(REFUSALS_A_MINUTE) {
            assert_eq!(logs(now), Some(0));
        }
        for now in 100..110 {
            assert_eq!(logs(now), None);
        }
        assert_eq!(logs(MINUTE_MILLIS), Some(10));
        assert_eq!(logs(MINUTE_MILLIS + 1), Some(0));
    }

    #[test]
    fn who_is_refused_without_end_hides_no_refusal_of_another_and_no_decision_of_its_own() {
        let mut refusals = Refusals::default();
        for _ in 0..1_000 {
            refusals.logs(&identity("cluster/east"), Need::Read, 1);
        }
        for (who, need) in [
            ("cluster/west", Need::Read),
            ("operator/alice", Need::Copy),
            ("cluster/east", Need::Decide),
        ] {
            assert_eq!(refusals.logs(&identity(who), need, 2), Some(0), "{who}");
        }
        assert_eq!(refusals.logs(&identity("cluster/east"), Need::Read, 2), None);
    }

    #[test]
    fn however_many_are_refused_the_lines_of_a_minute_are_bounded_and_an_operator_has_one() {
        let mut refusals = Refusals::default();
        let members = (0..10 * SHARES_MAX).map(|number| identity(&format!("cluster/c-{number}")));
        let lines = members.filter(|who| refusals.logs(who, Need::Read, 1).is_some());
        assert_eq!(lines.count(), SHARES_MAX + REFUSALS_A_MINUTE as usize);
        assert_eq!(refusals.logs(&identity("operator/alice"), Need::Read, 1), Some(0));
        assert_eq!(refusals.logs(&identity("cluster/new"), Need::Read, 1), None);
        assert_eq!(
            refusals.logs(&identity("cluster/new"), Need::Read, MINUTE_MILLIS + 1),
            Some(0)
        );
        assert_eq!(
            refusals.of_one.len(),
            1,
            "who was not refused for a minute is forgotten"
        );
    }
}
