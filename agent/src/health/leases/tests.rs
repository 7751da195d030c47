//! Identity Leases as clusters of every release keep them, seen over time.

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lease(host: &str, uid: &str, renewed: i64, form: Form) -> IdentityLease {
    IdentityLease {
        uid: uid.into(),
        holder: format!("{uid}_start").into(),
        renewed: Some(renewed),
        host: host.into(),
        form,
    }
}

/// A picture of servers of 1.27 or later: each host with its number of renewals.
fn picture(servers: &[(&str, i64)]) -> Picture {
    let lease = |(host, renewed): &(&str, i64)| {
        (
            format!("apiserver-{host}").into(),
            lease(host, host, *renewed, Form::Current),
        )
    };
    servers.iter().map(lease).collect()
}

/// Three servers that renew every 10 s from 0 to `until`.
fn three(until: u64) -> IdentityLeases {
    let mut leases = IdentityLeases::default();
    for turn in 0..=until / 10 {
        let renewed = i64::try_from(turn).unwrap();
        leases.take(
            at(turn * 10),
            &picture(&[("a", renewed), ("b", renewed), ("c", renewed)]),
        );
    }
    leases
}

fn states(leases: &IdentityLeases, seconds: u64) -> Vec<(String, ApiServerState)> {
    let servers = leases.servers(at(seconds)).into_iter();
    servers
        .map(|server| (server.host.to_string(), server.state))
        .collect()
}

#[test]
fn a_server_is_fresh_late_and_dead_by_when_its_lease_was_seen_to_move() {
    let mut leases = three(100);
    for (seconds, state) in [
        (125, ApiServerState::Fresh),
        (126, ApiServerState::Late),
        (160, ApiServerState::Late),
        (161, ApiServerState::Dead),
    ] {
        assert_eq!(states(&leases, seconds)[1], ("b".to_owned(), state), "{seconds}");
    }
    leases.take(at(130), &picture(&[("a", 99), ("b", 10), ("c", 99)]));
    assert_eq!(leases.counts(at(140)), (2, 3));
    assert!(leases.any_fresh(at(140)) && !leases.all_died(at(140)));
    assert!(
        !leases.all_died(at(190)) && leases.all_died(at(191)),
        "a and c moved last at 130"
    );
}

/// Clocks of servers may be hours away from the agent's, in either direction, and may be set back.
#[test]
fn clocks_that_are_wrong_by_an_hour_make_nobody_dead() {
    let hour = 3_600_000_000;
    for skew in [-hour, 0, hour] {
        let mut leases = IdentityLeases::default();
        for turn in 0..30_u64 {
            let renewed = skew + i64::try_from(turn).unwrap() * 10_000_000;
            leases.take(at(turn * 10), &picture(&[("a", renewed)]));
            assert!(!leases.all_died(at(turn * 10 + 9)));
        }
        leases.take(at(300), &picture(&[("a", -skew)]));
        assert_eq!(leases.counts(at(320)), (1, 1), "set back, and alive");
    }
}

#[test]
fn at_the_start_a_lease_is_unknown_until_it_moves_or_does_not() {
    let mut leases = IdentityLeases::default();
    leases.take(at(0), &picture(&[("a", 1)]));
    assert!(leases.any_unknown(at(25)) && !leases.any_fresh(at(25)) && !leases.any_moved());
    assert_eq!(states(&leases, 26)[0].1, ApiServerState::Late);
    assert!(!leases.all_died(at(900)), "nobody saw it alive");
    leases.take(at(26), &picture(&[("a", 2)]));
    assert!(leases.any_fresh(at(26)) && leases.any_moved());
    leases.take(at(30), &picture(&[("a", 2), ("b", 7)]));
    assert_eq!(leases.counts(at(30)), (2, 2), "what appears now was written now");
}

