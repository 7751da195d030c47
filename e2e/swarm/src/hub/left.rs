//! Owns: what a hub leaves on its disk when its process ends, held against the one that is started over it.
//! Never: ends or starts a hub.

use fold::State;
use model::Cursor;

use oracle::laws::{Guarded, Law};

use super::{Hub, promises::position};

/// The state that must be there again.
pub(crate) struct Left {
    /// The last position that somebody was promised.
    promised: Cursor,
    /// The state at the last durable position, if the hub had not folded more.
    state: Option<(Cursor, State)>,
}

impl Left {
    /// The state that this hub leaves.
    pub(crate) fn by(hub: &Hub) -> Self {
        Self {
            promised: hub.promised(),
            state: hub.durable_state(),
        }
    }

    /// The hub that was started over the same disk holds it.
    pub(crate) fn check(self, hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
        let Self { promised, state } = self;
        guarded.count(Law::Durable, u64::from(promised.revision.0 > 0));
        if !hub.holds(promised) {
            return Err(Law::Durable.broken(format!(
                "the hub had promised {}, after its crash the log stands at {}",
                position(promised),
                position(hub.head())
            )));
        }
        let Some(((at, was), (_, is))) = state.zip(hub.durable_state()).filter(|(was, is)| was.0 == is.0)
        else {
            return Ok(());
        };
        guarded.count(Law::Durable, 1);
        if was == is {
            return Ok(());
        }
        Err(Law::Durable.broken(format!(
            "the state at {} had {} members and {} facts, what is read of it has {} and {}",
            position(at),
            was.members().len(),
            was.fact_count(),
            is.members().len(),
            is.fact_count(),
        )))
    }
}
