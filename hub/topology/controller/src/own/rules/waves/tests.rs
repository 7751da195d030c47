//! Tests of the turns.

use serde_json::{Value, json};

use super::{
    super::{
        event::{Event, Recorded},
        said::Said,
        seen::Rest,
    },
    *,
};
use crate::desired::change::Change;

const WAVES: Waves = Waves {
    at_once: 1,
    patience_millis: 1_000,
};

fn name(name: &str) -> ClusterName {
    ClusterName {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    }
}

fn seen<'a>(document: &'a Value, class: &str) -> SeenCluster<'a> {
    SeenCluster {
        document,
        uid: "u",
        generation: 1,
        class: ("ns".to_owned(), class.to_owned()),
        rests: None,
        made: true,
        moving: None,
        behind: false,
    }
}

fn plan(action: Action, machines: u64) -> Plan {
    Plan {
        changes: vec![Change {
            place: String::new(),
            action,
            kind: String::new(),
            name: String::new(),
            before: None,
            fields: Vec::new(),
            note: String::new(),
            object: None,
            machines,
        }],
        ..Plan::default()
    }
}

/// The turns of Clusters that all rotate, `x` of another class than the others.
fn of(events: Vec<Event>, now: u64) -> Vec<(String, Turn)> {
    let mut ledger = Ledger::default();
    for event in events {
        ledger.fold(Recorded::new(event, UnixMillis(1)));
    }
    let document = json!({});
    let rotates = plan(Action::Rotate, 0);
    let names = ["a", "b", "x"];
    let all = names.map(|one| {
        (
            name(one),
            seen(&document, if one == "x" { "other" } else { "standard" }),
        )
    });
    let plans = names.map(|one| (name(one), &rotates));
    let turns = turns(
        &ledger,
        &BTreeMap::from(all),
        &BTreeMap::from(plans),
        WAVES,
        UnixMillis(now),
    );
    turns.into_iter().map(|(name, turn)| (name.name, turn)).collect()
}

#[test]
fn one_that_was_paused_or_is_going_holds_nobody() {
    let mut ledger = Ledger::default();
    let began = Event::RolloutBegan { cluster: name("b") };
    ledger.fold(Recorded::new(began, UnixMillis(1)));
    let document = json!({});
    let rotates = plan(Action::Rotate, 0);
    let turn_beside = |rests| {
        let rests = SeenCluster {
            rests,
            ..seen(&document, "standard")
        };
        let all = BTreeMap::from([(name("a"), seen(&document, "standard")), (name("b"), rests)]);
        let plans = BTreeMap::from([(name("a"), &rotates)]);
        turns(&ledger, &all, &plans, WAVES, UnixMillis(2_000)).remove(&name("a"))
    };
    assert!(matches!(turn_beside(None), Some(Turn::Hold(_))));
    for rests in [Rest::Paused, Rest::Deleting, Rest::Observed, Rest::Upstream] {
        assert_eq!(turn_beside(Some(rests)), Some(go(true)));
    }
}

fn go(begins: bool) -> Turn {
    Turn::Go { begins }
}

#[test]
fn so_many_of_a_class_at_once() {
    let held = Turn::Hold("it waits for its turn: at most 1 of its class are rolled out at once".to_owned());
    let turns = of(Vec::new(), 2);
    assert_eq!(turns[0].1, go(true));
    assert_eq!(turns[1].1, held);
    assert_eq!(turns[2].1, go(true), "another class has its own");
    let began = Event::RolloutBegan { cluster: name("b") };
    let turns = of(vec![began], 2);
    assert_eq!((&turns[0].1, &turns[1].1), (&held, &go(false)));
}

#[test]
fn one_that_fails_or_takes_too_long_holds_the_others() {
    let began = || Event::RolloutBegan { cluster: name("b") };
    let turns = of(vec![began()], 2_000);
    assert!(matches!(&turns[0].1, Turn::Hold(why) if why.contains("ns/b") && why.contains("not rolled out")));
    assert_eq!(turns[1].1, go(false), "it goes on itself");
    let settled = Event::Settled {
        cluster: name("b"),
        generation: 1,
        said: Said::new(),
    };
    assert_eq!(of(vec![began(), settled], 2_000)[0].1, go(true));
}

#[test]
fn the_edit_of_one_cluster_does_not_wait() {
    let began = || Event::RolloutBegan { cluster: name("b") };
    let settled = |said: &[(&str, &str)]| Event::Settled {
        cluster: name("a"),
        generation: 7,
        said: said
            .iter()
            .map(|(place, word)| ((*place).to_owned(), (*word).to_owned()))
            .collect(),
    };
    let turn = |said| of(vec![began(), settled(said)], 2).remove(0).1;
    assert_eq!(turn(&[("version", "another")]), go(true));
    assert!(
        matches!(turn(&[]), Turn::Hold(_)),
        "it says nothing else of its machines"
    );
}

#[test]
fn where_nothing_is_known_of_what_was_said_nobody_said_otherwise() {
    let mut ledger = Ledger::default();
    let settled = |said| Event::Settled {
        cluster: name("a"),
        generation: 7,
        said,
    };
    let began = Event::RolloutBegan { cluster: name("b") };
    ledger.fold(Recorded::new(began, UnixMillis(1)));
    let document = json!({"spec": {"topology": {"classRef": {"name": "standard"}, "version": "v1.31.0"}}});
    let all = BTreeMap::from(["a", "b"].map(|one| (name(one), seen(&document, "standard"))));
    let rotates = plan(Action::Rotate, 0);
    let mut turn = |said| {
        ledger.fold(Recorded::new(settled(said), UnixMillis(1)));
        let plans = BTreeMap::from([(name("a"), &rotates)]);
        turns(&ledger, &all, &plans, WAVES, UnixMillis(2)).remove(&name("a"))
    };
    assert!(matches!(turn(Said::new()), Some(Turn::Hold(_))));
    let other = Said::from([("version".to_owned(), "another".to_owned())]);
    assert_eq!(turn(other), Some(go(true)));
}

#[test]
fn what_replaces_no_machines_does_not_wait() {
    for (action, machines, replacing) in [
        (Action::Create, 3, false),
        (Action::Delete, 3, false),
        (Action::Update, 0, false),
        (Action::Update, 3, true),
        (Action::Rotate, 0, true),
        (Action::Keep, 3, false),
    ] {
        assert_eq!(replaces(&plan(action, machines)), replacing, "{action:?}");
    }
}
