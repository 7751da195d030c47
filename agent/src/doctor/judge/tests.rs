//! Each fault of a cluster, planted as a value.

use super::*;

const NOW: UnixMillis = UnixMillis(1_000_000_000);

fn served(kinds: &[(&str, &str)]) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut served: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (version, plural) in kinds {
        served
            .entry((*version).to_owned())
            .or_default()
            .insert((*plural).to_owned());
    }
    Ok(served)
}

const BETA: &str = "multicluster.x-k8s.io/v1beta1";
const ALPHA: &str = "multicluster.x-k8s.io/v1alpha1";
const ABOUT: &str = "about.k8s.io/v1beta1";

fn words(check: &Check) -> (String, String) {
    assert!(check.is_fault(), "{check:?}");
    let (what, fix) = check.verdict.words();
    (what, fix.expect("a fix"))
}

#[test]
fn all_definitions_in_a_version_that_is_spoken_are_fine() {
    for version in [BETA, ALPHA] {
        let kinds = [
            (version, "serviceexports"),
            (version, "serviceimports"),
            (ABOUT, "clusterproperties"),
        ];
        let checks = definitions(&served(&kinds));
        assert_eq!(checks.len(), 1, "{checks:?}");
        assert!(checks[0].verdict.words().0.contains(version), "{checks:?}");
    }
}

#[test]
fn definitions_that_are_missing_are_named() {
    let checks = definitions(&served(&[(BETA, "serviceexports")]));
    let said: Vec<String> = checks.iter().map(|check| words(check).0).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("serviceimports.multicluster.x-k8s.io"),
        "{said:?}"
    );
    assert!(said[1].contains("clusterproperties.about.k8s.io"), "{said:?}");
    assert!(words(&checks[0]).1.contains("kubectl apply"));
}

#[test]
fn a_version_that_is_not_spoken_is_named() {
    let kinds = [
        (BETA, "serviceexports"),
        ("multicluster.x-k8s.io/v1", "serviceimports"),
        (ABOUT, "clusterproperties"),
    ];
    let checks = definitions(&served(&kinds));
    assert_eq!(checks.len(), 1, "{checks:?}");
    let (what, fix) = words(&checks[0]);
    assert!(what.contains("served in multicluster.x-k8s.io/v1 only"), "{what}");
    assert!(fix.contains("served"), "{fix}");
}

#[test]
fn what_is_served_may_be_unseen() {
    let checks = definitions(&Err("forbidden".into()));
    assert_eq!(checks[0].verdict.word(), "unseen");
}

#[test]
fn a_cluster_that_says_another_id_is_a_fault() {
    assert_eq!(
        property(&Ok(Some("east".into())), Ok("east")).verdict.word(),
        "ok"
    );
    assert_eq!(property(&Ok(None), Ok("east")).verdict.word(), "skipped");
    assert_eq!(property(&Err("no".into()), Ok("east")).verdict.word(), "unseen");
    let (what, fix) = words(&property(&Ok(Some("west".into())), Ok("east")));
    assert!(what.contains("says west"), "{what}");
    assert!(fix.contains("use the certificate of west"), "{fix}");
    assert!(!fix.contains("delete"), "the id is the cluster's: {fix}");
}

/// With an operator's certificate the cluster's id is not checked.
#[test]
fn without_a_clusters_certificate_the_id_is_not_judged() {
    let why = "--tls-cert is a certificate of the operator e2e, not of a cluster".to_owned();
    let check = property(&Ok(Some("east".into())), Err(&why));
    assert_eq!(
        check,
        Check::skipped("cluster-id", format!("not looked at: {why}"))
    );
}

fn held(holder: &str, age: u64) -> Result<Option<LeaseSeen>, String> {
    Ok(Some(LeaseSeen {
        holder: holder.to_owned(),
        renewed: Some(UnixMillis(NOW.0 - age)),
        duration: Duration::from_secs(15),
    }))
}

fn agents(holders: &[&str]) -> BTreeSet<String> {
    let name = |holder: &&str| format!("{AGENT_MANAGER}-{}", identity_lease_suffix(holder, AGENT_MANAGER));
    holders.iter().map(name).collect()
}

#[test]
fn a_lease_that_a_running_agent_renews_is_fine() {
    let of = |seen: Result<Option<LeaseSeen>, String>, running: &[&str]| {
        lease(&seen, &agents(running), "ours", NOW).verdict.word()
    };
    assert_eq!(of(held("pod-1", 1_000), &["pod-1", "pod-2"]), "ok");
    assert_eq!(of(held("pod-1", 45_000), &["pod-1"]), "ok");
    assert_eq!(of(held("pod-1", 1_000), &[]), "ok", "agents of old say nothing");
    assert_eq!(of(Ok(None), &[]), "skipped");
    assert_eq!(of(held("", 1_000), &[]), "skipped");
    assert_eq!(of(Err("no".into()), &[]), "unseen");
}

#[test]
fn a_lease_of_somebody_else_or_of_nobody_alive_is_a_fault() {
    let (what, fix) = words(&lease(&held("laptop", 1_000), &agents(&["pod-1"]), "ours", NOW));
    assert!(
        what.contains("held by laptop, which is none of the agents"),
        "{what}"
    );
    assert!(fix.contains("kubectl -n ours"), "{fix}");
    let (what, _) = words(&lease(&held("pod-1", 45_001), &agents(&["pod-1"]), "ours", NOW));
    assert!(what.contains("does not renew it"), "{what}");
}

