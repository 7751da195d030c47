//! Owns: the log lines that say who asked for what, from where, and what became of it: each decision and each copy of
//! the log, and every request that was refused. Bounded: a peer that is refused again and again fills no disk.
//! Never: decides what is refused, nor repeats more of a request than its kind.

use std::{
    any::type_name,
    sync::{Arc, Mutex, PoisonError},
};

use shared::tls::PeerIdentity;
use tonic::Status;
use tracing::{info, warn};

use super::access::Need;

/// Refusals that are logged in a minute; of the others the next line says how many they were.
pub(super) const REFUSALS_A_MINUTE: u32 = 60;
const MINUTE_MILLIS: u64 = 60_000;

/// The audit of one clusterset. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Audit(Arc<Mutex<Minute>>);

#[derive(Debug, Default)]
struct Minute {
    began_at: u64,
    logged: u32,
    left_out: u64,
}

impl Minute {
    /// Returns the number of refusals that were not logged before this one, or nothing if this one is not logged either.
    fn logs(&mut self, now: u64) -> Option<u64> {
        if now.saturating_sub(self.began_at) >= MINUTE_MILLIS {
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
            Ok(_) if matches!(need, Need::Decide | Need::Copy) => {
                info!(%who, %key, from, request, "asked for a decision or a copy, and may");
            }
            Ok(_) => {}
            Err(status) => {
                // It guards what is only counted.
                let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner).logs(now);
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

    #[test]
    fn so_many_refusals_are_logged_in_a_minute_and_the_next_says_how_many_were_not() {
        let mut minute = Minute::default();
        for now in 0..u64::from(REFUSALS_A_MINUTE) {
            assert_eq!(minute.logs(now), Some(0));
        }
        for now in 100..110 {
            assert_eq!(minute.logs(now), None);
        }
        assert_eq!(minute.logs(MINUTE_MILLIS), Some(10));
        assert_eq!(minute.logs(MINUTE_MILLIS + 1), Some(0));
    }
}
