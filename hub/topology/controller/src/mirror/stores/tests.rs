//! Tests of all kinds.

use serde_json::json;

use super::*;

const CORE: &str = "cluster.x-k8s.io/v1beta2";

fn core(kind: &str) -> ApiResource {
    let kind = kube::core::GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind);
    ApiResource::from_gvk(&kind)
}

fn watched(api_version: &str, kind: &str) -> Watched {
    Watched::of(&(api_version.to_owned(), kind.to_owned()), false)
}

fn stores(kinds: &[&str]) -> Stores {
    let mut stores = Stores::default();
    stores.serve(Ok(Served {
        kinds: kinds.iter().map(|kind| core(kind)).collect(),
        pools: Some(core("MachinePool")),
    }));
    stores
}

fn list(stores: &mut Stores, watched: &Watched, objects: &[Value]) {
    let now = Instant::now();
    stores.see(watched, Event::Init, now).unwrap();
    for object in objects {
        let mut object = object.clone();
        object["apiVersion"] = json!(watched.api_version);
        object["kind"] = json!(watched.kind);
        stores.see(watched, Event::InitApply(object), now).unwrap();
    }
    stores.see(watched, Event::InitDone, now).unwrap();
}

fn class(infrastructure: &str) -> Value {
    json!({
        "metadata": {"name": "k", "namespace": "ns"},
        "spec": {"infrastructure": {"templateRef": {"apiVersion": infrastructure, "kind": "CloudTemplate", "name": "t"}}},
    })
}

fn cluster() -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"infrastructureRef": {"apiGroup": "p.x", "kind": "Cloud", "name": "c"}},
    })
}

fn waits(stores: &Stores) -> String {
    match stores.look(Instant::now()) {
        Look::Waits(why) => why,
        look => panic!("it waits for nothing: {look:?}"),
    }
}

fn whole(stores: &Stores) -> Listed {
    match stores.look(Instant::now()) {
        Look::Whole(listed) => listed,
        look => panic!("it is not whole: {look:?}"),
    }
}

#[test]
fn kinds_come_to_light_one_after_the_other_and_nothing_is_shown_before_the_last() {
    let mut stores = stores(&["ClusterClass", "Cluster"]);
    assert!(waits(&stores).contains("ClusterClass"), "{}", waits(&stores));
    list(&mut stores, &watched(CORE, "ClusterClass"), &[class("p.x/v1")]);
    list(&mut stores, &watched(CORE, "Cluster"), &[cluster()]);
    assert!(waits(&stores).contains("MachinePool"), "{}", waits(&stores));
    list(&mut stores, &watched(CORE, "MachinePool"), &[]);
    assert!(
        waits(&stores).contains("CloudTemplate of p.x/v1"),
        "{}",
        waits(&stores)
    );
    list(&mut stores, &watched("p.x/v1", "CloudTemplate"), &[]);
    assert!(waits(&stores).contains("Cloud of p.x/v1"), "{}", waits(&stores));
    let wanted = stores.wanted(Instant::now());
    assert!(!wanted.is_all && wanted.kinds.len() == 5, "{wanted:?}");
    list(
        &mut stores,
        &watched("p.x/v1", "Cloud"),
        &[json!({"metadata": {"name": "c", "namespace": "ns"}})],
    );
    let listed = whole(&stores);
    assert_eq!((listed.objects.len(), listed.unread.len()), (3, 0));
}

#[test]
fn what_a_class_alone_names_concerns_its_clusters_and_what_all_need_everything() {
    let mut stores = stores(&["ClusterClass", "Cluster"]);
    list(&mut stores, &watched(CORE, "ClusterClass"), &[class("p.x/v1")]);
    list(&mut stores, &watched(CORE, "Cluster"), &[cluster()]);
    stores.failed(
        &watched(CORE, "MachinePool"),
        "forbidden".to_owned(),
        Instant::now(),
    );
    stores.failed(
        &watched("p.x/v1", "CloudTemplate"),
        "not served".to_owned(),
        Instant::now(),
    );
    let listed = whole(&stores);
    let unread: Vec<&str> = listed.unread.values().map(String::as_str).collect();
    assert_eq!(unread, ["forbidden", "not served"]);
    let now = Instant::now();
    stores.failed(&watched(CORE, "Cluster"), "gone".to_owned(), now);
    assert!(
        matches!(stores.look(now), Look::Whole(_)),
        "it was listed a moment ago"
    );
    let later = now + super::super::store::BROKEN_MAX * 2;
    assert!(matches!(stores.look(later), Look::Unread(why) if why == "gone"));
}