/// One that died before the agent looked is missed until its Lease is collected, after two hours at the latest.
#[test]
fn a_server_that_died_before_is_missed_for_a_while() {
    let mut leases = IdentityLeases::default();
    for turn in 0..=720_u64 {
        leases.take(
            at(turn * 10),
            &picture(&[("a", i64::try_from(turn).unwrap()), ("b", 0)]),
        );
    }
    assert_eq!(leases.counts(at(7_200)), (1, 2));
    leases.tick(at(14_401));
    assert_eq!(leases.counts(at(14_401)).1, 0);
}

#[test]
fn as_many_are_expected_as_were_there_at_one_time_and_one_that_left_is_not() {
    let mut leases = three(100);
    assert_eq!(leases.counts(at(100)), (3, 3));
    leases.take(at(110), &picture(&[("a", 11), ("b", 11)]));
    assert_eq!(leases.counts(at(110)), (2, 2), "it took its Lease along");
    for turn in 12..=720_u64 {
        leases.take(
            at(turn * 10),
            &picture(&[("a", i64::try_from(turn).unwrap()), ("b", 11)]),
        );
        assert_eq!(leases.counts(at(turn * 10)).1, 2, "turn {turn}");
    }
    leases.tick(at(7_400));
    assert_eq!(
        leases.counts(at(7_400)),
        (0, 1),
        "b was there more than two hours ago"
    );
}

/// Nodes are replaced one by one, and nobody stops the old ones in good order: three are expected, never six.
#[test]
fn replaced_servers_are_not_missed() {
    let mut leases = three(100);
    for turn in 11..30 {
        let now = at(10 * u64::try_from(turn).unwrap());
        leases.take(now, &picture(&[("a", 10), ("b", turn), ("c", turn), ("d", turn)]));
    }
    assert_eq!(leases.counts(at(290)), (3, 4), "a was fresh beside d");
    for turn in 30..800 {
        let now = at(10 * u64::try_from(turn).unwrap());
        leases.take(now, &picture(&[("b", turn), ("c", turn), ("d", turn)]));
    }
    assert_eq!(leases.counts(at(7_990)), (3, 3));
}

/// 1.27 collected the Leases of 1.26, later releases leave them for ever; before 1.26 every start left one.
#[test]
fn what_older_releases_left_behind_is_no_server() {
    let mut leases = IdentityLeases::default();
    for turn in 0..30 {
        let mut found = picture(&[("a", turn)]);
        found.insert(
            "kube-apiserver-c4vwjftbvpc5os2vvzle4qg27a".into(),
            lease("a", "old", 5, Form::Old),
        );
        found.insert(
            "kube-apiserver-fyloo45sdenffw2ugwaz3likua".into(),
            lease("gone", "old2", 5, Form::Old),
        );
        let now = at(10 * u64::try_from(turn).unwrap());
        leases.take(now, &found);
        assert!(turn < 3 || leases.counts(now) == (1, 1), "turn {turn}");
    }
    assert_eq!(states(&leases, 290), [("a".to_owned(), ApiServerState::Fresh)]);

    let mut leases = IdentityLeases::default();
    for turn in 0..30 {
        let now = at(10 * u64::try_from(turn).unwrap());
        let alpha = |uid: &str, renewed| {
            (
                Box::from(format!("kube-apiserver-{uid}")),
                lease("", uid, renewed, Form::Old),
            )
        };
        leases.take(now, &[alpha("1", 5), alpha("2", turn)].into());
    }
    assert_eq!(leases.servers(at(290)).len(), 1);
}

#[test]
fn a_lease_of_1_26_is_a_server() {
    let mut leases = IdentityLeases::default();
    for turn in 0..3 {
        let name = "kube-apiserver-c4vwjftbvpc5os2vvzle4qg27a".into();
        let found = [(name, lease("kind-control-plane", "u", turn, Form::Old))].into();
        leases.take(at(10 * u64::try_from(turn).unwrap()), &found);
    }
    assert_eq!(leases.counts(at(20)), (1, 1));
    assert_eq!(
        states(&leases, 20),
        [("kind-control-plane".to_owned(), ApiServerState::Fresh)]
    );
}

