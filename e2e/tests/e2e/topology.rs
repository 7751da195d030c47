//! Owns: a short comparison of our plans with what upstream's own manager of Cluster API does.
//! Never: compares by itself (`verify::topology` does).

use std::time::Duration;

use libtest_mimic::Trial;
use tributary_e2e::{
    suite::test_with_own_clusters,
    verify::topology::{Told, compare},
};

/// Seeds that are played here, and their edits; `cargo control-plane topology` plays as many as it is told.
const SEEDS: u32 = 10;
/// Each edit once, in the first two seeds.
const EDITS: u32 = 8;
/// Two management clusters are played on, at the pace of upstream's manager.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::topology::plans_and_kept_topologies_are_what_cluster_api_makes",
        LIMIT,
        || async {
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
