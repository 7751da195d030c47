//! Explanations: candidates, winners and losers with the revisions that recorded them; and why there is none.

use model::{Export, Fact, Revision, ServiceType};

use super::given::{cluster, export, exported, given_members, port, service, slice};
use crate::{Command, LosingValue};

#[test]
fn an_import_is_explained_by_recorded_revisions() {
    let headless = Export {
        service_type: ServiceType::Headless,
        ..export(2)
    };
    let folded = given_members(&["east", "west"])
        .and("west", exported(headless))
        .and("east", exported(export(1)))
        .and("west", slice("one", &["http"]));
    let explanation = folded.state.explain(&service("shop/cart"));
    assert_eq!(
        explanation.summary,
        "shop/cart is imported as ClusterSetIP with ports http 80/TCP: exported by 2 clusters, of which east \
         has the oldest export (recorded at revision 5); 1 conflict."
    );
    // East's export claims to be older than the first one: that is an event of its own before it.
    assert_eq!(explanation.revision, Revision(6));
    assert_eq!(explanation.import.as_ref().unwrap().0, Revision(5));
    let candidates: Vec<_> = explanation
        .candidates
        .iter()
        .map(|c| (c.cluster.as_str(), c.precedence, c.revision.0))
        .collect();
    assert_eq!(candidates, [("east", 1, 5), ("west", 2, 3)]);
    let slices = &explanation.candidates[1].slices;
    assert_eq!(
        (&*slices[0].name, slices[0].revision, slices[0].ready_endpoints),
        ("one", Revision(6), 1)
    );
    assert!(slices[0].imported);

    assert_eq!(explanation.decisions.len(), 9);
    let decision = explanation
        .decisions
        .iter()
        .find(|d| d.property == "type")
        .unwrap();
    assert_eq!(
        (&*decision.value, decision.winner.as_str()),
        ("ClusterSetIP", "east")
    );
    assert_eq!(decision.revision, Revision(5));
    let loser = LosingValue {
        cluster: cluster("west"),
        value: "Headless".into(),
        revision: Revision(3),
    };
    assert_eq!(decision.losers, [loser]);
    assert_eq!(explanation.conflicts.len(), 1);
}

#[test]
fn the_ports_of_an_import_are_those_of_all_its_exports() {
    let other = Export {
        ports: vec![port("grpc", 90)],
        ..export(2)
    };
    let folded = given_members(&["east", "west"])
        .and("east", exported(export(1)))
        .and("west", exported(other));
    let decisions = folded.state.explain(&service("shop/cart")).decisions;
    let ports = decisions
        .iter()
        .find(|decision| decision.property == "ports")
        .unwrap();
    assert_eq!(&*ports.value, "http 80/TCP, grpc 90/TCP");
    assert_eq!(&*ports.losers[0].value, "grpc 90/TCP");
    let alone = given_members(&["east"]).and("east", exported(export(1)));
    let summary = alone.state.explain(&service("shop/cart")).summary;
    assert!(
        summary.contains("exported by east alone (recorded at revision 2); no conflict"),
        "{summary}"
    );
}

#[test]
fn a_missing_import_is_explained_by_what_ended_it() {
    let never = given_members(&["east"]).and("east", slice("one", &["http"]));
    let summary = never.state.explain(&service("shop/cart")).summary;
    assert_eq!(
        summary,
        "shop/cart is not imported: no member exports it, as far as the hub remembers. east reported slices \
         of it, which wait for a ServiceExport."
    );
    let exporting = given_members(&["east"]).and("east", exported(export(1)));
    let removed = exporting
        .clone()
        .and("east", Fact::ExportRemoved(service("shop/cart")));
    let summary = removed.state.explain(&service("shop/cart")).summary;
    assert_eq!(
        summary,
        "shop/cart is not imported: its last export was removed (revision 3)."
    );
    let mut left = exporting.clone();
    left.left("east");
    let explanation = left.state.explain(&service("shop/cart"));
    assert_eq!(
        explanation.summary,
        "shop/cart is not imported: its last exporter east left the clusterset (revision 3)."
    );
    assert!(explanation.candidates.is_empty() && explanation.decisions.is_empty());
    let evicted = exporting.after(Command::Evict {
        cluster: cluster("east"),
        operator: "alice".into(),
    });
    let summary = evicted.state.explain(&service("shop/cart")).summary;
    assert_eq!(
        summary,
        "shop/cart is not imported: its last exporter east was evicted (revision 3)."
    );
}
