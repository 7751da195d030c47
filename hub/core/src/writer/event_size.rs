//! Owns: which reported facts the log has no events for, because they would be too large.
//! Never: appends; what the limits are is asked of the log.

use model::{
    EncodedFact,
    fact::FACT_BYTES_MAX,
    sync::{MESSAGE_BYTES_MAX, RefusalReason},
};
use wire::{self, EVENT_ENVELOPE_BYTES_MAX};

use event_log::Limits;
use fold::{Draft, DraftFact, Rejection};

// Whatever a member may send arrives, so that it can be refused item by item.
const _: () = assert!(2 * FACT_BYTES_MAX <= MESSAGE_BYTES_MAX);

/// Why a fact that is news cannot be recorded. It depends on the fact's bytes alone: sent again, it is answered in the
/// same way.
pub(super) fn refuse_too_large(fact: &EncodedFact, limits: Limits) -> Result<(), Rejection> {
    let most = limits.event_bytes.saturating_sub(EVENT_ENVELOPE_BYTES_MAX);
    let bytes = fact.bytes.len();
    if bytes <= most {
        return Ok(());
    }
    let what = fact.fact.key().map(|key| key.to_string()).unwrap_or_default();
    Err(Rejection::Refused {
        reason: RefusalReason::Invalid,
        message: format!(
            "{what} has {bytes} bytes, and the event log takes at most {most} of one object: make it smaller, or split it"
        )
        .into(),
    })
}

/// An operator's decisions, or why one of them cannot be recorded.
pub(super) fn decisions_within(limits: Limits, drafts: Vec<Draft>) -> Result<Vec<Draft>, Rejection> {
    let room = limits.event_bytes.saturating_sub(EVENT_ENVELOPE_BYTES_MAX);
    for draft in &drafts {
        let DraftFact::Decided(fact) = &draft.fact else {
            continue;
        };
        let bytes = wire::encode_fact(fact).bytes.len();
        if bytes > room {
            let message = format!(
                "{} has {bytes} bytes, and the event log takes at most {room} of one decision: make it smaller",
                fact.kind()
            );
            return Err(Rejection::OperatorRefused {
                message: message.into(),
            });
        }
    }
    Ok(drafts)
}
