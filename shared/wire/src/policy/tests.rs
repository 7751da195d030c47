//! Documents: what is read, what is refused and in which words, and that what one meant it means for ever.

use super::*;
use model::policy::Brake;

/// Frozen: logs hold documents of this version.
const WHOLE: &str = r#"# Who may export what.
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  precedence: incumbent
  members:
  - name: shop
    members: [east, "west-*"]
    exports:
    - namespaces: [shop, "shop-*"]
      services: [cart, "*-db"]
    - namespaces: ["kitchen"]
    endpoints: [10.0.0.0/8, "fd00:1::/32"]
    imports:
    - namespaces: [bank]
    budget: {exports: 3, endpointSlices: 4, endpoints: 5, properties: 6, factBytes: 7, eventsPerMinute: 8}
  - name: nobody-else
    members: ["*"]
    exports: []
"#;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_document_is_read_for_ever_as_it_is_today() {
    let read = read_policy(WHOLE).unwrap();
    let services = |namespaces: &[&str], services: &[&str]| ServiceRule {
        namespaces: patterns(namespaces),
        services: patterns(services),
    };
    let expected = Policy {
        loss: Loss::default(),
        brake: Brake::default(),
        document: WHOLE.into(),
        precedence: Precedence::Incumbent,
        rules: vec![
            MemberRule {
                name: "shop".into(),
                members: patterns(&["east", "west-*"]),
                exports: Some(vec![
                    services(&["shop", "shop-*"], &["cart", "*-db"]),
                    services(&["kitchen"], &["*"]),
                ]),
                endpoints: Some(vec![
                    "10.0.0.0/8".parse().unwrap(),
                    "fd00:1::/32".parse().unwrap(),
                ]),
                imports: Some(Arc::new([services(&["bank"], &["*"])])),
                budget: (3..)
                    .zip(Limit::ALL)
                    .fold(BudgetRule::default(), |budget, (most, limit)| {
                        budget.with(limit, Some(most))
                    }),
            },
            MemberRule {
                name: "nobody-else".into(),
                members: patterns(&["*"]),
                exports: Some(Vec::new()),
                endpoints: None,
                imports: None,
                budget: BudgetRule::default(),
            },
        ],
    };
    assert_eq!(read, expected);
}

#[test]
fn the_default_says_nothing() {
    let read = read_policy(DEFAULT_POLICY).unwrap();
    assert_eq!((read.precedence, read.rules), (Precedence::Oldest, Vec::new()));
}

/// The document with one line more in its first rule, or another one in its place.
fn with(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    WHOLE.replacen(from, to, 1)
}

#[test]
fn what_is_wrong_is_refused_in_one_line_that_says_where() {
    let name = "  - name: shop\n";
    for (document, why) in [
        (
            with(name, "  - name: shop\n    export: []\n"),
            "unknown field `export`",
        ),
        (
            with("spec:\n", "spec:\n  budgets: []\n"),
            "unknown field `budgets`",
        ),
        (with("kind: ", "metadata: {}\nkind: "), "unknown field `metadata`"),
        (
            with("10.0.0.0/8", "10.1.0.0/8"),
            "spec.members[0].endpoints[0]: \"10.1.0.0/8\" begins inside the range: write 10.0.0.0/8",
        ),
        (
            with("10.0.0.0/8", "10.0.0.0"),
            "spec.members[0].endpoints[0]: \"10.0.0.0\" is no range",
        ),
        (
            with("[cart, ", "[Cart, "),
            "spec.members[0].exports[0].services[0]: \"Cart\" is no name or pattern",
        ),
        (
            with("namespaces: [\"kitchen\"]", "namespaces: []"),
            "spec.members[0].exports[1].namespaces: names nothing",
        ),
        (with("    exports: []", "    exports:"), "a field is left empty"),
        (
            with("nobody-else", "shop"),
            "spec.members[1].name: \"shop\" is another rule's",
        ),
        (
            with("nobody-else", "Nobody else"),
            "spec.members[1].name: \"Nobody else\" is no name of a rule",
        ),
        (with("incumbent", "youngest"), "unknown variant `youngest`"),
        (
            with("v1alpha1", "v9"),
            "apiVersion: is \"tributary.dev/v9\"; this hub reads tributary.dev/v1alpha1",
        ),
        (with("ClustersetPolicy", "Policy"), "kind: is \"Policy\""),
        (with("kind:", "kind: x\nkind:"), "duplicate field `kind`"),
        (format!("{WHOLE}---\n{WHOLE}"), "more than one document"),
        (String::new(), "missing field"),
        ("[x]".into(), "invalid type"),
    ] {
        let error = read_policy(&document).expect_err(why).to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{why}: {error}");
        assert!(error.starts_with("the policy is not taken: "), "{error}");
    }
}

