//! Policies that tighten and loosen, special addresses, disputes over the first place: what is left out, that it comes
//! back by itself, and that replays and snapshots agree.

use std::sync::Arc;

use model::{DenialReason, Endpoint, EndpointSlice, Export, Fact, IpFamily, Revision, SliceKey};
use wire::encode_fact;

use super::given::{
    Folded, cluster, empty, endpoint, endpoint_port, export, exported, given_members,
    given_members_by_the_first_rules, observe, policy, put, service, slice,
};
use crate::{
    Change, Command, DerivedKey, DraftFact, FIRST_FOLD_VERSION, RULES, State, apply,
    tests::given::{encoded, evict},
};

/// No rule.
const OPEN: &str = "members: []";
/// East may export what is in the kitchen, which shop/cart is not.
const KITCHEN_ONLY: &str =
    "members:\n- name: kitchen\n  members: [east]\n  exports: [{namespaces: [kitchen]}]";
/// Nobody may export anything.
const NOTHING: &str = "members:\n- name: nothing\n  members: [\"*\"]\n  exports: []";
/// East's addresses lie in one network.
const RANGES: &str = "members:\n- name: pods\n  members: [\"e*\"]\n  endpoints: [10.0.0.0/24]";
const INCUMBENT: &str = "precedence: incumbent";

/// East's export is older than west's; both have an endpoint.
fn two_exporters() -> Folded {
    adopted(&["east", "west"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]))
        .and("west", exported(export(2)))
        .and("west", slice("two", &["http"]))
}

/// Members of a log that the present rules fold.
fn adopted(names: &[&str]) -> Folded {
    given_members(names).after(Command::AdoptFoldVersion {
        from: FIRST_FOLD_VERSION,
    })
}

fn slice_of(addresses: &[&str]) -> Fact {
    let endpoints = addresses.iter().map(|address| Endpoint {
        addresses: vec![address.parse().unwrap()],
        ..endpoint(1)
    });
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: SliceKey {
            service: service("shop/cart"),
            name: "one".into(),
        },
        address_type: IpFamily::V4,
        ports: vec![endpoint_port("http", 8080)],
        endpoints: endpoints.collect(),
    }))
}

fn addresses(folded: &Folded, cluster: &str, slice: &str) -> Vec<String> {
    let slice = folded.imported_slice(cluster, slice);
    let endpoints = slice.into_iter().flat_map(|slice| slice.endpoints.to_vec());
    endpoints
        .map(|endpoint| endpoint.addresses[0].to_string())
        .collect()
}

fn denial(folded: &Folded, name: &str) -> Option<(DenialReason, String)> {
    let status = folded
        .state
        .export_status(&cluster(name), &service("shop/cart"))
        .unwrap();
    let denial = status.denial.as_ref()?;
    Some((denial.reason, denial.message.to_string()))
}

/// The derived objects, without revisions.
fn content(state: &State) -> Vec<(DerivedKey, String)> {
    let all = state.all_derived();
    let without_revision = |text: String| {
        let mut text = text;
        while let Some(at) = text.find("import_revision: Revision(") {
            let end = text[at..].find(')').unwrap() + at;
            text.replace_range(at..=end, "");
        }
        text
    };
    all.map(|(key, derived)| (key.clone(), without_revision(format!("{:?}", derived.content))))
        .collect()
}

/// The laws, for any history: a replay and each snapshot give the same state.
fn assert_lawful(folded: &Folded) {
    assert_lawful_from(empty(), folded);
}

fn assert_lawful_from(mut replayed: State, folded: &Folded) {
    for event in &folded.events {
        apply(&mut replayed, event);
        let restored = State::restore(replayed.snapshot_rows()).expect("its rows are whole");
        // Content folded under other rules is derived again: all of it is the same except the position from which a
        // cursor resumes.
        if RULES.fold(replayed.fold_version()).is_ok() {
            assert_eq!(restored, replayed, "after {event:?}");
        } else {
            assert_eq!(content(&restored), content(&replayed), "after {event:?}");
            assert!(!restored.can_resume_from(restored.revision()));
        }
    }
    assert_eq!(replayed, folded.state);
}

