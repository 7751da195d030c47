//! An obstacle to the derived Service, and its report.

use super::*;
use crate::plan::{
    content::{Condition, ConditionStatus},
    view::Unwritten,
};

fn listed() -> [Source; 2] {
    [source("east", true), source(OWN, true)]
}

fn ready(model: &Model) -> &Condition {
    model
        .import()
        .status
        .ready
        .as_ref()
        .expect("its status was written")
}

fn derived(model: &mut Model) -> &mut Ours<FoundDerived> {
    let Found::Ours(derived) = &mut model.view.derived else {
        panic!("no derived Service")
    };
    derived
}

#[test]
fn nothing_is_said_of_an_import_in_which_nothing_was_left_out() {
    let model = Model::settled(&east_and_west());
    let ready = ready(&model);
    assert_eq!((ready.status, &*ready.message), (ConditionStatus::True, ""));
}

#[test]
fn a_service_that_is_going_is_waited_for() {
    let mut model = Model::settled(&east_and_west());
    derived(&mut model).deleting = true;
    let wanted = import(&[port("http", 80), port("grpc", 90)], &["east", "west"]);
    let more = told(&listed(), both(wanted, &[slice("east", "new", "10.1.0.2")]));
    let planned = plan(&more, &model.view, &config(), &key());
    let words = words(&planned.actions);
    assert!(
        !words.contains(&"service") && !words.contains(&"delete service"),
        "{words:?}"
    );
}

#[test]
fn slices_of_a_new_import_wait_for_the_ip() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V4];
    let desired = told(&listed(), both(wanted, &[slice("east", "a", "10.1.0.1")]));
    let mut model = Model::settled(&desired);
    for name in model.view.slices.keys().cloned().collect::<Vec<_>>() {
        model.view.slices.insert(name, Found::Absent);
    }
    let creates =
        |model: &Model| words(&plan(&desired, &model.view, &config(), &key()).actions).contains(&"slice");
    assert!(creates(&model));
    let mut without_ip = model.clone();
    derived(&mut without_ip).content.cluster_ips.clear();
    assert!(!creates(&without_ip));
    let mut going = model;
    derived(&mut going).deleting = true;
    assert!(!creates(&going));
}

#[test]
fn a_leftover_goes_once_and_only_when_that_is_certain() {
    let mut model = Model::settled(&east_and_west());
    let no_ports = |west| {
        let sources = [source("east", true), source("west", west), source(OWN, true)];
        told(&sources, both(import(&[], &["east", "west"]), &[]))
    };
    let planned =
        |model: &Model, desired: &Desired| words(&plan(desired, &model.view, &config(), &key()).actions);
    assert!(planned(&model, &no_ports(true)).contains(&"delete service"));
    assert!(!planned(&model, &no_ports(false)).contains(&"delete service"));
    derived(&mut model).deleting = true;
    assert!(!planned(&model, &no_ports(true)).contains(&"delete service"));
}

#[test]
fn a_headless_import_needs_no_ports() {
    for (service_type, status) in [
        (ServiceType::Headless, ConditionStatus::True),
        (ServiceType::ClusterSetIp, ConditionStatus::False),
    ] {
        let mut wanted = import(&[], &["east"]);
        wanted.service_type = service_type;
        let model = Model::settled(&told(&listed(), both(wanted, &[])));
        assert_eq!(ready(&model).status, status, "{service_type:?}");
    }
}

#[test]
fn a_headless_service_has_its_endpoints_without_ports_too() {
    let mut wanted = import(&[], &[OWN]);
    wanted.service_type = ServiceType::Headless;
    let mut model = Model::new();
    model.export(&[], "10.0.0.1");
    model.settle(&told(&listed(), both(wanted, &[])));
    assert_eq!(model.slices(), [(OWN.to_owned(), "10.0.0.1".to_owned())]);
}

/// A cluster that refuses to have the Service widened says so, though nothing is to be narrowed.
#[test]
fn a_refused_change_is_named_in_ready() {
    let mut model = Model::settled(&east_and_west());
    model.view.refusals.derived = Some("quota".into());
    let more = import(&[port("http", 80), port("grpc", 90)], &["east", "west"]);
    let sources = [source("east", true), source("west", true), source(OWN, true)];
    let planned = plan(&told(&sources, both(more, &[])), &model.view, &config(), &key());
    let message = planned.actions.iter().find_map(|action| match action {
        Action::ApplyImportStatus { status, .. } => {
            status.ready.as_ref().map(|ready| ready.message.to_string())
        }
        _ => None,
    });
    assert!(
        message.is_some_and(|words| words.contains("quota")),
        "{planned:?}"
    );
}