fn restarts(leases: &IdentityLeases, seconds: u64) -> (u32, bool) {
    let server = leases.servers(at(seconds)).remove(0);
    (server.restarts, server.restarts_inferred)
}

#[test]
fn a_restart_is_exact_where_the_lease_says_so_and_else_inferred() {
    // 1.35 and later delete the Lease and make another.
    let mut leases = three(100);
    leases.take(at(105), &picture(&[("b", 10), ("c", 10)]));
    leases.take(at(107), &picture(&[("a", 11), ("b", 11), ("c", 11)]));
    assert_eq!(restarts(&leases, 107), (1, false));
    assert_eq!(leases.counts(at(107)), (3, 3));
    // The same, when the watch shows the end only.
    let mut leases = three(100);
    let mut found = picture(&[("a", 11), ("b", 11), ("c", 11)]);
    found.get_mut("apiserver-a").unwrap().uid = "another".into();
    leases.take(at(110), &found);
    assert_eq!(restarts(&leases, 110), (1, false));
    // Until 1.34 the holder stays: there is only a gap.
    let mut leases = three(100);
    leases.take(at(126), &picture(&[("a", 11), ("b", 10), ("c", 10)]));
    assert_eq!(restarts(&leases, 126), (1, true));
    assert_eq!(restarts(&three(100), 100), (0, false));
}

#[test]
fn more_than_three_restarts_in_ten_minutes_are_flapping() {
    let mut leases = three(10);
    let restart = |leases: &mut IdentityLeases, seconds: u64| {
        leases.take(at(seconds), &picture(&[("b", 1)]));
        leases.take(
            at(seconds + 1),
            &picture(&[("a", i64::try_from(seconds).unwrap()), ("b", 1)]),
        );
    };
    for seconds in [20, 40, 60] {
        restart(&mut leases, seconds);
        assert!(!leases.any_flaps());
    }
    restart(&mut leases, 80);
    assert!(leases.any_flaps());
    leases.tick(at(622));
    assert!(!leases.any_flaps(), "the first is over");
}

/// Two servers with one host's name renew one Lease by turns.
#[test]
fn renewals_that_come_too_close_for_a_minute_are_of_two_servers() {
    let mut leases = IdentityLeases::default();
    let mut renewed = 0;
    let mut renew = |leases: &mut IdentityLeases, seconds: u64| {
        renewed += 1;
        leases.take(at(seconds), &picture(&[("a", renewed)]));
    };
    for turn in 0..6 {
        renew(&mut leases, turn * 10);
        renew(&mut leases, turn * 10 + 3);
    }
    assert!(!leases.any_shared(at(53)), "it has not lasted for a minute");
    for turn in 6..8 {
        renew(&mut leases, turn * 10);
        renew(&mut leases, turn * 10 + 3);
    }
    assert!(leases.any_shared(at(73)) && leases.servers(at(73))[0].shared);
    for turn in 8..12 {
        renew(&mut leases, turn * 10);
    }
    assert!(!leases.any_shared(at(110)), "one of them is gone");
    assert!(!three(300).any_shared(at(300)));
}

#[test]
fn a_picture_of_any_size_is_bounded() {
    let many: Vec<String> = (0..500).map(|number| format!("h{number:03}")).collect();
    let mut leases = IdentityLeases::default();
    for turn in 0..4 {
        let servers: Vec<(&str, i64)> = many.iter().map(|host| (&**host, turn)).collect();
        leases.take(at(10 * u64::try_from(turn).unwrap()), &picture(&servers));
    }
    assert_eq!(leases.counts(at(30)).0, 64);
    assert_eq!(leases.servers(at(30)).len(), API_SERVERS_NAMED_MAX);
    leases.take(at(40), &Picture::new());
    leases.tick(at(10_000));
    assert!(leases.leases.is_empty() && leases.histories.is_empty());
}