#[test]
fn a_refused_export_is_nowhere_and_a_loosened_policy_brings_everything_back() {
    let mut folded = two_exporters();
    let before = content(&folded.state);
    let changes = folded.carry_out(&put(KITCHEN_ONLY)).unwrap();
    let import = folded.import().unwrap();
    assert_eq!(
        import.clusters.keys().map(|one| one.as_str()).collect::<Vec<_>>(),
        ["west"]
    );
    assert!(folded.imported_slice("east", "one").is_none() && folded.imported_slice("west", "two").is_some());
    let (reason, message) = denial(&folded, "east").unwrap();
    assert_eq!(reason, DenialReason::Policy);
    assert!(message.contains("rule \"kitchen\" allows kitchen/*"), "{message}");
    assert_eq!(denial(&folded, "west"), None);
    let status = folded
        .state
        .export_status(&cluster("west"), &service("shop/cart"))
        .unwrap();
    assert_eq!(status.exporters, 1, "who is not taken is none of them");
    let removed: Vec<&Change> = changes.iter().filter(|change| change.content.is_none()).collect();
    assert_eq!(removed.len(), 1, "{removed:?}");

    // Facts are taken whatever the policy says.
    let changed = Export {
        generation: 2,
        ..export(1)
    };
    let changes = folded.carry_out(&observe("east", exported(changed))).unwrap();
    assert_eq!(changes.len(), 1, "its own status: {changes:?}");
    folded.carry_out(&observe("east", exported(export(1)))).unwrap();
    folded.carry_out(&put(OPEN)).unwrap();
    assert_eq!(content(&folded.state), before);
    assert_lawful(&folded);
}

#[test]
fn without_any_export_left_the_import_goes_and_is_explained() {
    let mut folded = two_exporters();
    folded.carry_out(&put(NOTHING)).unwrap();
    let objects = folded
        .state
        .all_derived()
        .filter(|(key, _)| !matches!(key, DerivedKey::Profile(_)));
    let only_statuses = |key: &DerivedKey| matches!(key, DerivedKey::ExportStatus(..));
    assert!(objects.into_iter().all(|(key, _)| only_statuses(key)));
    let explained = folded.state.explain(&service("shop/cart"));
    assert_eq!(
        explained.summary,
        "shop/cart is not imported: none of its exports is taken: east (PolicyDenied), west (PolicyDenied)."
    );
    assert_eq!((explained.candidates.len(), explained.refused.len()), (0, 2));
    assert!(explained.recorded().contains(&explained.refused[0].revision));
    // One that goes takes its status along.
    folded
        .carry_out(&observe("east", Fact::ExportRemoved(service("shop/cart"))))
        .unwrap();
    assert_eq!(
        folded
            .state
            .export_status(&cluster("east"), &service("shop/cart")),
        None
    );
    folded.evicted("west");
    assert_eq!(
        folded
            .state
            .export_status(&cluster("west"), &service("shop/cart")),
        None
    );
    assert_lawful(&folded);
}

#[test]
fn the_same_policy_again_is_no_event() {
    let folded = two_exporters().after(put(NOTHING));
    folded.when(put(NOTHING)).then_nothing();
    assert_eq!(folded.state.policy().unwrap().revision, folded.state.revision());
}

#[test]
fn endpoints_outside_the_ranges_are_left_out_until_they_are_allowed() {
    let mut folded = adopted(&["east", "west"])
        .and("east", exported(export(1)))
        .and("east", slice_of(&["10.0.0.7", "10.0.1.7", "10.0.2.7"]));
    let before = content(&folded.state);
    folded.carry_out(&put(RANGES)).unwrap();
    assert_eq!(addresses(&folded, "east", "one"), ["10.0.0.7"]);
    let left_out = |folded: &Folded| {
        let status = folded
            .state
            .export_status(&cluster("east"), &service("shop/cart"));
        status.unwrap().left_out.to_string()
    };
    assert_eq!(
        left_out(&folded),
        "2 endpoints are left out: 10.0.1.7, 10.0.2.7 (outside the ranges that the policy has for east: \"pods\")."
    );
    // A change of the slice is judged by itself.
    folded
        .carry_out(&observe("east", slice_of(&["10.0.0.7", "10.0.0.8"])))
        .unwrap();
    assert_eq!(
        (addresses(&folded, "east", "one").len(), left_out(&folded)),
        (2, String::new())
    );
    folded
        .carry_out(&observe("east", slice_of(&["10.9.0.7"])))
        .unwrap();
    assert!(
        folded.imported_slice("east", "one").is_none(),
        "none of them passes"
    );
    assert!(left_out(&folded).starts_with("1 endpoint is left out: 10.9.0.7 ("));
    // An export that changes beside it keeps its findings.
    let changed = Export {
        generation: 2,
        ..export(1)
    };
    folded.carry_out(&observe("east", exported(changed))).unwrap();
    assert!(left_out(&folded).starts_with("1 endpoint is left out"));
    folded.carry_out(&observe("east", exported(export(1)))).unwrap();
    let restored = slice_of(&["10.0.0.7", "10.0.1.7", "10.0.2.7"]);
    folded.carry_out(&observe("east", restored)).unwrap();
    folded.carry_out(&put(OPEN)).unwrap();
    assert_eq!(content(&folded.state), before);
    let gone = Fact::EndpointSliceRemoved(SliceKey {
        service: service("shop/cart"),
        name: "one".into(),
    });
    folded.carry_out(&put(RANGES)).unwrap();
    folded.carry_out(&observe("east", gone)).unwrap();
    assert_eq!(left_out(&folded), "");
    assert_lawful(&folded);
}

