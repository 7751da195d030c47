//! Tests of the written objects: port names, families, hints, refused values.

use super::*;
use crate::plan::content::{ConditionStatus, FamilyPolicy};

fn listed() -> [Source; 2] {
    [source("east", true), source(OWN, true)]
}

#[test]
fn one_unnamed_port_among_several_gets_a_name_in_service_and_slices_only() {
    let ports = [port("", 80), port("http", 8080)];
    let mut slice = slice("east", "a", "10.1.0.1");
    slice.ports = vec![endpoint_port("", 9000), endpoint_port("http", 9001)];
    let model = Model::settled(&told(&listed(), both(import(&ports, &["east"]), &[slice])));
    assert_eq!(model.import().content.ports, ports);
    let names: Vec<_> = model
        .derived()
        .content
        .ports
        .iter()
        .map(|port| &*port.name)
        .collect();
    assert_eq!(names, ["http", "unnamed-tcp-80"]);
    let (_, slice) = model.view.our_slices().next().unwrap();
    let names: Vec<_> = slice.content.ports.iter().map(|port| &*port.name).collect();
    assert_eq!(names, ["unnamed-tcp-80", "http"]);
}

#[test]
fn ports_of_headless_services_keep_their_names() {
    for ports in [&[port("", 80)][..], &[port("", 80), port("http", 8080)]] {
        let mut slice = slice("east", "a", "10.1.0.1");
        slice.ports = vec![endpoint_port("", 9000)];
        let mut headless = import(ports, &["east"]);
        headless.service_type = ServiceType::Headless;
        let model = Model::settled(&told(&listed(), both(headless, &[slice])));
        let (_, slice) = model.view.our_slices().next().unwrap();
        assert_eq!(&*slice.content.ports[0].name, "");
    }
}

#[test]
fn hints_name_every_endpoints_zone_or_none() {
    let zoned = |address: &str, zone: Option<&str>| Endpoint {
        zone: zone.map(Into::into),
        ..endpoint(address)
    };
    for (distribution, second, hinted) in [
        (Some("PreferClose"), Some("b"), true),
        (Some("PreferSameZone"), Some("b"), true),
        (Some("PreferSameNode"), Some("b"), true),
        (Some("PreferClose"), None, false),
        (Some("Other"), Some("b"), false),
        (None, Some("b"), false),
    ] {
        let mut import = import(&[port("http", 80)], &["east"]);
        import.policies.traffic_distribution = distribution.map(Into::into);
        let mut slice = slice("east", "a", "10.1.0.1");
        slice.endpoints = [zoned("10.1.0.1", Some("a")), zoned("10.1.0.2", second)].into();
        let model = Model::settled(&told(&listed(), both(import, &[slice])));
        let (_, slice) = model.view.our_slices().next().unwrap();
        let all = slice.content.endpoints.iter().all(|one| one.for_zones.len() == 1);
        let none = slice.content.endpoints.iter().all(|one| one.for_zones.is_empty());
        assert!(if hinted { all } else { none }, "{distribution:?} {second:?}");
    }
}

#[test]
fn foreign_slices_never_name_nodes() {
    let model = Model::settled(&east_and_west());
    for (_, slice) in model.view.our_slices() {
        assert!(slice.content.endpoints.iter().all(|one| one.node_name.is_none()));
        assert!(slice.content.endpoints.iter().all(|one| one.target_ref.is_none()));
    }
}

#[test]
fn two_families_are_asked_for_and_what_was_got_is_shown() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V6, IpFamily::V4];
    let desired = told(&listed(), both(wanted, &[]));
    let mut model = Model::new();
    model.families = vec![IpFamily::V4, IpFamily::V6];
    model.settle(&desired);
    assert_eq!(
        model.derived().content.family_policy,
        Some(FamilyPolicy::PreferDualStack)
    );
    assert_eq!(model.import().content.ip_families, [IpFamily::V6, IpFamily::V4]);
    // a cluster that refused the pair is asked for one of them
    let mut model = Model::new();
    model.view.refusals.families = [vec![IpFamily::V6, IpFamily::V4], vec![IpFamily::V6]].into();
    model.settle(&desired);
    assert_eq!(model.import().content.ip_families, [IpFamily::V4]);
    // restarted, it has forgotten the refusals and asks for nothing
    model.view.refusals = Default::default();
    model.done.clear();
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
}

#[test]
fn families_that_the_cluster_lacks_are_named() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V6];
    let mut model = Model::new();
    model.view.refusals.families = [vec![IpFamily::V6]].into();
    model.settle(&told(&listed(), both(wanted, &[])));
    let ready = model.import().status.ready.clone().unwrap();
    let want = (ConditionStatus::False, "IPFamilyNotSupported");
    assert_eq!((ready.status, &*ready.reason), want);
    assert_eq!(model.view.derived, Found::Absent);
}

#[test]
fn a_first_family_that_cannot_change_gets_a_second() {
    let mut desired = told(&listed(), both(import(&[port("http", 80)], &["east"]), &[]));
    let mut model = Model::new();
    model.families = vec![IpFamily::V4, IpFamily::V6];
    model.settle(&desired);
    let ip = model.derived().cluster_ips[0];
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.ip_families = vec![IpFamily::V6];
    desired.items(1, [item(6, DesiredChange::Import(Arc::new(wanted)))]);
    model.settle(&desired);
    assert_eq!(model.derived().cluster_ips[0], ip);
    assert_eq!(model.import().content.ip_families, [IpFamily::V4, IpFamily::V6]);
}

#[test]
fn a_refused_value_is_left_out_of_the_service_and_named_in_ready() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.policies.traffic_distribution = Some("PreferMars".into());
    let mut model = Model::new();
    model.view.refusals.traffic_distribution = Some("PreferMars".into());
    model.settle(&told(&listed(), both(wanted, &[])));
    assert_eq!(model.derived().content.policies.traffic_distribution, None);
    let import = model.import();
    assert_eq!(
        import.content.policies.traffic_distribution.as_deref(),
        Some("PreferMars")
    );
    let ready = import.status.ready.as_ref().unwrap();
    assert!(
        ready.status == ConditionStatus::True && ready.message.contains("PreferMars"),
        "{ready:?}"
    );
}

#[test]
fn exported_keys_of_tributary_itself_are_not_carried() {
    let mut wanted = import(&[port("http", 80)], &["east"]);
    wanted.annotations = [
        ("tributary.dev/revision".into(), "1".into()),
        ("a".into(), "b".into()),
    ]
    .into();
    let model = Model::settled(&told(&listed(), both(wanted, &[])));
    assert_eq!(model.import().content.annotations.len(), 1);
}
