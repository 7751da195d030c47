//! `Policy`: a dry run names what would be refused and what goes, a confirmed one does it, a bad one changes nothing.

use proto::v1::{self, policy_server::Policy, state_server::State as _};
use shared::wire::{DEFAULT_POLICY, POLICY_API_VERSION, POLICY_KIND};
use tonic::Code;

use super::PolicyService;
use crate::inspect::tests::inspected_hub::{InspectedHub, by_alice, by_dashboard, by_east, by_west, export};

/// West may export nothing, east nothing but shop/cart; the last rule matches nobody.
const RULES: &str = "  members:
  - {name: cart-only, members: [east], exports: [{namespaces: [shop], services: [cart]}]}
  - {name: nothing, members: [west], exports: []}
  - {name: typo, members: [eats], exports: []}
  - {name: small, members: [east], budget: {exports: 1}}
";

fn document(spec: &str) -> String {
    format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n{spec}")
}

fn apply(document: &str, confirm: bool) -> v1::ApplyPolicyRequest {
    v1::ApplyPolicyRequest {
        document: document.to_owned(),
        confirm,
        ..Default::default()
    }
}

fn service(inspected: &InspectedHub) -> PolicyService {
    PolicyService::new(inspected.membership.clone())
}

async fn in_force(policy: &PolicyService) -> v1::GetPolicyResponse {
    let got = policy.get(by_dashboard(v1::GetPolicyRequest::default())).await;
    got.expect("answered").into_inner()
}

#[tokio::test]
async fn a_policy_is_tried_then_in_force_and_shown_as_it_was_given() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let policy = service(&inspected);
    let head = inspected.head();
    let before = in_force(&policy).await;
    assert_eq!((&*before.document, before.revision), (DEFAULT_POLICY, 0));
    let rules = document(RULES);
    let dry = policy
        .apply(by_alice(apply(&rules, false)))
        .await
        .expect("tried")
        .into_inner();
    assert_eq!((dry.done, dry.revision, inspected.head()), (false, 0, head));
    let text = dry.effects.join("\n");
    for said in [
        "export shop/cart of west is refused (PolicyDenied): The policy of the clusterset does not allow west",
        "export shop/web of east is refused (PolicyDenied)",
        "import shop/web goes in every cluster",
        "east has 2 ServiceExports and may have 1: nothing is removed, and nothing more is accepted",
        "warning: \"eats\" in rule \"typo\" matches no member now",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    assert!(!text.contains("import shop/cart goes"), "{text}");

    let done = policy
        .apply(by_alice(apply(&rules, true)))
        .await
        .expect("done")
        .into_inner();
    assert_eq!(
        (done.done, done.revision, &done.effects),
        (true, head + 1, &dry.effects)
    );
    let after = in_force(&policy).await;
    assert_eq!(
        (&after.document, after.revision, &*after.operator),
        (&rules, head + 1, "alice")
    );
    let state = inspected
        .inspection
        .get(by_alice(v1::GetStateRequest::default()))
        .await;
    let state = state.expect("answered").into_inner();
    let imports: Vec<_> = state
        .imports
        .iter()
        .map(|import| import.import.as_ref())
        .collect();
    assert_eq!(imports.len(), 1, "{imports:?}");
    let reasons: Vec<(&str, &str)> = state
        .exports
        .iter()
        .map(|export| (&*export.cluster, &*export.denial_reason))
        .collect();
    let refused = reasons.iter().filter(|(_, reason)| *reason == "PolicyDenied");
    assert_eq!((reasons.len(), refused.count()), (3, 2), "{reasons:?}");

    let again = policy
        .apply(by_alice(apply(&rules, true)))
        .await
        .expect("answered")
        .into_inner();
    assert!(
        again.nothing_to_do && again.effects[0].contains("in force already"),
        "{again:?}"
    );
    let open = policy
        .apply(by_alice(apply(DEFAULT_POLICY, true)))
        .await
        .expect("done")
        .into_inner();
    let text = open.effects.join("\n");
    assert!(
        text.contains("export shop/web of east is accepted again") && text.contains("import shop/web comes")
    );
}