#[test]
fn a_document_has_its_bounds() {
    let comment = |bytes: usize| {
        format!(
            "{DEFAULT_POLICY}#{}",
            "x".repeat(bytes - DEFAULT_POLICY.len() - 1)
        )
    };
    assert!(read_policy(&comment(POLICY_BYTES_MAX)).is_ok());
    for bytes in [POLICY_BYTES_MAX + 1, 1024 * 1024 + 1] {
        let error = read_policy(&comment(bytes)).unwrap_err().to_string();
        assert!(error.contains(&format!("it has {bytes} bytes")), "{error}");
    }
    let rules = |count: usize| {
        let rules = (0..count).map(|n| format!("  - {{name: r{n}, members: [a]}}\n"));
        format!(
            "{}  members:\n{}",
            DEFAULT_POLICY.replace(" {}", ""),
            rules.collect::<String>()
        )
    };
    assert_eq!(read_policy(&rules(RULES_MAX)).unwrap().rules.len(), RULES_MAX);
    assert!(
        read_policy(&rules(RULES_MAX + 1))
            .unwrap_err()
            .to_string()
            .contains("257 rules")
    );
    let entries = |count: usize| with("10.0.0.0/8", &vec!["10.0.0.0/8"; count].join(", "));
    assert!(read_policy(&entries(ENTRIES_MAX - 1)).is_ok());
    assert!(
        read_policy(&entries(ENTRIES_MAX))
            .unwrap_err()
            .to_string()
            .contains("1025 entries")
    );
}

/// Logs of earlier releases hold larger documents, and must be read for ever.
#[test]
fn a_recorded_document_has_the_bounds_of_its_time() {
    let long = format!("{DEFAULT_POLICY}#{}", "x".repeat(POLICY_BYTES_MAX));
    assert!(read_policy(&long).is_err() && read_recorded_policy(&long).is_ok());
    let longest = format!("{DEFAULT_POLICY}#{}", "x".repeat(RECORDED_POLICY_BYTES_MAX));
    assert!(read_recorded_policy(&longest).is_err());
    let brackets = |count: usize| format!("{DEFAULT_POLICY}#{}", "[".repeat(count));
    assert!(
        read_policy(&brackets(POLICY_BRACKETS_MAX)).is_err(),
        "one is the default's"
    );
    assert!(read_policy(&brackets(POLICY_BRACKETS_MAX - 1)).is_ok());
    assert!(read_recorded_policy(&brackets(POLICY_BRACKETS_MAX)).is_ok());
}

/// Every document within the bounds is read or refused in a moment, in builds without optimization too.
#[test]
fn no_document_takes_long_to_be_read() {
    for part in [
        "{a: ", "[", "[{", "? ", "- ", "- [", "&a ", "*a ", "a: ", "'", "\"", "|\n", "%", "!a ", "a\n ", "{",
        "[a,", "\u{feff}", "a: [\n", ", ", "{? ", "\t", "#\n", "---\n", "\\", "[ [a], ",
    ] {
        let document = part.repeat(POLICY_BYTES_MAX / part.len());
        let brackets = "[".repeat(POLICY_BRACKETS_MAX);
        let rest = &document[..document.floor_char_boundary(POLICY_BYTES_MAX - POLICY_BRACKETS_MAX)];
        for document in [document.clone(), format!("{brackets}{rest}")] {
            crate::hostile::in_a_moment(part, || drop(read_policy(&document)));
        }
    }
}

/// Aliases must not make much out of little.
#[test]
fn a_document_that_grows_when_it_is_read_is_refused() {
    let mut bomb = String::from("apiVersion: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for (one, next) in ('a'..='h').zip('b'..='i') {
        bomb.push_str(&format!(
            "{next}: &{next} [{}]\n",
            vec![format!("*{one}"); 10].join(", ")
        ));
    }
    let error = read_policy(&bomb).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.len() < 1_000, "{error}");
}

