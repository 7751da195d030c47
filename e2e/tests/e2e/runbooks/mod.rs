//! Owns: that guides and runbooks do what they say: each is played with the commands that stand in it, on
//! simulated clusters and on real ones, and none of its commands is left unplayed without a reason.
//! Never: judges how the product does it; the scenarios do.
//!
//! * `page`: the commands of a section; the `player` of all tests types them, with the words of this clusterset for those
//!   of the page.

mod authority;
mod join;
mod leave;
mod lost;
mod page;
mod renew;
mod restore;

use std::sync::Arc;

use cluster::{
    clusterset::{Backend, LocalClusterset, eventually::eventually, questions::kinds},
    real::Fleet,
};
use libtest_mimic::Trial;
use tributary_e2e::suite::{real_test, sim_test};

use crate::player::Player;
use page::Page;

/// One runbook on both kinds of clusters.
macro_rules! runbook {
    ($trials:ident, $story:path) => {
        let name = stringify!($story).split("::").last().unwrap_or_default();
        $trials.push(sim_test(&format!("sim::runbooks::{name}"), || {
            $story(Backend::Simulated)
        }));
        $trials.push(real_test(
            &format!("real::runbooks::{name}"),
            |fleet: Arc<Fleet>| $story(Backend::Real(fleet)),
        ));
    };
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    runbook!(trials, join::a_cluster_joins);
    runbook!(trials, renew::a_certificate_ends_and_another_key_is_admitted);
    runbook!(trials, authority::an_authority_is_replaced);
    runbook!(
        trials,
        lost::half_of_the_members_are_lost_and_one_never_comes_back
    );
    runbook!(trials, lost::a_member_took_back_most_of_its_exports);
    runbook!(trials, leave::a_cluster_leaves);
    runbook!(trials, restore::a_backup_is_restored);
    trials
}

/// Waits until the log of the hub has an event of this kind about a cluster.
async fn recorded(clusterset: &LocalClusterset, cluster: &str, kind: &str) -> anyhow::Result<()> {
    eventually(&format!("{kind} of {cluster}"), async || {
        let kinds = kinds(clusterset, cluster).await?;
        Ok(kinds.iter().any(|one| one == kind).then_some(()))
    })
    .await
}
