//! Stories that users live: each runs on simulated clusters and on real ones, with the same code.

mod again;
mod conflicts;
mod definitions;
mod endpoints;
mod export;
mod families;
mod headless;
mod held;
mod leaving;
mod lost;
mod membership;
mod namespaces;
mod older_versions;
mod other_products;
mod ownership;
mod policy;
mod ports;
mod refused;
mod restart;
mod story;

use std::sync::Arc;

use libtest_mimic::Trial;
use tributary_e2e::{
    clusterset::Backend,
    suite::{SCENARIO_WAIT, real_test, sim_test, test_with_own_clusters},
};

use crate::charts::with_policies;
use story::tell;

/// One story on both kinds of clusters.
macro_rules! story {
    ($trials:ident, $story:path) => {
        let name = stringify!($story).replace("::", "_");
        $trials.push(sim_test(&format!("sim::{name}"), || {
            tell(Backend::Simulated, |stage| Box::pin($story(stage)))
        }));
        $trials.push(real_test(&format!("real::{name}"), |fleet: Arc<_>| {
            tell(Backend::Real(fleet), |stage| Box::pin($story(stage)))
        }));
    };
}

/// Every story.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    story!(trials, export::arrives_everywhere);
    story!(trials, export::carries_every_property);
    story!(trials, export::goes_with_the_last_export);
    story!(trials, export::both_versions_are_served);
    story!(trials, export::every_type_of_service);
    story!(trials, export::a_service_alone_is_not_exported);
    story!(trials, export::comes_and_goes_in_order);
    story!(trials, again::a_service_and_an_export_are_made_again_at_once);
    story!(trials, conflicts::every_reason_on_every_export);
    story!(trials, conflicts::the_next_oldest_inherits);
    story!(trials, conflicts::equal_timestamps_are_told_apart_by_cluster_id);
    story!(trials, headless::hostnames_arrive_and_ips_never);
    story!(trials, headless::the_type_is_the_oldest_exports);
    story!(trials, headless::a_type_can_change);
    story!(trials, refused::a_missing_service_may_come_later);
    story!(trials, refused::each_bad_export_is_refused_and_repaired);
    story!(trials, refused::an_edit_of_metadata_withdraws_nothing);
    story!(trials, refused::an_export_that_turns_bad_withdraws);
    story!(trials, refused::derived_services_are_not_exported);
    story!(
        trials,
        refused::a_namespace_that_begins_like_kubernetes_own_is_exported
    );
    story!(trials, lost::endpoints_of_who_stays_lost_go_and_come);
    story!(trials, lost::an_export_says_where_it_did_not_arrive);
    story!(
        trials,
        leaving::endpoints_go_first_exports_later_and_a_word_takes_it_back
    );
    story!(trials, leaving::a_cluster_takes_itself_out);
    story!(
        trials,
        leaving::a_cluster_leaves_without_a_hub_and_keeps_what_is_asked
    );
    story!(trials, membership::a_member_says_what_it_is);
    story!(trials, membership::the_definition_may_come_later);
    story!(trials, held::others_go_on_without_a_definition_until_it_is_let_go);
    story!(trials, held::what_comes_back_with_its_definition_is_not_held);
    story!(trials, policy::what_a_member_takes_goes_and_comes_with_the_rule);
    story!(trials, ports::merge_by_name_and_by_number);
    story!(trials, ports::a_name_that_the_oldest_changes_keeps_traffic);
    story!(trials, ports::an_application_protocol_keeps_traffic);
    story!(trials, ports::an_unnamed_port_has_a_name_behind_its_import);
    story!(trials, ports::another_name_given_to_a_port_is_taken_back);
    story!(trials, namespaces::an_import_follows_its_namespace);
    story!(trials, namespaces::an_exporter_loses_its_namespace);
    story!(trials, namespaces::a_terminating_namespace_holds_nothing_up);
    story!(trials, endpoints::every_detail_travels);
    story!(trials, endpoints::slices_follow_one_for_one);
    story!(trials, endpoints::zones_become_hints);
    story!(trials, endpoints::families_stay_apart);
    story!(trials, ownership::strangers_are_left_alone);
    story!(trials, other_products::imports_of_others_are_left_alone);
    story!(trials, ownership::events_tell_of_conflicts);
    story!(trials, ownership::drift_is_restored);
    story!(trials, ownership::deleted_objects_come_back);
    story!(trials, restart::writes_nothing);
    story!(trials, restart::an_absent_agent_catches_up);
    story!(trials, definitions::an_older_schema_is_enough);
    story!(trials, older_versions::only_v1alpha1_is_used);
    story!(trials, older_versions::only_v1alpha1_with_few_fields_is_used);
    story!(trials, older_versions::the_first_release_is_used);
    story!(trials, definitions::imports_survive_their_definition);
    story!(trials, definitions::exports_go_with_their_definition);
    trials.push(test_with_own_clusters(
        "real::families_on_mixed_clusters",
        SCENARIO_WAIT,
        families::on_mixed_clusters,
    ));
    trials.push(test_with_own_clusters(
        "real::export_comes_and_goes_under_both_policies",
        SCENARIO_WAIT,
        under_policies,
    ));
    trials
}

/// The shared clusters lack the policy that would keep their harness from playing everybody; here it is.
async fn under_policies() -> anyhow::Result<()> {
    let fleet = with_policies(&story::CLUSTERS).await?;
    tell(Backend::Real(Arc::new(fleet)), |stage| {
        Box::pin(export::comes_and_goes_in_order(stage))
    })
    .await
}
