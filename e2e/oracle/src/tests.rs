//! Tests of the oracle's demands and observations. The cases in which two readings of the standard differed are here.

use serde_json::{Value, json};

use super::{
    Judgement, Wrong,
    example::{Example, NAMESPACE},
    judge, whole,
};
use model::{
    ServiceKey,
    derived_name::{derived_service_name, imported_slice_name},
};

fn wrong(example: &Example) -> Vec<String> {
    judge(&example.pictures()).wrong().collect()
}

fn judged(example: &Example) -> Judgement {
    judge(&example.pictures())
}

fn right(clusters: &[&str], exporting: &[&str]) -> Example {
    let mut example = Example::new(clusters);
    for cluster in exporting {
        example.export(cluster, "cart");
    }
    example.import_everywhere("cart");
    example
}

#[test]
fn an_import_in_every_cluster_is_right_and_counted() {
    let example = right(&["east", "west"], &["east", "west"]);
    assert_eq!(wrong(&example), Vec::<String>::new());
    assert_eq!(judged(&example).guarded, 4, "two imports and two exports");
    assert_eq!(judged(&example).conflicts, 0);
}

#[test]
fn whatever_piece_is_missing_is_lacking_and_whatever_is_besides_is_too_much() {
    type Change = fn(&mut Value);
    let derived = derived_service_name(NAMESPACE, "cart");
    let changes: [(&str, &str, Change); 9] = [
        ("ServiceImport", "cart", |import| {
            import["spec"]["type"] = "Headless".into()
        }),
        ("ServiceImport", "cart", |import| {
            import["spec"]["ports"] = json!([])
        }),
        ("ServiceImport", "cart", |import| {
            import["spec"]["ips"] = json!(["10.96.0.8"])
        }),
        ("ServiceImport", "cart", |import| {
            import["status"]["clusters"] = json!([])
        }),
        ("ServiceImport", "cart", |import| {
            import["status"]["conditions"] = json!([])
        }),
        ("ServiceImport", "cart", |import| {
            import["spec"]["sessionAffinity"] = "ClientIP".into()
        }),
        ("Service", &derived, |service| {
            service["spec"]["ports"] = json!([])
        }),
        ("Service", &derived, |service| {
            service["spec"]["sessionAffinity"] = "ClientIP".into()
        }),
        ("ServiceImport", "cart", |import| {
            import["metadata"]["annotations"] = json!({})
        }),
    ];
    for (kind, name, change) in changes {
        let mut example = right(&["east", "west"], &["east"]);
        example.change("west", kind, name, change);
        let verdicts = judged(&example).verdicts;
        let lacking = |verdict: &&Result<(), Wrong>| matches!(verdict, Err(Wrong::Lacking(_)));
        assert_eq!(verdicts.values().filter(lacking).count(), 1, "{kind} {name}");
    }
    let mut example = right(&["east", "west"], &["east"]);
    example.import_address("west", "cart", "10.9.9.9");
    let verdicts = judged(&example).verdicts;
    let too_much = |verdict: &&Result<(), Wrong>| matches!(verdict, Err(Wrong::TooMuch(_)));
    assert_eq!(verdicts.values().filter(too_much).count(), 1);
}