#[test]
fn what_is_said_of_the_brake_is_read_and_what_is_not_said_is_as_without() {
    let document = |brake: &str| {
        format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  brake: {brake}\n")
    };
    let read = |brake: &str| read_policy(&document(brake)).map(|policy| policy.brake);
    assert_eq!(read("{}"), Ok(Brake::default()));
    let off = Brake {
        enabled: false,
        ..Brake::default()
    };
    assert_eq!(read("{enabled: false}"), Ok(off));
    let all = Brake {
        enabled: true,
        exports: 2,
        percent: 80,
        within_millis: 5_000,
        longest_millis: Some(7_200_000),
    };
    let stated = "{enabled: true, exports: 2, percent: 80, within: 5s, longest: 2h}";
    assert_eq!(read(stated), Ok(all));
    let unlimited = Brake {
        longest_millis: None,
        ..Brake::default()
    };
    assert_eq!(read("{longest: unlimited}"), Ok(unlimited));
    assert_eq!(Brake::default().longest_millis, Some(15 * 60_000));
    for (wrong, why) in [
        (
            "{exports: 0}",
            "spec.brake.exports: is 0; use 1 or more, or say enabled: false",
        ),
        ("{percent: 0}", "spec.brake.percent: is 0; use 1 to 100"),
        (
            "{within: 0s}",
            "spec.brake.within: \"0s\" is not between 1ms and 10m",
        ),
        ("{within: 11m}", "is not between 1ms and 10m"),
        ("{within: soon}", "spec.brake.within: \"soon\" is no duration"),
        ("{longest: 8d}", "spec.brake.longest"),
        ("{holds: true}", "unknown field `holds`"),
        ("", "a field is left empty"),
    ] {
        let refused = read(wrong).unwrap_err().to_string();
        assert!(
            refused.contains(why) && !refused.contains('\n'),
            "{wrong}: {refused}"
        );
    }
}

#[test]
fn a_loss_is_acted_on_after_it_is_noticed_and_what_is_not_said_of_it_is_as_without() {
    let document = |loss: &str| {
        format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  loss: {loss}\n")
    };
    let read = |loss: &str| read_policy(&document(loss)).map(|policy| policy.loss);
    let after = |after_millis| Loss {
        after_millis,
        ..Loss::default()
    };
    assert_eq!(
        read("{action: withdraw, after: 10s}"),
        Ok(after(LOSS_DETECTED_MILLIS))
    );
    assert_eq!(
        read("{action: withdraw, after: 168h}"),
        Ok(after(LOSS_MILLIS_MAX))
    );
    for (wrong, why) in [
        (
            "{action: withdraw, after: 9999ms}",
            "\"9999ms\" is less than 10 s, in which a loss is noticed",
        ),
        ("{action: retain, after: 0s}", "is less than 10 s"),
        ("{action: withdraw, after: -1h}", "is less than 10 s"),
        ("{action: withdraw, after: soon}", "\"soon\" is no duration"),
        ("{action: withdraw, after: 169h}", "is more than 7 days"),
        (
            "{action: withdraw, selfPreservation: {percent: 0}}",
            "selfPreservation.percent: is 0; use 1 to 100",
        ),
        ("{action: forget}", "unknown variant `forget`"),
    ] {
        let refused = read(wrong).unwrap_err().to_string();
        assert!(
            refused.contains(why) && !refused.contains('\n'),
            "{wrong}: {refused}"
        );
    }
}

#[test]
fn imports_are_written_as_exports_are() {
    let document = |imports: &str| {
        format!(
            "apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  members:\n  - name: few\n    \
             members: [east]\n    imports: {imports}\n"
        )
    };
    let read = |imports: &str| read_policy(&document(imports)).map(|policy| policy.rules[0].imports.clone());
    let one = ServiceRule {
        namespaces: patterns(&["shop-*"]),
        services: patterns(&["*"]),
    };
    assert_eq!(read("[{namespaces: [\"shop-*\"]}]"), Ok(Some(Arc::from([one]))));
    assert_eq!(read("[]"), Ok(Some(Arc::from([]))));
    for wrong in [
        "[{namespaces: []}]",
        "[{namespaces: [Shop]}]",
        "[{services: [a]}]",
        "[{namespaces: [a], port: 1}]",
        "",
    ] {
        let refused = read(wrong).unwrap_err().to_string();
        assert!(!refused.contains('\n'), "{refused}");
    }
}
