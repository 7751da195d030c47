//! Stories of what goes wrong: lost data, killed programs, silence, strangers, bad input, sick disks.

mod connectivity;
mod deletion;
mod disk;
mod epochs;
mod facts;
mod fail_static;
mod fencing;
mod identity;
mod input;
mod kills;
mod leadership;
mod roles;
mod several;
mod source_leases;
mod source_leases_real;

use std::sync::Arc;

use bench::doors;
use cluster::clusterset::{Backend, guard, questions as hub, shop};
use libtest_mimic::Trial;
use tributary_e2e::suite::{lone_test, real_test, sim_test};

/// One story on both kinds of clusters.
macro_rules! story {
    ($trials:ident, $story:path) => {
        let name = concat!("failures::", stringify!($story));
        $trials.push(sim_test(&format!("sim::{name}"), || $story(Backend::Simulated)));
        $trials.push(real_test(&format!("real::{name}"), |fleet: Arc<_>| {
            $story(Backend::Real(fleet))
        }));
    };
}

/// One story for which the kind of clusters does not matter.
macro_rules! sim_story {
    ($trials:ident, $story:path) => {
        let name = concat!("failures::", stringify!($story));
        $trials.push(sim_test(&format!("sim::{name}"), $story));
    };
}

/// Every story.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    story!(trials, deletion::an_empty_directory_deletes_nothing_that_lives);
    story!(trials, deletion::an_old_copy_deletes_nothing_that_lives);
    story!(
        trials,
        deletion::an_absent_member_keeps_its_objects_until_it_is_forgotten
    );
    story!(trials, kills::any_process_at_any_point);
    sim_story!(trials, kills::an_agent_in_the_middle_of_applying);
    story!(trials, fail_static::a_hub_that_is_away_changes_nothing);
    sim_story!(
        trials,
        source_leases::what_came_from_others_goes_while_the_hub_is_away
    );
    trials.push(real_test(
        "real::failures::source_leases::what_came_from_others_goes_while_the_hub_is_away",
        source_leases_real::what_came_from_others_goes_while_the_hub_is_away,
    ));
    sim_story!(trials, source_leases::what_came_from_others_stays_under_retain);
    sim_story!(trials, source_leases::one_that_stands_by_takes_away_what_expired);
    sim_story!(trials, source_leases::a_lease_that_nobody_may_renew_costs_nothing);
    sim_story!(trials, source_leases::a_strangers_lease_is_left_alone);
    sim_story!(trials, source_leases::leases_come_and_go_with_what_they_stand_for);
    sim_story!(
        trials,
        fencing::another_cluster_with_the_same_certificate_is_refused
    );
    sim_story!(trials, fencing::a_newer_agent_of_the_same_cluster_takes_over);
    sim_story!(
        trials,
        fencing::an_agent_in_another_pod_waits_for_the_end_of_the_first
    );
    story!(trials, leadership::a_second_agent_takes_over);
    sim_story!(trials, leadership::a_leader_that_was_paused_is_replaced_and_ends);
    sim_story!(trials, identity::strangers_are_refused);
    sim_story!(trials, identity::each_role_has_its_own_calls);
    sim_story!(trials, identity::an_agent_that_is_told_another_id_does_not_start);
    sim_story!(
        trials,
        identity::an_agent_whose_property_changes_is_unready_and_goes_on
    );
    sim_story!(trials, identity::a_changed_key_waits_for_the_operator);
    sim_story!(trials, identity::a_copy_of_a_cluster_takes_nobodys_place);
    sim_story!(trials, roles::a_reader_reads_and_decides_nothing);
    sim_story!(trials, roles::every_decision_is_audited_whoever_makes_noise);
    sim_story!(trials, roles::a_member_sees_its_own);
    sim_story!(trials, roles::a_stranger_hears_no_name_but_its_own);
    sim_story!(trials, epochs::an_older_log_stops_serving_until_it_is_adopted);
    sim_story!(trials, epochs::a_hub_of_an_older_epoch_is_refused);
    sim_story!(trials, connectivity::silence_is_seen_and_forgiven);
    sim_story!(trials, connectivity::a_stopped_hub_blames_nobody);
    story!(trials, connectivity::who_says_goodbye_is_not_missed);
    sim_story!(trials, input::a_bad_item_is_refused_alone);
    sim_story!(trials, input::a_broken_session_ends_alone);
    sim_story!(trials, disk::a_corrupt_log_is_refused_at_start);
    sim_story!(trials, disk::a_log_that_was_cut_shows_in_the_cursors);
    sim_story!(trials, disk::a_disk_that_refuses_to_grow_ends_the_hub);
    story!(trials, several::two_clustersets_know_nothing_of_each_other);
    sim_story!(trials, several::a_failed_append_ends_one_clusterset_alone);
    sim_story!(
        trials,
        several::a_log_that_cannot_be_opened_ends_one_clusterset_alone
    );
    sim_story!(
        trials,
        several::what_is_wrong_with_one_is_said_before_any_is_served
    );
    sim_story!(trials, several::a_further_empty_clusterset_costs_little);
    trials.push(lone_test(
        "failures::doors::attacks_on_the_port_keep_nobody_out",
        doors::rehearse,
    ));
    trials
}
