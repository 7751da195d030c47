//! Owns: durable before ack, tried from outside on a hub that is a process of its own: it is killed under load,
//! its system calls are counted, it starts over logs of earlier versions, and lets old history go.
//! Never: looks into the hub.

mod account;
mod history;
mod kills;
mod syncs;

use libtest_mimic::Trial;
use tributary_e2e::suite::{plain_test, sim_test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        // Not a scenario: how long it takes is for whoever says how often, and each round has its own bound.
        plain_test("durability::nothing_acknowledged_is_lost", || {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(kills::nothing_acknowledged_is_lost())
        }),
        sim_test(
            "sim::durability_every_acknowledgement_waits_for_a_sync",
            syncs::every_acknowledgement_waits_for_a_sync,
        ),
        sim_test(
            "sim::durability_history_goes_and_nothing_that_follows_from_it",
            history::history_goes_and_nothing_that_follows_from_it,
        ),
    ]
}
