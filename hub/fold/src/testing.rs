//! Generated histories, for the tests of the crates that depend on this one.

use proptest::{collection::vec, prelude::*};

use crate::{
    State, apply,
    tests::{
        given::empty,
        operations::{Driver, decided_histories, interleaved},
    },
};

/// The states of a history in which members and operators do what they may, in their order, with the epochs that begin in it.
pub fn states() -> impl Strategy<Value = Vec<State>> {
    (decided_histories(true), vec(any::<u8>(), 1..64)).prop_map(|(histories, picks)| {
        let driver = Driver::run_by_newest_rules(&interleaved(&histories, &picks));
        let mut epochs = driver.epochs.iter().peekable();
        let (mut state, mut states) = (empty(), Vec::new());
        for (before, event) in driver.folded.events.iter().enumerate() {
            while epochs.next_if(|epoch| **epoch <= before).is_some() {
                state.begin_epoch();
                states.push(state.clone());
            }
            apply(&mut state, event);
            states.push(state.clone());
        }
        states
    })
}
