//! Stories that users live: each runs on simulated clusters and on real ones, with the same code.

mod export;

use std::sync::Arc;

use libtest_mimic::Trial;
use tributary_e2e::{
    suite::{real_test, sim_test},
    world::Backend,
};

/// One story on both kinds of clusters.
macro_rules! story {
    ($trials:ident, $story:path) => {
        let name = stringify!($story).replace("::", "_");
        $trials.push(sim_test(&format!("sim::{name}"), || $story(Backend::Simulated)));
        $trials.push(real_test(&format!("real::{name}"), |fleet: Arc<_>| {
            $story(Backend::Real(fleet))
        }));
    };
}

/// Every story.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    story!(trials, export::arrives_everywhere);
    trials
}
