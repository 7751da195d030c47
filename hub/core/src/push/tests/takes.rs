//! Tests of the import filter across positions: whatever the policy was at the start, a member ends with what is
//! allowed now.

use wire::read_policy;

use super::*;
use crate::view::ImportRules;

/// Puts a policy in force that lets everybody take these namespaces only.
fn takes(view: &mut View, revision: u64, imports: &str) {
    let document = format!(
        "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec:\n  members:\n  - name: few\n    \
         members: [east]\n    imports: {imports}\n"
    );
    let policy = Arc::new(read_policy(&document).expect("a policy"));
    view.publish(cursor(revision), Vec::new(), 1_000);
    let since = Revision(revision);
    view.set_import_rules(Some(ImportRules { since, policy }));
}

const SHOP: &str = "[{namespaces: [shop]}]";
const ALL: &str = "[{namespaces: [\"*\"]}]";

fn both() -> Interest {
    interest(1, &["bank", "shop"])
}

#[test]
fn a_resume_over_a_tightened_rule_leaves_no_ghost() {
    let mut view = some_view();
    takes(&mut view, 5, SHOP);
    let mut push = Push::resume(member(), both(), cursor(4));
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@1", "complete 1 at 5"]
    );
}

#[test]
fn a_resume_over_a_loosened_rule_restores() {
    let mut view = some_view();
    takes(&mut view, 5, SHOP);
    takes(&mut view, 6, ALL);
    let mut push = Push::resume(member(), both(), cursor(5));
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "bank/till@2, shop/cart@1", "complete 1 at 6"]
    );
}

#[test]
fn a_resume_under_the_policy_that_it_came_with_is_one() {
    let mut view = some_view();
    takes(&mut view, 5, SHOP);
    publish(&mut view, 6, import("bank", "till"), false);
    publish(&mut view, 7, import("shop", "cart"), false);
    let mut push = Push::resume(member(), both(), cursor(5));
    assert_eq!(drain(&mut push, &view), ["shop/cart@7", "up to 7"]);
}

/// Only what members take decides: a policy of other rules costs nobody a snapshot.
#[test]
fn a_resume_over_a_policy_that_has_the_same_rules_on_imports_is_one() {
    let mut view = some_view();
    takes(&mut view, 5, SHOP);
    view.publish(cursor(6), Vec::new(), 1_000);
    let same = view.import_rules().cloned();
    assert!(!view.set_import_rules(same));
    publish(&mut view, 7, import("shop", "cart"), false);
    let mut push = Push::resume(member(), both(), cursor(5));
    assert_eq!(drain(&mut push, &view), ["shop/cart@7", "up to 7"]);
}

/// A room without anything for the member is skipped in several calls, each of which continues.
#[test]
fn no_call_looks_at_more_than_it_may() {
    let mut view = View::new(cursor(0), Revision(0));
    let denied: Vec<Publication> = (0..=SCAN_MAX)
        .map(|number| {
            let key = import("bank", &format!("s{number:05}"));
            let entry = entry(1, content(&key, "uid"));
            Publication { key, entry }
        })
        .collect();
    view.publish(cursor(1), denied, 1_000);
    publish(&mut view, 2, import("shop", "cart"), false);
    takes(&mut view, 3, SHOP);
    let mut push = Push::snapshot(member(), both());
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "", "shop/cart@2", "complete 1 at 3"]
    );
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    drain(&mut push, &view);
    push.change_interest(2, BTreeSet::from(["bank".into()]), &BTreeSet::new());
    assert_eq!(
        drain(&mut push, &view),
        ["", "namespace {\"bank\"} under 2", "up to 3"]
    );
}

#[test]
fn a_session_is_sent_anew_when_what_it_takes_changes_and_only_then() {
    let mut view = some_view();
    let mut push = Push::snapshot(member(), both());
    drain(&mut push, &view);
    takes(&mut view, 5, ALL);
    assert_eq!(drain(&mut push, &view).first().map(String::as_str), Some("begin"));
    takes(&mut view, 6, ALL);
    assert!(drain(&mut push, &view).is_empty());
    takes(&mut view, 7, SHOP);
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@1", "complete 1 at 7"]
    );
}

#[test]
fn a_snapshot_under_way_begins_again() {
    let mut view = some_view();
    let mut push = Push::snapshot(member(), both()).in_chunks_of(1);
    push.next(&view);
    push.next(&view);
    takes(&mut view, 5, SHOP);
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@1", "complete 1 at 5"]
    );
}

#[test]
fn what_is_said_of_its_own_exports_reaches_a_member_that_takes_nothing() {
    let mut view = some_view();
    takes(&mut view, 5, "[]");
    let service = ServiceKey::new("shop", "cart").expect("valid");
    publish(&mut view, 6, DerivedKey::ExportStatus(member(), service), false);
    let mut push = Push::snapshot(member(), both());
    assert_eq!(
        drain(&mut push, &view),
        ["begin", "shop/cart@6", "complete 1 at 6"]
    );
}

#[test]
fn neither_an_added_namespace_nor_an_object_asked_for_passes_the_policy() {
    let mut view = some_view();
    takes(&mut view, 5, SHOP);
    let mut push = Push::snapshot(member(), interest(1, &["shop"]));
    drain(&mut push, &view);
    push.change_interest(2, BTreeSet::from(["bank".into()]), &BTreeSet::new());
    let till = ServiceKey::new("bank", "till").expect("valid");
    push.want(BTreeSet::from([DesiredKey::Import(till)]));
    assert_eq!(drain(&mut push, &view), ["namespace {\"bank\"} under 2"]);
}
