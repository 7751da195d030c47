//! The table of rules, each by a cluster that is played second by second: probes every 10 s, Leases every 10 s.

use super::*;
use crate::health::leases::{Form, IdentityLease, Picture};

/// A cluster with some API servers, on its way through time.
struct Played {
    judge: Judge,
    now: u64,
    /// Hosts whose servers renew their Leases; every other Lease does not move.
    renew: Vec<&'static str>,
    leases: Picture,
    /// True if the agent may read Leases.
    readable: bool,
    readyz: Answer,
    livez: Answer,
    /// Counter of the leaders' Leases; absent: there are none.
    leaders: Option<u64>,
    leaders_move: bool,
}

impl Played {
    fn with(hosts: &[&'static str]) -> Self {
        let lease = |host: &&str| {
            let lease = IdentityLease {
                uid: (*host).into(),
                holder: (*host).into(),
                renewed: Some(0),
                host: (*host).into(),
                form: Form::Current,
            };
            (Box::from(*host), lease)
        };
        Self {
            judge: Judge::new(Duration::ZERO),
            now: 0,
            renew: hosts.to_vec(),
            leases: hosts.iter().map(lease).collect(),
            readable: true,
            readyz: Answer::Passed,
            livez: Answer::Passed,
            leaders: None,
            leaders_move: true,
        }
    }

    fn second(&mut self) -> Option<Reason> {
        let now = Duration::from_secs(self.now);
        if self.now.is_multiple_of(10) {
            self.judge.answered(now, self.readyz.clone(), &self.livez);
            if let Some(version) = &mut self.leaders {
                *version += u64::from(self.leaders_move);
                let version = version.to_string();
                self.judge.controller_manager(now, Some(&version));
                self.judge.scheduler(now, Some(&version));
            }
        }
        if self.now % 10 == 5 {
            for host in &self.renew {
                if let Some(lease) = self.leases.get_mut(*host) {
                    lease.renewed = lease.renewed.map(|renewed| renewed + 1);
                }
            }
        }
        self.judge.leases(now, self.readable.then_some(&self.leases));
        self.now += 1;
        self.judge.verdict(now).map(|verdict| verdict.reason)
    }

    fn play(&mut self, seconds: u64) -> Option<Reason> {
        (0..seconds).map(|_| self.second()).last().flatten()
    }

    /// Seconds until the verdict has this reason.
    fn until(&mut self, reason: Reason) -> u64 {
        let took = (1..=200).find(|_| self.second() == Some(reason));
        took.unwrap_or_else(|| panic!("never {reason:?}, but {:?}", self.judge.reason))
    }

    fn healthy(hosts: &[&'static str]) -> Self {
        let mut played = Self::with(hosts);
        assert_eq!(played.play(61), Some(Reason::Healthy));
        played
    }
}

fn failed(checks: &[&str]) -> Answer {
    Answer::Failed(checks.iter().map(|check| (*check).into()).collect())
}

#[test]
fn a_control_plane_is_healthy_when_its_probes_pass_and_its_leases_move() {
    let mut played = Played::with(&["a", "b", "c"]);
    assert_eq!(
        played.play(5),
        None,
        "what was said before holds until a Lease moved"
    );
    assert_eq!(played.until(Reason::Healthy), 1);
    assert_eq!(played.play(1_000), Some(Reason::Healthy));
    let verdict = played.judge.verdict(Duration::from_secs(played.now)).unwrap();
    assert_eq!((verdict.api_servers_fresh, verdict.api_servers_expected), (3, 3));
}

#[test]
fn without_identity_leases_the_probes_alone_say_it() {
    assert_eq!(
        Played::with(&[]).second(),
        Some(Reason::HealthyNoIdentity),
        "the gate is off"
    );
    let mut forbidden = Played::with(&["a"]);
    forbidden.readable = false;
    assert_eq!(
        forbidden.play(600),
        Some(Reason::HealthyNoIdentity),
        "it may not read them"
    );
    let mut left_over = Played::with(&["a", "b"]);
    left_over.renew.clear();
    assert_eq!(
        left_over.play(600),
        Some(Reason::HealthyNoIdentity),
        "the gate was switched off"
    );
}

#[test]
fn three_failures_make_it_unhealthy_and_two_nothing() {
    for (answer, reason) in [
        (failed(&["ping"]), Reason::ApiServerNotReady),
        (Answer::Refused, Reason::ApiServerNotReady),
    ] {
        let mut played = Played::healthy(&["a"]);
        played.readyz = answer;
        let took = played.until(reason);
        assert!((20..=30).contains(&took), "{took}");
        assert_eq!(
            played.judge.failed_checks().len(),
            usize::from(played.readyz == failed(&["ping"]))
        );
    }
    let mut played = Played::healthy(&["a"]);
    played.readyz = failed(&["ping"]);
    assert_eq!(played.play(20), Some(Reason::Healthy));
    played.readyz = Answer::Passed;
    assert_eq!(played.play(100), Some(Reason::Healthy));
}

#[test]
fn silence_is_unreachable_unless_others_write_their_leases() {
    let mut played = Played::healthy(&["a", "b"]);
    played.readyz = Answer::Silent;
    assert_eq!(
        played.play(60),
        Some(Reason::ApiServersDegraded),
        "the Leases move"
    );
    played.renew.clear();
    played.until(Reason::ApiServerUnreachable);
    let mut first = Played::with(&[]);
    first.readyz = Answer::Silent;
    assert_eq!(
        first.play(21),
        Some(Reason::ApiServerUnreachable),
        "no Lease is known"
    );
}

/// etcd hangs: the server answers, and from the second request on reports that etcd fails.
#[test]
fn a_frozen_etcd_is_told_within_45_seconds_and_its_recovery_within_30() {
    for by_readyz in [true, false] {
        let mut played = Played::healthy(&["a", "b", "c"]);
        played.renew.clear();
        played.play(10);
        let failed = failed(&["etcd"]);
        if by_readyz {
            played.readyz = failed.clone();
        }
        played.livez = failed;
        let took = 10 + played.until(Reason::EtcdUnhealthy);
        assert!(took <= 45, "{took}");
        assert_eq!(played.play(300).and_then(Reason::is_healthy), Some(false));
        played.renew = vec!["a", "b", "c"];
        (played.readyz, played.livez) = (Answer::Passed, Answer::Passed);
        let took = played.until(Reason::Healthy);
        assert!((10..=30).contains(&took), "{took}");
    }
}

/// A server that answers everything and writes nothing: only its Lease tells.
#[test]
fn leases_that_all_stand_still_are_stale_though_the_probes_pass() {
    let mut played = Played::healthy(&["a", "b"]);
    played.renew.clear();
    let took = played.until(Reason::IdentityLeasesStale);
    assert!((55..=62).contains(&took), "{took}");
    let mut busy = Played::healthy(&["a", "b"]);
    busy.renew.clear();
    busy.judge.blind(true);
    assert_eq!(
        busy.play(300),
        Some(Reason::ApiServersDegraded),
        "nobody had time to say more"
    );
    let mut forbidden = Played::healthy(&["a"]);
    forbidden.readable = false;
    assert_eq!(
        forbidden.play(300),
        Some(Reason::HealthyNoIdentity),
        "its right was taken away"
    );
}

#[test]
fn one_server_of_two_that_dies_degrades_it_within_a_minute() {
    let mut played = Played::healthy(&["a", "b"]);
    played.renew = vec!["a"];
    let took = played.until(Reason::ApiServersDegraded);
    assert!((20..=60).contains(&took), "{took}");
    assert_eq!(
        played.play(3_600),
        Some(Reason::ApiServersDegraded),
        "its Lease says that it is valid"
    );
    played.leases.remove("b");
    assert_eq!(played.play(2), Some(Reason::Healthy), "collected");
}

#[test]
fn a_leader_that_is_lost_makes_it_unhealthy_and_one_that_never_was_does_not() {
    let mut played = Played::healthy(&["a"]);
    played.leaders = Some(0);
    played.leaders_move = false;
    assert_eq!(played.play(600), Some(Reason::Healthy));
    played.leaders_move = true;
    played.play(30);
    played.leaders_move = false;
    let took = played.until(Reason::ControllerManagerLeaderLost);
    assert!((60..=80).contains(&took), "{took}");
    played.leaders = None;
    let now = Duration::from_secs(played.now);
    played.judge.controller_manager(now, None);
    assert_eq!(
        played.second(),
        Some(Reason::SchedulerLeaderLost),
        "the other one is lost too"
    );
    played.judge.scheduler(now, None);
    assert_eq!(played.play(60), Some(Reason::Healthy));
}

#[test]
fn flapping_and_shared_identities_are_told_and_are_no_failure() {
    let mut played = Played::healthy(&["a"]);
    for start in 0..4 {
        played.leases.get_mut("a").unwrap().holder = format!("start {start}").into();
        played.play(20);
    }
    assert_eq!(played.play(1), Some(Reason::ApiServerFlapping));
    assert_eq!(played.play(700), Some(Reason::Healthy));
    for _ in 0..12 {
        let lease = played.leases.get_mut("a").unwrap();
        lease.renewed = lease.renewed.map(|renewed| renewed + 1);
        played.play(10);
    }
    assert_eq!(played.play(1), Some(Reason::SharedIdentity));
}

#[test]
fn what_the_agent_cannot_know_is_unknown_and_never_false() {
    let mut played = Played::with(&[]);
    played.readyz = Answer::NotReadable;
    assert_eq!(played.play(100), Some(Reason::HealthNotReadable));
    let mut played = Played::healthy(&["a"]);
    played.renew.clear();
    (played.readyz, played.livez) = (Answer::NoNetwork, Answer::NoNetwork);
    assert_eq!(played.play(300), Some(Reason::AgentIsolated));
    let mut played = Played::with(&["a"]);
    (played.readyz, played.livez) = (Answer::Other, Answer::Other);
    assert_eq!(played.play(30), None);
    assert_eq!(played.play(300), Some(Reason::Starting));
}

/// One good answer between bad ones is no recovery.
#[test]
fn it_is_well_again_after_two_good_answers_and_twenty_seconds() {
    let mut played = Played::healthy(&["a"]);
    played.readyz = failed(&["ping"]);
    played.play(40);
    for _ in 0..9 {
        played.readyz = Answer::Passed;
        assert_eq!(played.play(10), Some(Reason::ApiServerNotReady));
        played.readyz = failed(&["ping"]);
        assert_eq!(played.play(10), Some(Reason::ApiServerNotReady));
    }
    played.readyz = Answer::Passed;
    let took = played.until(Reason::Healthy);
    assert!(
        (10..=20).contains(&took),
        "the last failure was up to ten seconds ago: {took}"
    );
}