#[test]
fn a_look_is_not_older_than_own_writes() {
    let mut stores = stores(&["ClusterClass", "Cluster"]);
    for kind in ["ClusterClass", "Cluster", "MachinePool"] {
        list(&mut stores, &watched(CORE, kind), &[]);
    }
    let mut written = cluster();
    written["apiVersion"] = json!(CORE);
    written["kind"] = json!("Cluster");
    written["metadata"]["resourceVersion"] = json!("7");
    stores.wrote(&written);
    assert!(waits(&stores).contains("ns/c"), "{}", waits(&stores));
    stores.restart_late();
    assert_eq!(
        stores.restart.iter().collect::<Vec<_>>(),
        [&watched(CORE, "Cluster")]
    );
    let now = Instant::now();
    stores
        .see(&watched(CORE, "Cluster"), Event::Apply(written.clone()), now)
        .unwrap();
    whole(&stores);
    written["metadata"]["uid"] = json!("u");
    stores
        .see(&watched(CORE, "Cluster"), Event::Apply(written), now)
        .unwrap();
    stores.deleted((CORE, "Cluster"), &("ns".to_owned(), "c".to_owned()), "u");
    assert!(waits(&stores).contains("ns/c"), "{}", waits(&stores));
}

#[test]
fn classes_may_name_any_number_of_kinds_and_core_kinds_are_watched_first() {
    let mut stores = stores(&["ClusterClass", "Cluster"]);
    let classes: Vec<Value> = (0..KINDS_MAX)
        .map(|number| {
            let mut class = class(&format!("a{number}.x/v1"));
            class["metadata"]["name"] = json!(format!("k{number}"));
            class
        })
        .collect();
    list(&mut stores, &watched(CORE, "ClusterClass"), &classes);
    list(&mut stores, &watched(CORE, "Cluster"), &[]);
    list(&mut stores, &watched(CORE, "MachinePool"), &[]);
    let wanted = stores.wanted(Instant::now());
    assert_eq!(wanted.kinds.len(), KINDS_MAX);
    assert_eq!(wanted.kinds[0], watched(CORE, "ClusterClass"));
    for kind in wanted.kinds.iter().skip(3) {
        list(&mut stores, kind, &[]);
    }
    assert_eq!(whole(&stores).unread.len(), 3);
}

#[test]
fn a_kind_without_room_is_left_out_with_a_reason() {
    let mut stores = stores(&[]);
    let kind = watched("p.x/v1", "CloudTemplate");
    let now = Instant::now();
    stores.see(&kind, Event::Init, now).unwrap();
    let large = json!({"metadata": {"name": "t"}, "spec": "x".repeat(BYTES_MAX + 1)});
    let why = stores.see(&kind, Event::InitApply(large), now).unwrap_err();
    assert!(why.contains("CloudTemplate") && why.contains("256 MiB"), "{why}");
    assert_eq!(stores.known(&kind, now), Known::Unread(why));
}

#[test]
fn kinds_that_nobody_names_any_more_are_forgotten() {
    let mut stores = stores(&["ClusterClass", "Cluster"]);
    list(&mut stores, &watched(CORE, "ClusterClass"), &[class("p.x/v1")]);
    list(&mut stores, &watched(CORE, "Cluster"), &[]);
    list(&mut stores, &watched(CORE, "MachinePool"), &[]);
    list(
        &mut stores,
        &watched("p.x/v1", "CloudTemplate"),
        &[json!({"metadata": {"name": "t"}})],
    );
    assert!(stores.define(&watched("p.x/v1", "CloudTemplate"), Some(json!({}))));
    assert_eq!(whole(&stores).objects.len(), 3);
    list(&mut stores, &watched(CORE, "ClusterClass"), &[]);
    let wanted = stores.wanted(Instant::now());
    stores.keep(&wanted);
    assert!(
        stores.definitions.is_empty() && stores.stores.len() == 3,
        "{stores:?}"
    );
}
