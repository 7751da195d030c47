//! The steps of `join` from every half-done state.

use super::*;

const HASH: TokenHash = TokenHash([7; 32]);

const INVITATION: Invitation = Invitation {
    token: HASH,
    leads_to_hub: true,
};

fn certificate(cluster: &str) -> Certificate {
    Certificate {
        cluster: cluster.to_owned(),
        of_clusterset: true,
        over: false,
    }
}

fn member(id: &str, fingerprint: &str, standing: Standing) -> Member {
    Member {
        id: id.to_owned(),
        fingerprint: fingerprint.to_owned(),
        standing,
    }
}

fn token(used_by: &[&str]) -> Token {
    Token {
        id: HASH.id(),
        cluster_ids: "east".to_owned(),
        operator: "admin".to_owned(),
        over: false,
        uses: 1,
        used_by: used_by.iter().map(ToString::to_string).collect(),
    }
}

fn nothing() -> Seen {
    Seen {
        fingerprint: "uid".to_owned(),
        stated: None,
        members: Vec::new(),
        tokens: Vec::new(),
        remembered: false,
        namespace: false,
        definitions: Some("definitions are missing".to_owned()),
        invitation: None,
        certificate: None,
        release: Some("it is not installed".to_owned()),
        dns: true,
    }
}

fn carried_out(seen: &mut Seen, step: Step) {
    match step {
        Step::Remember => seen.remembered = true,
        Step::Namespace => seen.namespace = true,
        Step::Definitions => seen.definitions = None,
        Step::Token => (seen.invitation, seen.tokens) = (Some(INVITATION), vec![token(&[])]),
        Step::Agent => seen.release = None,
        Step::Dns => seen.dns = false,
    }
}

fn todo(seen: &Seen) -> Vec<Step> {
    let steps = plan(seen, "east").expect("a plan").into_iter();
    steps
        .filter(|step| step.todo.is_some())
        .map(|step| step.step)
        .collect()
}

/// Killed after any number of steps, the next run has exactly those to do that are left.
#[test]
fn each_half_done_state_continues() {
    let whole = todo(&nothing());
    assert_eq!(whole.len(), 6);
    for stop in 0..=whole.len() {
        let mut seen = nothing();
        for step in &whole[..stop] {
            carried_out(&mut seen, *step);
        }
        assert_eq!(todo(&seen), whole[stop..], "after {stop} steps");
        // The agent may join between two runs.
        if stop >= 5 {
            seen.certificate = Some(certificate("east"));
            seen.stated = Some("east".to_owned());
            seen.members = vec![member("east", "uid", Standing::Member)];
            assert_eq!(todo(&seen), whole[stop..]);
        }
    }
}

#[test]
fn a_token_is_made_only_if_the_one_that_is_there_will_not_do() {
    let makes = |change: fn(&mut Seen)| {
        let mut seen = nothing();
        (seen.invitation, seen.tokens) = (Some(INVITATION), vec![token(&[])]);
        change(&mut seen);
        token_needed(&seen, "east").is_some()
    };
    assert!(!makes(|_| ()));
    assert!(makes(|seen| seen.tokens[0].over = true), "it expired");
    assert!(makes(|seen| seen.tokens.clear()), "the hub forgot it");
    assert!(
        makes(|seen| seen.tokens = vec![token(&["west"])]),
        "another cluster has used it"
    );
    assert!(
        !makes(|seen| seen.tokens = vec![token(&["east"])]),
        "the agent was interrupted"
    );
    assert!(!makes(
        |seen| (seen.invitation, seen.certificate) = (None, Some(certificate("east")))
    ));
}

#[test]
fn a_token_that_reached_no_cluster_is_revoked() {
    let mut seen = nothing();
    seen.tokens = vec![token(&[])];
    assert_eq!(left_behind(&seen, "east", "admin"), [HASH.id()]);
    assert!(left_behind(&seen, "west", "admin").is_empty());
    assert!(left_behind(&seen, "east", "bob").is_empty());
    seen.invitation = Some(INVITATION);
    assert!(
        left_behind(&seen, "east", "admin").is_empty(),
        "the cluster has it"
    );
    seen.invitation = Some(Invitation {
        leads_to_hub: false,
        ..INVITATION
    });
    assert_eq!(
        left_behind(&seen, "east", "admin"),
        [HASH.id()],
        "it cannot reach the hub with it"
    );
}

