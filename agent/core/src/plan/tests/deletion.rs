//! The law of deletion: what came from another cluster goes only when it is certain that it is gone.

use model::sync::{DesiredKey, SourceState};

use super::*;
use crate::plan::{REASON_WITHDRAWAL_HELD, content::SliceContent, end, progress::End, withdraws};

/// Everything that a plan takes away from a service: deletions and lost ports, clusters, types, IPs.
#[track_caller]
fn takes_nothing(model: &Model, desired: &Desired) {
    let mut after = model.clone();
    after.settle(desired);
    let is_slice = |word: &&str| *word != "delete import" && *word != "delete service";
    assert!(
        words(&after.done).iter().all(is_slice),
        "{:?}",
        words(&after.done)
    );
    let (was, is) = (model.import(), after.import());
    assert!(is.status.clusters.is_superset(&was.status.clusters));
    assert!(
        was.content
            .ports
            .iter()
            .all(|port| is.content.ports.contains(port))
    );
    assert_eq!(is.content.service_type, was.content.service_type);
    assert_eq!(is.content.policies, was.content.policies);
    assert_eq!(is.content.ips, was.content.ips);
    assert!(
        after
            .derived()
            .content
            .ports
            .is_superset(&model.derived().content.ports)
    );
    for slice in model.slices() {
        if desired.sources().is_settled(&cluster(&slice.0)) {
            continue; // it is listed, and so what is not named is not there
        }
        assert!(after.slices().contains(&slice), "{slice:?} went");
    }
}

#[test]
fn a_hub_that_starts_empty_deletes_nothing() {
    let model = Model::settled(&east_and_west());
    for sources in [
        vec![],
        vec![source(OWN, true)],
        vec![source(OWN, true), source("east", true)],
        vec![source(OWN, true), source("east", true), source("west", false)],
    ] {
        takes_nothing(&model, &told(&sources, vec![]));
    }
}

#[test]
fn an_agent_without_a_hub_touches_nothing() {
    let mut model = Model::settled(&east_and_west());
    let mut desired = Desired::default();
    desired.interest(&interest(1, &["shop"]));
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
}

#[test]
fn a_snapshot_that_is_cut_off_changes_nothing() {
    let mut desired = east_and_west();
    let mut model = Model::settled(&desired);
    desired.welcome(&welcome(2, false));
    desired.snapshot_begin(epoch(2));
    model.settle(&desired);
    desired.session_ended();
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
}

#[test]
fn while_a_source_is_not_listed_an_import_may_only_gain() {
    let model = Model::settled(&east_and_west());
    let sources = [source("east", true), source("west", false), source("south", true)];
    let mut wanted = import(&[port("grpc", 90)], &["south"]);
    wanted.policies.session_affinity = SessionAffinity::ClientIp;
    let desired = told(&sources, both(wanted.clone(), &[slice("south", "c", "10.3.0.1")]));
    takes_nothing(&model, &desired);
    let mut after = model.clone();
    after.settle(&desired);
    assert_eq!(after.import().content.ports, [port("http", 80), port("grpc", 90)]);
    assert_eq!(after.import().status.clusters.len(), 3);
    // of another type: nothing at all
    wanted.service_type = ServiceType::Headless;
    takes_nothing(&model, &told(&sources, both(wanted, &[])));
}

