//! Conditions of this cluster's own exports.

use model::{Arrival, Conflict, ConflictReason, Denial, DenialReason, Lack, sync::ArrivedServices};

use super::*;
use crate::plan::{
    InvalidReason, Touched,
    content::{Condition, ConditionStatus, ConditionType},
};

fn exporting() -> Model {
    let mut model = Model::new();
    model.export(&[port("http", 80)], "10.0.0.1");
    model
}

fn found(model: &Model, kind: ConditionType) -> Option<Condition> {
    let export = model.view.export.as_ref().unwrap();
    export.conditions.iter().find(|one| one.kind == kind).cloned()
}

fn judged(status: ExportStatus) -> Desired {
    told(
        &[source(OWN, true)],
        vec![DesiredChange::ExportStatus(Arc::new(status))],
    )
}

#[test]
fn an_export_is_valid_at_once_and_ready_when_the_hub_has_committed_it() {
    let mut model = exporting();
    let mut alone = Desired::default();
    alone.interest(&interest(1, &["shop"]));
    model.settle(&alone);
    assert_eq!(
        found(&model, ConditionType::Valid).unwrap().status,
        ConditionStatus::True
    );
    assert_eq!(
        found(&model, ConditionType::Ready).unwrap().status,
        ConditionStatus::Unknown
    );
    assert_eq!(found(&model, ConditionType::Conflict), None);
    let desired = judged(status("export-1", 1));
    model.settle(&desired);
    assert!(
        !words(&model.done).contains(&"event"),
        "only a conflict is worth one"
    );
    assert_eq!(&*found(&model, ConditionType::Ready).unwrap().reason, "Exported");
    assert_eq!(
        &*found(&model, ConditionType::Conflict).unwrap().reason,
        "NoConflicts"
    );
    // restarted, before the snapshot: nothing changes
    model.done.clear();
    model.settle(&alone);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    // the hub certainly does not know it
    model.settle(&told(&[source(OWN, true)], vec![]));
    assert_eq!(
        found(&model, ConditionType::Ready).unwrap().status,
        ConditionStatus::Unknown
    );
}

/// Drained, evicted or left: no cluster imports it, whatever the hub said before. A cluster that is admitted again
/// receives everything anew.
#[test]
fn after_the_end_of_the_membership_an_export_is_not_ready() {
    let mut model = exporting();
    let mut desired = judged(status("export-1", 1));
    model.settle(&desired);
    assert_eq!(&*found(&model, ConditionType::Ready).unwrap().reason, "Exported");
    desired.session_ended();
    assert_eq!(desired.end_membership(), Touched::All);
    model.settle(&desired);
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "MembershipEnded")
    );
    assert_eq!(
        found(&model, ConditionType::Valid).unwrap().status,
        ConditionStatus::True
    );
    assert_eq!(
        found(&model, ConditionType::Conflict),
        None,
        "nobody disagrees any more"
    );
    assert_eq!(desired.cursor(), None, "what is told next begins anew");
    // an agent that starts anew knows it from its Lease, and nothing from a hub
    model.done.clear();
    let mut fresh = Desired::default();
    fresh.interest(&interest(1, &["shop"]));
    fresh.end_membership();
    model.settle(&fresh);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    model.settle(&judged(status("export-1", 1)));
    assert_eq!(&*found(&model, ConditionType::Ready).unwrap().reason, "Exported");
}

fn arrived(clusters: &[&str], lacking: &[(&str, Lack)]) -> Vec<ArrivedServices> {
    let id = |name: &str| ClusterId::new(name).unwrap();
    let arrival = Arrival {
        clusters: clusters.iter().map(|name| id(name)).collect(),
        lacking: lacking.iter().map(|(name, lack)| (id(name), *lack)).collect(),
    };
    vec![ArrivedServices {
        services: [key()].into(),
        arrival: Arc::new(arrival),
    }]
}

