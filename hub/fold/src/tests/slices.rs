//! Imported slices: narrowed to eligible ports, waiting for their export, and cheap.

use model::{Export, Fact};

use super::given::{export, exported, given_members, observe, port, service, slice, slice_key};
use crate::{DerivedContent, DerivedKey};

#[test]
fn a_slice_changes_itself_and_nothing_else() {
    let mut folded = given_members(&["east", "west"])
        .and("east", exported(export(1)))
        .and("west", exported(export(2)));
    let changes = folded
        .carry_out(&observe("west", slice("one", &["http"])))
        .unwrap();
    assert_eq!(changes.len(), 1);
    let imported = folded.imported_slice("west", "one").unwrap();
    let import = folded
        .state
        .derived(&DerivedKey::Import(service("shop/cart")))
        .unwrap();
    assert_eq!(imported.import_revision, import.revision);
    assert_eq!(changes[0].revision, folded.state.revision());
}

#[test]
fn endpoints_are_shared_with_the_fact() {
    let folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]));
    let member = folded.state.member(&super::given::cluster("east")).unwrap();
    let service = service("shop/cart");
    let (_, reported) = member.slices_of(&service).next().unwrap();
    let derived = folded.imported_slice("east", "one").unwrap();
    let [reported, derived] = [&reported.endpoints, &derived.endpoints].map(|one| one.as_bytes().as_ptr());
    assert_eq!(reported, derived);
}

#[test]
fn a_slice_waits_for_its_export_and_goes_with_it() {
    let mut folded = given_members(&["east"]).and("east", slice("one", &["http"]));
    assert!(folded.imported_slice("east", "one").is_none());
    let folded_with = folded.clone().and("east", exported(export(1)));
    assert!(folded_with.imported_slice("east", "one").is_some());
    let removed = folded_with.and("east", Fact::ExportRemoved(service("shop/cart")));
    assert!(removed.imported_slice("east", "one").is_none());
    let changes = folded
        .carry_out(&observe("east", Fact::EndpointSliceRemoved(slice_key("one"))))
        .unwrap();
    assert_eq!(changes, []);
}

#[test]
fn slices_follow_the_ports_that_their_cluster_may_serve() {
    let both = || Export {
        ports: vec![port("http", 80), port("metrics", 9090)],
        ..export(5)
    };
    let mut folded = given_members(&["east", "west"])
        .and("west", exported(both()))
        .and("west", slice("one", &["http", "metrics"]))
        .and("west", slice("only-http", &["http"]));
    assert_eq!(folded.imported_slice("west", "one").unwrap().ports.len(), 2);

    // An older export takes the name http for another number: west may serve metrics only.
    let older = Export {
        ports: vec![port("http", 8080)],
        ..export(1)
    };
    let changes = folded.carry_out(&observe("east", exported(older))).unwrap();
    let narrowed = folded.imported_slice("west", "one").unwrap();
    assert_eq!(
        narrowed.ports.iter().map(|port| &*port.name).collect::<Vec<_>>(),
        ["metrics"]
    );
    assert!(
        folded.imported_slice("west", "only-http").is_none(),
        "none of its ports is left"
    );
    assert!(
        changes
            .iter()
            .any(|c| matches!(&c.content, Some(DerivedContent::Slice(_))))
    );
    assert!(
        changes
            .iter()
            .any(|c| matches!(&c.key, DerivedKey::Slice(_)) && c.content.is_none())
    );

    let folded = folded.and("east", Fact::ExportRemoved(service("shop/cart")));
    assert_eq!(folded.imported_slice("west", "one").unwrap().ports.len(), 2);
    assert!(folded.imported_slice("west", "only-http").is_some());
}

#[test]
fn an_export_that_leaves_eligible_ports_alone_leaves_slices_alone() {
    let mut folded = given_members(&["east", "west"])
        .and("west", exported(export(2)))
        .and("west", slice("one", &["http"]));
    let changes = folded.carry_out(&observe("east", exported(export(1)))).unwrap();
    assert!(
        changes
            .iter()
            .all(|change| !matches!(change.key, DerivedKey::Slice(_))),
        "{changes:?}"
    );
}

#[test]
fn a_headless_service_without_ports_keeps_its_slices() {
    let portless = Export {
        ports: Vec::new(),
        service_type: model::ServiceType::Headless,
        ..export(1)
    };
    let folded = given_members(&["east"])
        .and("east", exported(portless))
        .and("east", slice("one", &[]));
    assert_eq!(folded.imported_slice("east", "one").unwrap().ports, []);
}

#[test]
fn unchanged_content_is_no_change_even_when_the_fact_differs() {
    let mut folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http", "gone"]));
    let changes = folded
        .carry_out(&observe("east", slice("one", &["http", "other"])))
        .unwrap();
    assert_eq!(changes, [], "ports outside the import never were in the slice");
    assert_eq!(folded.events.len(), 4);
}