#[test]
fn the_wrong_cluster_or_id_is_refused() {
    let refused = |change: &dyn Fn(&mut Seen)| {
        let mut seen = nothing();
        change(&mut seen);
        plan(&seen, "east").expect_err("refused")
    };
    let taken = refused(&|seen| seen.members = vec![member("east", "other", Standing::Member)]);
    assert!(taken.contains("is taken"), "{taken}");
    let second = refused(&|seen| seen.members = vec![member("west", "uid", Standing::Member)]);
    assert!(second.contains("is the member west already"), "{second}");
    let evicted = refused(&|seen| seen.members = vec![member("east", "uid", Standing::Evicted)]);
    assert!(evicted.contains("was evicted"), "{evicted}");
    let stated = refused(&|seen| seen.stated = Some("west".to_owned()));
    assert!(stated.contains("has the id west already"), "{stated}");
    let certificate = refused(&|seen| seen.certificate = Some(certificate("west")));
    assert!(certificate.contains("the certificate of west"), "{certificate}");
    let mut seen = nothing();
    seen.members = vec![
        member("east", "other", Standing::Ended),
        member("west", "uid", Standing::Ended),
    ];
    plan(&seen, "east").expect("both have left");
}

/// The agent reads no other join string by itself, and the hub would refuse this one for as long as it is good.
#[test]
fn a_join_string_that_leads_nowhere_is_made_again() {
    for (leads_to_hub, cluster_ids, used_by, told) in [
        (true, "east", &[][..], None),
        (true, "ea*", &[], None),
        (true, "esat", &[], Some("the join string is for esat")),
        (true, "we*", &[], Some("the join string is for we*")),
        (false, "east", &[], Some("the hub's address has changed")),
        (false, "east", &["east"], Some("the hub's address has changed")),
    ] {
        let mut seen = nothing();
        seen.invitation = Some(Invitation {
            leads_to_hub,
            ..INVITATION
        });
        seen.tokens = vec![Token {
            cluster_ids: cluster_ids.to_owned(),
            ..token(used_by)
        }];
        match (token_needed(&seen, "east"), told) {
            (None, None) => {}
            (Some(why), Some(told)) => assert!(why.contains(told), "{why}"),
            (why, told) => panic!("{cluster_ids}: {why:?} instead of {told:?}"),
        }
        // An agent that has a certificate needs none.
        seen.certificate = Some(certificate("east"));
        assert_eq!(token_needed(&seen, "east"), None);
    }
}

#[test]
fn a_certificate_that_serves_no_more_is_told() {
    let ended = Some(Standing::Ended);
    let live = Some(Standing::Member);
    for (of_clusterset, over, standing, told) in [
        (true, false, live, None),
        (true, false, None, None),
        (
            true,
            false,
            ended,
            Some("east is no member any more, and its old key"),
        ),
        (
            true,
            true,
            None,
            Some("has expired. Run `tributary leave east --without-hub`"),
        ),
        (
            true,
            true,
            live,
            Some("has expired. Run `tributary member forget east"),
        ),
        (true, true, ended, Some("east is no member any more")),
        (false, false, None, Some("is of another clusterset")),
    ] {
        let mut seen = nothing();
        seen.members = standing.map_or_else(Vec::new, |standing| vec![member("east", "uid", standing)]);
        seen.certificate = Some(Certificate {
            of_clusterset,
            over,
            ..certificate("east")
        });
        match (plan(&seen, "east"), told) {
            (Ok(_), None) => {}
            (Err(why), Some(told)) => {
                assert!(why.contains(told), "{why}");
                assert!(why.contains("--without-hub`, then join again"), "{why}");
            }
            (planned, told) => panic!("{planned:?} instead of {told:?}"),
        }
    }
}