#[test]
fn an_export_says_in_how_many_clusters_it_arrived_and_a_restart_writes_nothing() {
    let said = |model: &Model| found(model, ConditionType::Arrived).map(|one| (one.status, one.message));
    let mut model = exporting();
    let mut desired = judged(status("export-1", 1));
    model.settle(&desired);
    assert_eq!(said(&model), None, "no hub has said anything");
    let touched = desired.exports_arrived(arrived(&["a", "b"], &[("c", Lack::NoNamespace)]));
    assert_eq!(touched, Touched::Exports([key()].into()));
    model.settle(&desired);
    let partly = Some((
        ConditionStatus::False,
        "in 2 of 3 clusters; no such namespace in c".into(),
    ));
    assert_eq!(said(&model), partly);
    model.done.clear();
    // the agent restarted
    model.settle(&judged(status("export-1", 1)));
    // the hub restarted, and has not heard of two clusters
    let unknown = [("b", Lack::NotKnown), ("c", Lack::NotKnown)];
    assert_eq!(
        desired.exports_arrived(arrived(&["a"], &unknown)),
        Touched::Exports([].into())
    );
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    desired.exports_arrived(arrived(&["a", "b", "c"], &[]));
    model.settle(&desired);
    assert_eq!(words(&model.done), ["export status"], "no event");
    assert_eq!(
        said(&model),
        Some((ConditionStatus::True, "in 3 of 3 clusters".into()))
    );
    // the hub does not take it any more
    let mut denied = status("export-1", 1);
    denied.denial = Some(Denial {
        reason: DenialReason::Policy,
        message: "no".into(),
    });
    model.settle(&judged(denied));
    assert_eq!(said(&model), None);
}

#[test]
fn nothing_is_written_that_the_hub_is_about_to_replace() {
    let mut model = exporting();
    model.view.hub_may_answer = true;
    let unknown = told(&[source(OWN, true)], vec![]);
    let plan = plan(&unknown, &model.view, &config(), &key());
    assert!(plan.awaits_hub && plan.is_settled(), "{:?}", words(&plan.actions));
    model.settle(&judged(status("export-1", 1)));
    assert_eq!(words(&model.done), ["export status"]);
    assert_eq!(&*found(&model, ConditionType::Ready).unwrap().reason, "Exported");
    // its time is over: an export says what is known of it
    let mut model = exporting();
    let plan = model.settle(&unknown);
    assert!(!plan.awaits_hub, "it has been said");
    assert_eq!(words(&model.done), ["export status"]);
    // a verdict of our own does not wait for anybody
    let mut model = exporting();
    model.view.hub_may_answer = true;
    model.view.export.as_mut().unwrap().validity = Validity::Invalid {
        reason: InvalidReason::NoService,
        message: "no Service cart".into(),
    };
    model.settle(&unknown);
    assert_eq!(words(&model.done), ["export status", "event"]);
}

#[test]
fn a_word_about_another_object_of_that_name_does_not_count() {
    let mut model = exporting();
    model.settle(&judged(status("export-0", 1)));
    assert_eq!(
        found(&model, ConditionType::Ready).unwrap().status,
        ConditionStatus::Unknown
    );
}

#[test]
fn an_older_judgement_stays_with_the_generation_it_judged() {
    let mut model = exporting();
    model.view.export.as_mut().unwrap().generation = 2;
    model.settle(&judged(status("export-1", 1)));
    assert_eq!(
        found(&model, ConditionType::Valid).unwrap().observed_generation,
        Some(2)
    );
    assert_eq!(
        found(&model, ConditionType::Ready).unwrap().observed_generation,
        Some(1)
    );
}

#[test]
fn a_schema_without_generations_is_written_none_and_settles() {
    let mut model = exporting();
    let mut config = config();
    config.served.export_generation = false;
    let desired = judged(status("export-1", 1));
    model.settle_with(&desired, &config);
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(
        (ready.status, ready.observed_generation),
        (ConditionStatus::True, None)
    );
    model.done.clear();
    model.settle_with(&desired, &config);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
}

#[test]
fn an_invalid_export_is_neither_ready_nor_in_conflict() {
    let mut model = exporting();
    model.settle(&judged(status("export-1", 1)));
    model.view.export.as_mut().unwrap().validity = Validity::Invalid {
        reason: InvalidReason::NoService,
        message: "no Service cart".into(),
    };
    model.settle(&judged(status("export-1", 1)));
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert_eq!(
        (valid.status, &*valid.reason),
        (ConditionStatus::False, "NoService")
    );
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "Pending")
    );
    assert_eq!(found(&model, ConditionType::Conflict), None);
}