#[test]
fn the_timeout_belongs_to_client_ip_affinity() {
    for (affinity, timeout) in [
        (SessionAffinity::ClientIp, Some(60)),
        (SessionAffinity::None, None),
    ] {
        let mut wanted = import(&[port("http", 80)], &["east"]);
        wanted.policies.session_affinity = affinity;
        wanted.policies.session_affinity_timeout_seconds = Some(60);
        let model = Model::settled(&told(&listed(), both(wanted, &[])));
        assert_eq!(
            model.derived().content.policies.session_affinity_timeout_seconds,
            timeout
        );
    }
}

#[test]
fn only_the_very_value_that_was_refused_is_left_out() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.policies.session_affinity = SessionAffinity::ClientIp;
    wanted.policies.session_affinity_timeout_seconds = Some(60);
    wanted.policies.internal_traffic_policy = Some("Local".into());
    let desired = told(&listed(), both(wanted, &[]));
    for (policy, timeout, kept) in [("Local", 60, false), ("Other", 61, true)] {
        let mut model = Model::new();
        model.view.refusals.internal_traffic_policy = Some(policy.into());
        model.view.refusals.session_affinity_timeout_seconds = Some(timeout);
        model.settle(&desired);
        let policies = &model.derived().content.policies;
        assert_eq!(policies.internal_traffic_policy.is_some(), kept);
        assert_eq!(policies.session_affinity_timeout_seconds.is_some(), kept);
        assert_eq!(ready(&model).message.contains("timeoutSeconds 60"), !kept);
    }
}

#[test]
fn families_that_the_cluster_does_not_offer_are_named() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V6, IpFamily::V4];
    let mut model = Model::new();
    model.view.refusals.families = [
        vec![IpFamily::V6, IpFamily::V4],
        vec![IpFamily::V6],
        vec![IpFamily::V4],
    ]
    .into();
    model.settle(&told(&listed(), both(wanted, &[])));
    assert!(ready(&model).message.contains("IPv6,IPv4"), "{:?}", ready(&model));
}

/// Nothing found names a source: then every source has to be settled, and there has to be one.
#[test]
fn what_names_no_source_waits_for_all_of_them() {
    let mut model = Model::settled(&east_and_west());
    model.view.import = Found::Absent;
    model.view.slices.clear();
    derived(&mut model).content.content.sources.clear();
    for (sources, goes) in [
        (vec![], false),
        (vec![source("east", true), source("west", false)], false),
        (vec![source("east", true), source("west", true)], true),
    ] {
        let planned = plan(&told(&sources, vec![]), &model.view, &config(), &key());
        assert_eq!(
            words(&planned.actions).contains(&"delete service"),
            goes,
            "{sources:?}"
        );
    }
}

/// Writes of its objects that fail for long, or are refused: an import whose slices cannot be written is not Ready, and does
/// not say that they are present.
#[test]
fn an_import_whose_slices_cannot_be_written_says_so() {
    let desired = told(
        &listed(),
        both(
            import(&[port("http", 80)], &["east"]),
            &[slice("east", "a", "10.1.0.1")],
        ),
    );
    let mut model = Model::settled(&desired);
    assert!(model.import().status.endpoint_slice_objects);
    let unwritten = |kind| {
        Some(Unwritten {
            kind,
            name: "x".into(),
            deletes: false,
            words: "database space exceeded".into(),
        })
    };
    model.view.unwritten = unwritten(Some(Kind::Slice));
    model.settle(&desired);
    let said = ready(&model);
    assert_eq!((said.status, &*said.reason), (ConditionStatus::False, "Pending"));
    assert_eq!(
        &*said.message,
        "cannot write the EndpointSlice x: database space exceeded"
    );
    assert!(
        model.import().status.endpoint_slice_objects,
        "an older one stands"
    );
    model.view.slices.clear();
    let planned = plan(&desired, &model.view, &config(), &key());
    let absent = |action: &Action| matches!(action, Action::ApplyImportStatus { status, .. } if !status.endpoint_slice_objects);
    assert!(planned.actions.iter().any(absent), "{:?}", planned.actions);
    model.view.unwritten = unwritten(None);
    model.settle(&desired);
    assert_eq!(
        ready(&model).status,
        ConditionStatus::True,
        "its export is another matter"
    );
}

/// A range of addresses is full: the import says so, instead of not being there.
#[test]
fn an_import_whose_service_cannot_be_made_stands_and_says_so() {
    let desired = told(
        &listed(),
        both(
            import(&[port("http", 80)], &["east"]),
            &[slice("east", "a", "10.1.0.1")],
        ),
    );
    let mut view = Model::new().view;
    let writes_import =
        |view: &ServiceView| words(&plan(&desired, view, &config(), &key()).actions).contains(&"import");
    assert!(!writes_import(&view), "its Service is on its way");
    view.unwritten = Some(Unwritten {
        kind: Some(Kind::Derived),
        name: "derived-x".into(),
        deletes: false,
        words: "range is full".into(),
    });
    assert!(writes_import(&view));
}
