//! Tests of the Leases of sources that the leader makes, renews and deletes.

use super::*;

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).expect("an id")
}

fn clusters(names: &[&str]) -> BTreeSet<ClusterId> {
    names.iter().map(|name| cluster(name)).collect()
}

fn stamp(version: u32) -> Stamp {
    Stamp {
        uid: "uid".into(),
        version: version.to_string().into(),
    }
}

fn found(names: &[&str], on_expiry: LossAction) -> BTreeMap<ClusterId, SourceLease> {
    let lease = SourceLease {
        stamp: stamp(1),
        duration: DURATION_DEFAULT,
        on_expiry: Some(on_expiry),
    };
    names.iter().map(|name| (cluster(name), lease.clone())).collect()
}

/// A hub confirms `desired`; slices of `here` stand.
fn confirmed(here: &[&str], desired: &[&str]) -> Situation {
    let policies = desired.iter().map(|name| (cluster(name), LossAction::Withdraw));
    Situation {
        here: Some(clusters(here)),
        desired: clusters(desired),
        confirmed: true,
        ended: false,
        policies: policies.collect(),
    }
}

fn away(here: &[&str], desired: &[&str]) -> Situation {
    Situation {
        confirmed: false,
        policies: BTreeMap::new(),
        ..confirmed(here, desired)
    }
}

fn upkeep(on_hub_loss: OnHubLoss) -> Upkeep {
    Upkeep::new(Settings {
        on_hub_loss,
        ..Settings::default()
    })
}

/// A cluster whose membership has ended renews no Lease, whatever it was told for a hub's loss: what came from others ends
/// with the time of their Leases.
#[test]
fn after_the_end_of_the_membership_no_lease_is_renewed() {
    for on_hub_loss in [OnHubLoss::Retain, OnHubLoss::Expire] {
        let upkeep = upkeep(on_hub_loss);
        let found = found(&["east"], LossAction::Withdraw);
        let member = away(&["east"], &["east"]);
        let renews = upkeep.tasks(&found, &member, START).len();
        assert_eq!(renews == 1, on_hub_loss == OnHubLoss::Retain);
        for situation in [member, confirmed(&["east"], &["east"])] {
            let ended = Situation {
                ended: true,
                ..situation
            };
            let tasks = upkeep.tasks(&found, &ended, START);
            assert!(tasks.is_empty(), "{on_hub_loss:?}: {tasks:?}");
        }
    }
}

const START: Duration = Duration::from_secs(1_000);

#[test]
fn each_source_whose_slices_stand_gets_a_lease_with_the_policy() {
    let upkeep = upkeep(OnHubLoss::Retain);
    let mut situation = confirmed(&["east", "west"], &["east", "west"]);
    situation.policies.insert(cluster("west"), LossAction::NotReady);
    let tasks = upkeep.tasks(&BTreeMap::new(), &situation, START);
    let create = |name, action| Task::Create(cluster(name), action);
    assert_eq!(
        tasks,
        [
            create("east", LossAction::Withdraw),
            create("west", LossAction::NotReady)
        ]
    );
    // Nobody has said what the policy is: nothing is to go.
    let tasks = upkeep.tasks(&BTreeMap::new(), &away(&["east"], &[]), START);
    assert_eq!(tasks, [create("east", LossAction::Retain)]);
}

#[test]
fn it_is_renewed_every_so_often_and_by_a_new_leader_at_once() {
    let mut upkeep = upkeep(OnHubLoss::Retain);
    let (leases, situation) = (
        found(&["east"], LossAction::Withdraw),
        confirmed(&["east"], &["east"]),
    );
    let renew = [Task::Renew(cluster("east"), LossAction::Withdraw)];
    assert_eq!(upkeep.tasks(&leases, &situation, START), renew);
    upkeep.wrote(cluster("east"), stamp(1), START);
    let before = START + RENEW_DEFAULT - Duration::from_secs(1);
    assert_eq!(upkeep.tasks(&leases, &situation, before), []);
    assert_eq!(upkeep.tasks(&leases, &situation, START + RENEW_DEFAULT), renew);
}

