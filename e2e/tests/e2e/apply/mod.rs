//! The agent's driver against a simulated cluster: what arrives, what is restored, what is never touched, and
//! that it stops writing when all is as it should be.

mod adopt;
mod arrival;
mod cluster;
mod definitions;
mod driver;
mod exports;
mod failing;
mod ownership;
mod replaced;
mod requests;
mod withdrawals;

use libtest_mimic::Trial;
use tributary_e2e::suite::{plain_test, sim_test};

pub(crate) use driver::{Agent, all_listed, import, port, wishes};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "apply::an_import_arrives_and_a_restart_writes_nothing",
            arrival::an_import_arrives_and_a_restart_writes_nothing,
        ),
        sim_test(
            "apply::a_strangers_object_is_never_touched",
            ownership::a_strangers_object_is_never_touched,
        ),
        sim_test(
            "apply::what_somebody_changes_is_restored",
            ownership::what_somebody_changes_is_restored,
        ),
        sim_test(
            "apply::what_somebody_deletes_again_and_again_is_reported_and_stops_nothing_else",
            ownership::what_somebody_deletes_again_and_again_is_reported_and_stops_nothing_else,
        ),
        sim_test(
            "apply::a_deleted_service_comes_back_with_its_ip",
            ownership::a_deleted_service_comes_back_with_its_ip,
        ),
        sim_test(
            "apply::an_empty_hub_deletes_nothing_until_the_sources_list",
            arrival::an_empty_hub_deletes_nothing_until_the_sources_list,
        ),
        sim_test(
            "apply::an_older_schema_gets_no_fields_it_lacks",
            definitions::an_older_schema_gets_no_fields_it_lacks,
        ),
        sim_test(
            "apply::a_faulty_api_server_is_outlasted",
            arrival::a_faulty_api_server_is_outlasted,
        ),
        sim_test(
            "apply::what_fails_for_a_minute_is_told",
            failing::what_fails_for_a_minute_is_told,
        ),
        sim_test(
            "apply::another_type_replaces_everything",
            arrival::another_type_replaces_everything,
        ),
        sim_test(
            "apply::exports_get_their_conditions",
            exports::exports_get_their_conditions,
        ),
        sim_test(
            "apply::a_denied_namespace_imports_and_exports_nothing",
            exports::a_denied_namespace_imports_and_exports_nothing,
        ),
        sim_test(
            "apply::objects_from_a_backup_are_adopted_once",
            adopt::objects_from_a_backup_are_adopted_once,
        ),
        sim_test(
            "apply::slices_that_cannot_be_exported_are_named",
            exports::slices_that_cannot_be_exported_are_named,
        ),
        sim_test(
            "apply::a_crd_that_goes_and_comes_is_followed",
            definitions::a_crd_that_goes_and_comes_is_followed,
        ),
        sim_test(
            "apply::families_are_taken_as_far_as_the_cluster_has_them",
            arrival::families_are_taken_as_far_as_the_cluster_has_them,
        ),
        sim_test(
            "apply::own_slices_keep_their_nodes",
            arrival::own_slices_keep_their_nodes,
        ),
        sim_test(
            "apply::an_import_costs_a_request_for_each_object",
            requests::an_import_costs_a_request_for_each_object,
        ),
        plain_test(
            "apply::an_export_costs_one_write_of_its_status",
            requests::an_export_costs_one_write_of_its_status,
        ),
        sim_test(
            "apply::a_name_taken_at_the_last_moment_stays_the_strangers",
            requests::a_name_taken_at_the_last_moment_stays_the_strangers,
        ),
        sim_test(
            "apply::most_imports_at_once_are_held_until_somebody_confirms",
            withdrawals::most_imports_at_once_are_held_until_somebody_confirms,
        ),
        sim_test(
            "apply::a_few_imports_go_at_once",
            withdrawals::a_few_imports_go_at_once,
        ),
        sim_test(
            "apply::nothing_is_begun_without_a_permit",
            replaced::nothing_is_begun_without_a_permit,
        ),
        sim_test(
            "apply::a_late_write_of_a_replaced_agent_has_no_effect",
            replaced::a_late_write_of_a_replaced_agent_has_no_effect,
        ),
    ]
}
