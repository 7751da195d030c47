//! Verdicts: what rules allow together, what they leave open, and the words of a refusal.

use super::*;

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).expect("a cluster id")
}

fn service(namespace: &str, name: &str) -> ServiceKey {
    ServiceKey::new(namespace, name).expect("a service")
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| text.parse().expect("a pattern"))
        .collect()
}

fn imports(namespaces: &[&str], services: &[&str]) -> Option<Arc<[ServiceRule]>> {
    exports(namespaces, services).map(Arc::from)
}

fn rule(name: &str, members: &[&str]) -> MemberRule {
    MemberRule {
        name: name.into(),
        members: patterns(members),
        exports: None,
        endpoints: None,
        imports: None,
        budget: BudgetRule::default(),
    }
}

fn exports(namespaces: &[&str], services: &[&str]) -> Option<Vec<ServiceRule>> {
    Some(vec![ServiceRule {
        namespaces: patterns(namespaces),
        services: patterns(services),
    }])
}

fn ranges(texts: &[&str]) -> Option<Vec<AddressRange>> {
    Some(texts.iter().map(|text| text.parse().expect("a range")).collect())
}

fn policy(rules: Vec<MemberRule>) -> Policy {
    Policy {
        loss: Loss::default(),
        brake: Brake::default(),
        document: "".into(),
        precedence: Precedence::default(),
        rules,
    }
}

#[test]
fn who_is_named_by_no_rule_may_do_everything() {
    let policy = policy(vec![
        MemberRule {
            exports: exports(&["shop"], &["*"]),
            endpoints: ranges(&["10.0.0.0/8"]),
            ..rule("shop", &["west-*"])
        },
        rule("says-nothing", &["*"]),
    ]);
    let (east, west) = (cluster("east"), cluster("west-1"));
    assert_eq!(policy.denies_export(&east, &service("kitchen", "oven")), None);
    assert_eq!(policy.ranges_of(&east), None);
    assert_eq!(policy.denies_export(&west, &service("shop", "cart")), None);
    assert!(policy.denies_export(&west, &service("kitchen", "oven")).is_some());
    assert_eq!(policy.ranges_of(&west), ranges(&["10.0.0.0/8"]));
}

#[test]
fn rules_about_one_member_add_up_and_nothing_is_a_list_too() {
    let policy = policy(vec![
        MemberRule {
            exports: Some(Vec::new()),
            endpoints: Some(Vec::new()),
            ..rule("nobody", &["*"])
        },
        MemberRule {
            exports: exports(&["shop", "shop-*"], &["cart", "*-db"]),
            ..rule("shop", &["east"])
        },
        MemberRule {
            endpoints: ranges(&["10.1.0.0/16", "fd00:1::/32"]),
            ..rule("pods", &["east"])
        },
    ]);
    let (east, west) = (cluster("east"), cluster("west"));
    for (namespace, name, allowed) in [
        ("shop", "cart", true),
        ("shop-eu", "orders-db", true),
        ("shop", "orders", false),
        ("kitchen", "cart", false),
    ] {
        let denied = policy.denies_export(&east, &service(namespace, name));
        assert_eq!(denied.is_none(), allowed, "{namespace}/{name}");
    }
    assert!(policy.denies_export(&west, &service("shop", "cart")).is_some());
    let east = policy.ranges_of(&east).expect("it is spoken of");
    assert!(lies_in(&east, "10.1.2.3".parse().expect("an address")));
    assert!(!lies_in(&east, "10.2.0.0".parse().expect("an address")));
    assert_eq!(policy.ranges_of(&west), Some(Vec::new()));
}

#[test]
fn a_refusal_names_the_rules_and_what_they_allow() {
    let policy = policy(vec![
        MemberRule {
            exports: exports(&["shop"], &["cart", "*-db"]),
            ..rule("shop", &["east"])
        },
        MemberRule {
            exports: Some(Vec::new()),
            ..rule("nobody", &["*"])
        },
    ]);
    let why = policy.denies_export(&cluster("east"), &service("kitchen", "oven"));
    let why = why.expect("it is refused");
    assert!(
        why.starts_with(
            "The policy of the clusterset does not allow east to export kitchen/oven: rule \"shop\" allows shop/cart, \
             shop/*-db; rule \"nobody\" allows nothing."
        ),
        "{why}"
    );
}

#[test]
fn a_refusal_is_short_however_many_rules_there_are() {
    let many: Vec<MemberRule> = (0..RULES_MAX)
        .map(|number| MemberRule {
            exports: exports(&["a", "b", "c", "d"], &["1", "2", "3", "4"]),
            ..rule(&format!("rule-{number}"), &["*"])
        })
        .collect();
    let why = policy(many).denies_export(&cluster("east"), &service("kitchen", "oven"));
    let why = why.expect("it is refused");
    assert!(why.len() < 1_000 && why.contains("and 251 more rules"), "{why}");
    assert!(why.contains("and 11 more patterns"), "{why}");
}

