//! Disputes that are recorded as they are, and others.

use model::{IpFamily, Metadata, ServicePolicies, ServiceType, SessionAffinity};
use wire::{POLICY_API_VERSION, POLICY_KIND, read_policy};

use super::*;

const INCUMBENT: &str = "{precedence: incumbent}";
const BANNED: &str = "{members: [{name: none, members: [mallory], exports: []}]}";

fn cart() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("valid")
}

fn claim(cluster: &str, created_at: u64) -> PrecedenceClaim {
    PrecedenceClaim {
        cluster: ClusterId::new(cluster).expect("valid"),
        uid: format!("{cluster}-{created_at}").into(),
        created_at: UnixMillis(created_at),
    }
}

fn export(claim: &PrecedenceClaim) -> Export {
    Export {
        service: cart(),
        created_at: claim.created_at,
        uid: claim.uid.clone(),
        generation: 1,
        service_type: ServiceType::Headless,
        ports: Vec::new(),
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: None,
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::default(),
        annotations: Metadata::default(),
    }
}

fn policy(spec: &str) -> Arc<Policy> {
    let document = format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec: {spec}\n");
    Arc::new(read_policy(&document).expect("valid"))
}

fn ages(claims: &[&PrecedenceClaim]) -> Ages {
    let age = |claim: &&PrecedenceClaim| {
        (
            (claim.cluster.clone(), cart()),
            (claim.uid.clone(), claim.created_at),
        )
    };
    claims.iter().map(age).collect()
}

/// A policy is applied, behind these disputes; whether that breaks the law.
fn applied(
    contests: &mut Contests,
    spec: &str,
    disputes: &[(&PrecedenceClaim, &PrecedenceClaim, bool)],
    ages: &Ages,
) -> bool {
    let broken = disputes
        .iter()
        .any(|&dispute| contests.contested(&cart(), dispute, ages).is_err());
    let mut guarded = Guarded::default();
    contests.policy(&policy(spec), ages, &mut guarded).is_err() || broken
}

fn holder(contests: &Contests) -> Option<&str> {
    contests.kept_first().next().map(|(_, cluster)| cluster.as_str())
}

/// An export is recorded, behind a dispute or not.
fn broken(
    contests: &mut Contests,
    new: &PrecedenceClaim,
    dispute: Option<(&PrecedenceClaim, bool)>,
    ages: &Ages,
) -> bool {
    let disputed = dispute.map(|(standing, held)| contests.contested(&cart(), (standing, new, held), ages));
    let mut guarded = Guarded::default();
    let exported = contests.exported(&new.cluster, &export(new), ages, &mut guarded);
    disputed.is_some_and(|disputed| disputed.is_err()) || exported.is_err()
}

#[test]
fn who_states_to_be_older_than_the_first_is_an_event_and_others_need_none() {
    let (east, west) = (claim("east", 5), claim("west", 6));
    let of = ages(&[&east, &west]);
    let broken = |new: &PrecedenceClaim, dispute| broken(&mut Contests::default(), new, dispute, &of);
    let older = claim("mallory", 1);
    assert!(broken(&older, None));
    assert!(!broken(&older, Some((&east, false))));
    assert!(
        broken(&older, Some((&west, false))),
        "that one does not stand first"
    );
    assert!(
        broken(&older, Some((&east, true))),
        "nothing says that incumbents stand first"
    );
    assert!(!broken(&claim("mallory", 7), None));
    assert!(
        !broken(&claim("mallory", 5), None),
        "of one age, the name decides"
    );
    assert!(broken(&claim("a", 5), None));
    assert!(!broken(&claim("east", 1), None), "it stands there already");
}

#[test]
fn a_place_is_held_until_its_holder_goes_or_an_operator_lets_go() {
    let (east, older) = (claim("east", 5), claim("mallory", 1));
    let held = || {
        let mut contests = Contests::default();
        assert!(!applied(&mut contests, INCUMBENT, &[], &Ages::default()));
        assert!(!broken(
            &mut contests,
            &older,
            Some((&east, true)),
            &ages(&[&east])
        ));
        assert_eq!(holder(&contests), Some("east"));
        contests
    };
    let mut contests = held();
    assert!(broken(
        &mut held(),
        &claim("west", 2),
        None,
        &ages(&[&east, &older])
    ));
    assert!(!applied(&mut contests, "{}", &[], &ages(&[&east, &older])));
    assert_eq!(holder(&contests), None, "the oldest stands first");
    contests = held();
    contests.released(&cart());
    assert_eq!(holder(&contests), None);
    contests = held();
    contests.removed(&east.cluster, &cart());
    assert_eq!(holder(&contests), None);
    contests = held();
    contests.ended(&east.cluster);
    assert_eq!(holder(&contests), None);
    contests = held();
    assert!(!broken(
        &mut contests,
        &claim("east", 9),
        None,
        &ages(&[&east, &older])
    ));
    assert_eq!(holder(&contests), None, "it is another export");
}

#[test]
fn who_may_not_export_disputes_nothing() {
    let (east, older) = (claim("east", 5), claim("mallory", 1));
    let mut contests = Contests::default();
    assert!(!applied(&mut contests, BANNED, &[], &Ages::default()));
    assert!(!broken(&mut contests, &older, None, &ages(&[&east])));
    assert!(
        broken(&mut contests, &claim("west", 2), None, &ages(&[&east, &older])),
        "east stands first"
    );
}

#[test]
fn who_is_let_in_and_states_to_be_older_is_an_event_before_the_policy() {
    let (east, west, older) = (claim("east", 5), claim("west", 6), claim("mallory", 1));
    let of = ages(&[&east, &west, &older]);
    let banned = || {
        let mut contests = Contests::default();
        assert!(!applied(&mut contests, BANNED, &[], &Ages::default()));
        contests
    };
    for (spec, held) in [("{}", false), (INCUMBENT, true)] {
        let mut contests = banned();
        assert!(!applied(&mut contests, spec, &[(&east, &older, held)], &of));
        assert_eq!(holder(&contests), held.then_some("east"));
        assert!(applied(&mut banned(), spec, &[], &of), "{spec}: no event");
        assert!(applied(&mut banned(), spec, &[(&east, &older, !held)], &of));
        assert!(applied(&mut banned(), spec, &[(&west, &older, held)], &of));
        assert!(applied(&mut banned(), spec, &[(&east, &west, held)], &of));
    }
    let younger = claim("mallory", 7);
    let of = ages(&[&east, &west, &younger]);
    assert!(!applied(&mut banned(), "{}", &[], &of));
    assert!(applied(&mut banned(), "{}", &[(&east, &younger, false)], &of));
}
