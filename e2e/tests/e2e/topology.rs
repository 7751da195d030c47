//! Owns: a short comparison of our plans with what upstream's own manager of Cluster API does.
//! Never: compares by itself (`verify::topology` does).

use std::sync::Arc;

use libtest_mimic::Trial;
use tributary_e2e::{
    real::Fleet,
    suite::real_test,
    verify::topology::{Told, compare},
};

/// Seeds that are played here, and their edits; `cargo control-plane topology` plays as many as it is told.
const SEEDS: u32 = 10;
/// Each edit once, in the first seed.
const EDITS: u32 = 16;

pub(crate) fn trials() -> Vec<Trial> {
    vec![real_test(
        "real::topology::plans_are_what_cluster_api_makes",
        |_: Arc<Fleet>| async {
            let told = Told {
                first: 1,
                seeds: SEEDS,
                edits: EDITS,
            };
            let seen = compare(told).await?;
            println!("{seen}");
            Ok(())
        },
    )]
}