/// Of http/80, web/80 and web/8080 only the first is left: by name web/80 is older than web/8080, by number http/80
/// is older than web/80. A reading in one pass would let web/8080 in.
#[test]
fn a_port_that_lost_for_its_number_keeps_its_name_from_nobody() {
    let mut example = right(&["a", "bb", "ccc"], &["a", "bb", "ccc"]);
    for (cluster, name, number) in [("bb", "web", 80), ("ccc", "web", 8_080)] {
        let ports = json!([{"name": name, "protocol": "TCP", "port": number}]);
        example.export_ports(cluster, "cart", &ports);
    }
    let wrong = wrong(&example);
    let imports: Vec<&String> = wrong.iter().filter(|why| why.starts_with("import")).collect();
    assert!(!imports.is_empty(), "{wrong:?}");
    for why in imports {
        assert!(
            why.contains(r#"lacking: port "web" 8080/TCP of the import"#),
            "{why}"
        );
    }
}

#[test]
fn one_number_of_two_protocols_is_two_ports() {
    let mut example = right(&["east"], &["east"]);
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 80},
        {"name": "quic", "protocol": "UDP", "port": 80}]);
    example.export_ports("east", "cart", &ports);
    let wrong = wrong(&example).join("; ");
    assert!(wrong.contains(r#"port "quic" 80/UDP of the import"#), "{wrong}");
}

#[test]
fn an_unnamed_port_has_a_name_behind_a_derived_service_only() {
    let mut example = right(&["east"], &["east"]);
    example.export_ports("east", "cart", &json!([{"protocol": "TCP", "port": 80}]));
    let wrong = wrong(&example).join("; ");
    assert!(wrong.contains(r#"port "" 80/TCP of the import"#), "{wrong}");
    assert!(
        wrong.contains(r#"port "unnamed-tcp-80" 80/TCP of the derived Service"#),
        "{wrong}"
    );
    assert!(
        wrong.contains(r#"port "unnamed-tcp-80" 80/TCP of slice"#),
        "{wrong}"
    );
}

#[test]
fn a_slice_that_loses_its_last_port_goes_and_one_that_never_had_any_serves_all() {
    let mut example = right(&["east", "west"], &["east", "west"]);
    let other = json!([{"name": "http", "protocol": "TCP", "port": 81}]);
    example.export_ports("west", "cart", &other);
    let imported = wrong(&example).join("; ");
    assert!(imported.contains("too much"), "west's slice is to go: {imported}");
    example.change("west", "EndpointSlice", "cart-1", |slice| {
        slice["ports"] = json!([])
    });
    let imported = wrong(&example).join("; ");
    assert!(!imported.contains("too much: slice"), "{imported}");
}

#[test]
fn every_conflict_is_named_on_every_export() {
    let mut example = right(&["east", "west"], &["east", "west"]);
    example.change("west", "Service", "cart", |service| {
        service["spec"]["sessionAffinity"] = "ClientIP".into();
        service["spec"]["ipFamilies"] = json!(["IPv6"]);
    });
    let judgement = judged(&example);
    assert_eq!(judgement.conflicts, 1);
    let wrong: Vec<String> = judgement
        .wrong()
        .filter(|why| why.starts_with("export"))
        .collect();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    for why in wrong {
        assert!(
            why.contains("Conflict=True IPFamilyConflict,SessionAffinityConflict"),
            "{why}"
        );
    }
}

#[test]
fn an_export_that_is_not_valid_is_imported_nowhere() {
    let mut example = right(&["east", "west"], &["east"]);
    example.remove("east", "Service", "cart");
    let wrong = wrong(&example);
    assert!(
        wrong.iter().any(|why| why.contains("Valid=False NoService")),
        "{wrong:?}"
    );
    let ghosts = wrong
        .iter()
        .filter(|why| why.contains("too much: cluster east of the import"));
    assert_eq!(ghosts.count(), 2, "{wrong:?}");
}

#[test]
fn a_word_on_an_older_generation_counts_for_nothing() {
    let mut example = right(&["east"], &["east"]);
    example.change("east", "ServiceExport", "cart", |export| {
        export["metadata"]["generation"] = 2.into();
    });
    assert_eq!(wrong(&example).len(), 1);
}

#[test]
fn a_strangers_object_keeps_its_place_and_what_is_ours_beside_it_is_not_judged() {
    let mut example = right(&["east", "west"], &["east"]);
    example.change("west", "ServiceImport", "cart", |import| {
        import["metadata"]["managedFields"] = json!([{"manager": "somebody"}]);
        import["spec"]["ports"] = json!([]);
    });
    assert_eq!(wrong(&example), Vec::<String>::new());
}

#[test]
fn where_the_namespace_is_missing_nothing_may_be() {
    let mut example = right(&["east", "west"], &["east"]);
    example.remove("west", "Namespace", NAMESPACE);
    let wrong = wrong(&example);
    assert_eq!(wrong.len(), 1);
    assert!(
        wrong[0].contains("too much: cluster east of the import"),
        "{wrong:?}"
    );
}

#[test]
fn an_import_by_itself_is_whole_if_all_that_it_promises_stands_beside_it() {
    type Change = fn(&mut Value);
    let derived = derived_service_name(NAMESPACE, "cart");
    let service = ServiceKey::new(NAMESPACE, "cart").expect("valid");
    let whole_in_east = |example: &Example| {
        let pictures = example.pictures();
        let east = pictures
            .iter()
            .find(|picture| picture.cluster == "east")
            .expect("there");
        whole(east, &service)
    };
    let mut example = right(&["east", "west"], &["west"]);
    assert_eq!(whole_in_east(&example), Ok(()));
    // What others declare meanwhile has not arrived.
    example.remove("west", "ServiceExport", "cart");
    assert!(!wrong(&example).is_empty());
    assert_eq!(whole_in_east(&example), Ok(()));

    let imported = imported_slice_name(NAMESPACE, "cart", "west", "cart-1");
    let changes: [(&str, &str, Change); 7] = [
        ("EndpointSlice", &imported, |slice| {
            slice["metadata"]["labels"]["kubernetes.io/service-name"] = "another".into()
        }),
        ("ServiceImport", "cart", |import| {
            import["status"]["conditions"] = json!([])
        }),
        ("ServiceImport", "cart", |import| {
            import["spec"]["ips"] = json!(["10.96.0.8"])
        }),
        ("ServiceImport", "cart", |import| {
            import["metadata"]["annotations"] = json!({})
        }),
        ("ServiceImport", "cart", |import| {
            import["spec"]["type"] = "Headless".into()
        }),
        ("Service", &derived, |service| {
            service["spec"]["ports"] = json!([])
        }),
        ("Service", &derived, |service| {
            service["spec"]["sessionAffinity"] = "ClientIP".into()
        }),
    ];
    for (kind, name, change) in changes {
        let mut example = right(&["east", "west"], &["west"]);
        example.change("east", kind, name, change);
        assert!(whole_in_east(&example).is_err(), "{kind} {name}");
    }
    let mut example = right(&["east", "west"], &["west"]);
    example.remove("east", "ServiceImport", "cart");
    assert!(whole_in_east(&example).is_err(), "no import");
}

/// Both directions: what is held or refused is another demand, and the objects are what they were.
#[test]
fn a_place_that_is_kept_and_a_cluster_that_may_not_export_count() {
    let mut example = right(&["east", "west"], &["east", "west"]);
    example.change("west", "Service", "cart", |service| {
        service["spec"]["ports"] = json!([{"name": "http", "protocol": "TCP", "port": 81}]);
    });
    let first_port = |change: fn(&mut super::Picture)| {
        let mut pictures = example.pictures();
        pictures
            .iter_mut()
            .filter(|picture| picture.cluster == "west")
            .for_each(change);
        let cart = ServiceKey::new(NAMESPACE, "cart").expect("valid");
        let expected = super::Expected::of(pictures.iter(), &cart);
        let parts = expected.import_in(&pictures[0], &cart);
        let has = |what: &str| parts.iter().any(|part| part.what.contains(what));
        (has("81/TCP"), has("cluster west"))
    };
    assert_eq!(first_port(|_| {}), (false, true));
    let keep = |picture: &mut super::Picture| {
        let cart = ServiceKey::new(NAMESPACE, "cart").expect("valid");
        picture.held.insert(cart);
    };
    assert_eq!(first_port(keep), (true, true));
    assert_eq!(first_port(|picture| picture.denied = true), (false, false));
}

/// A service that a cluster may not import is too much in it, and its own export of it stays.
#[test]
fn what_a_policy_keeps_from_a_cluster_is_nowhere_in_it() {
    let cart = ServiceKey::new(NAMESPACE, "cart").unwrap();
    let withheld_from_west = |example: &Example| {
        let mut pictures = example.pictures();
        let west = pictures.iter_mut().find(|picture| picture.cluster == "west");
        west.expect("it is there").withheld.insert(cart.clone());
        judge(&pictures)
    };
    let mut example = right(&["east", "west"], &["east", "west"]);
    let held: Vec<String> = withheld_from_west(&example).wrong().collect();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(
        held[0].starts_with("import shop/cart in west: too much"),
        "{held:?}"
    );
    let (derived, own) = (
        derived_service_name(NAMESPACE, "cart"),
        imported_slice_name(NAMESPACE, "cart", "west", "cart-1"),
    );
    let others = imported_slice_name(NAMESPACE, "cart", "east", "cart-1");
    for (kind, name) in [
        ("ServiceImport", "cart"),
        ("Service", derived.as_str()),
        ("EndpointSlice", others.as_str()),
    ] {
        example.remove("west", kind, name);
    }
    assert_eq!(
        withheld_from_west(&example).wrong().count(),
        1,
        "its own slice is left"
    );
    example.remove("west", "EndpointSlice", &own);
    assert_eq!(withheld_from_west(&example).wrong().count(), 0);
    assert_eq!(
        wrong(&example).len(),
        1,
        "and without the policy all of it is lacking"
    );
}
