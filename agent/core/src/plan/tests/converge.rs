//! Tests of the way from one desired state to the next: order of steps, drift, type changes, lost Services.

use super::*;

/// Another controller's finalizer keeps the ServiceExport; the hub was told that it is gone, and says so.
#[test]
fn an_export_that_is_being_deleted_serves_nobody_in_its_own_cluster_either() {
    let sources = [source("west", true), source(OWN, true)];
    let with_own = told(
        &sources,
        both(
            import(&[port("http", 80)], &[OWN, "west"]),
            &[slice("west", "b", "10.2.0.1"), slice(OWN, "cart-own", "10.9.0.1")],
        ),
    );
    let mut model = Model::new();
    model.export(&[port("http", 80)], "10.9.0.1");
    model.settle(&with_own);
    assert_eq!(model.slices().len(), 2);
    model.view.export.as_mut().unwrap().deleting = true;
    let without = told(
        &sources,
        both(
            import(&[port("http", 80)], &["west"]),
            &[slice("west", "b", "10.2.0.1")],
        ),
    );
    model.settle(&without);
    assert_eq!(model.slices(), [("west".to_owned(), "10.2.0.1".to_owned())]);
}

/// addressType is immutable: a slice of the same name in another family is a different object.
#[test]
fn a_slice_that_comes_again_in_another_family_is_made_anew() {
    let told_of = |slice: ImportedSlice| {
        told(
            &[source("east", true)],
            both(import(&[port("http", 80)], &["east"]), &[slice]),
        )
    };
    let mut model = Model::new();
    model.settle(&told_of(slice("east", "a", "10.1.0.1")));
    let desired = told_of(ImportedSlice {
        address_type: IpFamily::V6,
        ..slice("east", "a", "fd00::1")
    });
    let first = plan(&desired, &model.view, &config(), &key());
    let is_changed = |action: &Action| matches!(action, Action::ApplySlice { uid: Some(_), .. });
    assert!(
        !first.actions.iter().any(is_changed),
        "{:?}",
        words(&first.actions)
    );
    model.settle(&desired);
    assert_eq!(model.slices(), [("east".to_owned(), "fd00::1".to_owned())]);
}
use crate::plan::content::ConditionStatus;

fn http_from_east(ports: &[ServicePort]) -> Vec<DesiredChange> {
    both(import(ports, &["east"]), &[slice("east", "a", "10.1.0.1")])
}

fn listed() -> [Source; 2] {
    [source("east", true), source(OWN, true)]
}

#[test]
fn a_new_import_begins_with_its_service_and_ends_with_its_slices() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut model = Model::new();
    let first = plan(&desired, &model.view, &config(), &key());
    assert_eq!(words(&first.actions), ["service"]);
    model.settle(&desired);
    assert_eq!(
        words(&model.done),
        ["service", "import", "slice", "import status"]
    );
    let import = model.import();
    assert_eq!(import.content.ips, model.derived().cluster_ips);
    assert_eq!(import.content.ip_families, [IpFamily::V4]);
    assert_eq!(
        import.status.ready.as_ref().unwrap().status,
        ConditionStatus::True
    );
    assert!(import.status.endpoint_slice_objects);
}

#[test]
fn a_port_that_comes_widens_the_service_first_and_one_that_goes_narrows_it_last() {
    let one = told(&listed(), http_from_east(&[port("http", 80)]));
    let two = told(&listed(), http_from_east(&[port("http", 80), port("grpc", 90)]));
    let other = told(&listed(), http_from_east(&[port("grpc", 90)]));
    let mut model = Model::settled(&one);
    model.settle(&two);
    assert_eq!(words(&model.done), ["service", "import"]);
    model.done.clear();
    model.settle(&one);
    assert_eq!(words(&model.done), ["import", "service"]);
    model.done.clear();
    model.settle(&other);
    assert_eq!(words(&model.done), ["service", "import", "service"]);
    let ports: Vec<_> = model.derived().content.ports.iter().cloned().collect();
    assert_eq!(ports, [port("grpc", 90)]);
}

#[test]
fn a_slice_waits_for_the_import_that_it_was_computed_under() {
    let mut late = slice("east", "a", "10.1.0.1");
    late.import_revision = Revision(9);
    let desired = told(&listed(), both(import(&[port("http", 80)], &["east"]), &[late]));
    let mut model = Model::settled(&desired);
    assert!(model.slices().is_empty());
    let mut desired = desired;
    let wanted = import(&[port("http", 80), port("grpc", 90)], &["east"]);
    desired.items(1, [item(9, DesiredChange::Import(Arc::new(wanted)))]);
    model.settle(&desired);
    assert_eq!(model.slices().len(), 1);
}

#[test]
fn what_somebody_changed_is_put_back() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let settled = Model::settled(&desired);
    type Spoil = fn(&mut ServiceView);
    let spoil: [(&str, Spoil); 7] = [
        ("import", |view| {
            let Found::Ours(import) = &mut view.import else {
                panic!()
            };
            import.content.content.service_type = None;
        }),
        ("import", |view| {
            let Found::Ours(import) = &mut view.import else {
                panic!()
            };
            import.intact = false;
        }),
        ("import status", |view| {
            let Found::Ours(import) = &mut view.import else {
                panic!()
            };
            import.content.status.clusters.clear();
        }),
        ("service", |view| {
            let Found::Ours(derived) = &mut view.derived else {
                panic!()
            };
            derived.content.content.ports.clear();
        }),
        ("service", |view| {
            let Found::Ours(derived) = &mut view.derived else {
                panic!()
            };
            derived.intact = false;
        }),
        ("slice", |view| {
            for found in view.slices.values_mut() {
                let Found::Ours(slice) = found else { panic!() };
                slice.content.derived = None;
            }
        }),
        ("slice", |view| {
            for found in view.slices.values_mut() {
                let Found::Ours(slice) = found else { panic!() };
                slice.intact = false;
            }
        }),
    ];
    for (word, spoil) in spoil {
        let mut model = settled.clone();
        spoil(&mut model.view);
        model.settle(&desired);
        assert_eq!(words(&model.done), [word]);
    }
}

