//! Owns: a short comparison of our plans with what upstream's own manager of Cluster API does.
//! Never: compares by itself (`verify::topology` does).

use std::time::Duration;

use libtest_mimic::Trial;
use tributary_e2e::{
    suite::test_with_own_clusters,
    verify::topology::{Told, compare},
};

/// The first seeds: each edit once. They guard every change.
const FIRST: Told = Told {
    first: 1,
    seeds: 2,
    edits: EDITS,
};
/// Those that guard a release; `cargo control-plane topology` plays as many as it is told.
const FURTHER: Told = Told {
    first: 3,
    seeds: 8,
    edits: EDITS,
};
const EDITS: u32 = 9;
/// Two management clusters are played on, at the pace of upstream's manager.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn trials() -> Vec<Trial> {
    let compared = |name: &str, told: Told| {
        test_with_own_clusters(name, LIMIT, move || async move {
            let seen = compare(told).await?;
            println!("{seen}");
            Ok(())
        })
    };
    vec![
        compared(
            "real::topology::plans_and_kept_topologies_are_what_cluster_api_makes",
            FIRST,
        ),
        compared(
            "real::topology::further_seeds_are_what_cluster_api_makes",
            FURTHER,
        ),
    ]
}