#[test]
fn patterns_that_match_no_member_are_told_apart() {
    let policy = policy(vec![
        rule("one", &["east", "eats"]),
        rule("two", &["we*", "north-*"]),
    ]);
    let (east, west) = (cluster("east"), cluster("west"));
    let unmatched = policy.unmatched(&[&east, &west]);
    let words: Vec<String> = unmatched
        .iter()
        .map(|(rule, pattern)| format!("{rule} {pattern}"))
        .collect();
    assert_eq!(words, ["one eats", "two north-*"]);
}

#[test]
fn a_member_takes_what_its_rules_allow_together_and_everything_where_none_speaks_of_imports() {
    let policy = policy(vec![
        MemberRule {
            imports: imports(&["shop"], &["*"]),
            ..rule("shop", &["west-*"])
        },
        MemberRule {
            imports: imports(&["bank"], &["till"]),
            ..rule("till", &["west-1"])
        },
        MemberRule {
            exports: exports(&["shop"], &["*"]),
            ..rule("exports-only", &["east"])
        },
        MemberRule {
            imports: Some(Arc::new([])),
            ..rule("nothing", &["north"])
        },
    ]);
    let takes = |member: &str, namespace: &str, name: &str| {
        let (cluster, service) = (cluster(member), service(namespace, name));
        let takes = policy.imports_of(&cluster).allow(&service);
        let denied = policy.denies_import(&cluster, &service);
        assert_eq!(takes, denied.is_none(), "{denied:?}");
        takes
    };
    assert!(takes("west-1", "shop", "cart") && takes("west-1", "bank", "till"));
    assert!(takes("west-2", "shop", "cart") && !takes("west-2", "bank", "till"));
    assert!(takes("east", "bank", "till"), "exports are another matter");
    assert!(!takes("north", "shop", "cart"));
    assert_eq!(
        policy
            .denies_import(&cluster("west-1"), &service("bank", "vault"))
            .as_deref(),
        Some(
            "The policy of the clusterset does not let west-1 take bank/vault: rule \"shop\" allows shop/*; rule \"till\" \
             allows bank/till. An operator decides on the policy."
        )
    );
}

#[test]
fn policies_agree_on_imports_whatever_else_they_say() {
    let few = |members: &[&str], namespaces: &[&str]| MemberRule {
        imports: imports(namespaces, &["*"]),
        ..rule("few", members)
    };
    let silent = rule("silent", &["east"]);
    let fewer = policy(vec![few(&["east"], &["shop"])]);
    let renamed = MemberRule {
        name: "another".into(),
        ..few(&["east"], &["shop"])
    };
    assert!(fewer.agrees_on_imports(&policy(vec![silent.clone(), renamed])));
    for other in [
        vec![few(&["west"], &["shop"])],
        vec![few(&["east"], &["bank"])],
        vec![few(&["east"], &["shop"]), few(&["east"], &["bank"])],
        vec![silent],
    ] {
        let other = policy(other);
        assert!(!fewer.agrees_on_imports(&other) && !other.agrees_on_imports(&fewer));
    }
}

#[test]
fn the_same_is_taken_in_whatever_rules_it_is_written() {
    let take = |lists: Vec<Option<Arc<[ServiceRule]>>>| {
        let rules = lists.into_iter().map(|imports| MemberRule {
            imports,
            ..rule("some", &["east"])
        });
        policy(rules.collect()).imports_of(&cluster("east"))
    };
    let (shop, bank) = (|| imports(&["shop"], &["*"]), || imports(&["bank"], &["*"]));
    let both = [shop(), bank()].into_iter().flatten();
    let both: Vec<ServiceRule> = both.flat_map(|list| list.to_vec()).collect();
    assert_eq!(take(vec![shop(), bank()]), take(vec![Some(both.into())]));
    assert_ne!(take(vec![shop()]), take(vec![bank()]));
    assert_ne!(take(vec![Some(Arc::new([]))]), take(vec![None]));
}

/// A rule of a thousand namespaces and a thousand names says a million things.
#[test]
fn a_long_list_is_counted_and_not_written_out() {
    let many: Vec<String> = (0..ENTRIES_MAX).map(|number| format!("n{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let policy = policy(vec![MemberRule {
        imports: imports(&many, &many),
        ..rule("many", &["east"])
    }]);
    let said = policy
        .denies_import(&cluster("east"), &service("shop", "cart"))
        .unwrap();
    assert!(
        said.contains("n0/n0, n0/n1, n0/n2, n0/n3, n0/n4, and 1048571 more patterns"),
        "{said}"
    );
}