#[test]
fn a_service_that_was_deleted_comes_back_with_its_ips_hub_or_no_hub() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut alone = Desired::default();
    alone.interest(&interest(1, &["shop"]));
    for desired in [&desired, &alone] {
        let mut model = Model::settled(&told(&listed(), http_from_east(&[port("http", 80)])));
        let ips = model.derived().cluster_ips.clone();
        model.view.derived = Found::Absent;
        model.settle(desired);
        assert_eq!(words(&model.done), ["service"]);
        assert_eq!(model.derived().cluster_ips, ips);
        // somebody else has the old ones: new ones, and the import follows
        model.view.derived = Found::Absent;
        model.view.refusals.cluster_ips = true;
        model.done.clear();
        model.settle(desired);
        assert_eq!(words(&model.done), ["service", "import"]);
        assert_eq!(model.import().content.ips, model.derived().cluster_ips);
    }
}

#[test]
fn another_type_takes_slice_labels_service_and_import_away_and_begins_anew() {
    let mut headless = import(&[port("http", 80)], &["east"]);
    headless.service_type = ServiceType::Headless;
    let headless = told(&listed(), both(headless, &[slice("east", "a", "10.1.0.1")]));
    let with_ip = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut model = Model::settled(&with_ip);
    model.settle(&headless);
    let order = [
        "slice",
        "delete service",
        "delete import",
        "import",
        "import status",
    ];
    assert_eq!(words(&model.done), order);
    assert!(model.import().content.ips.is_empty());
    assert_eq!(model.import().content.ip_families, [IpFamily::V4]);
    let (_, slice) = model.view.our_slices().next().unwrap();
    assert_eq!(slice.content.derived, None);
    model.done.clear();
    model.settle(&with_ip);
    let order = ["delete import", "service", "import", "slice", "import status"];
    assert_eq!(words(&model.done), order);
}

#[test]
fn without_ports_there_is_no_service_and_ready_says_so() {
    let desired = told(&listed(), http_from_east(&[]));
    let mut model = Model::settled(&told(&listed(), http_from_east(&[port("http", 80)])));
    model.settle(&desired);
    assert_eq!(model.view.derived, Found::Absent);
    let ready = model.import().status.ready.clone().unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "NoPorts")
    );
    assert!(model.import().content.ips.is_empty());
}

#[test]
fn fields_that_the_served_schema_lacks_are_left_out() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut config = config();
    config.served.endpoint_slice_objects = false;
    config.served.conditions = false;
    config.served.internal_traffic_policy = false;
    let mut model = Model::new();
    model.settle_with(&desired, &config);
    let import = model.import();
    assert!(!import.status.endpoint_slice_objects && import.status.ready.is_none());
    assert_eq!(import.content.policies.internal_traffic_policy, None);
}

#[test]
fn an_import_whose_schema_has_one_ip_gets_the_first() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V4, IpFamily::V6];
    let desired = told(&listed(), both(wanted, &[]));
    let mut config = config();
    config.served.second_ip = false;
    let mut model = Model::new();
    model.families = vec![IpFamily::V4, IpFamily::V6];
    model.settle_with(&desired, &config);
    assert_eq!(model.import().content.ips.len(), 1);
    assert_eq!(model.derived().cluster_ips.len(), 2);
    assert_eq!(model.derived().cluster_ips[..1], model.import().content.ips[..]);
}

/// The derived Service remembers values that the import cannot hold.
#[test]
fn a_new_agent_changes_no_policy_that_the_schema_cannot_hold() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut config = config();
    config.served.internal_traffic_policy = false;
    config.served.traffic_distribution = false;
    let mut model = Model::new();
    model.settle_with(&desired, &config);
    model.done.clear();
    let nobody = [
        source("east", false),
        source("west", false),
        source("south", false),
    ];
    for unlisted in [
        told(&nobody, Vec::new()),
        told(&nobody, http_from_east(&[port("http", 80)])),
    ] {
        model.settle_with(&unlisted, &config);
        assert!(model.done.is_empty(), "{:?}", words(&model.done));
    }
}

#[test]
fn a_schema_that_was_read_too_early_takes_no_field_away() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let model = Model::settled(&desired);
    let mut config = config();
    config.served.endpoint_slice_objects = false;
    assert!(plan(&desired, &model.view, &config, &key()).is_settled());
}

#[test]
fn a_failing_service_shows_in_ready_and_existing_slices_stay_current() {
    let desired = told(&listed(), http_from_east(&[port("http", 80)]));
    let mut model = Model::new();
    model.view.refusals.derived = Some("quota exceeded".into());
    let plan = plan(&desired, &model.view, &config(), &key());
    assert_eq!(
        words(&plan.actions),
        ["service", "import", "slice", "import status"]
    );
    for action in plan.actions {
        if !matches!(action, Action::ApplyDerived { .. }) {
            model.perform(action);
        }
    }
    let ready = model.import().status.ready.clone().unwrap();
    assert!(ready.message.contains("quota exceeded"), "{ready:?}");
}