#[test]
fn special_addresses_and_namespaces_of_kubernetes_are_left_out_without_any_policy() {
    let mut folded = adopted(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice_of(&["10.0.0.7", "168.63.129.16"]));
    assert_eq!(addresses(&folded, "east", "one"), ["10.0.0.7"]);
    let status = folded
        .state
        .export_status(&cluster("east"), &service("shop/cart"))
        .unwrap();
    assert_eq!(
        &*status.left_out,
        "1 endpoint is left out: 168.63.129.16 (the address of a cloud's metadata service)."
    );
    let reserved = Export {
        service: service("kube-system/dns"),
        ..export(1)
    };
    folded.carry_out(&observe("east", exported(reserved))).unwrap();
    let dns = service("kube-system/dns");
    assert!(folded.state.derived(&DerivedKey::Import(dns.clone())).is_none());
    let status = folded.state.export_status(&cluster("east"), &dns).unwrap();
    assert_eq!(status.denial.as_ref().unwrap().reason, DenialReason::Namespace);
    assert_lawful(&folded);
}

/// A log of the version before holds what these rules leave out: it is folded as it was, up to where they take it over.
#[test]
fn what_the_first_rules_let_pass_goes_where_the_second_take_over() {
    let reserved = Export {
        service: service("kube-system/dns"),
        ..export(1)
    };
    let mut folded = given_members_by_the_first_rules(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice_of(&["10.0.0.7", "240.0.0.1"]))
        .and("east", exported(reserved));
    assert_eq!(folded.state.fold_version(), FIRST_FOLD_VERSION);
    assert_eq!(addresses(&folded, "east", "one").len(), 2);
    let dns = DerivedKey::Import(service("kube-system/dns"));
    assert!(folded.state.derived(&dns).is_some());
    let changes = folded
        .carry_out(&Command::AdoptFoldVersion {
            from: FIRST_FOLD_VERSION,
        })
        .unwrap();
    assert!(
        changes
            .iter()
            .any(|change| change.key == dns && change.content.is_none())
    );
    assert_eq!(addresses(&folded, "east", "one"), ["10.0.0.7"]);
    assert!(
        !folded
            .state
            .can_resume_from(Revision(folded.state.revision().0 - 1))
    );
    assert_lawful_from(State::new(), &folded);
}

#[test]
fn an_export_that_states_to_be_older_is_an_event_with_both_sides() {
    let mut folded = adopted(&["east", "west"]).and("east", exported(export(5)));
    let outcome = folded.when(observe("west", exported(export(3))));
    let drafts = outcome.drafts();
    let Fact::PrecedenceContested {
        standing,
        challenger,
        held,
        ..
    } = encoded(&drafts[0]).fact
    else {
        panic!("{drafts:?}")
    };
    assert_eq!((standing.cluster, &*standing.uid), (cluster("east"), "uid-5"));
    assert_eq!(
        (challenger.cluster, &*challenger.uid, held),
        (cluster("west"), "uid-3", false)
    );
    assert_eq!(encoded(&drafts[1]), encode_fact(&exported(export(3))));
    folded.carry_out(&observe("west", exported(export(3)))).unwrap();
    let explained = folded.state.explain(&service("shop/cart"));
    let (revision, said) = explained.precedence.clone().unwrap();
    assert!(said.ends_with("west took the first place by it."), "{said}");
    assert!(explained.recorded().contains(&revision));
    assert_eq!(explained.candidates[0].cluster, cluster("west"));
    // A younger or known export is none.
    let later = folded.when(observe("east", exported(export(6)))).drafts();
    assert_eq!(later.len(), 1);
    let known = Export {
        generation: 2,
        ..export(3)
    };
    assert_eq!(folded.when(observe("west", exported(known))).drafts().len(), 1);
    // Another export of one that was known counts like any other.
    assert_eq!(
        folded.when(observe("east", exported(export(1)))).drafts().len(),
        2
    );
    assert_lawful(&folded);
}