#[test]
fn conflicts_are_joined_in_one_order_and_told_once_by_an_event_of_one_reason() {
    let conflict = |reason, message: &str| Conflict {
        reason,
        message: message.into(),
    };
    let mut judgement = status("export-1", 1);
    judgement.conflicts = vec![
        conflict(ConflictReason::Type, "types differ."),
        conflict(ConflictReason::Port, "ports differ."),
    ];
    let mut model = exporting();
    let desired = judged(judgement);
    model.settle(&desired);
    assert_eq!(words(&model.done), ["export status", "event"]);
    let found = found(&model, ConditionType::Conflict).unwrap();
    assert_eq!(&*found.reason, "PortConflict,TypeConflict");
    assert_eq!(&*found.message, "ports differ. types differ.");
    let message = "PortConflict, TypeConflict: ports differ. types differ.";
    assert_eq!(
        event_words(&model),
        [("PortConflict".to_owned(), message.to_owned())]
    );
    model.done.clear();
    model.settle(&desired);
    assert!(model.done.is_empty());
    // other words of the same conflicts, then another conflict
    let mut judgement = status("export-1", 1);
    judgement.conflicts = vec![conflict(ConflictReason::Port, "ports differ more.")];
    model.settle(&judged(judgement.clone()));
    assert_eq!(words(&model.done), ["export status", "event"]);
    model.done.clear();
    judgement.conflicts = vec![conflict(ConflictReason::Port, "ports differ still.")];
    model.settle(&judged(judgement));
    assert_eq!(words(&model.done), ["export status"]);
}

fn event_words(model: &Model) -> Vec<(String, String)> {
    let events = model.done.iter().filter_map(|action| match action {
        Action::ExportEvent { reason, message, .. } => Some((reason.to_string(), message.to_string())),
        _ => None,
    });
    events.collect()
}

/// A valid export says which of its labels stay behind, once, and nothing else changes.
#[test]
fn metadata_that_is_left_out_is_named_and_the_export_stays_valid() {
    let mut model = exporting();
    let desired = judged(status("export-1", 1));
    model.settle(&desired);
    model.done.clear();
    let words = "Left out of the export: exportedLabels[\"kubernetes.io/x\"]: is reserved";
    model.view.export.as_mut().unwrap().metadata_left_out = words.into();
    model.settle(&desired);
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert_eq!(
        (valid.status, &*valid.reason, &*valid.message),
        (ConditionStatus::True, "Valid", words)
    );
    let told = [("MetadataNotExported".to_owned(), words.to_owned())];
    assert_eq!(event_words(&model), told);
    // A slice that stays as well is reported by itself.
    model.done.clear();
    model.view.unexported_slices = BTreeMap::from([("cart-2".into(), "has no ports".into())]);
    model.settle(&desired);
    let events = event_words(&model);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].0, "SliceNotExported");
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert!(
        valid.message.contains(words) && valid.message.contains("cart-2"),
        "{valid:?}"
    );
}

#[test]
fn an_unjudged_export_keeps_ready_until_the_hub_certainly_does_not_know_it() {
    let mut model = exporting();
    model.settle(&judged(status("export-1", 1)));
    model.settle(&told(&[source(OWN, false)], vec![]));
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(
        ready.status,
        ConditionStatus::True,
        "its own listing is under way"
    );
}

#[test]
fn pending_is_said_of_the_present_generation() {
    let mut model = exporting();
    let mut alone = Desired::default();
    alone.interest(&interest(1, &["shop"]));
    model.settle(&alone);
    model.view.export.as_mut().unwrap().generation = 2;
    model.settle(&alone);
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(ready.observed_generation, Some(2));
}

#[test]
fn an_export_that_is_not_judged_or_going_is_left_alone() {
    for spoil in [
        (|export| export.validity = Validity::Unknown) as fn(&mut FoundExport),
        |export| export.deleting = true,
    ] {
        let mut model = exporting();
        spoil(model.view.export.as_mut().unwrap());
        model.settle(&judged(status("export-1", 1)));
        assert!(model.done.is_empty());
    }
}

