//! Owns: that the runbooks of docs/operations.md do what they say: each is played with the commands that stand in it, on a
//! simulated clusterset, and none of its commands is left unplayed without a reason.
//! Never: judges how the product does it; the scenarios do.
//!
//! * `page`: the commands of a section. `player`: types them, with the words of this clusterset for those of the page.

mod authority;
mod join;
mod leave;
mod lost;
mod page;
mod player;
mod renew;
mod restore;

use libtest_mimic::Trial;
use tributary_e2e::suite::sim_test;

use page::Page;
use player::Player;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::runbooks::a_cluster_joins", join::a_cluster_joins),
        sim_test(
            "sim::runbooks::a_certificate_ends_and_another_key_is_admitted",
            renew::a_certificate_ends_and_another_key_is_admitted,
        ),
        sim_test(
            "sim::runbooks::an_authority_is_replaced",
            authority::an_authority_is_replaced,
        ),
        sim_test(
            "sim::runbooks::half_of_the_members_are_lost_and_one_never_comes_back",
            lost::half_of_the_members_are_lost_and_one_never_comes_back,
        ),
        sim_test(
            "sim::runbooks::a_member_took_back_most_of_its_exports",
            lost::a_member_took_back_most_of_its_exports,
        ),
        sim_test("sim::runbooks::a_cluster_leaves", leave::a_cluster_leaves),
        sim_test(
            "sim::runbooks::a_backup_is_restored",
            restore::a_backup_is_restored,
        ),
    ]
}