#[test]
fn an_incumbent_stands_first_until_an_operator_lets_it_go() {
    let headless = Export {
        service_type: model::ServiceType::Headless,
        ..export(3)
    };
    let mut folded = adopted(&["east", "west", "north"])
        .after(put(INCUMBENT))
        .and("east", exported(export(5)));
    let changes = folded.carry_out(&observe("west", exported(headless))).unwrap();
    assert!(changes.iter().all(|change| change.content.is_some()));
    let first = |folded: &Folded| {
        folded.state.explain(&service("shop/cart")).candidates[0]
            .cluster
            .clone()
    };
    assert_eq!(first(&folded), cluster("east"));
    assert_eq!(
        folded.import().unwrap().service_type,
        model::ServiceType::ClusterSetIp
    );
    assert!(folded.conflicts("west")[0].contains("from incumbent service export in \"east\""));
    let said = folded.state.explain(&service("shop/cart")).precedence.unwrap().1;
    assert!(
        said.ends_with("east keeps the first place until an operator lets it go."),
        "{said}"
    );

    // The one who was refused goes, and comes again; a third comes too. A replay agrees.
    folded
        .carry_out(&observe("west", Fact::ExportRemoved(service("shop/cart"))))
        .unwrap();
    folded.carry_out(&observe("north", exported(export(1)))).unwrap();
    folded.carry_out(&observe("west", exported(export(3)))).unwrap();
    assert_eq!(first(&folded), cluster("east"));
    assert_lawful(&folded);

    let release = Command::ReleasePrecedence {
        service: service("shop/cart"),
        operator: "ann".into(),
    };
    folded.carry_out(&release).unwrap();
    assert_eq!(first(&folded), cluster("north"));
    let rejected = folded.when(release).then_rejected().to_string();
    assert!(rejected.starts_with("there is nothing to release"), "{rejected}");
    assert_lawful(&folded);
}

#[test]
fn a_hold_ends_with_the_export_and_counts_only_under_its_policy() {
    let held = || {
        adopted(&["east", "west"])
            .after(put(INCUMBENT))
            .and("east", exported(export(5)))
            .and("west", exported(export(3)))
    };
    let first = |folded: &Folded| {
        folded.state.explain(&service("shop/cart")).candidates[0]
            .cluster
            .clone()
    };
    let mut again = held();
    again.carry_out(&observe("east", exported(export(7)))).unwrap();
    assert_eq!(
        (first(&again), again.state.contest(&service("shop/cart"))),
        (cluster("west"), None)
    );
    assert_lawful(&again);
    let mut evicted = held();
    evicted.carry_out(&evict("east")).unwrap();
    assert_eq!(evicted.state.contest(&service("shop/cart")), None);
    assert_lawful(&evicted);
    let mut oldest = held();
    oldest.carry_out(&put(OPEN)).unwrap();
    assert_eq!(first(&oldest), cluster("west"));
    oldest.carry_out(&put(INCUMBENT)).unwrap();
    assert_eq!(
        first(&oldest),
        cluster("east"),
        "the decision stands until an operator takes it back"
    );
    // A refused one has no place; it gets it back with the policy.
    let refused = format!("{INCUMBENT}\n{KITCHEN_ONLY}");
    oldest.carry_out(&put(&refused)).unwrap();
    assert_eq!(first(&oldest), cluster("west"));
    oldest.carry_out(&put(INCUMBENT)).unwrap();
    assert_eq!(first(&oldest), cluster("east"));
    assert_lawful(&oldest);
}

#[test]
fn a_refused_export_disputes_nothing() {
    let folded = adopted(&["east", "west"])
        .after(put(KITCHEN_ONLY))
        .and("west", exported(export(5)));
    assert_eq!(
        folded.when(observe("east", exported(export(1)))).drafts().len(),
        1
    );
}