#[test]
fn one_that_somebody_touched_is_put_right_at_once() {
    let mut upkeep = upkeep(OnHubLoss::Retain);
    upkeep.wrote(cluster("east"), stamp(0), START);
    let leases = found(&["east"], LossAction::Retain);
    let tasks = upkeep.tasks(&leases, &confirmed(&["east"], &["east"]), START);
    assert_eq!(tasks, [Task::Renew(cluster("east"), LossAction::Withdraw)]);
}

#[test]
fn a_source_that_the_hub_does_not_confirm_is_not_renewed() {
    let leases = found(&["east", "west"], LossAction::Withdraw);
    for on_hub_loss in [OnHubLoss::Retain, OnHubLoss::Expire] {
        let tasks = upkeep(on_hub_loss).tasks(&leases, &confirmed(&["east", "west"], &["west"]), START);
        assert_eq!(tasks, [Task::Renew(cluster("west"), LossAction::Withdraw)]);
    }
}

#[test]
fn without_a_hub_it_is_as_it_was_said() {
    let leases = found(&["east"], LossAction::Withdraw);
    let situation = away(&["east"], &["east"]);
    let tasks = upkeep(OnHubLoss::Retain).tasks(&leases, &situation, START);
    assert_eq!(tasks, [Task::Renew(cluster("east"), LossAction::Withdraw)]);
    assert_eq!(upkeep(OnHubLoss::Expire).tasks(&leases, &situation, START), []);
}

#[test]
fn a_policy_that_changed_is_written_even_for_a_source_that_nobody_confirms() {
    let leases = found(&["east"], LossAction::Withdraw);
    let mut situation = confirmed(&["east"], &[]);
    situation.policies.insert(cluster("east"), LossAction::Retain);
    let tasks = upkeep(OnHubLoss::Expire).tasks(&leases, &situation, START);
    assert_eq!(tasks, [Task::Renew(cluster("east"), LossAction::Retain)]);
}

#[test]
fn one_without_slices_goes_but_not_while_what_expired_is_still_wanted() {
    let leases = found(&["east"], LossAction::Withdraw);
    let upkeep = upkeep(OnHubLoss::Expire);
    let tasks = upkeep.tasks(&leases, &away(&[], &[]), START);
    assert_eq!(tasks, [Task::Delete(cluster("east"))]);
    assert_eq!(upkeep.tasks(&leases, &away(&[], &["east"]), START), []);
}

/// A kind that cannot be listed is unknown: nothing is made or deleted for it, and all is renewed.
#[test]
fn while_the_slices_are_not_listed_what_is_confirmed_is_renewed_all_the_same() {
    let leases = found(&["east", "west"], LossAction::Withdraw);
    let situation = Situation {
        here: None,
        ..confirmed(&[], &["east"])
    };
    let tasks = upkeep(OnHubLoss::Expire).tasks(&leases, &situation, START);
    assert_eq!(tasks, [Task::Renew(cluster("east"), LossAction::Withdraw)]);
}

#[test]
fn settings_without_sense_are_named() {
    let settings = |duration, renew| Settings {
        duration: Duration::from_secs(duration),
        renew: Duration::from_secs(renew),
        on_hub_loss: OnHubLoss::Retain,
    };
    assert_eq!(Settings::default().problem(), None);
    assert_eq!(settings(6, 3).problem(), None);
    for (duration, renew, flag) in [
        (4, 1, "--source-lease-duration is 4 s"),
        (86_401, 60, "--source-lease-duration is 86401 s"),
        (900, 451, "--source-lease-renew is 451 s"),
        (900, 0, "--source-lease-renew is 0 s"),
    ] {
        let problem = settings(duration, renew).problem().expect("a problem");
        assert!(problem.starts_with(flag), "{problem}");
    }
    assert_eq!(Settings::default().look_every(), LOOK_MAX);
    assert_eq!(settings(6, 3).look_every(), LOOK_MIN);
}
