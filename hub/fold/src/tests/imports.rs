//! Tests of the imports that members accept: since when their rules are in force, which members an import is kept from,
//! and the effects of another policy.

use model::{Export, Revision};

use super::{
    given::{Folded, cluster, export, exported, given_members, service},
    given::{policy, put},
};
use crate::{SnapshotRow, State, policy::SERVICES_NAMED_MAX};

/// East takes what is in the shop.
const SHOP: &str = "members:\n- name: few\n  members: [east]\n  imports: [{namespaces: [shop]}]";
/// The same, and a rule that says nothing of imports.
const SHOP_AND_EXPORTS: &str = "members:\n- name: few\n  members: [east]\n  imports: [{namespaces: [shop]}]\n\
                                - name: west\n  members: [west]\n  exports: []";
/// East takes nothing.
const NOTHING: &str = "members:\n- name: none\n  members: [east]\n  imports: []";
/// Nobody takes anything.
const NOBODY: &str = "members:\n- name: none\n  members: [\"*\"]\n  imports: []";
const OPEN: &str = "members: []";

fn exporter() -> Folded {
    given_members(&["east", "west"]).and("west", exported(export(1)))
}

fn since(folded: &Folded) -> Option<Revision> {
    folded.state.policy().expect("applied").imports_since
}

/// A member at that position received its objects by these rules.
#[test]
fn only_other_rules_on_imports_are_of_another_revision() {
    let mut folded = exporter();
    folded.carry_out(&put(OPEN)).unwrap();
    assert_eq!(since(&folded), None, "there was never one");
    folded.carry_out(&put(SHOP)).unwrap();
    let shop = Some(folded.state.revision());
    assert_eq!(since(&folded), shop);
    folded.carry_out(&put(SHOP_AND_EXPORTS)).unwrap();
    assert_eq!(since(&folded), shop);
    assert!(Some(folded.state.revision()) > shop);
    let rows: Vec<SnapshotRow> = folded.state.snapshot_rows().collect();
    assert_eq!(State::restore(rows).as_ref(), Ok(&folded.state));
    folded.carry_out(&put(OPEN)).unwrap();
    assert_eq!(
        since(&folded),
        Some(folded.state.revision()),
        "a rule that goes is another"
    );
}

#[test]
fn an_import_names_whom_it_is_kept_from_and_by_which_rule() {
    let (mut folded, cart) = (exporter(), service("shop/cart"));
    assert_eq!(folded.state.withheld(&cart, None), Default::default());
    folded.carry_out(&put(NOTHING)).unwrap();
    let withheld = folded.state.withheld(&cart, None);
    let [(of, why)] = withheld.named.as_slice() else {
        panic!("{withheld:?}")
    };
    assert_eq!((of, withheld.more), (&cluster("east"), 0));
    assert!(
        why.contains("does not let east take shop/cart: rule \"none\" allows nothing"),
        "{why}"
    );
    assert_eq!(withheld.summary(), "The policy does not let east take it.");
    assert_eq!(
        folded.state.withheld(&cart, Some(&cluster("west"))),
        Default::default()
    );
    assert_eq!(folded.state.withheld(&cart, Some(&cluster("east"))), withheld);
}

#[test]
fn so_many_are_named_and_the_others_counted() {
    let names: Vec<String> = (0..25).map(|number| format!("c{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut folded = given_members(&names).and("c00", exported(export(1)));
    folded.carry_out(&put(NOBODY)).unwrap();
    let withheld = folded.state.withheld(&service("shop/cart"), None);
    assert_eq!((withheld.named.len(), withheld.more), (20, 5));
    let said = withheld.summary();
    assert_eq!(
        said,
        "The policy does not let 25 members take it, of which c00 is one."
    );
}

#[test]
fn another_policy_names_the_first_imports_that_go_and_come() {
    let mut folded = exporter();
    for number in 0..SERVICES_NAMED_MAX + 2 {
        let more = Export {
            service: service(&format!("bank/s{number}")),
            ..export(1)
        };
        folded = folded.and("west", exported(more));
    }
    let open = folded.state.clone();
    let (shop, all) = (policy(SHOP), policy(OPEN));
    let outcome = open.outcome(&shop);
    let gone = &outcome.imports_gone[&cluster("east")];
    assert_eq!(
        (gone.named[0].clone(), gone.named.len(), gone.more),
        (service("bank/s0"), SERVICES_NAMED_MAX, 2)
    );
    assert!(outcome.imports_come.is_empty() && outcome.imports_gone.len() == 1);
    folded.carry_out(&put(SHOP)).unwrap();
    assert_eq!(folded.state.outcome(&all).imports_come, outcome.imports_gone);
    assert_eq!(folded.state.outcome(&shop), Default::default());
}