#[test]
fn slices_of_a_source_that_is_not_listed_stay_as_they_are() {
    let model = Model::settled(&east_and_west());
    let slices = [slice("east", "a", "10.1.0.9"), slice("west", "b", "10.2.0.9")];
    let wanted = import(&[port("http", 80)], &["east", "west"]);
    let desired = told(
        &[source("east", true), source("west", false)],
        both(wanted, &slices),
    );
    let mut after = model;
    after.settle(&desired);
    let want = [("east", "10.1.0.9"), ("west", "10.2.0.1")];
    assert_eq!(after.slices(), want.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn a_recorded_removal_of_a_slice_counts_while_its_source_is_not_listed() {
    let mut desired = east_and_west();
    let mut model = Model::settled(&desired);
    desired.welcome(&welcome(1, true));
    desired.up_to(&up_to(1, 1, 5));
    desired.sources_changed(&[source("east", false), source("west", false)]);
    let removed = DesiredChange::Removed(DesiredKey::Slice(slice("west", "b", "10.2.0.1").key));
    desired.items(1, [item(6, removed)]);
    model.settle(&desired);
    assert_eq!(words(&model.done), ["delete slice"]);
    assert_eq!(model.slices().len(), 1);
    let removed = DesiredChange::Removed(DesiredKey::Import(key()));
    desired.items(1, [item(7, removed)]);
    model.done.clear();
    model.settle(&desired);
    assert!(model.done.is_empty(), "the import waits for its sources");
    desired.removals_done(&key());
    assert_eq!(desired.removed_slices(&key()).count(), 0);
}

#[test]
fn what_is_gone_with_certainty_goes_slices_first() {
    let all = Model::settled(&east_and_west());
    for state in [SourceState::Left, SourceState::Evicted, SourceState::Forgotten] {
        let mut west = source("west", false);
        (west.state, west.ended) = (state, true);
        let mut model = all.clone();
        model.settle(&told(&[source("east", true), west], vec![]));
        let order = ["delete slice", "delete slice", "delete import", "delete service"];
        assert_eq!(words(&model.done), order, "{state:?}");
    }
}

/// A hub over an old copy of its log knows an end, and not that the cluster came back since.
#[test]
fn an_end_that_only_the_log_tells_of_takes_nothing() {
    let model = Model::settled(&east_and_west());
    for state in [SourceState::Left, SourceState::Evicted, SourceState::Forgotten] {
        let mut west = source("west", false);
        west.state = state;
        takes_nothing(&model, &told(&[source("east", true), west], vec![]));
    }
}

#[test]
fn a_lost_source_is_not_gone() {
    let model = Model::settled(&east_and_west());
    let mut west = source("west", false);
    west.state = SourceState::Lost;
    takes_nothing(&model, &told(&[source("east", true), west], vec![]));
}

#[test]
fn until_the_hub_has_named_the_sources_nothing_goes() {
    let mut desired = told(&[source("east", true), source("west", true)], vec![]);
    let mut model = Model::settled(&east_and_west());
    desired.welcome(&welcome(1, true));
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    desired.sources_changed(&[source("east", true), source("west", false)]);
    model.settle(&desired);
    assert_eq!(
        words(&model.done),
        ["delete slice"],
        "that of east, which is listed"
    );
    desired.sources_changed(&[source("west", true)]);
    model.settle(&desired);
    assert_eq!(model.deletions(), 4);
}

#[test]
fn sources_are_remembered_by_the_object_when_its_status_was_never_written() {
    let mut model = Model::settled(&east_and_west());
    model.view.slices.clear();
    let Found::Ours(import) = &mut model.view.import else {
        unreachable!()
    };
    import.content.status = Default::default();
    model.settle(&told(&[source(OWN, true)], vec![]));
    assert_eq!(model.deletions(), 0);
    // and by the derived Service, when somebody deleted the import
    model.view.import = Found::Absent;
    model.settle(&told(&[source(OWN, true)], vec![]));
    assert_eq!(model.deletions(), 0);
    model.settle(&told(&[source("east", true), source("west", true)], vec![]));
    assert_eq!(words(&model.done).last(), Some(&"delete service"));
}

#[test]
fn a_strangers_object_is_reported_and_never_touched() {
    let desired = east_and_west();
    let mut model = Model::new();
    model.view.import = Found::Stranger;
    let plan = model.settle(&desired);
    assert!(model.done.is_empty() && plan.reports.len() == 1, "{plan:?}");

    let mut model = Model::new();
    model.view.derived = Found::Stranger;
    let plan = model.settle(&desired);
    assert_eq!(plan.reports.len(), 1);
    assert_eq!(model.view.derived, Found::Stranger);
    let ready = model.import().status.ready.clone().unwrap();
    assert!(ready.message.contains("not Tributary's"), "{ready:?}");
    assert!(model.import().content.ips.is_empty());

    let mut model = Model::new();
    model.view.slices = strangers(&desired);
    let plan = model.settle(&desired);
    assert_eq!(plan.reports.len(), 2);
    // nor when everything goes
    model.view.import = Found::Stranger;
    model.view.derived = Found::Stranger;
    model.done.clear();
    let plan = model.settle(&told(&[source("east", true), source("west", true)], vec![]));
    assert!(model.done.is_empty() && plan.reports.is_empty());
}

#[test]
fn nothing_is_planned_from_what_has_not_been_listed() {
    let settled = Model::settled(&east_and_west());
    let gone = told(&[source("east", true), source("west", true)], vec![]);
    let hide: [fn(&mut ServiceView); 5] = [
        |view| view.known.imports = false,
        |view| view.known.services = false,
        |view| view.known.slices = false,
        |view| view.namespace = NamespaceState::Unknown,
        |view| view.namespace = NamespaceState::Terminating,
    ];
    for hide in hide {
        let mut model = settled.clone();
        hide(&mut model.view);
        model.settle(&gone);
        assert!(model.done.is_empty(), "{:?}", words(&model.done));
    }
}

#[test]
fn own_slices_follow_own_watches_without_a_hub() {
    let wanted = import(&[port("http", 80)], &["east", OWN]);
    let sources = [source("east", true), source(OWN, true)];
    let changes = both(wanted, &[slice("east", "a", "10.1.0.1")]);
    let mut model = Model::new();
    model.export(&[port("http", 80)], "10.0.0.1");
    model.settle(&told(&sources, changes));
    assert_eq!(model.slices().len(), 2);
    // restarted, no hub: through the import that is found
    let mut alone = Desired::default();
    alone.interest(&interest(1, &["shop"]));
    model.done.clear();
    model.settle(&alone);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    model.export(&[port("http", 80), port("admin", 81)], "10.0.0.2");
    model.view.export.as_mut().unwrap().validity = Validity::Valid;
    model.settle(&alone);
    assert_eq!(model.slices()[1], (OWN.to_owned(), "10.0.0.2".to_owned()));
    let own = model
        .view
        .our_slices()
        .find(|(_, slice)| slice.content.source_cluster == Some(cluster(OWN)));
    let own = &own.unwrap().1.content;
    assert_eq!(own.ports.len(), 1, "admin is not eligible");
    assert_eq!(own.endpoints[0].node_name.as_deref(), Some("node-1"));
    // The copy of a slice that cannot be decoded any more stays.
    let slices = std::mem::take(&mut model.view.own_slices);
    model.view.unread_slices = slices.iter().map(|slice| slice.name.clone()).collect();
    model.settle(&alone);
    assert_eq!(model.slices().len(), 2);
    model.view.own_slices = slices;
    model.view.unread_slices = vec!["of-another-service".into()];
    // unknown exports: nothing; no export: gone
    model.view.export = None;
    model.view.known.exports = false;
    model.settle(&alone);
    assert_eq!(model.slices().len(), 2);
    model.view.known.exports = true;
    model.settle(&alone);
    assert_eq!(model.slices(), [("east".to_owned(), "10.1.0.1".to_owned())]);
}

#[test]
fn own_slices_stay_while_a_winner_may_be_missing() {
    let wanted = import(&[port("http", 80)], &["east", OWN]);
    let sources = [source("east", true), source(OWN, true)];
    let mut model = Model::new();
    model.export(&[port("http", 80)], "10.0.0.1");
    model.settle(&told(&sources, both(wanted, &[slice("east", "a", "10.1.0.1")])));
    let before = model.slices();
    assert_eq!(before.len(), 2);
    // A hub that started empty: without east, west's port has the name, and ours is not eligible.
    let mut other = import(&[port("http", 8080)], &["west"]);
    other.clusters.insert(cluster(OWN), vec![]);
    let sources = [source("east", false), source("west", true), source(OWN, true)];
    model.settle(&told(&sources, both(other, &[])));
    assert_eq!(model.slices(), before);
}

#[test]
fn a_source_that_only_the_hub_names_must_be_listed_too() {
    let mut model = Model::settled(&told(
        &[source("east", true), source("west", true)],
        both(
            import(&[port("http", 80)], &["east"]),
            &[slice("east", "a", "10.1.0.1")],
        ),
    ));
    let mut stale = import(&[port("web", 80)], &["east", "west"]);
    stale.service_type = ServiceType::Headless;
    let restored = told(
        &[source("east", true), source("west", false)],
        both(stale.clone(), &[slice("east", "a", "10.1.0.1")]),
    );
    takes_nothing(&model, &restored);
    stale.service_type = ServiceType::ClusterSetIp;
    let restored = told(
        &[source("east", true), source("west", false)],
        both(stale, &[slice("east", "a", "10.1.0.1")]),
    );
    takes_nothing(&model, &restored);
    model.settle(&restored);
    assert_eq!(model.import().content.ports, [port("http", 80)]);
}

#[test]
fn slices_stay_while_the_winner_over_their_ports_may_be_missing() {
    let ports = [port("http", 80), port("admin", 81)];
    let slices = [slice("east", "a", "10.1.0.1"), slice("west", "b", "10.2.0.1")];
    let sources = [source("east", true), source("west", true)];
    let mut model = Model::settled(&told(&sources, both(import(&ports, &["east", "west"]), &slices)));
    let before = model.slices();
    // Without east, south's http wins, and west's is not eligible.
    let mut other = import(&[port("http", 8080)], &["south"]);
    other.clusters.insert(cluster("west"), vec![]);
    let sources = [source("east", false), source("west", true), source("south", true)];
    let partial = told(&sources, both(other.clone(), &[]));
    model.settle(&partial);
    assert_eq!(model.slices(), before);
    // West itself withdraws its export: that is certain.
    other.clusters.remove(&cluster("west"));
    model.settle(&told(&sources, both(other, &[])));
    assert_eq!(model.slices(), before[..1]);
}

fn port_names(model: &Model, source: &str) -> Vec<Box<str>> {
    let is_from = |slice: &&Ours<SliceContent>| slice.content.source_cluster == Some(cluster(source));
    let mut slices = model.view.our_slices().map(|(_, slice)| slice);
    let ports = slices.find(is_from).map(|slice| slice.content.ports.clone());
    let mut names: Vec<Box<str>> = ports.into_iter().flatten().map(|port| port.name).collect();
    names.sort();
    names
}

#[test]
fn a_port_of_a_slice_stays_while_the_winner_over_it_may_be_missing() {
    let ports = [port("http", 80), port("admin", 81)];
    let mut of_west = slice("west", "b", "10.2.0.1");
    of_west.ports.push(endpoint_port("admin", 8081));
    let slices = [slice("east", "a", "10.1.0.1"), of_west.clone()];
    let sources = [source("east", true), source("west", true)];
    let mut model = Model::settled(&told(&sources, both(import(&ports, &["east", "west"]), &slices)));
    // Without east, south's http wins: of west's ports only admin is eligible.
    let mut other = import(&[port("http", 8080), port("admin", 81)], &["south"]);
    other.clusters.insert(cluster("west"), vec![1]);
    of_west.ports.remove(0);
    let desired = |east_listed| {
        let sources = ["west", "south"].map(|name| source(name, true));
        let sources = [[source("east", east_listed)].as_slice(), &sources].concat();
        told(&sources, both(other.clone(), &[of_west.clone()]))
    };
    model.settle(&desired(false));
    assert_eq!(port_names(&model, "west"), ["admin".into(), "http".into()]);
    model.settle(&desired(true));
    assert_eq!(port_names(&model, "west"), ["admin".into()]);
}

#[test]
fn a_port_without_a_name_that_nobody_wins_over_goes_with_its_slice() {
    let unnamed = |source, name, address| {
        let mut slice = slice(source, name, address);
        slice.ports = vec![endpoint_port("", 8080)];
        slice
    };
    let wanted = import(&[port("", 80)], &["east", "west"]);
    let slices = [unnamed("east", "a", "10.1.0.1"), unnamed("west", "b", "10.2.0.1")];
    let sources = |east_listed| [source("east", east_listed), source("west", true)];
    let mut model = Model::settled(&told(&sources(true), both(wanted.clone(), &slices)));
    model.settle(&told(&sources(false), both(wanted, &[])));
    assert_eq!(model.slices(), [("east".to_owned(), "10.1.0.1".to_owned())]);
}

/// Somebody deleted the import, or has an object of its name; then the hub began empty. The derived Service alone
/// remembers whose it is.
#[test]
fn a_derived_service_without_its_import_keeps_its_sources_and_what_they_decided() {
    let mut model = Model::settled(&east_and_west());
    model.view.import = Found::Absent;
    model.view.slices.clear();
    let (before, ports) = (model.derived().clone(), model.derived().content.ports.clone());
    let sources = |listed: &[bool; 2]| {
        let listed = [source("east", listed[0]), source("west", listed[1])];
        [&listed[..], &[source("south", true), source(OWN, true)]].concat()
    };
    let mut wanted = import(&[port("http", 8080)], &["south"]);
    wanted.policies.session_affinity = SessionAffinity::ClientIp;
    let of_south = told(&sources(&[false; 2]), both(wanted.clone(), &[]));
    model.settle(&of_south);
    let after = model.derived();
    assert!(
        after.content.sources.is_superset(&before.content.sources),
        "{after:?}"
    );
    assert!(after.content.ports.is_superset(&ports), "{after:?}");
    assert_eq!(after.content.policies, before.content.policies);
    assert!(
        model
            .import()
            .status
            .clusters
            .is_superset(&before.content.sources)
    );
    // For another type: nothing at all.
    let mut headless = Model::settled(&east_and_west());
    headless.view.import = Found::Absent;
    wanted.service_type = ServiceType::Headless;
    headless.settle(&told(&sources(&[false; 2]), both(wanted, &[])));
    assert!(headless.done.is_empty(), "{:?}", words(&headless.done));
    // South withdraws its export, and somebody takes the import's name: the Service waits for east and west.
    model.view.import = Found::Stranger;
    model.done.clear();
    model.settle(&told(&sources(&[true, false]), vec![]));
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    model.settle(&told(&sources(&[true; 2]), vec![]));
    assert_eq!(words(&model.done), ["delete service"]);
}

/// Otherwise it would go when a cluster that no longer exports it is listed, while the exporting one is not.
#[test]
fn a_derived_service_whose_import_is_a_strangers_records_whose_it_is() {
    let of_east = told(
        &[source("east", true), source("west", true)],
        both(
            import(&[port("http", 80)], &["east"]),
            &[slice("east", "a", "10.1.0.1")],
        ),
    );
    let mut model = Model::settled(&of_east);
    model.view.import = Found::Stranger;
    let of_west = told(
        &[source("east", true), source("west", true)],
        both(
            import(&[port("http", 80)], &["west"]),
            &[slice("west", "b", "10.2.0.1")],
        ),
    );
    let plan = model.settle(&of_west);
    assert_eq!(model.view.import, Found::Stranger);
    assert_eq!(plan.reports.len(), 1);
    assert_eq!(model.derived().content.sources, [cluster("west")].into());
    assert_eq!(model.slices(), [("west".to_owned(), "10.2.0.1".to_owned())]);
    model.view.slices.clear();
    model.done.clear();
    model.settle(&told(&[source("east", true), source("west", false)], vec![]));
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    model.settle(&told(&[source("east", true), source("west", true)], vec![]));
    assert_eq!(words(&model.done), ["delete service"]);
}

/// A member that never lists cannot block others by stating an older export of another type.
#[test]
fn what_may_not_become_of_another_type_yet_gains_who_exports_now() {
    let mut model = Model::settled(&east_and_west());
    let ports = [port("http", 80), port("admin", 81)];
    let mut headless = import(&ports, &["east", "mallory", "south", "west"]);
    headless.service_type = ServiceType::Headless;
    let slices = [slice("east", "a", "10.1.0.9"), slice("south", "n", "10.4.0.1")];
    let known = ["east", "west", "south", OWN].map(|name| source(name, true));
    let sources: Vec<Source> = known.into_iter().chain([source("mallory", false)]).collect();
    let desired = told(&sources, both(headless, &slices));
    takes_nothing(&model, &desired);
    model.settle(&desired);
    let import = model.import();
    assert_eq!(import.content.service_type, Some(ServiceType::ClusterSetIp));
    assert_eq!(import.content.ports.len(), ports.len());
    assert!(import.status.clusters.contains(&cluster("south")));
    let stands = |cluster: &str, address: &str| model.slices().contains(&(cluster.into(), address.into()));
    assert!(
        stands("south", "10.4.0.1") && stands("east", "10.1.0.9"),
        "{:?}",
        model.slices()
    );
}

/// The hub takes away too much at once: what came from others stays, and says why; what is desired again is as before.
#[test]
fn an_import_on_hold_stays_and_says_so() {
    let mut model = Model::settled(&east_and_west());
    let sources = [source(OWN, true), source("east", true), source("west", true)];
    let gone = told(&sources, vec![]);
    assert!(withdraws(&gone, &model.view, &key()));
    let before = model.slices();
    model.view.withdrawal_held = true;
    model.settle(&gone);
    assert_eq!(words(&model.done), ["import status"]);
    assert_eq!(model.slices(), before);
    let ready = model.import().status.ready.clone().expect("a condition");
    assert_eq!(&*ready.reason, REASON_WITHDRAWAL_HELD);
    assert_eq!(end(&gone, &model.view, &key(), &Plan::default()), End::Open);
    model.view.withdrawal_held = false;
    model.settle(&gone);
    assert!(
        words(&model.done).contains(&"delete import"),
        "{:?}",
        words(&model.done)
    );

    let mut back = Model::settled(&east_and_west());
    back.view.withdrawal_held = true;
    back.settle(&east_and_west());
    assert!(back.done.is_empty(), "only a removal is held");
}