const WITHOUT: &str =
    ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n    }\n}\n";
const WITH: &str = ".:53 {\n    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n        \
                    pods insecure\n        multicluster clusterset.local\n    }\n}\n";

#[test]
fn a_corefile_without_the_zone_is_a_fault() {
    let zone = Zone::new("clusterset.local").expect("a zone");
    let of = |text: &str| corefile(&CorefileSeen::Text(text.to_owned()), &zone);
    assert_eq!(of(WITH).verdict.word(), "ok");
    let (_, fix) = words(&of(WITHOUT));
    assert_eq!(fix, "tributary-agent corefile add --apply");
    assert_eq!(of("}").verdict.word(), "unseen");
    assert_eq!(
        corefile(&CorefileSeen::Forbidden, &zone).verdict.word(),
        "skipped"
    );
    assert_eq!(corefile(&CorefileSeen::Missing, &zone).verdict.word(), "skipped");
    assert_eq!(
        corefile(&CorefileSeen::Unread("x".into()), &zone).verdict.word(),
        "unseen"
    );
}

#[test]
fn names_that_are_not_answered_or_wrongly_are_a_fault() {
    let seen = |answer| NameSeen {
        name: "cart.shop.svc.clusterset.local".into(),
        wanted: "10.0.0.1".into(),
        answer,
    };
    assert_eq!(answered(None).verdict.word(), "skipped");
    assert_eq!(
        answered(Some(&seen(Ok(vec!["10.0.0.1".into()])))).verdict.word(),
        "ok"
    );
    let (what, fix) = words(&answered(Some(&seen(Err("NXDOMAIN".into())))));
    assert!(
        what.contains("NXDOMAIN") && fix.contains("corefile add"),
        "{what} {fix}"
    );
    let (what, _) = words(&answered(Some(&seen(Ok(vec!["10.0.0.9".into()])))));
    assert!(what.contains("is 10.0.0.9 in DNS"), "{what}");
}

#[test]
fn an_export_that_cannot_be_taken_is_a_fault_with_its_name() {
    let seen = |words: &[&str]| -> Result<Vec<String>, String> {
        Ok(words.iter().map(|&words| words.to_owned()).collect())
    };
    let fine = unusable(&seen(&[]));
    assert!(!format!("{fine:?}").contains("Fault"), "{fine:?}");
    let many: Vec<&str> = vec!["ServiceExport shop/web: spec: invalid type"; 7];
    let fault = format!("{:?}", unusable(&seen(&many)));
    assert!(
        fault.contains("shop/web") && fault.contains("and 2 more"),
        "{fault}"
    );
}

#[test]
fn imports_that_are_not_ready_are_named_and_those_without_ports_are_not() {
    let not_ready = |number: usize, reason: &str| NotReady {
        import: format!("shop/s{number}"),
        reason: reason.to_owned(),
        message: "range is full".to_owned(),
    };
    assert!(!imports(&Ok(vec![not_ready(0, "NoPorts")])).is_fault());
    let all = (0..9).map(|number| not_ready(number, "Pending"));
    let (what, _) = words(&imports(&Ok(all.collect())));
    assert!(
        what.starts_with("shop/s0 is not ready (Pending): range is full; 8 more"),
        "{what}"
    );
    assert!(what.contains("shop/s5") && !what.contains("shop/s6"), "{what}");
}

#[test]
fn imports_on_hold_are_a_fault_of_their_own_with_the_command_that_lets_them_go() {
    let one = |number: usize, reason: &str| NotReady {
        import: format!("shop/s{number}"),
        reason: reason.to_owned(),
        message: String::new(),
    };
    assert_eq!(REASON_WITHDRAWAL_HELD, crate::plan::REASON_WITHDRAWAL_HELD);
    let held = Ok((0..6).map(|number| one(number, REASON_WITHDRAWAL_HELD)).collect());
    assert!(!imports(&held).is_fault());
    let (what, fix) = words(&withdrawals(&held, "tributary-agent"));
    assert!(what.ends_with("shop/s0 and 5 more are on hold"), "{what}");
    assert!(fix.contains("tributary.dev/accept-withdrawals=true"), "{fix}");
    assert!(!withdrawals(&Ok(vec![one(0, "Pending")]), "x").is_fault());
}

#[test]
fn admission_policies_that_are_missing_are_named() {
    let word = |seen: PoliciesSeen| policies(&seen).verdict.word();
    assert_eq!(word(PoliciesSeen::Missing(Vec::new())), "ok");
    assert_eq!(word(PoliciesSeen::Missing(POLICIES.to_vec())), "note");
    assert_eq!(word(PoliciesSeen::Forbidden), "skipped");
    assert_eq!(word(PoliciesSeen::Unread("no answer".into())), "unseen");
    let some = policies(&PoliciesSeen::Missing(vec![POLICIES[1]]));
    assert_eq!(some.verdict.word(), "note");
    assert!(some.verdict.words().0.contains(POLICIES[1]));
    assert!(
        policies(&PoliciesSeen::Missing(POLICIES.to_vec()))
            .verdict
            .words()
            .0
            .contains("policies.enabled")
    );
}