/// An older export that was recorded while it was refused appears with the rule: that is a dispute like any other.
#[test]
fn an_older_export_that_a_loosened_policy_lets_in_disputes_the_first_place() {
    for (spec, held) in [(OPEN, false), (INCUMBENT, true)] {
        let mut folded = adopted(&["east", "west", "north"])
            .after(put(KITCHEN_ONLY))
            .and("west", exported(export(5)))
            .and("north", exported(export(7)))
            .and("east", exported(export(1)));
        let outcome = folded.state.outcome(&policy(spec));
        let drafts = folded.when(put(spec)).drafts();
        let contested = |draft: &DraftFact| match draft {
            DraftFact::Decided(Fact::PrecedenceContested {
                standing,
                challenger,
                held,
                ..
            }) => Some((standing.clone(), challenger.clone(), *held)),
            _ => None,
        };
        let contests: Vec<_> = drafts.iter().filter_map(|draft| contested(&draft.fact)).collect();
        assert_eq!(
            (contests.len(), drafts.len()),
            (1, 2),
            "{spec}: with the policy itself"
        );
        let (standing, challenger, is_held) = &contests[0];
        assert_eq!(
            (&*standing.uid, &*challenger.uid, *is_held),
            ("uid-5", "uid-1", held)
        );
        folded.carry_out(&put(spec)).unwrap();
        let first = folded.state.explain(&service("shop/cart")).candidates[0]
            .cluster
            .clone();
        assert_eq!(first, cluster(if held { "west" } else { "east" }), "{spec}");
        let (moved, stays) = (outcome.first.len(), outcome.held.len());
        assert_eq!((moved, stays), (usize::from(!held), usize::from(held)), "{spec}");
        assert!(folded.state.contest(&service("shop/cart")).is_some());
        // A restored export that is not older, and an older one that was never refused, is none.
        let again = folded.when(put(KITCHEN_ONLY)).drafts();
        assert_eq!(again.len(), 1, "{spec}");
        assert_lawful(&folded);
    }
}

#[test]
fn what_would_follow_from_a_policy_is_what_follows() {
    let folded = two_exporters().and("east", slice_of(&["10.0.0.7", "10.0.1.7"]));
    for spec in [OPEN, KITCHEN_ONLY, NOTHING, RANGES, INCUMBENT] {
        let outcome = folded.state.outcome(&policy(spec));
        let mut after = folded.clone();
        after.carry_out(&put(spec)).unwrap();
        for (service, cluster, why) in &outcome.refused {
            let status = after.state.export_status(cluster, service).unwrap();
            assert_eq!(status.denial.as_ref(), Some(why), "{spec}");
        }
        let denied = |name: &str| denial(&after, name).is_some();
        let count = [denied("east"), denied("west")]
            .iter()
            .filter(|denied| **denied)
            .count();
        assert_eq!(outcome.refused.len(), count, "{spec}");
        assert_eq!(
            outcome.ending.len(),
            usize::from(after.import().is_none()),
            "{spec}"
        );
        assert_eq!(outcome.first.len(), usize::from(spec == KITCHEN_ONLY), "{spec}");
        let left_out: usize = outcome.endpoints_left_out.values().sum();
        let spoken = addresses(&after, "east", "one").len();
        assert_eq!(left_out, usize::from(spec == RANGES) * (2 - spoken), "{spec}");
        let back = after.state.outcome(&policy(OPEN));
        assert_eq!(back.restored.len(), outcome.refused.len(), "{spec}");
        assert_eq!(back.beginning, outcome.ending, "{spec}");
        assert_eq!(back.endpoints_restored, outcome.endpoints_left_out, "{spec}");
    }
    let unmatched = folded
        .state
        .outcome(&policy("members: [{name: typo, members: [eats, \"w*\"]}]"))
        .unmatched;
    assert_eq!(unmatched, [(Box::<str>::from("typo"), "eats".to_owned())]);
}

/// Positions of another epoch say nothing in this one: those that the rules on imports count from are no exception.
#[test]
fn in_a_new_epoch_rules_on_imports_are_as_old_as_everything_else() {
    let rules = "members:\n- name: some\n  members: [west]\n  imports: [{namespaces: [shop]}]";
    let mut folded = given_members(&["east", "west"]).after(put(rules));
    folded.state.begin_epoch();
    let since = |folded: &Folded| {
        let applied = folded.state.policy().expect("a policy");
        (applied.revision, applied.imports_since)
    };
    assert_eq!(since(&folded), (Revision(0), Some(Revision(0))));
    let mut without = given_members(&["east"]).after(put("precedence: incumbent"));
    without.state.begin_epoch();
    assert_eq!(since(&without), (Revision(0), None), "no policy ever had a rule");
}
