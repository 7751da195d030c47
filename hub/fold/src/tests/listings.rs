//! Complete listings: what was not seen goes, and nothing else.

use std::{collections::BTreeSet, sync::Arc};

use model::{Fact, FactKey, ListingGroup, SessionId};

use super::given::{admit, cluster, export, exported, given_members, observe, service, slice, slice_key};
use crate::{Command, Rejection};

fn listed(group: ListingGroup, seen: &[FactKey]) -> Command {
    Command::CompleteListing {
        cluster: cluster("east"),
        session: SessionId(7),
        sequence: 9,
        group,
        seen: Arc::new(seen.iter().cloned().collect::<BTreeSet<_>>()),
    }
}

fn property(name: &str) -> Fact {
    Fact::ClusterPropertyUpserted(Arc::new(model::ClusterProperty {
        name: name.into(),
        value: model::PropertyValue::Text("x".into()),
    }))
}

#[test]
fn what_a_listing_did_not_name_is_removed_before_it_is_called_complete() {
    let folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]))
        .and("east", slice("two", &["http"]))
        .and("east", property("a"));
    let seen = [
        FactKey::Export(service("shop/cart")),
        FactKey::EndpointSlice(slice_key("two")),
    ];
    let want = [
        Fact::EndpointSliceRemoved(slice_key("one")),
        Fact::ListingCompleted(ListingGroup::Exports),
    ];
    folded
        .when(listed(ListingGroup::Exports, &seen))
        .then("east", &want);
    let folded = folded.after(listed(ListingGroup::Exports, &seen));
    assert!(folded.imported_slice("east", "one").is_none() && folded.imported_slice("east", "two").is_some());
    let want = [
        Fact::ClusterPropertyRemoved("a".into()),
        Fact::ListingCompleted(ListingGroup::Properties),
    ];
    folded
        .when(listed(ListingGroup::Properties, &[]))
        .then("east", &want);
}

#[test]
fn a_listing_that_changes_nothing_is_recorded_once_in_an_incarnation() {
    let seen = [FactKey::Export(service("shop/cart"))];
    let complete = || listed(ListingGroup::Exports, &seen);
    let folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .after(complete());
    let member = folded.state.member(&cluster("east")).unwrap();
    assert_eq!(
        member.listing_completed(ListingGroup::Exports),
        Some(folded.state.revision())
    );
    folded.when(complete()).then_nothing();
    let rekey = Command::Rekey {
        cluster: cluster("east"),
        operator: "ann".into(),
        key: None,
        cluster_fingerprint: Some("rebuilt".into()),
    };
    let folded = folded.after(rekey).after(admit("east", 1, "rebuilt"));
    folded
        .when(complete())
        .then("east", &[Fact::ListingCompleted(ListingGroup::Exports)]);
}

#[test]
fn removed_and_reported_again_is_there_again() {
    let folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .after(listed(ListingGroup::Exports, &[]));
    assert!(folded.import().is_none());
    let folded = folded.after(observe("east", exported(export(1))));
    assert!(folded.import().is_some());
    assert_eq!(folded.state.tombstones().count(), 0);
}

#[test]
fn a_stranger_completes_nothing() {
    let rejection = given_members(&[])
        .when(listed(ListingGroup::Exports, &[]))
        .then_rejected();
    assert_eq!(
        rejection,
        Rejection::NotAMember {
            cluster: cluster("east")
        }
    );
}