#[tokio::test]
async fn a_policy_that_is_wrong_is_refused_in_one_line_and_the_old_one_stays() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let policy = service(&inspected);
    policy
        .apply(by_alice(apply(&document(RULES), true)))
        .await
        .expect("done");
    let head = inspected.head();
    let large = format!("{DEFAULT_POLICY}#{}", "x".repeat(1024 * 1024));
    for (wrong, why) in [
        (document("  rules: []\n"), "unknown field `rules`"),
        (
            document("  members: [{name: a, members: [a], endpoints: [10.0.0.0/33]}]\n"),
            "spec.members[0].endpoints[0]: \"10.0.0.0/33\" has a prefix longer than 32 bits",
        ),
        (
            document("  loss: {action: withdraw, after: 9s}\n"),
            "\"9s\" is less than 10 s, in which a loss is noticed",
        ),
        (large, "at most"),
    ] {
        let refused = policy.apply(by_alice(apply(&wrong, true))).await.expect_err(why);
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(
            refused.message().contains(why) && !refused.message().contains('\n'),
            "{refused}"
        );
    }
    assert_eq!(
        (in_force(&policy).await.document, inspected.head()),
        (document(RULES), head)
    );
    let member = policy
        .apply(by_east(apply(DEFAULT_POLICY, true)))
        .await
        .expect_err("a member's");
    assert_eq!(member.code(), Code::PermissionDenied);
    let member = policy
        .get(by_east(v1::GetPolicyRequest::default()))
        .await
        .expect_err("a member's");
    assert_eq!(member.code(), Code::PermissionDenied);
    assert!(member.message().contains("operators and readers"), "{member}");
}

#[tokio::test]
async fn a_place_that_is_held_is_let_go_by_an_operator() {
    let (inspected, _east, mut west) = InspectedHub::with_two_members().await;
    let policy = service(&inspected);
    let incumbent = document("  precedence: incumbent\n");
    policy
        .apply(by_alice(apply(&incumbent, true)))
        .await
        .expect("done");
    // West creates its export again, and claims that it is older than east's.
    west.report(vec![export("shop", "cart", 50, 8080)]).await;
    let explain = || async {
        let explain = v1::ExplainRequest {
            namespace: "shop".into(),
            name: "cart".into(),
            ..Default::default()
        };
        let explained = inspected.inspection.explain(by_alice(explain)).await;
        explained.expect("answered").into_inner()
    };
    let held = explain().await;
    assert_eq!(held.candidates[0].cluster, "east");
    assert!(
        held.precedence.contains("east keeps the first place"),
        "{}",
        held.precedence
    );
    assert!(
        held.events
            .iter()
            .any(|event| event.kind == "precedence_contested")
    );
    let release = |confirm| v1::ReleasePrecedenceRequest {
        service: Some(v1::ServiceKey {
            namespace: "shop".into(),
            name: "cart".into(),
        }),
        confirm,
        ..Default::default()
    };
    let dry = policy
        .release(by_alice(release(false)))
        .await
        .expect("tried")
        .into_inner();
    assert!(dry.effects[0].contains("which is west's"), "{:?}", dry.effects);
    policy.release(by_alice(release(true))).await.expect("done");
    assert_eq!(explain().await.candidates[0].cluster, "west");
    let nothing = policy
        .release(by_alice(release(true)))
        .await
        .expect_err("nothing is held");
    assert_eq!(nothing.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_dry_run_names_the_imports_that_a_member_would_no_longer_take_and_an_explanation_the_rule() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let policy = service(&inspected);
    let fewer = document(
        "  members:\n  - {name: few, members: [west], imports: [{namespaces: [shop], services: [cart]}]}\n",
    );
    let explain = || v1::ExplainRequest {
        namespace: "shop".into(),
        name: "web".into(),
        ..Default::default()
    };
    let effects = async |document: &str, confirm| {
        let done = policy.apply(by_alice(apply(document, confirm))).await;
        done.expect("answered").into_inner().effects.join("\n")
    };
    let text = effects(&fewer, true).await;
    assert!(text.contains("west would no longer accept shop/web"), "{text}");
    assert!(!text.contains("east would"), "{text}");
    for (caller, named) in [
        (by_alice(explain()), 1),
        (by_west(explain()), 1),
        (by_east(explain()), 0),
    ] {
        let explained = inspected
            .inspection
            .explain(caller)
            .await
            .expect("answered")
            .into_inner();
        assert_eq!(explained.withheld.len(), named, "{explained:?}");
        for withheld in &explained.withheld {
            assert_eq!(withheld.cluster, "west");
            assert!(
                withheld.message.contains("rule \"few\" allows shop/cart"),
                "{withheld:?}"
            );
        }
        let said = explained
            .summary
            .ends_with(" The policy does not let west take it.");
        assert_eq!(said, named > 0, "{}", explained.summary);
    }
    let text = effects(DEFAULT_POLICY, false).await;
    assert!(text.contains("west would newly accept shop/web"), "{text}");
}