#[test]
fn slices_that_stay_behind_are_named_by_a_valid_export_and_told_once() {
    let mut model = exporting();
    let bad = |number: u8| (format!("cart-{number}").into(), "addressType FQDN".into());
    model.view.unexported_slices = (1..=1).map(bad).collect();
    let desired = judged(status("export-1", 1));
    model.settle(&desired);
    assert_eq!(words(&model.done), ["export status", "event"]);
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert_eq!((valid.status, &*valid.reason), (ConditionStatus::True, "Valid"));
    let said = "EndpointSlices that are not exported: cart-1: addressType FQDN";
    assert_eq!(&*valid.message, said);
    model.done.clear();
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    model.view.unexported_slices = (1..=9).map(bad).collect();
    model.settle(&desired);
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert!(
        valid.message.ends_with("cart-5: addressType FQDN; and 4 more"),
        "{valid:?}"
    );
    // and when they are mended, nothing is said any more
    model.view.unexported_slices.clear();
    model.done.clear();
    model.settle(&desired);
    assert_eq!(words(&model.done), ["export status"]);
    assert_eq!(&*found(&model, ConditionType::Valid).unwrap().message, "");
}

#[test]
fn what_makes_an_export_invalid_is_told_once() {
    let mut model = exporting();
    let invalid = |reason, message: &str| Validity::Invalid {
        reason,
        message: message.into(),
    };
    let told = judged(status("export-1", 1));
    model.settle(&told);
    for (validity, wanted) in [
        (
            invalid(InvalidReason::NoService, "no Service"),
            &["export status", "event"][..],
        ),
        (
            invalid(InvalidReason::NoService, "still none"),
            &["export status"],
        ),
        (
            invalid(InvalidReason::InvalidExport, "a label"),
            &["export status", "event"],
        ),
        (Validity::Valid, &["export status"]),
    ] {
        model.view.export.as_mut().unwrap().validity = validity;
        model.done.clear();
        model.settle(&told);
        assert_eq!(words(&model.done), wanted);
    }
}

fn denied(message: &str) -> ExportStatus {
    ExportStatus {
        denial: Some(Denial {
            reason: DenialReason::Policy,
            message: message.into(),
        }),
        ..status("export-1", 1)
    }
}

/// The hub may refuse an export that is valid here: the condition says so, and the cluster does not serve itself
/// either.
#[test]
fn an_export_that_the_hub_does_not_take_is_not_valid_and_serves_nobody_until_it_is_taken() {
    let mut model = exporting();
    let taken = told(
        &[source(OWN, true)],
        vec![
            DesiredChange::Import(Arc::new(import(&[port("http", 80)], &[OWN]))),
            DesiredChange::ExportStatus(Arc::new(status("export-1", 1))),
        ],
    );
    model.settle(&taken);
    let own = |model: &Model| model.view.our_slices().count();
    assert_eq!(own(&model), 1);
    // Another cluster exports it too, so the import stays.
    let refused = told(
        &[source(OWN, true), source("east", true)],
        vec![
            DesiredChange::Import(Arc::new(import(&[port("http", 80)], &["east"]))),
            DesiredChange::ExportStatus(Arc::new(denied("rule \"shop\" allows nothing"))),
        ],
    );
    model.settle(&refused);
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert_eq!(
        (valid.status, &*valid.reason),
        (ConditionStatus::False, "PolicyDenied")
    );
    assert_eq!(&*valid.message, "rule \"shop\" allows nothing");
    let ready = found(&model, ConditionType::Ready).unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "Pending")
    );
    assert_eq!(found(&model, ConditionType::Conflict), None);
    assert_eq!(own(&model), 0, "its own endpoints are behind the import no more");
    model.settle(&taken);
    assert_eq!(
        found(&model, ConditionType::Valid).unwrap().status,
        ConditionStatus::True
    );
    assert_eq!(own(&model), 1);
}

#[test]
fn endpoints_that_the_hub_leaves_out_are_named_in_the_condition() {
    let mut model = exporting();
    let left_out = ExportStatus {
        left_out: "1 endpoint is left out: 10.0.0.1 (why).".into(),
        ..status("export-1", 1)
    };
    model.settle(&judged(left_out));
    let valid = found(&model, ConditionType::Valid).unwrap();
    assert_eq!(valid.status, ConditionStatus::True);
    assert_eq!(&*valid.message, "1 endpoint is left out: 10.0.0.1 (why).");
}
